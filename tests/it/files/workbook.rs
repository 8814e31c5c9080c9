//! Workbooks as they are written, cell by cell.

use std::io::{Cursor, Read};

use permit_notifier::files::export::xlsx::{Book, Cell};

fn written(book: Book) -> Vec<u8> {
    let mut bytes = Vec::new();
    book.finish().unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn part(file: &[u8], name: &str) -> String {
    let mut text = String::new();
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).unwrap();
    archive.by_name(name).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_sheet_that_is_full_is_followed_by_another_with_the_same_header() {
    let mut book = Book::new(&["number", "day"], 3).unwrap();
    for number in 0..5 {
        book.add(vec![Cell::Text(format!("P-{number}")), Cell::Empty]).unwrap();
    }
    let file = written(book);
    let names: Vec<String> = part(&file, "xl/workbook.xml")
        .split("<sheet name=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["Permits", "Permits 2", "Permits 3"]);
    for (sheet, numbers) in [(1, &["P-0", "P-1"][..]), (2, &["P-2", "P-3"]), (3, &["P-4"])] {
        let sheet = part(&file, &format!("xl/worksheets/sheet{sheet}.xml"));
        let texts: Vec<&str> = sheet.split("<t>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
        assert_eq!(texts, [&["number", "day"], numbers].concat());
    }
}

#[test]
fn what_a_sheet_cannot_hold_is_text_or_cut() {
    let mut book = Book::new(&["a", "b", "c", "d", "e"], 10).unwrap();
    let day = |text: &str| Cell::Day(text.parse().unwrap());
    book.add(vec![
        day("1899-12-31"),
        day("1900-03-01"),
        Cell::Text("=1+1".to_owned()),
        Cell::Text("é".repeat(32_767)),
        Cell::Text(format!("{}\u{1f512}", "x".repeat(32_766))),
    ])
    .unwrap();
    let sheet = part(&written(book), "xl/worksheets/sheet1.xml");
    assert!(sheet.contains("<t>1899-12-31</t>") && sheet.contains("<v>61</v>"), "{}", &sheet[..2000]);
    assert!(sheet.contains("<t>=1+1</t>") && !sheet.contains("<f>"), "{}", &sheet[..2000]);
    assert!(sheet.contains(&format!("<t>{}</t>", "é".repeat(32_767))));
    assert!(sheet.contains(&format!("<t>{}…</t>", "x".repeat(32_766))), "the lock takes two of the units");
}
