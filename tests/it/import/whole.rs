//! All rows or none, or the good ones; and dry runs.

use permit_notifier::files::{
    self, FileFault, ImportError, ImportOptions, ImportReport, ImportRules, Input, Phase, Progress, REJECTED_KEPT,
};

use super::{Desk, HEADER, all_or_nothing, catch_up, keep_good_rows, rules, sample};

#[tokio::test]
async fn one_wrong_row_leaves_nothing_behind() {
    let desk = Desk::new().await;
    let before = desk.dump().await;
    let report = desk.try_import(&sample(), &all_or_nothing(), &rules()).await.unwrap();
    assert_eq!((report.committed, report.rows, report.rejected), (false, 203, 17));
    assert_eq!((report.permits_created, report.types_created, report.errors.len()), (0, 0, 17));
    assert_eq!(desk.dump().await, before);
    let recorded = desk.rows("SELECT id, committed, dry_run, file_name FROM imports").await;
    assert_eq!(recorded, format!("{},f,f,chicago_sample.csv", report.id.expect("what it is recorded by")));
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
    assert_eq!((report.committed, report.rejected), (false, 1));
    let recorded = "SELECT string_agg(file_name || ' ' || committed, ', ' ORDER BY id) FROM imports";
    assert_eq!(desk.ask(recorded).await, "some.csv true, none.csv false");
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_writes_nothing() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-06-15", "9,Food,Ann,,2026-12-31"], &rules()).await;
    desk.archive("9").await;
    let before = desk.dump().await;
    let lines = [
        "1,Food,Ann,ann@example.org,2027-06-15",
        "2,Bar,Bob,bob@example.org,2026-06-20",
        "2,Bar,Bob,bob@example.org,2025-06-20",
        "9,Food,Ann,,2027-12-31",
    ];
    let dry = desk.import(HEADER, &lines, &ImportRules { dry_run: true, ..catch_up() }).await;
    assert_eq!(desk.dump().await, before);
    let recorded =
        "SELECT count(*) FROM imports WHERE dry_run AND NOT committed AND report ->> 'permits_created' = '1'";
    assert_eq!(desk.ask(recorded).await, "1", "the report alone");
    let real = desk.import(HEADER, &lines, &catch_up()).await;
    assert_eq!((dry.dry_run, dry.committed), (true, false));
    assert_eq!((real.permits_created, real.permits_renewed, real.history_terms), (1, 1, 1));
    assert_eq!((real.notices_claimed, real.unchanged, real.warnings.len()), (2, 1, 1));
    let done = ImportReport { dry_run: false, committed: true, id: real.id, would_mail: None, ..dry };
    assert_eq!(done, real);
}

#[tokio::test]
async fn a_dry_run_foresees_the_mail_that_then_goes() {
    let desk = Desk::new().await;
    let header = &format!("{HEADER},contact_email");
    desk.import(header, &["1,Food,Ann,ann@example.org,2026-06-15,", "5,Food,Eve,,2026-06-15,"], &catch_up()).await;
    // Renewed beyond the 30 days; two steps for two people; one today; one on the last day that is looked at, and one
    // on the day after it.
    let lines = [
        "1,Food,Ann,ann@example.org,2028-06-15,",
        "2,Food,Bob,bob@example.org,2026-06-21,agent@example.org",
        "3,Food,Cy,cy@example.org,2026-06-15,",
        "4,Food,Di,di@example.org,2026-09-28,",
        "6,Food,Fay,fay@example.org,2026-09-29,",
    ];
    let dry = desk.import(header, &lines, &ImportRules { dry_run: true, ..rules() }).await;
    let would = dry.would_mail.expect("a dry run looks ahead");
    let days: Vec<String> = would.by_day.iter().map(|(day, messages)| format!("{day} {messages}")).collect();
    let foreseen = [
        "2026-06-01 1",
        "2026-06-07 2",
        "2026-06-08 1",
        "2026-06-14 3",
        "2026-06-15 1",
        "2026-06-16 1",
        "2026-06-20 2",
        "2026-06-21 2",
        "2026-06-22 2",
        "2026-06-30 1",
    ];
    assert_eq!(days, foreseen);
    assert_eq!(would.messages, 16);
    // What was to tell Ann of the term that has ended by now.
    assert_eq!(would.no_longer, 5);
    assert_eq!(desk.import(header, &lines, &rules()).await.would_mail, None);
}

