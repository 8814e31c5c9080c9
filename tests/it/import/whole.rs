//! All rows or none, or the good ones; and dry runs.

use permit_notifier::files::{self, FileFault, ImportError, ImportOptions, ImportReport, ImportRules, Phase, Progress};

use super::{Desk, HEADER, all_or_nothing, catch_up, keep_good_rows, rules, sample};

#[tokio::test]
async fn one_wrong_row_leaves_nothing_behind() {
    let desk = Desk::new().await;
    let before = desk.dump().await;
    let report = desk.try_import(&sample(), &all_or_nothing(), &rules()).await.unwrap();
    assert_eq!((report.committed, report.id, report.rows, report.rejected), (false, None, 203, 17));
    assert_eq!((report.permits_created, report.types_created, report.errors.len()), (0, 0, 17));
    assert_eq!(desk.dump().await, before);
    assert_eq!(desk.ask("SELECT count(*) FROM imports").await, "0");
}

#[tokio::test]
async fn good_rows_are_kept_when_that_is_asked_for() {
    let desk = Desk::new().await;
    let path = desk.file("some.csv", &format!("{HEADER}\n1,Food,Ann,,2026-13-31\n2,Food,Bob,,2026-12-31\n"));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((report.committed, report.rejected, report.permits_created), (true, 1, 1));
    assert_eq!(desk.rows("SELECT permit_number FROM permits").await, "2");
    let path = desk.file("none.csv", &format!("{HEADER}\n3,Food,Ann,,2026-13-31\n"));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((report.committed, report.id, report.rejected), (false, None, 1));
    assert_eq!(desk.ask("SELECT count(*) FROM imports").await, "1");
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_writes_nothing() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-06-15", "9,Food,Ann,,2026-12-31"], &rules()).await;
    desk.archive("9").await;
    let (before, imports) = (desk.dump().await, desk.ask("SELECT count(*) FROM imports").await);
    let lines = [
        "1,Food,Ann,ann@example.org,2027-06-15",
        "2,Bar,Bob,bob@example.org,2026-06-20",
        "2,Bar,Bob,bob@example.org,2025-06-20",
        "9,Food,Ann,,2027-12-31",
    ];
    let dry = desk.import(HEADER, &lines, &ImportRules { dry_run: true, ..catch_up() }).await;
    assert_eq!(desk.dump().await, before);
    assert_eq!(desk.ask("SELECT count(*) FROM imports").await, imports);
    let real = desk.import(HEADER, &lines, &catch_up()).await;
    assert_eq!((dry.dry_run, dry.committed, dry.id), (true, false, None));
    assert_eq!((real.permits_created, real.permits_renewed, real.history_terms), (1, 1, 1));
    assert_eq!((real.notices_claimed, real.unchanged, real.warnings.len()), (2, 1, 1));
    let done = ImportReport { dry_run: false, committed: true, id: real.id, ..dry };
    assert_eq!(done, real);
}

#[tokio::test]
async fn the_report_that_is_recorded_is_the_one_that_is_given() {
    let desk = Desk::new().await;
    let report = desk.try_import(&sample(), &keep_good_rows(), &rules()).await.unwrap();
    let given = serde_json::to_value(&report).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&desk.ask("SELECT report FROM imports").await).unwrap();
    assert_eq!(kept, given);
    assert_eq!(desk.ask("SELECT id FROM imports WHERE finished_at > started_at").await, report.id.unwrap().to_string());
}

#[tokio::test]
async fn progress_tells_of_reading_and_then_of_applying() {
    let desk = Desk::new().await;
    let mut told = Vec::new();
    let path = sample();
    let (options, rules) = (keep_good_rows(), rules());
    let done = files::import(&desk.url, &path, &options, &rules, |progress| told.push(progress));
    let report = done.await.unwrap();
    assert_eq!(told[0], Progress { phase: Phase::Reading, done: 196, total: 203 });
    let permits = report.permits_created;
    assert_eq!(told.last().unwrap(), &Progress { phase: Phase::Applying, done: permits, total: permits });
}

#[tokio::test]
async fn a_refused_file_and_a_database_without_tables_are_one_sentence_each() {
    let desk = Desk::new().await;
    let path = desk.file("empty.csv", "");
    let refused = desk.try_import(&path, &all_or_nothing(), &rules()).await.unwrap_err();
    assert!(matches!(&refused, ImportError::File(error) if matches!(error.fault, FileFault::Empty)), "{refused}");
    let empty = Desk { url: crate::support::cluster::empty_database().await, ..desk };
    let path = empty.file("one.csv", &format!("{HEADER}\n1,Food,Ann,,2026-12-31\n"));
    let refused = empty.try_import(&path, &all_or_nothing(), &rules()).await.unwrap_err();
    assert!(matches!(refused, ImportError::Refused(_)));
    assert!(!refused.to_string().contains("import_rows"), "{refused}");
    let gone = "postgres://permits@localhost/permits?host=/nowhere/at/all";
    let options = ImportOptions::default();
    let refused = files::import(gone, &path, &options, &rules(), |_| {}).await.unwrap_err();
    assert!(matches!(refused, ImportError::Unusable(_)), "{refused}");
}
