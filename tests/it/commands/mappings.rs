//! Mappings that are saved by one import and used by the next.

use crate::support::program::Desk;

const OLD: &str = "Ref;Who;Who else;Until;State\nA-1;Ann;Zoe;04/05/2027;laufend\nA-2;Bob;Yan;05/05/2027;ruhend\n";

fn desk() -> Desk {
    let desk = Desk::new().with("CLOCK", "2026-11-01T09:00:00Z");
    std::fs::write(desk.folder().join("old.csv"), OLD).expect("written");
    std::fs::write(desk.folder().join("new.csv"), OLD.replace("2027", "2028")).expect("written");
    std::fs::write(desk.folder().join("other.csv"), OLD.replace("Ref;", "Reference;")).expect("written");
    desk
}

const CHOSEN: [&str; 14] = [
    "--map",
    "permit_number=Ref",
    "--map",
    "holder_name=Who",
    "--map",
    "expires_on=Until",
    "--map",
    "status=State",
    "--status",
    "laufend=active",
    "--status",
    "ruhend=suspended",
    "--permit-type",
    "Taxi",
];

#[test]
fn what_was_saved_is_used_again_and_what_is_given_goes_before_it() {
    let desk = desk();
    let saved = ["--date-format", "%d/%m/%Y", "--save-mapping", "  Old   System "];
    let first = desk.json(&[&["import", "old.csv", "--json"], &CHOSEN[..], &saved[..]].concat());
    assert_eq!((&first["permits_created"], &first["committed"]), (&2.into(), &true.into()), "{first}");
    let again = desk.json(&["import", "new.csv", "--mapping", "old system", "--json"]);
    assert_eq!((&again["permits_renewed"], &again["rejected"]), (&2.into(), &0.into()), "{again}");
    let exported = desk.run(&["export"]).out;
    assert!(exported.contains(",A-1,taxi,active,") && exported.contains(",A-2,taxi,suspended,"), "{exported}");
    assert!(exported.contains(",2028-05-04,"), "{exported}");

    let given = ["--map", "holder_name=Who else", "--permit-type", "Cab", "--status", "ruhend=closed"];
    let report = desk.json(&[&["import", "new.csv", "--mapping", "Old System", "--json"], &given[..]].concat());
    assert_eq!(report["permits_updated"], 2, "{report}");
    let exported = desk.run(&["export"]).out;
    assert!(exported.contains(",A-1,cab,active,active,Zoe,") && exported.contains(",A-2,cab,closed,"), "{exported}");

    let by_month = ["import", "new.csv", "--mapping", "Old System", "--date-format", "%m/%d/%Y", "--dry-run", "--json"];
    assert_eq!(desk.json(&by_month)["guessed"]["date_format"], "%m/%d/%Y");

    // A copy under another name, and one that is replaced.
    let copied = ["import", "new.csv", "--mapping", "Old System", "--save-mapping", "Copy"];
    assert_eq!(desk.run(&copied).code, Some(0));
    assert_eq!(desk.run(&["import", "new.csv", "--mapping", "copy"]).code, Some(0));
}

#[test]
fn a_mapping_that_does_not_fit_or_does_not_exist_is_named() {
    let desk = desk();
    let unknown = desk.run(&["import", "old.csv", "--mapping", "Nothing"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.err.contains("no mapping is saved as \"Nothing\"; saved are: none"), "{unknown:?}");
    let format = ["--date-format", "%d/%m/%Y", "--save-mapping", "Old"];
    // What cannot be read is not saved.
    let refused = desk.run(&[&["import", "other.csv"], &CHOSEN[..], &format[..]].concat());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("has no column \"Ref\" for permit_number; its columns are"), "{refused:?}");
    assert!(desk.run(&["import", "old.csv", "--mapping", "Old"]).err.contains("saved are: none"));
    assert_eq!(desk.run(&[&["import", "old.csv"], &CHOSEN[..], &format[..]].concat()).code, Some(0));
    let gone = desk.run(&["import", "other.csv", "--mapping", "old"]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    for said in
        ["the file has no column \"Ref\"", "the saved mapping \"Old\" reads permit_number", "\"Reference\", \"Who\""]
    {
        assert!(gone.err.contains(said), "{said}: {gone:?}");
    }
    let mended = ["import", "other.csv", "--mapping", "old", "--map", "permit_number=Reference"];
    assert_eq!(desk.run(&mended).code, Some(0));
    let known = desk.run(&["import", "old.csv", "--mapping", "Nothing"]);
    assert!(known.err.contains("saved are: Old"), "{known:?}");
    for wrong in [
        &["import", "old.csv", "--save-mapping", "Empty"][..],
        &["import", "old.csv", "--save-mapping", " "],
        &["import", "old.csv", "--mapping", &"x".repeat(101)],
        &["import", "old.csv", "--permit-type", "Taxi", "--save-mapping", "X", "--dry-run"],
    ] {
        let refused = desk.run(wrong);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.err.contains("mapping"), "{refused:?}");
    }
}

#[test]
fn what_a_mapping_says_of_a_sheet_or_header_row_is_left_aside_in_a_file_of_errors() {
    let desk = desk();
    let mut book = rust_xlsxwriter::Workbook::new();
    book.add_worksheet().set_name("Notes").expect("a name").write_string(0, 0, "x").expect("written");
    let sheet = book.add_worksheet().set_name("Permits").expect("a name");
    sheet.write_string(0, 0, "Licences").expect("written");
    sheet.write_row(3, 0, ["Ref", "Who", "Until"]).expect("written");
    let rows = [["A-1", "Ann", "2027-05-04"], ["A-2", "Bob", "soon"], ["A-3", "Cy", "later"], ["A-4", "Di", "once"]];
    for (at, row) in (4..).zip(rows) {
        sheet.write_row(at, 0, row).expect("written");
    }
    book.save(desk.folder().join("book.xlsx")).expect("written");
    let map = [&CHOSEN[..6], &CHOSEN[12..]].concat();
    let place = ["--sheet", "Permits", "--header-row", "4", "--save-mapping", "Book", "--keep-good-rows"];
    let errors = ["--errors", "errors.csv"];
    let first = desk.run(&[&["import", "book.xlsx"], &map[..], &place, &errors].concat());
    assert_eq!(first.code, Some(0), "{first:?}");
    let text = std::fs::read_to_string(desk.folder().join("errors.csv")).expect("the file");
    let mended = text.replace("soon", "2027-05-04").replace("later", "2027-05-05").replace("once", "2027-05-06");
    std::fs::write(desk.folder().join("errors.csv"), mended).expect("written");
    let again = desk.json(&["import", "errors.csv", "--mapping", "Book", "--json"]);
    assert_eq!((&again["permits_created"], &again["guessed"]["header_row"]), (&3.into(), &1.into()), "{again}");
    // What somebody says now is another matter.
    let sheet = desk.run(&["import", "errors.csv", "--mapping", "Book", "--sheet", "Permits"]);
    assert!(sheet.code == Some(1) && sheet.err.contains("a text file has no sheets"), "{sheet:?}");
    let row = desk.run(&["import", "errors.csv", "--mapping", "Book", "--header-row", "9"]);
    assert!(row.code == Some(1) && row.err.contains("row 9, which was to be the header"), "{row:?}");
}
