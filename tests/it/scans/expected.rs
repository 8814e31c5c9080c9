//! When a scan is expected, when that is met, and how a failed time is tried again.

use chrono::TimeDelta;
use permit_notifier::scan::{ScanReport, schedule::ScanSchedule, supervisor::scan_if_due};
use permit_notifier::store::{Result, scans::ScanOutcome};

use super::{break_scans, mend_scans, tries};
use crate::support::office::TestOffice;

/// Six in the morning in the office's zone; the office of the tests begins at nine.
fn six(office: &TestOffice) -> ScanSchedule {
    ScanSchedule::new("0 0 6 * * *", office.rules.zone).expect("a schedule")
}

async fn poke(office: &TestOffice) -> Result<Option<ScanReport>> {
    scan_if_due(&office.rules, &six(office), &office.pool).await
}

async fn scans(office: &TestOffice) -> bool {
    poke(office).await.expect("no failure").is_some()
}

#[tokio::test]
async fn the_first_start_scans_at_once_and_then_once_a_day() {
    let office = TestOffice::new().await;
    let report = poke(&office).await.expect("a scan").expect("a scan");
    assert_eq!(report.outcome, ScanOutcome::Completed);
    assert!(!scans(&office).await);
    office.now_is("2027-03-11T11:59:59Z");
    assert!(!scans(&office).await);
    office.now_is("2027-03-11T12:00:00Z");
    assert!(scans(&office).await);
    assert!(!scans(&office).await);
    let times =
        office.text("SELECT to_char(scheduled_for AT TIME ZONE 'UTC', 'DD HH24:MI') FROM scans ORDER BY 1").await;
    assert_eq!(times, ["10 12:00", "11 12:00"]);
    office.close().await;
}

#[tokio::test]
async fn days_without_a_process_are_caught_up_by_one_scan() {
    let office = TestOffice::new().await;
    assert!(scans(&office).await);
    let permit = office.permit_expiring_in(31).await;
    office.days_pass(21);
    assert!(scans(&office).await);
    assert!(!scans(&office).await);
    assert_eq!(office.open(permit).await, ["expires-14d"]);
    office.close().await;
}

#[tokio::test]
async fn a_scan_by_hand_after_the_time_meets_it_and_one_before_it_does_not() {
    let office = TestOffice::new().await;
    office.scan().await;
    assert!(!scans(&office).await);
    office.now_is("2027-03-11T11:59:59Z");
    office.scan().await;
    office.now_is("2027-03-11T12:00:00Z");
    assert!(scans(&office).await);
    office.close().await;
}

#[tokio::test]
async fn a_scan_as_of_any_day_meets_nothing() {
    let office = TestOffice::new().await;
    for days in [-1, 0, 1] {
        office.scan_as_of(office.in_days(days)).await;
    }
    assert!(scans(&office).await);
    office.close().await;
}

#[tokio::test]
async fn a_scan_of_a_time_that_is_still_to_come_meets_nothing() {
    let office = TestOffice::new().await;
    office.now_is("2030-06-01T15:00:00Z");
    assert!(scans(&office).await);
    office.now_is("2027-03-11T15:00:00Z");
    assert!(scans(&office).await);
    assert!(!scans(&office).await);
    office.close().await;
}

#[tokio::test]
async fn a_failed_time_is_tried_again_at_growing_intervals_until_it_is_met() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(95).await;
    office.days_pass(10);
    break_scans(&office).await;
    assert!(poke(&office).await.is_err());
    for minutes in [1, 2, 4, 8, 15, 15] {
        office.clock.advance(TimeDelta::minutes(minutes) - TimeDelta::seconds(1));
        assert!(!scans(&office).await, "after almost {minutes} minutes");
        office.clock.advance(TimeDelta::seconds(1));
        assert!(poke(&office).await.is_err(), "after {minutes} minutes");
    }
    mend_scans(&office).await;
    assert!(!scans(&office).await);
    office.clock.advance(TimeDelta::minutes(15));
    assert!(scans(&office).await);
    assert!(!scans(&office).await);
    let mut expected = vec!["failed"; 7];
    expected.push("completed");
    assert_eq!(tries(&office).await, expected);
    assert_eq!(office.open(permit).await, ["expires-90d"]);
    office.close().await;
}

#[tokio::test]
async fn the_next_time_does_not_wait_for_the_failures_of_the_last() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(95).await;
    office.now_is("2027-03-20T10:59:59Z");
    break_scans(&office).await;
    assert!(poke(&office).await.is_err());
    mend_scans(&office).await;
    office.now_is("2027-03-20T11:00:00Z");
    assert!(scans(&office).await);
    office.close().await;
}

#[tokio::test]
async fn a_schedule_changed_while_the_service_runs_is_gone_by_from_then_on() {
    let office = TestOffice::new().await;
    assert!(scans(&office).await);
    office.clock.advance(TimeDelta::hours(1));
    let at = |hour: u32| ScanSchedule::new(&format!("0 0 {hour} * * *"), office.rules.zone).expect("a schedule");
    // It is ten: nine has been missed by the new schedule, eight was met by the scan of nine.
    let (eight, half_past_nine) = (at(8), ScanSchedule::new("0 30 9 * * *", office.rules.zone).expect("a schedule"));
    assert!(scan_if_due(&office.rules, &eight, &office.pool).await.expect("no failure").is_none());
    assert!(scan_if_due(&office.rules, &half_past_nine, &office.pool).await.expect("no failure").is_some());
    let kept =
        office.text("SELECT schedule || to_char(since AT TIME ZONE 'UTC', ' HH24') FROM scan_schedules ORDER BY id");
    assert_eq!(kept.await, ["0 0 6 * * * 15", "0 0 8 * * * 16", "0 30 9 * * * 16"]);
    office.close().await;
}
