//! Workbooks and other encodings, applied to a real database.

use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use permit_notifier::files::export::rejected_rows;
use rust_xlsxwriter::{Format, Workbook};
use sqlx::PgPool;

use super::{Desk, all_or_nothing, keep_good_rows, rules};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples").join(name)
}

#[tokio::test]
async fn files_of_any_kind_change_nothing_when_they_come_twice() {
    for (name, rows, foreign) in
        [("licences.xlsx", 100, 42), ("semicolon_cp1252.csv", 30, 7), ("utf16_tab.txt", 30, 16)]
    {
        let desk = Desk::new().await;
        let first = desk.try_import(&sample(name), &keep_good_rows(), &rules()).await.unwrap();
        assert_eq!(
            (first.committed, first.rows, first.permits_created),
            (true, rows, rows),
            "{name} {:?}",
            first.errors
        );
        let counted = "SELECT count(*) FROM permits WHERE holder_name ~ '[^\\x01-\\x7f]'";
        assert_eq!(desk.ask(counted).await, foreign.to_string(), "{name}");
        let before = desk.dump().await;
        let second = desk.try_import(&sample(name), &keep_good_rows(), &rules()).await.unwrap();
        assert_eq!((second.permits_created, second.permits_updated, second.unchanged), (0, 0, rows), "{name}");
        assert_eq!(desk.dump().await, before, "{name}");
    }
}

#[tokio::test]
async fn rejected_rows_of_a_sheet_are_given_back_as_csv_that_can_be_mended() {
    let desk = Desk::new().await;
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    let day = Format::new().set_num_format("d.m.yyyy");
    sheet.write_string(0, 0, "Licences").unwrap();
    sheet.write_row(2, 0, ["No", "Type", "Holder", "Note", "Issued", "Expires"]).unwrap();
    for row in 3..6 {
        sheet.write_row(row, 1, ["Food", "Ann; Lee", "a, \"b\"", "", "2026-13-01"]).unwrap();
        sheet.write_number(row, 0, row * 1000).unwrap();
        sheet.write_number_with_format(row, 4, 46_000, &day).unwrap();
    }
    sheet.write_number_with_format(4, 5, 46_143, &day).unwrap();
    let path = desk.folder.path().join("some.xlsx");
    book.save(&path).unwrap();
    let report = desk.try_import(&path, &all_or_nothing(), &rules()).await.unwrap();
    let rows: Vec<u64> = report.errors.iter().filter_map(|error| error.row).collect();
    assert_eq!((report.committed, rows), (false, vec![4, 6]));
    let pool = PgPool::connect(&desk.url).await.unwrap();
    let pieces: Vec<Vec<u8>> =
        rejected_rows(pool.clone(), report.id.unwrap()).await.unwrap().try_collect().await.unwrap();
    let text = String::from_utf8(pieces.concat()).unwrap();
    let text = text.trim_start_matches('\u{feff}');
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "No,Type,Holder,Note,Issued,Expires,error");
    assert!(lines[1].starts_with("3000,Food,Ann; Lee,\"a, \"\"b\"\"\",2025-12-09,2026-13-01,"), "{text}");
    assert!(lines[2].starts_with("5000,") && lines.len() == 3, "{text}");
    let mended = desk.file("mended.csv", &text.replace("2026-13-01", "2026-12-01"));
    let report = desk.try_import(&mended, &all_or_nothing(), &rules()).await.unwrap();
    assert_eq!((report.committed, report.permits_created), (true, 2), "{:?}", report.errors);
    assert_eq!(
        desk.rows("SELECT issued_on, expires_on FROM permits WHERE permit_number = '3000'").await,
        "2025-12-09,2026-12-01"
    );
    pool.close().await;
}
