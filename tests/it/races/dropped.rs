//! A scan that is dropped while it waits for anything.

use permit_notifier::{scan::pass::run_once, store::scans::ScanOutcome};

use super::{NO_SCAN_LEFT, lost_lock::fill, until};
use crate::support::{
    dropped::dropped_after,
    office::{TestOffice, by_hand},
};

#[tokio::test]
async fn a_scan_that_is_dropped_at_any_moment_gives_its_lock_back() {
    const PERMITS: u64 = 20;
    let office = TestOffice::new().await;
    fill(&office, PERMITS as u32).await;
    office.days_pass(11);
    let mut polls = 0;
    // A little further each time, until it comes to its end.
    let whole = loop {
        if let Some(ended) = dropped_after(polls, run_once(&office.rules, by_hand(None))).await {
            break ended.expect("a scan");
        }
        until(&office, NO_SCAN_LEFT).await;
        let locks = "SELECT count(*)::text FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                     WHERE l.locktype = 'advisory' AND d.datname = current_database()";
        assert_eq!(office.text(locks).await, ["0"], "after {polls} polls");
        polls += 3;
    };
    assert!(polls > 20, "it was dropped at many places: {polls}");
    assert_eq!(whole.outcome, ScanOutcome::Completed);
    assert_eq!(whole.counts.claimed + whole.counts.already_claimed, PERMITS);
    assert_eq!(office.text("SELECT count(*)::text FROM deliveries").await, [PERMITS.to_string()]);
    office.close().await;
}
