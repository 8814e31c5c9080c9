//! `export`, and the rejected rows of `import --errors`.

use crate::support::program::Desk;

const PERMITS: &str = "\
permit_number,permit_type,holder_name,holder_email,expires_on
0017,Food,José García,jose@example.com,2027-12-30
-18,Food,=Ann,ann@example.com,2027-12-08
";

fn desk() -> Desk {
    let desk = Desk::new().with("CLOCK", "2026-11-01T09:00:00Z");
    std::fs::write(desk.folder().join("permits.csv"), PERMITS).expect("written");
    desk
}

#[test]
fn what_is_exported_is_imported_again_without_a_change() {
    let desk = desk();
    assert_eq!(desk.json(&["import", "permits.csv", "--json"])["permits_created"], 2);
    let csv = desk.run(&["export"]);
    assert_eq!(csv.code, Some(0), "{csv:?}");
    assert!(csv.out.starts_with("id,permit_number,") && csv.out.contains(",'-18,food,active,"), "{csv:?}");
    let marked = desk.run(&["export", "--bom"]);
    assert_eq!(marked.out, format!("\u{feff}{}", csv.out));
    std::fs::write(desk.folder().join("out.csv"), &marked.out).expect("written");
    let again = desk.json(&["import", "out.csv", "--json"]);
    assert_eq!((&again["unchanged"], &again["committed"]), (&2.into(), &true.into()), "{again}");
    assert_eq!(desk.run(&["export"]).out, csv.out);
    let permits: Vec<serde_json::Value> =
        serde_json::from_value(desk.json(&["export", "--format", "json"])).expect("a list");
    assert_eq!((permits.len(), &permits[0]["holder_name"]), (2, &"=Ann".into()));
    for (wrong, code) in [(&["export", "--format", "xlsx"][..], 2), (&["export", "--format", "json", "--bom"], 1)] {
        let refused = desk.run(wrong);
        assert_eq!((refused.code, refused.out.as_str()), (Some(code), ""), "{refused:?}");
    }
}

#[test]
fn rejected_rows_are_written_with_what_is_wrong() {
    let desk = desk();
    let rows = PERMITS.replace("2027-12-08", "soon");
    std::fs::write(desk.folder().join("permits.csv"), rows).expect("written");
    let done = desk.run(&["import", "permits.csv", "--errors", "errors.csv"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let errors = std::fs::read_to_string(desk.folder().join("errors.csv")).expect("the file");
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines[0], "permit_number,permit_type,holder_name,holder_email,expires_on,error");
    assert!(
        lines[1].starts_with("-18,Food,=Ann,ann@example.com,soon,") && lines[1].contains("no such date"),
        "{errors}"
    );
    let elsewhere = desk.run(&["import", "permits.csv", "--errors", "/nowhere/errors.csv"]);
    assert_eq!(elsewhere.code, Some(1), "{elsewhere:?}");
    assert!(elsewhere.err.contains("--errors"), "{elsewhere:?}");
}
