//! The file of the rows with errors: mended and sent again it says what the first file said.

use futures_util::TryStreamExt;
use permit_notifier::files::ImportReport;
use permit_notifier::files::export::rejected_rows;
use rust_xlsxwriter::{Format, Workbook};
use sqlx::PgPool;

use super::{Desk, keep_good_rows, rules};

const HEADER: &str = "permit_number,permit_type,holder_name,issued_on,expires_on";

async fn errors_of(desk: &Desk, report: &ImportReport) -> String {
    let pool = PgPool::connect(&desk.url).await.unwrap();
    let pieces: Vec<Vec<u8>> =
        rejected_rows(pool.clone(), report.id.unwrap()).await.unwrap().try_collect().await.unwrap();
    pool.close().await;
    let text = String::from_utf8(pieces.concat()).unwrap();
    text.strip_prefix('\u{feff}').expect("the mark by which Excel knows UTF-8").to_owned()
}

#[tokio::test]
async fn dates_are_read_again_as_they_were_read_before() {
    let desk = Desk::new().await;
    let good: Vec<String> = (0..40).map(|i| format!("G-{i},Food,Ann,13/11/2025,{}/12/2026", 13 + i % 10)).collect();
    let lines = [
        // Read alone they would be months and days.
        "3,,Cy,04/05/2026,06/07/2026 00:00",
        "4,,Di,04/05/2026,08/09/2026",
        "5,Food,Eve, Eva,04/05/2026,08/10/2026",
        "6,,Flo,,12/13/2026",
    ];
    let path = desk.file("some.csv", &format!("{HEADER}\n{}\n{}\n", good.join("\n"), lines.join("\n")));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((report.rejected, report.permits_created), (4, 40), "{:?}", report.errors);
    let text = errors_of(&desk, &report).await;
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[1].starts_with("3,,Cy,2026-05-04,2026-07-06,"), "{text}");
    assert!(rows[2].starts_with("4,,Di,2026-05-04,2026-09-08,"), "{text}");
    assert!(rows[3].starts_with("5,Food,Eve, Eva,2026-05-04,2026-10-08,"), "{text}");
    assert!(rows[4].starts_with("6,,Flo,,12/13/2026,"), "what could not be read stays: {text}");
    let mended = text.replace(",,Cy", ",Food,Cy").replace(",,Di", ",Food,Di").replace("Eve, Eva", "Eve Eva");
    let mended = mended.replace("6,,Flo,,12/13/2026", "6,Food,Flo,,2026-12-13");
    let again = desk.try_import(&desk.file("mended.csv", &mended), &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((again.rejected, again.permits_created), (0, 4), "{:?}", again.errors);
    let mended = "SELECT permit_number, issued_on, expires_on FROM permits WHERE permit_number < '9' ORDER BY 1";
    let dates = desk.rows(mended).await;
    assert_eq!(dates, "3,2026-05-04,2026-07-06 4,2026-05-04,2026-09-08 5,2026-05-04,2026-10-08 6,,2026-12-13");
}

#[tokio::test]
async fn a_number_that_looks_like_a_date_stays_as_it_is_where_cells_are_shifted() {
    let desk = Desk::new().await;
    let header = "permit_number,permit_type,holder_name,description,expires_on,external_id";
    let lines = [
        "1,Food,Ann,,31-12-2027,",
        "12-03-2019,Food,Smith, John,,31-12-2027,13-04-2019",
        "13-03-2019,Food,Bob,31-12-2027,14-04-2019",
    ];
    let path = desk.file("some.csv", &format!("{header}\n{}\n", lines.join("\n")));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    let text = errors_of(&desk, &report).await;
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[1].starts_with("12-03-2019,Food,Smith, John,,31-12-2027,13-04-2019,"), "may be an identifier: {text}");
    assert!(rows[2].starts_with("13-03-2019,Food,Bob,2027-12-31,14-04-2019,(no cell),"), "{text}");
}

