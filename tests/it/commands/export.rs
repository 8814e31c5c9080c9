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
    for (wrong, code) in [
        (&["export", "--format", "ods"][..], 2),
        (&["export", "--format", "xlsx", "--bom"], 2),
        (&["export", "--format", "json", "--bom"], 2),
    ] {
        let refused = desk.run(wrong);
        assert_eq!((refused.code, refused.out.as_str()), (Some(code), ""), "{refused:?}");
    }
}

#[test]
fn an_export_takes_the_filters_of_the_list_and_is_in_the_audit() {
    let desk = desk();
    assert_eq!(desk.json(&["import", "permits.csv", "--json"])["permits_created"], 2);
    let count = |options: &[&str]| desk.run(&[&["export"], options].concat()).out.lines().count() - 1;
    assert_eq!(count(&["--q", "garcía", "--permit-type", "FOOD", "--status", "active", "--archived", "false"]), 1);
    assert_eq!((count(&["--status", "revoked"]), count(&["--expires-from", "2027-12-09"])), (0, 1));
    assert_eq!((count(&["--expires-to", "2027-12-08"]), count(&["--phase", "expired"])), (1, 0));
    assert_eq!(count(&["--updated-since", "2099-01-01T00:00:00Z"]), 0);
    let book = desk.run(&["export", "--format", "xlsx"]);
    assert!(book.code == Some(0) && book.out.starts_with("PK"), "{book:?}");
    let public = desk.run(&["export", "--format", "blds", "--bom"]);
    assert!(public.out.starts_with("\u{feff}PermitNum,") && !public.out.contains("García"), "{public:?}");
    for (wrong, code) in [(["--permit-type", "Taxi"], 1), (["--phase", "dead"], 2), (["--archived", "maybe"], 2)] {
        let refused = desk.run(&[&["export"][..], &wrong].concat());
        assert_eq!((refused.code, refused.out.as_str()), (Some(code), ""), "{refused:?}");
        assert!(refused.err.contains(wrong[0]), "{refused:?}");
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
    assert_eq!(lines[0], "\u{feff}permit_number,permit_type,holder_name,holder_email,expires_on,error");
    assert!(
        lines[1].starts_with("'-18,Food,'=Ann,ann@example.com,soon,") && lines[1].contains("not understood as a date"),
        "{errors}"
    );
    let folder = std::fs::read_dir(desk.folder()).expect("the folder").count();
    let before = std::fs::read_to_string(desk.folder().join("permits.csv")).expect("the file");
    std::os::unix::fs::symlink("permits.csv", desk.folder().join("link.csv")).expect("a link");
    for elsewhere in ["/nowhere/errors.csv", "permits.csv", "./link.csv", "."] {
        let refused = desk.run(&["import", "permits.csv", "--keep-good-rows", "--errors", elsewhere]);
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:?}");
        assert!(refused.err.contains("--errors"), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(desk.folder().join("permits.csv")).expect("the file"), before);
    assert_eq!(desk.run(&["export"]).out.lines().count(), 1, "nothing was imported");
    // The file is there when it is whole, and nothing else is left.
    let kept = desk.run(&["import", "permits.csv", "--keep-good-rows", "--errors", "errors.csv", "--json"]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert_eq!(std::fs::read_dir(desk.folder()).expect("the folder").count(), folder + 1);
    let straight = desk.run(&["import", "permits.csv", "--keep-good-rows", "--errors", "/dev/stdout"]);
    assert!(straight.code == Some(0) && straight.out.contains("not understood as a date"), "{straight:?}");
}
