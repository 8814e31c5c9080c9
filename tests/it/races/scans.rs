//! Two scans at once.

use permit_notifier::{
    scan::{ScanReport, ScanRequest, ScanRules, pass::run_once},
    store::{Result, scans::ScanOutcome},
};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Blocker, PARKED_SCAN, at_once, until};
use crate::support::office::{TestOffice, by_hand, expected_at};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_scans_that_overlap_one_claims_and_the_other_says_who_held_the_lock() {
    let office = TestOffice::new().await;
    let other = ScanRules { boot_id: Uuid::now_v7(), ..office.rules.clone() };
    for (first, second) in [(&office.rules, &other), (&other, &office.rules)] {
        let permit = office.permit_expiring_in(91).await;
        office.days_pass(1);
        let time = expected_at(office.clock.now());
        let blocker = Blocker::begin(&office, &format!("SELECT 1 FROM permits WHERE id = '{permit}' FOR UPDATE")).await;
        let running = JoinSet::from_iter([run(first.clone(), time)]);
        until(&office, PARKED_SCAN).await;
        assert_eq!(run_once(second, time).await.expect("a try").outcome, ScanOutcome::HeldElsewhere);
        blocker.release().await;
        let report = running.join_all().await.pop().expect("a scan").expect("a scan");
        assert_eq!((report.outcome, report.counts.claimed), (ScanOutcome::Completed, 1));
        assert_eq!(run_once(second, time).await.expect("a try").outcome, ScanOutcome::AlreadyDone);
        assert_eq!(office.said(permit).await, ["expires-90d pending"]);
    }
    office.close().await;
}

async fn run(rules: ScanRules, request: ScanRequest) -> Result<ScanReport> {
    run_once(&rules, request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_replicas_at_one_time_complete_it_once() {
    let office = TestOffice::new().await;
    for _ in 0..20 {
        office.permit_expiring_in(91).await;
    }
    office.days_pass(1);
    let now = office.clock.now();
    let reports = at_once(6, |_| {
        let rules = ScanRules { boot_id: Uuid::now_v7(), ..office.rules.clone() };
        run(rules, expected_at(now))
    });
    let reports: Vec<_> = reports.await.into_iter().map(|report| report.expect("a scan")).collect();
    let completed: Vec<_> = reports.iter().filter(|report| report.outcome == ScanOutcome::Completed).collect();
    assert_eq!(completed.len(), 1);
    assert_eq!(completed[0].counts.claimed, 20);
    assert_eq!(office.text("SELECT count(*)::text FROM deliveries").await, ["20"]);
    assert_eq!(office.text("SELECT count(*)::text FROM scans").await, ["6"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scans_by_hand_at_once_claim_each_notice_once() {
    let office = TestOffice::new().await;
    for _ in 0..20 {
        office.permit_expiring_in(91).await;
    }
    office.days_pass(1);
    at_once(6, |_| run(office.rules.clone(), by_hand(None))).await.into_iter().for_each(|report| {
        report.expect("a scan");
    });
    assert_eq!(office.text("SELECT count(*)::text FROM notices").await, ["20"]);
    assert_eq!(office.text("SELECT count(*)::text FROM deliveries").await, ["20"]);
    office.close().await;
}
