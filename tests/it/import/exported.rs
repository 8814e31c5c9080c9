//! An export that comes back says what permits are, however odd that looks.

use futures_util::TryStreamExt;
use permit_notifier::domain::export::{ExportFormat, ExportShape};
use permit_notifier::files::Reason;
use permit_notifier::files::export::export;
use permit_notifier::store::lists::permits::PermitFilter;
use permit_notifier::store::permit_types::create_permit_type;

use super::{Desk, HEADER, TODAY, all_or_nothing, day, moment, rules};

async fn exported(desk: &Desk, format: ExportFormat) -> Vec<u8> {
    let shape = ExportShape { format, bom: true };
    let pieces = export(&desk.url, PermitFilter::default(), shape, day(TODAY)).await.unwrap();
    pieces.try_collect::<Vec<Vec<u8>>>().await.unwrap().concat()
}

#[tokio::test]
async fn numbers_and_types_that_say_nothing_and_texts_as_long_as_can_be_come_back_as_they_are() {
    let desk = Desk::new().await;
    let lines: Vec<String> = (1..=5).map(|i| format!("{i},Food {},Ann,,2027-05-31", i % 2)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    desk.import(HEADER, &lines, &rules()).await;
    for (number, odd) in [("1", "N/A"), ("2", "TBD"), ("3", "---")] {
        desk.correct(number, |data| data.permit_number = odd.parse().unwrap()).await;
    }
    desk.correct("4", |data| data.description = Some(format!("={}", "\u{e9}".repeat(9_999)))).await;
    // A type that somebody made by hand.
    let code = "unknown".parse().unwrap();
    create_permit_type(&mut desk.connect().await, &code, "Not Known", moment(TODAY).now).await.unwrap();
    desk.correct("5", |data| data.permit_type = "unknown".to_owned()).await;
    let before = desk.dump().await;
    for (name, format) in [("export.csv", ExportFormat::Csv), ("export.xlsx", ExportFormat::Xlsx)] {
        let path = desk.folder.path().join(name);
        std::fs::write(&path, exported(&desk, format).await).unwrap();
        let report = desk.try_import(&path, &all_or_nothing(), &rules()).await.unwrap();
        assert_eq!((report.unchanged, report.rejected), (5, 0), "{name}: {:?}", report.errors);
        let doubts: Vec<Reason> = report.warnings.iter().map(|doubt| doubt.code).collect();
        assert_eq!(doubts, [Reason::Missing; 4], "{name}: {:?}", report.warnings);
        assert_eq!(desk.dump().await, before, "{name}");
    }
    // In a file of anybody else they say that something is missing.
    let report = desk.import(HEADER, &["N/A,Food 1,Ann,,2027-05-31", "6,Unknown,Ann,,2027-05-31"], &rules()).await;
    assert_eq!((report.rejected, report.committed), (2, false), "{:?}", report.errors);
}