#[tokio::test]
async fn mail_that_comes_anyway_is_not_because_of_the_file() {
    let desk = Desk::new().await;
    let lines = ["1,Food,Ann,ann@example.org,2026-06-15", "2,Food,Bob,bob@example.org,2026-06-15"];
    desk.import(HEADER, &lines, &catch_up()).await;
    let would = async |lines: &[&str]| {
        let dry = desk.import(HEADER, lines, &ImportRules { dry_run: true, ..rules() }).await;
        let would = dry.would_mail.expect("a dry run looks ahead");
        (dry.permits_updated + dry.permits_renewed, would.messages, would.no_longer)
    };
    assert_eq!(would(&["1,Food,Ann Lee,ann@example.org,2026-06-15"]).await, (1, 0, 0), "a name alone");
    assert_eq!(would(&lines).await, (0, 0, 0), "nothing");
    assert_eq!(would(&["1,Food,Ann,new@example.org,2026-06-15"]).await, (1, 5, 5), "the same to another address");
    assert_eq!(would(&["1,Food,Ann,,2026-06-15"]).await, (1, 0, 5), "to nobody");
    let sent =
        "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, phase, smtp_code,
                                      payload_sha256, started_at, finished_at)
                SELECT gen_random_uuid(), d.id, 1, n.notice_key, gen_random_uuid(), 'smtp', 'accepted', 'dot', 250,
                       sha256('mail'), now(), now()
                FROM deliveries d JOIN notices n ON n.id = d.notice_id
                WHERE d.state = 'pending' AND d.recipient = 'ann@example.org';
                UPDATE deliveries SET state = 'sent' WHERE state = 'pending' AND recipient = 'ann@example.org';
                UPDATE notices n SET state = 'sent' FROM deliveries d WHERE d.notice_id = n.id AND d.state = 'sent'";
    sqlx::raw_sql(sent).execute(&mut desk.connect().await).await.unwrap();
    let header = &format!("{HEADER},contact_email");
    let agent = &["1,Food,Ann,ann@example.org,2026-06-15,agent@example.org"];
    let dry = desk.import(header, agent, &ImportRules { dry_run: true, ..rules() }).await;
    assert_eq!(dry.would_mail.unwrap().messages, 5, "to the agent alone, today too");
    // Two weeks later: six steps instead of the five that are left of the old date.
    assert_eq!(would(&["2,Food,Bob,bob@example.org,2026-06-29"]).await, (1, 6, 5));
}

#[tokio::test]
async fn what_is_foreseen_goes_on_days_of_the_window_and_to_nobody_who_must_not_be_mailed() {
    let desk = Desk::new().await;
    let window = "Mon-Fri 08:00-18:00".parse().unwrap();
    let lines = ["1,Food,Ann,ann@example.org,2026-06-21", "2,Food,Bob,bob@example.org,2026-06-21"];
    let rules = ImportRules { dry_run: true, window: Some(&window), ..rules() };
    let would = desk.import(HEADER, &lines, &rules).await.would_mail.expect("a dry run looks ahead");
    let days: Vec<String> =
        would.by_day.iter().map(|(day, messages)| format!("{} {messages}", day.format("%a %-d"))).collect();
    assert_eq!(days, ["Mon 8 2", "Mon 15 2", "Fri 19 2", "Mon 22 2"]);
    let suppressed = "INSERT INTO suppressions (id, address, class, reason, source, created_at)
                      VALUES (gen_random_uuid(), 'bob@example.org', 'all', 'asked for it', 'person', now())";
    sqlx::raw_sql(suppressed).execute(&mut desk.connect().await).await.unwrap();
    let without = desk.import(HEADER, &lines, &rules).await.would_mail.expect("a dry run looks ahead");
    assert_eq!(without.messages * 2, would.messages);
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
async fn rejected_rows_are_kept_as_they_came_with_what_is_wrong() {
    let desk = Desk::new().await;
    let lines = ["1,Food,Ann,,2026-13-31", "2,Food,Bob,,2026-12-31", "3,Food,\" =Cy\",,2026-12-31,more", "4,Food"];
    let path = desk.file("some.csv", &format!("{HEADER}\n{}\n", lines.join("\n")));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    let kept = desk.rows(
        "SELECT file_row, cells ->> 2 AS holder, jsonb_array_length(cells), errors FROM import_rejections ORDER BY 1",
    );
    let kept = kept.await;
    assert!(kept.starts_with("2,Ann,5,") && kept.contains("expires_on") && kept.contains("4,\" =Cy\",6,"), "{kept}");
    assert!(kept.contains("5,,2,\"the row has 2 cells"), "{kept}");
    let layout = desk.rows("SELECT array_to_string(header, '+'), delimiter FROM imports").await;
    assert_eq!(layout, format!("{},\",\"", HEADER.replace(',', "+")));
    assert_eq!((report.rejected, desk.ask("SELECT count(*) FROM import_rejected_rows").await), (3, "0".to_owned()));
}

#[tokio::test]
async fn of_very_many_rejected_rows_the_first_are_kept_and_the_report_says_so() {
    let desk = Desk::new().await;
    let rows = (0..=REJECTED_KEPT).map(|i| format!("{i},Food,Ann,,never\n")).collect::<Vec<String>>().concat();
    let path = desk.file("many.csv", &format!("{HEADER},issued_on\n{}", rows.replace('\n', ",2026-01-01\n")));
    let report = desk.try_import(&path, &keep_good_rows(), &rules()).await.unwrap();
    assert_eq!((report.rejected, report.committed), (REJECTED_KEPT + 1, false));
    assert_eq!(desk.ask("SELECT count(*) || ' ' || max(file_row) FROM import_rejections").await, "10000 10001");
    assert!(
        report.warnings.iter().any(|warning| warning.detail.starts_with("1 further rejected row is")),
        "{:?}",
        report.warnings
    );
}

#[tokio::test]
async fn progress_tells_of_reading_and_then_of_applying() {
    let desk = Desk::new().await;
    let mut told = Vec::new();
    let path = sample();
    let (options, rules) = (keep_good_rows(), rules());
    let done = files::import(&desk.url, Input::Path(path), &options, &rules, |progress| told.push(progress));
    let report = done.await.unwrap();
    let read = |done| Progress { phase: Phase::Reading, done, total: 203 };
    assert_eq!(told[..2], [read(0), read(196)]);
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
    let refused = files::import(gone, Input::Path(path), &options, &rules(), |_| {}).await.unwrap_err();
    assert!(matches!(refused, ImportError::Unusable(_)), "{refused}");
}
