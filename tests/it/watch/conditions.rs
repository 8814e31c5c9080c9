//! What raises an alarm, and what ends it.

use std::time::Duration;

use chrono::TimeDelta;
use permit_notifier::{
    domain::{alarm::AlarmKind, fingerprint::fingerprint},
    scan::ScanRules,
    store::{memory::record_marks, watched::HeldLimits},
    watch::{WatchRules, conditions::open_time},
};
use sqlx::{Connection, PgConnection};

use super::{rules, wrong};
use crate::support::office::TestOffice;

async fn kinds(office: &TestOffice, rules: &WatchRules) -> Vec<AlarmKind> {
    wrong(office, rules).await.into_iter().map(|(kind, _)| kind).collect()
}

/// An attempt at every delivery, as columns say.
fn attempts(columns: &str, values: &str) -> String {
    format!(
        "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, started_at, finished_at, {columns})
         SELECT gen_random_uuid(), d.id, 1, n.notice_key, gen_random_uuid(), d.created_at, d.created_at, {values}
         FROM deliveries d JOIN notices n ON n.id = d.notice_id"
    )
}

#[tokio::test]
async fn an_office_in_which_all_is_well_has_no_alarm() {
    let office = TestOffice::new().await;
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.permit_expiring_in(30).await;
    office.scan().await;
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.close().await;
}

#[tokio::test]
async fn a_scan_that_failed_is_one_until_another_completes_and_one_that_was_stopped_is_none() {
    let office = TestOffice::new().await;
    let rules = rules(&office);
    let failed = |outcome: &str, error: &str| {
        format!(
            "INSERT INTO scans (id, trigger, as_of, own_day, boot_id, started_at, finished_at, outcome, lock, error)
             VALUES (gen_random_uuid(), 'schedule', '2027-03-10', true, gen_random_uuid(), '{now}', '{now}', '{outcome}',
                     'acquired', '{error}')",
            now = office.clock.now().to_rfc3339()
        )
    };
    let stopping = "not possible: the service is stopping; the next scan goes on from here";
    office.sql(&failed("failed", stopping)).await;
    assert_eq!(kinds(&office, &rules).await, []);
    office.clock.advance(TimeDelta::minutes(1));
    office.sql(&failed("failed", "no room for ada@example.org")).await;
    let (kind, detail) = wrong(&office, &rules).await.remove(0);
    assert_eq!(kind, AlarmKind::FailedScan);
    assert!(detail.contains("09:01 CST") && detail.contains("a***@example.org"), "{detail}");
    office.clock.advance(TimeDelta::minutes(1));
    office.scan().await;
    assert_eq!(kinds(&office, &rules).await, []);
    office.sql(&failed("abandoned", "its process died or lost the lock")).await;
    office.sql("UPDATE scans SET started_at = started_at + interval '1 second' WHERE outcome = 'abandoned'").await;
    assert_eq!(kinds(&office, &rules).await, [AlarmKind::FailedScan]);
    office.close().await;
}

#[tokio::test]
async fn a_breaker_that_is_open_is_one_and_its_words_show_no_address() {
    let office = TestOffice::new().await;
    let rules = rules(&office);
    office
        .sql("UPDATE transport SET paused_until = now(), opened_at = now(), fault = '450 <ada@example.org>: later'")
        .await;
    let (kind, detail) = wrong(&office, &rules).await.remove(0);
    assert_eq!(kind, AlarmKind::Transport);
    assert!(detail.ends_with("450 <a***@example.org>: later"), "{detail}");
    office.sql("UPDATE transport SET paused_until = NULL, fault = NULL").await;
    assert_eq!(kinds(&office, &rules).await, []);
    office.close().await;
}

#[tokio::test]
async fn mails_that_wait_are_one_after_a_day_in_which_they_might_have_gone() {
    let mut office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    office.clock.advance(TimeDelta::minutes(24 * 60 - 1));
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.clock.advance(TimeDelta::minutes(1));
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::OldestPending]);
    // Only on Mondays: it had no chance yet.
    office.set_window("Mon 08:00-18:00");
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.close().await;
}

