//! The service is asked to stop while it scans.

use std::sync::Arc;

use permit_notifier::scan::{ScanRules, pass::run_once, schedule::ScanSchedule, supervisor};
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Blocker, PARKED_SCAN, lost_lock::fill, until};
use crate::support::office::{TestOffice, by_hand};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_slower_than_its_tick_is_the_only_one_and_a_stop_ends_it_between_two_batches() {
    let office = TestOffice::new().await;
    fill(&office, 2500).await;
    office.days_pass(11);
    let blocker = Blocker::begin(&office, "SELECT 1 FROM permits ORDER BY id LIMIT 1 FOR UPDATE").await;
    let every_second = ScanSchedule::new("* * * * * *", office.rules.zone).expect("a schedule");
    let (rules, poke) = (office.rules.clone(), Arc::new(Notify::new()));
    let stop = rules.stop.clone();
    let running = supervisor::run(rules, every_second, office.pool.clone(), Arc::clone(&poke), stop.clone());
    let running = JoinSet::from_iter([running]);
    poke.notify_one();
    until(&office, PARKED_SCAN).await;
    for _ in 0..10 {
        office.clock.advance(chrono::TimeDelta::minutes(1));
        poke.notify_one();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let tries = "SELECT outcome FROM scans ORDER BY started_at";
    assert_eq!(office.text(tries).await, ["running"]);

    stop.cancel();
    blocker.release().await;
    // Another time is due and poked for, and nobody begins it.
    running.join_all().await;
    assert_eq!(office.text(tries).await, ["failed"]);
    assert_eq!(office.text("SELECT count(*)::text FROM notices").await, ["1000"], "the batch that was begun");
    let why = office.text("SELECT error FROM scans").await;
    assert!(why[0].contains("the service is stopping"), "{why:?}");

    let rules = ScanRules { stop: CancellationToken::new(), ..office.rules.clone() };
    let counts = run_once(&rules, by_hand(None)).await.expect("a scan").counts;
    assert_eq!((counts.claimed, counts.already_claimed), (1500, 1000));
    office.close().await;
}
