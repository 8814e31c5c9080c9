//! Files that call themselves complete: what they do not name is reported, and stays as it is.

use permit_notifier::files::{ImportRules, MissingPermits, Reason};

use super::{Desk, HEADER, keep_good_rows, moment, rules};

fn complete() -> ImportRules<'static> {
    ImportRules { complete: true, ..rules() }
}

#[expect(clippy::unnecessary_wraps, reason = "as a report has it")]
fn missing(count: u64, expired: u64, numbers: &[&str]) -> Option<MissingPermits> {
    Some(MissingPermits { count, expired, numbers: numbers.iter().map(|number| (*number).to_owned()).collect() })
}

async fn register() -> Desk {
    let desk = Desk::new().await;
    let header = format!("{HEADER},status");
    let lines = [
        "F-1,Food,Ann,ann@example.org,2026-06-15,",
        "F-3,Food,Ann,ann@example.org,2026-06-15,",
        "F-2,Food,Ann,ann@example.org,2027-06-15,",
        "F-0,Food,Ann,,2026-05-31,",
        "F-4,Food,Ann,,2026-12-31,revoked",
        "F-5,Food,Ann,,2026-12-31,",
        "B-1,Bar,Ann,,2026-12-31,",
    ];
    desk.import(&header, &lines, &rules()).await;
    desk.archive("F-5").await;
    desk
}

#[tokio::test]
async fn active_permits_of_its_types_that_it_does_not_name_are_reported_and_left_alone() {
    let desk = register().await;
    let before = desk.dump().await;
    let lines = ["f-2,Food,Ann,ann@example.org,2027-06-15"];
    let report = desk.import(HEADER, &lines, &complete()).await;
    assert_eq!((report.missing.clone(), report.unchanged), (missing(3, 1, &["F-1", "F-3", "F-0"]), 1));
    assert_eq!(desk.dump().await, before);
    let text = report.to_string();
    assert!(
        text.contains("3 permits are missing from this file, which calls itself complete; 1 has expired"),
        "{text}"
    );
    assert!(text.contains("\n  F-1\n  F-3\n  F-0\n"), "{text}");
    let kept = "SELECT report -> 'missing' ->> 'count' FROM imports WHERE report ? 'missing'";
    assert_eq!(desk.ask(kept).await, "3");
    assert_eq!(desk.import(HEADER, &lines, &rules()).await.missing, None, "it does not say that it is complete");
    // One that it names for the first time, and one of a type that it then has.
    let lines = ["F-2,Food,Ann,ann@example.org,2027-06-15", "B-2,bar,Bob,,2027-01-31", "F-1,Food,Ann,,2020-01-31"];
    let dry = desk.import(HEADER, &lines, &ImportRules { dry_run: true, ..complete() }).await;
    assert_eq!(dry.missing, missing(3, 1, &["B-1", "F-3", "F-0"]));
    assert_eq!(desk.import(HEADER, &lines, &complete()).await.missing, dry.missing);
}

#[tokio::test]
async fn a_rejected_row_names_its_permit_and_one_without_a_number_makes_it_unsure() {
    let desk = register().await;
    let good = "F-2,Food,Ann,ann@example.org,2027-06-15";
    let path = desk.file("some.csv", &format!("{HEADER}\n{good}\nF-1,Food,Ann,,never\n"));
    let report = desk.try_import(&path, &keep_good_rows(), &complete()).await.unwrap();
    assert_eq!((report.rejected, report.missing), (1, missing(2, 1, &["F-3", "F-0"])));
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    // In a row that does not fit the header any cell may be the number.
    let path = desk.file("some.csv", &format!("{HEADER}\n{good}\nF-1,Food,Ann,,never\nFood,Ann,f-0\n"));
    let report = desk.try_import(&path, &keep_good_rows(), &complete()).await.unwrap();
    assert_eq!((report.rejected, report.missing), (2, missing(1, 0, &["F-3"])));
    let path = desk.file("some.csv", &format!("{HEADER}\n{good}\nF-1,Food,Ann,,never\n,Food,Ann,,2027-01-31\n"));
    let report = desk.try_import(&path, &keep_good_rows(), &complete()).await.unwrap();
    assert_eq!(report.missing, missing(2, 1, &["F-3", "F-0"]));
    let [without, warning] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
    assert_eq!((without.code, warning.code), (Reason::RowsWithoutNumber, Reason::MissingUnsure));
    assert!(warning.detail.starts_with("1 rejected row has no permit number"), "{}", warning.detail);
    // Nothing is applied, so nobody asked.
    let path = desk.file("some.csv", &format!("{HEADER}\n{good}\nF-1,Food,Ann,,never\n"));
    assert_eq!(desk.try_import(&path, &super::all_or_nothing(), &complete()).await.unwrap().missing, None);
}

#[tokio::test]
async fn of_very_many_the_first_are_named() {
    let desk = Desk::new().await;
    let lines: Vec<String> = (0..1005).map(|i| format!("N-{i:04},Food,Ann,,2027-01-31")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    desk.import(HEADER, &lines, &rules()).await;
    let report = desk.import(HEADER, &["X,Food,Ann,,2027-01-31"], &complete()).await;
    let missing = report.missing.clone().expect("it is complete");
    assert_eq!((missing.count, missing.numbers.len(), missing.numbers[999].as_str()), (1005, 1000, "N-0999"));
    assert!(report.to_string().contains("and 805 more; --json lists the first 1000"), "{report}");
}

#[tokio::test]
async fn what_was_skipped_is_counted_by_reason_and_what_is_unchanged_keeps_its_version() {
    let desk = register().await;
    let before = desk.dump().await;
    let lines = [
        "F-1,Food,Bob,bob@example.org,2025-06-15",
        "F-3,Food,Bob,bob@example.org,2026-01-15",
        "F-5,Food,Bob,bob@example.org,2028-06-15",
        "F-2,Food,Ann,ann@example.org,2027-06-15",
    ];
    let later = ImportRules { moment: moment("2026-06-02"), ..rules() };
    let report = desk.import(HEADER, &lines, &later).await;
    assert_eq!((report.unchanged, report.skipped), (4, 3));
    let skipped: Vec<_> =
        report.skipped_by_reason.iter().map(|(reason, permits)| format!("{reason} {permits}")).collect();
    assert_eq!(skipped, ["archived 1", "earlier_date 2"]);
    assert!(report.to_string().contains("2 although the file says something else: earlier_date"), "{report}");
    assert_eq!(desk.dump().await, before, "versions, instants of change and notices too, a day later");
}