#[test]
fn only_the_hours_of_the_window_count() {
    let zone = chrono_tz::America::Chicago;
    let window = "Mon-Fri 08:00-18:00".parse().unwrap();
    let minutes =
        |since: &str, now: &str| open_time(&window, zone, since.parse().unwrap(), now.parse().unwrap()).num_minutes();
    // Friday 17:00 to Monday 09:30, over the night in which clocks go forward.
    assert_eq!(minutes("2027-03-12T23:00:00Z", "2027-03-15T14:30:00Z"), 150);
    assert_eq!(minutes("2027-03-13T12:00:00Z", "2027-03-14T23:00:00Z"), 0);
    assert_eq!(minutes("2027-03-10T15:00:00Z", "2027-03-10T16:30:00Z"), 90);
    assert_eq!(minutes("1970-01-01T00:00:00Z", "2027-03-10T12:00:00Z"), 44 * 600, "it looks back two months");
}

#[tokio::test]
async fn a_mail_that_failed_is_one_until_a_person_settles_it() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    office
        .sql("UPDATE deliveries SET state = 'failed'; UPDATE notices SET state = 'failed' WHERE state = 'pending'")
        .await;
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::DeadLetters]);
    office
        .sql(
            "UPDATE deliveries SET state = 'cancelled', reason_code = 'by_person';
             UPDATE notices SET state = 'cancelled', reason_code = 'by_person' WHERE state = 'failed'",
        )
        .await;
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.close().await;
}

#[tokio::test]
async fn an_outcome_that_nobody_has_found_out_is_one_after_an_hour() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    office.sql(&attempts("transport, outcome, phase", "'smtp', 'ambiguous', 'dot'")).await;
    office
        .sql(
            "UPDATE deliveries SET state = 'ambiguous'; UPDATE notices SET state = 'ambiguous' WHERE state = 'pending'",
        )
        .await;
    office.clock.advance(TimeDelta::minutes(60));
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.clock.advance(TimeDelta::seconds(1));
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::Ambiguous]);
    office.sql("UPDATE notices SET superseded_at = created_at").await;
    assert_eq!(kinds(&office, &rules(&office)).await, [], "what is no longer owed is none");
    office.close().await;
}

#[tokio::test]
async fn a_mail_that_the_server_took_after_all_is_one() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    let columns = "transport, outcome, phase, resolution, resolved_by, resolution_reason, resolved_at, late_result";
    let values = |late: &str| {
        format!("'smtp', 'ambiguous', 'dot', 'not_delivered', 'somebody', 'the log', d.created_at, '{late}'")
    };
    office.sql(&attempts(columns, &values("rejected: 550 no"))).await;
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.sql("UPDATE attempts SET late_result = 'accepted: 250 ok'").await;
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::LateResult]);
    office.close().await;
}

#[tokio::test]
async fn notices_that_the_brake_holds_are_one() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.permit_expiring_in(30).await;
    office.sql("DELETE FROM deliveries; DELETE FROM notices").await;
    let strict = ScanRules { claim_limit: 1, ..office.rules.clone() };
    let request = permit_notifier::scan::ScanRequest {
        scheduled_for: None,
        trigger: permit_notifier::store::scans::Trigger::Manual,
        as_of: None,
    };
    assert_eq!(office.try_scan(&strict, request).await.unwrap().counts.held, 2);
    let (kind, detail) = wrong(&office, &rules(&office)).await.remove(0);
    assert_eq!(kind, AlarmKind::Held);
    assert!(
        detail.starts_with("2 notices wait for a person: the scan ") && detail.contains("SCAN_CLAIM_LIMIT"),
        "{detail}"
    );
    office.close().await;
}

#[tokio::test]
async fn a_notice_owed_by_law_that_ended_unsent_is_one_unless_it_could_never_go() {
    let office = TestOffice::new().await;
    let late = office.permit_expiring_in(1).await;
    office.scan().await;
    // Its last step falls due 30 days after expiry, and may go for a week.
    office.days_pass(40);
    office.scan().await;
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::UnsentStatutory]);
    office.days_pass(40);
    assert_eq!(kinds(&office, &rules(&office)).await, [], "after a month it is history");
    office.days_pass(-40);
    office.renew(late, office.in_days(365)).await;
    assert_eq!(kinds(&office, &rules(&office)).await, [], "its period is over");
    office.close().await;
}

#[tokio::test]
async fn mails_that_are_only_files_are_one_while_they_could_still_be_sent() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    let columns = "transport, outcome, phase, response, payload_sha256";
    office.sql(&attempts(columns, "'file', 'accepted', 'dot', 'x.eml', sha256('x')")).await;
    office.sql("UPDATE deliveries SET state = 'sent'; UPDATE notices SET state = 'sent' WHERE state = 'pending'").await;
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::FilesOnly]);
    office.days_pass(20);
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.close().await;
}