#[tokio::test]
async fn what_nobody_has_corrected_is_rejected_again() {
    let desk = Desk::new().await;
    let header = "permit_number,permit_type,holder_name,expires_on,description,external_id";
    let short = desk.file("short.csv", &format!("{header}\nB,T,N,2027-01-01,EXT-77\n"));
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    sheet.write_row(0, 0, ["permit_number", "permit_type", "holder_name", "expires_on"]).unwrap();
    sheet.write_row(1, 1, ["T", "N", "2027-01-01"]).unwrap();
    let day = Format::new().set_num_format("dd/mm/yyyy");
    sheet.write_number_with_format(1, 0, 46_508, &day).unwrap();
    let dated = desk.folder.path().join("dated.xlsx");
    book.save(&dated).unwrap();
    let undefined = desk.folder.path().join("dos.csv");
    let bytes = [HEADER.as_bytes(), b"\nC,T,M\x81ller Ren\xe9,,2027-01-01\n"].concat();
    std::fs::write(&undefined, bytes).unwrap();
    for path in [short, dated, undefined] {
        let mut report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
        for _ in 0..2 {
            assert_eq!((report.rejected, report.rows), (1, 1), "{}: {:?}", path.display(), report.errors);
            let again = desk.file("again.csv", &errors_of(&desk, &report).await);
            report = desk.try_import(&again, &keep_good_rows(), &rules()).await.unwrap();
        }
        assert_eq!((report.rejected, report.committed), (1, false), "{}: {:?}", path.display(), report.errors);
    }
    assert_eq!(desk.ask("SELECT count(*) FROM permits").await, "0");
    // Each cell in its column, and none that says it is not there.
    let mended = desk.file("mended.csv", &format!("{header},error\nB,T,N,2027-01-01,,EXT-77,the row has\n"));
    desk.try_import(&mended, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!(desk.rows("SELECT permit_number, description, external_id FROM permits").await, "B,,EXT-77");
}

#[tokio::test]
async fn no_cell_is_a_formula_and_each_is_read_back_as_it_was() {
    let desk = Desk::new().await;
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    sheet.write_row(0, 0, ["permit_number", "permit_type", "holder_name", "expires_on", "=note"]).unwrap();
    let cells = [["-1", "Food", "=HYPERLINK(\"http://x\")", "never", "@a"], ["2", "Food", "'=1", "never", "+49"]];
    for (row, cells) in (1..).zip(cells) {
        sheet.write_row(row, 0, cells).unwrap();
    }
    let path = desk.folder.path().join("some.xlsx");
    book.save(&path).unwrap();
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    let text = errors_of(&desk, &report).await;
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows[0], "permit_number,permit_type,holder_name,expires_on,'=note,error");
    assert!(rows[1].starts_with("'-1,Food,\"'=HYPERLINK(\"\"http://x\"\")\",never,'@a,"), "{text}");
    assert!(rows[2].starts_with("2,Food,'=1,never,'+49,"), "one apostrophe is enough: {text}");
    let mended = desk.file("mended.csv", &text.replace("never", "2027-01-31"));
    let again = desk.try_import(&mended, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!(again.permits_created, 2, "{:?}", again.errors);
    let names = desk.rows("SELECT permit_number, holder_name FROM permits ORDER BY id").await;
    assert!(names.starts_with("-1,\"=HYPERLINK(\"\"http://x\"\")\"") && names.ends_with("2,=1"), "{names}");
}

#[tokio::test]
async fn the_errors_of_an_earlier_round_are_replaced() {
    let desk = Desk::new().await;
    let lines = ["1,Food,Ann,,never", "2,Food,Bob", "3,Food,Cy,,2027-01-31,more"];
    let path = desk.file("some.csv", &format!("{HEADER}\n{}\n", lines.join("\n")));
    let mut report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    let first = errors_of(&desk, &report).await;
    let rows: Vec<&str> = first.lines().collect();
    assert_eq!(rows[0], format!("{HEADER},error"));
    for _ in 0..2 {
        let path = desk.file("again.csv", &errors_of(&desk, &report).await);
        report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    }
    let last = errors_of(&desk, &report).await;
    let rows: Vec<&str> = last.lines().collect();
    assert_eq!(rows[0], format!("{HEADER},error"));
    assert!(rows[1].starts_with("1,Food,Ann,,never,\"expires_on"), "{last}");
    assert!(rows[2].starts_with("2,Food,Bob,(no cell),(no cell),the row has"), "{last}");
    assert!(rows[3].starts_with("3,Food,Cy,,2027-01-31,more,the row has"), "{last}");
    assert_eq!(rows.len(), 4);
}
