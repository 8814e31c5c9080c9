//! A scan that loses its lock half-way writes nothing more; the next one does the rest.

use permit_notifier::{scan::pass::run_once, store::scans::ScanOutcome};
use tokio::task::JoinSet;

use super::{Blocker, NO_SCAN_LEFT, PARKED_SCAN, until};
use crate::support::office::{TestOffice, expected_at};

/// Enough for a scan of two batches, written without notices a hundred days before they are due.
pub(super) async fn fill(office: &TestOffice, permits: u32) {
    let (now, day, expires_on) = (office.clock.now().to_rfc3339(), office.today(), office.in_days(100));
    office
        .sql(&format!(
            "INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, holder_email,
                                  expires_on, period_since, created_at, updated_at)
             SELECT gen_random_uuid(), 'B-' || i, 'b-' || i, 'food', 'active', 'Ada', 'ada' || i || '@example.org',
                    '{expires_on}', '{day}', '{now}', '{now}' FROM generate_series(1, {permits}) i;
             INSERT INTO expiry_periods SELECT id, expires_on, '{day}' FROM permits;
             INSERT INTO terms SELECT id, 1, NULL, NULL, expires_on, '{now}' FROM permits"
        ))
        .await;
}

/// The last permit that a scan comes to, as a statement that locks it.
pub(super) const LOCK_LAST_PERMIT: &str = "SELECT 1 FROM permits ORDER BY id DESC LIMIT 1 FOR UPDATE";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scan_whose_lock_connection_is_cut_writes_nothing_more_and_the_next_completes_it() {
    let office = TestOffice::new().await;
    fill(&office, 1500).await;
    office.days_pass(11);
    let blocker = Blocker::begin(&office, LOCK_LAST_PERMIT).await;
    let (rules, time) = (office.rules.clone(), expected_at(office.clock.now()));
    let mut scan = JoinSet::from_iter([async move { run_once(&rules, time).await }]);
    let parked = until(&office, PARKED_SCAN).await;
    let claimed = "SELECT count(*)::text FROM notices";
    assert_eq!(office.text(claimed).await, ["1000"]);

    office.sql(&format!("SELECT pg_terminate_backend({})", parked[0])).await;
    assert!(scan.join_next().await.expect("its end").expect("no panic").is_err());
    blocker.release().await;
    assert_eq!(office.text(claimed).await, ["1000"]);
    let row = "SELECT concat_ws(' ', outcome, lock, error) FROM scans";
    let row = office.text(row).await;
    assert!(row.len() == 1 && row[0].starts_with("failed acquired ") && row[0].contains("terminating"), "{row:?}");

    office.clock.advance(chrono::TimeDelta::minutes(1));
    let report = run_once(&office.rules, time).await.expect("the next scan");
    assert_eq!((report.outcome, report.counts.claimed), (ScanOutcome::Completed, 500));
    assert_eq!(report.counts.already_claimed, 1000);
    assert_eq!(office.text("SELECT count(DISTINCT permit_id)::text FROM notices").await, ["1500"]);
    assert_eq!(office.text("SELECT count(*)::text FROM deliveries WHERE state = 'pending'").await, ["1500"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scan_that_lost_its_lock_while_another_completed_does_not_speak_over_it() {
    let office = TestOffice::new().await;
    fill(&office, 3).await;
    office.days_pass(11);
    let blocker = Blocker::begin(&office, LOCK_LAST_PERMIT).await;
    let (rules, time) = (office.rules.clone(), expected_at(office.clock.now()));
    let scan = JoinSet::from_iter([async move { run_once(&rules, time).await }]);
    let parked = until(&office, PARKED_SCAN).await;
    office.sql(&format!("SELECT pg_terminate_backend({})", parked[0])).await;
    until(&office, NO_SCAN_LEFT).await;
    blocker.release().await;
    // Whichever writes first: the one that failed says so, or the next finds it abandoned.
    let report = run_once(&office.rules, time).await.expect("the next scan");
    assert!(scan.join_all().await[0].is_err());
    assert_eq!((report.outcome, report.counts.claimed), (ScanOutcome::Completed, 3));
    let outcomes = office.text("SELECT outcome FROM scans ORDER BY outcome = 'completed'").await;
    assert!(matches!(outcomes[0].as_str(), "failed" | "abandoned"), "{outcomes:?}");
    assert_eq!(outcomes[1], "completed");
    office.close().await;
}