#[tokio::test]
async fn mails_that_a_trial_kept_back_are_one_when_it_is_over_while_they_could_still_be_sent() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    office.sql("UPDATE deliveries SET state = 'suppressed', reason_code = 'guard' WHERE state = 'pending'").await;
    office.sql("UPDATE notices SET state = 'failed', reason_code = 'guard' WHERE state = 'pending'").await;
    let trial = WatchRules { mails_everybody: false, ..rules(&office) };
    assert_eq!(kinds(&office, &trial).await, []);
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::FilesOnly]);
    office.days_pass(20);
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.close().await;
}

#[tokio::test]
async fn replicas_with_other_settings_are_one_and_another_version_only_after_a_while() {
    let office = TestOffice::new().await;
    let rules = rules(&office);
    let join = |values: [&str; 5], ago: &str| {
        format!(
            "INSERT INTO processes (boot_id, host, roles, version, fingerprint, lease_seconds, started_at)
             VALUES (gen_random_uuid(), 'h', 'web', '{}', '{}', 60, clock_timestamp() - interval '{ago}')",
            values[0],
            fingerprint(values)
        )
    };
    let usual = ["0.1.0", "UTC", "0 0 6 * * *", "Office; public URL x <o@x.example>", "http://x/"];
    office.sql(&join(usual, "1 hour")).await;
    office.sql(&join(usual, "1 hour")).await;
    assert_eq!(kinds(&office, &rules).await, []);
    office.sql(&join(["0.2.0", "UTC", usual[2], usual[3], usual[4]], "1 minute")).await;
    assert_eq!(kinds(&office, &rules).await, [], "an upgrade goes on");
    office.sql("UPDATE processes SET started_at = started_at - interval '10 minutes'").await;
    // One of it that starts again and again does not make the upgrade a new one.
    office.sql(&join(["0.2.0", "UTC", usual[2], usual[3], usual[4]], "0")).await;
    let detail = |found: Vec<(AlarmKind, String)>| match &found[..] {
        [(AlarmKind::ReplicasDisagree, detail)] => detail.clone(),
        other => panic!("{other:?}"),
    };
    assert!(detail(wrong(&office, &rules).await).contains("the same version."));
    office.sql(&join(["0.1.0", "Europe/Berlin", usual[2], "Other <o@x.example>", usual[4]], "0")).await;
    assert!(detail(wrong(&office, &rules).await).contains("the same version, zone, from."));
    office
        .sql("UPDATE processes SET ended_at = clock_timestamp() WHERE fingerprint NOT LIKE '%0.1.0; zone UTC%'")
        .await;
    assert_eq!(kinds(&office, &rules).await, []);
    office.close().await;
}

#[tokio::test]
async fn a_database_that_is_not_the_one_it_was_is_one() {
    let office = TestOffice::new().await;
    record_marks(&mut *office.connection().await).await.unwrap();
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.sql("UPDATE memory_marks SET notices_oid = notices_oid + 1").await;
    assert_eq!(kinds(&office, &rules(&office)).await, [AlarmKind::MemoryWentBack]);
    office.sql("UPDATE memory_marks SET notices_oid = notices_oid - 1").await;
    assert_eq!(kinds(&office, &rules(&office)).await, []);
    office.close().await;
}

#[tokio::test]
async fn a_session_that_keeps_a_transaction_open_is_one() {
    let office = TestOffice::new().await;
    let limits = HeldLimits { any: Duration::from_millis(200), bulk: Duration::from_mins(30) };
    let rules = WatchRules { held_limits: limits, ..rules(&office) };
    let mut held = PgConnection::connect(&office.url).await.unwrap();
    sqlx::raw_sql("SET application_name = 'a report'; BEGIN; SELECT count(*) FROM permits")
        .execute(&mut held)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (kind, detail) = wrong(&office, &rules).await.remove(0);
    assert_eq!(kind, AlarmKind::DatabaseHeld);
    assert!(detail.contains("(a report, idle in transaction)"), "{detail}");
    sqlx::raw_sql("ROLLBACK; SET application_name = 'permit-notifier bulk'; BEGIN; SELECT count(*) FROM permits")
        .execute(&mut held)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kinds(&office, &rules).await, [], "an import may take longer");
    drop(held);
    office.close().await;
}
