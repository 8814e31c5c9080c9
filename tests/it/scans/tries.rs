//! Every try is a row.

use permit_notifier::{
    scan::ScanRules,
    store::{
        scan_lock::ScanLock,
        scans::{self, NewScan, ScanOutcome, Trigger},
    },
};
use uuid::Uuid;

use super::{break_scans, mend_scans, tries};
use crate::support::office::{TestOffice, by_hand, expected_at};

async fn lock(office: &TestOffice) -> ScanLock {
    ScanLock::try_take(&office.url).await.expect("a connection").expect("the lock")
}

#[tokio::test]
async fn a_completed_scan_says_what_it_did() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(91).await;
    office.days_pass(1);
    let report = office.scan().await;
    assert_eq!(report.outcome, ScanOutcome::Completed);
    let row = "SELECT concat_ws(' ', outcome, lock, trigger, claimed, already_claimed, own_day, as_of) FROM scans";
    assert_eq!(office.text(row).await, ["completed acquired command 1 0 t 2027-03-11"]);
    office.close().await;
}

#[tokio::test]
async fn a_failed_scan_says_why_and_leaves_nothing_half_written() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(91).await;
    office.days_pass(1);
    break_scans(&office).await;
    let failed = office.try_scan(&office.rules, by_hand(None)).await;
    assert!(failed.is_err());
    let row = office.text("SELECT concat_ws(' ', outcome, lock, error) FROM scans").await;
    assert!(row[0].starts_with("failed acquired ") && row[0].contains("could not extend file"), "{row:?}");
    assert!(office.said(permit).await.is_empty());
    mend_scans(&office).await;
    assert_eq!(office.scan().await.counts.claimed, 1);
    office.close().await;
}

#[tokio::test]
async fn a_scan_whose_process_died_is_abandoned_by_the_next_one() {
    let office = TestOffice::new().await;
    let dead = NewScan {
        id: Uuid::now_v7(),
        scheduled_for: Some(office.clock.now()),
        trigger: Trigger::Schedule,
        moment: office.moment(),
        own_day: true,
        boot_id: Uuid::now_v7(),
    };
    let mut held = lock(&office).await;
    scans::begin_scan(held.connection(), &dead).await.expect("a scan that begins");
    held.release().await;
    assert_eq!(tries(&office).await, ["running"]);
    office.clock.advance(chrono::TimeDelta::minutes(1));
    let report = office.try_scan(&office.rules, expected_at(office.clock.now())).await.expect("a scan");
    assert_eq!(report.outcome, ScanOutcome::Completed);
    assert_eq!(tries(&office).await, ["abandoned", "completed"]);
    office.close().await;
}

#[tokio::test]
async fn a_try_while_another_scans_is_recorded_once_for_each_replica_and_time() {
    let office = TestOffice::new().await;
    let held = lock(&office).await;
    let other = ScanRules { boot_id: Uuid::now_v7(), ..office.rules.clone() };
    let now = office.clock.now();
    for rules in [&office.rules, &office.rules, &other, &other] {
        let report = office.try_scan(rules, expected_at(now)).await.expect("a try");
        assert_eq!(report.outcome, ScanOutcome::HeldElsewhere);
    }
    assert_eq!(tries(&office).await, ["held_elsewhere"; 2]);
    let later = now + chrono::TimeDelta::days(1);
    office.try_scan(&office.rules, expected_at(later)).await.expect("a try");
    assert_eq!(tries(&office).await, ["held_elsewhere"; 3]);
    held.release().await;
    // What came to nothing because another scanned is no setback.
    let setbacks = scans::setbacks(&mut *office.connection().await, now).await.expect("the setbacks");
    assert_eq!((setbacks.count, setbacks.last), (0, None));
    office.close().await;
}

#[tokio::test]
async fn a_time_that_was_met_meanwhile_is_already_done() {
    let office = TestOffice::new().await;
    let now = office.clock.now();
    for outcome in [ScanOutcome::Completed, ScanOutcome::AlreadyDone, ScanOutcome::AlreadyDone] {
        let report = office.try_scan(&office.rules, expected_at(now)).await.expect("a try");
        assert_eq!(report.outcome, outcome);
    }
    assert_eq!(tries(&office).await, ["completed", "already_done", "already_done"]);
    office.close().await;
}

#[tokio::test]
async fn the_lock_is_free_as_soon_as_a_scan_has_ended() {
    let office = TestOffice::new().await;
    for _ in 0..50 {
        lock(&office).await.release().await;
    }
    office.close().await;
}

#[tokio::test]
async fn the_locks_connection_gives_it_back_when_its_holder_is_silent_for_a_minute() {
    let office = TestOffice::new().await;
    let mut held = lock(&office).await;
    for (setting, value) in [
        ("idle_session_timeout", "1min"),
        ("idle_in_transaction_session_timeout", "30s"),
        ("statement_timeout", "5min"),
        ("lock_timeout", "30s"),
    ] {
        let show = sqlx::AssertSqlSafe(format!("SHOW {setting}"));
        let shown: String = sqlx::query_scalar(show).fetch_one(held.connection()).await.expect("a setting");
        assert_eq!(shown, value, "{setting}");
    }
    held.release().await;
    office.close().await;
}
