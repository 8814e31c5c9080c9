//! What an import makes of notices, in its own transaction.

use permit_notifier::files::{ImportRules, Reason};

use super::{Desk, HEADER, catch_up, keep_good_rows, moment, rules};

const WITH_STATUS: &str = "permit_number,permit_type,holder_name,holder_email,expires_on,status";

#[tokio::test]
async fn new_permits_are_told_nothing_that_is_past_unless_catching_up() {
    let desk = Desk::new().await;
    let report = desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-06-20"], &rules()).await;
    assert_eq!((report.notices_claimed, desk.notices("1").await), (0, String::new()));
    // Due on the very day.
    let report = desk.import(HEADER, &["2,Food,Ann,ann@example.org,2026-06-15"], &rules()).await;
    assert_eq!((report.notices_claimed, desk.notices("2").await.as_str()), (1, "expires-14d,pending,"));
    let report = desk.import(HEADER, &["3,Food,Ann,ann@example.org,2026-06-20"], &catch_up()).await;
    assert_eq!(report.notices_claimed, 1);
    let earlier = "expires-90d,superseded,more_urgent_step expires-60d,superseded,more_urgent_step";
    assert_eq!(desk.notices("3").await, format!("{earlier} expires-30d,pending,"));
    assert_eq!(desk.ask("SELECT count(*) FROM notices WHERE import_id IS NULL").await, "0");
    let told = "SELECT string_agg(report ->> 'notices_claimed', ' ' ORDER BY started_at, id) FROM imports";
    assert_eq!(desk.ask(told).await, "0 1 1");
}

#[tokio::test]
async fn a_renewal_is_confirmed_only_when_catching_up_and_supersedes_the_old_period() {
    for (rules, told) in [(rules(), ""), (catch_up(), " renewed,pending,")] {
        let desk = Desk::new().await;
        desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-06-15"], &rules).await;
        let report = desk.import(HEADER, &["1,Food,Ann,ann@example.org,2027-06-15"], &rules).await;
        assert_eq!((report.permits_renewed, report.notices_claimed), (1, u64::from(rules.catch_up)));
        let notices = desk.notices("1").await;
        assert!(notices.contains("expires-14d,superseded,period_changed"), "{notices}");
        assert!(notices.ends_with(&format!("period_changed{told}")), "{notices}");
        assert_eq!(
            desk.ask("SELECT count(*) FROM deliveries WHERE state = 'pending'").await,
            report.notices_claimed.to_string()
        );
    }
}

#[tokio::test]
async fn a_renewal_to_a_date_that_has_passed_is_confirmed_to_nobody() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,ann@example.org,2025-06-15"], &rules()).await;
    let report = desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-03-15"], &catch_up()).await;
    assert_eq!((report.permits_renewed, report.notices_claimed), (1, 0));
    assert_eq!(desk.notices("1").await, "");
}

#[tokio::test]
async fn a_status_in_the_file_supersedes_open_notices_and_revives_them() {
    let desk = Desk::new().await;
    desk.import(WITH_STATUS, &["1,Food,Ann,ann@example.org,2026-06-15,active"], &rules()).await;
    let report = desk.import(WITH_STATUS, &["1,Food,Ann,ann@example.org,2026-06-15,revoked"], &rules()).await;
    assert_eq!((report.permits_updated, report.notices_claimed), (1, 0));
    assert_eq!(desk.notices("1").await, "expires-14d,superseded,not_active");
    let report = desk.import(WITH_STATUS, &["1,Food,Ann,ann@example.org,2026-06-15,active"], &rules()).await;
    assert_eq!((report.permits_updated, report.notices_claimed), (1, 1));
    assert_eq!(desk.notices("1").await, "expires-14d,pending,");
}

#[tokio::test]
async fn a_new_address_in_the_file_moves_the_open_copy() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-06-15"], &rules()).await;
    desk.import(HEADER, &["1,Food,Ann,new@example.org,2026-06-15"], &rules()).await;
    let copies = desk.rows("SELECT recipient, state FROM deliveries ORDER BY 1").await;
    assert_eq!(copies, "ann@example.org,superseded new@example.org,pending");
}

#[tokio::test]
async fn a_malformed_address_with_good_rows_kept_makes_a_letter() {
    let desk = Desk::new().await;
    let path = desk.file("bad.csv", &format!("{HEADER}\n1,Food,Ann,ann(at)example.org,2026-06-20\n"));
    let report = desk.try_import(&path, &keep_good_rows(), &catch_up()).await.unwrap();
    assert_eq!((report.permits_created, report.rejected, report.notices_claimed), (1, 0, 1));
    assert_eq!(report.warnings[0].code, Reason::MalformedAddress);
    assert_eq!(desk.permit("1").await.holder_email, None);
    assert_eq!(desk.rows("SELECT channel, state FROM deliveries").await, "letter,pending");
    let again = desk.try_import(&path, &keep_good_rows(), &catch_up()).await.unwrap();
    assert_eq!((again.unchanged, again.notices_claimed), (1, 0));
}

#[tokio::test]
async fn more_than_the_limit_in_one_import_is_held_whole() {
    // More than one batch of judging, and no batch above the limit by itself.
    let lines: Vec<String> = (0..1200).map(|i| format!("{i},Food,Ann,a{i}@example.org,2026-06-20")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (claim_limit, state) in [(1199, "held"), (1200, "pending"), (0, "pending")] {
        let desk = Desk::new().await;
        let report = desk.import(HEADER, &lines, &ImportRules { claim_limit, ..catch_up() }).await;
        assert_eq!((report.notices_claimed, report.notices_held > 0), (1200, state == "held"));
        let held = desk.rows("SELECT state, count(*) FROM deliveries GROUP BY 1").await;
        assert_eq!(held, format!("{state},1200"), "limit {claim_limit}");
        let notices = format!("SELECT count(*) FROM notices WHERE state = '{state}' AND import_id IS NOT NULL");
        assert_eq!(desk.ask(&notices).await, "1200");
    }
}

#[tokio::test]
async fn what_would_be_held_is_said_and_is_no_mail_that_is_foreseen() {
    let desk = Desk::new().await;
    let lines: Vec<String> = (0..12).map(|i| format!("{i},Food,Ann,a{i}@example.org,2026-06-20")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let foreseen = async |claim_limit| {
        let report = desk.import(HEADER, &lines, &ImportRules { claim_limit, dry_run: true, ..catch_up() }).await;
        let said = report.to_string().contains("12 notices held until somebody has looked");
        (report.notices_claimed, report.notices_held, report.would_mail.unwrap().messages, said)
    };
    // Each has the one that is due now, and five more until the day after the last.
    assert_eq!(foreseen(0).await, (12, 0, 72, false));
    assert_eq!(foreseen(5).await, (12, 12, 60, true));
    let report = desk.import(HEADER, &lines, &ImportRules { claim_limit: 5, ..catch_up() }).await;
    assert_eq!((report.notices_claimed, report.notices_held), (12, 12));
}

#[tokio::test]
async fn a_step_without_a_window_in_time_is_brought_forward_by_an_import_too() {
    let desk = Desk::new().await;
    let window = "Mon-Fri 08:00-18:00".parse().unwrap();
    // Friday; the last day is the Sunday after it.
    let rules = ImportRules { moment: moment("2026-06-05"), window: Some(&window), ..rules() };
    let report = desk.import(HEADER, &["1,Food,Ann,ann@example.org,2026-06-07"], &rules).await;
    assert_eq!(report.notices_claimed, 1);
    assert!(desk.notices("1").await.ends_with("expires-today,pending,"));
}
