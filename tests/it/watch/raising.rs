//! Each alarm is raised once, whoever looks, and cleared by itself.

use chrono::TimeDelta;
use permit_notifier::{
    domain::alarm::AlarmKind,
    scan::schedule::ScanSchedule,
    store::scans::{expected_since, keep_scan_schedule},
    watch::WatchRules,
};

use super::{Watcher, outbox, rules};
use crate::support::office::TestOffice;

/// Three replicas that look for the first time, so that the schedule is in force.
async fn three(office: &TestOffice) -> Vec<Watcher> {
    let mut watchers = Vec::new();
    for _ in 0..3 {
        let mut watcher = Watcher::new(rules(office)).await;
        assert_eq!(watcher.look().await, []);
        watchers.push(watcher);
    }
    watchers
}

#[tokio::test]
async fn a_missed_time_is_raised_once_when_its_grace_is_over_and_cleared_by_a_scan() {
    let office = TestOffice::new().await;
    let mut watchers = three(&office).await;
    office.now_is("2027-03-11T12:29:59Z");
    for watcher in &mut watchers {
        assert_eq!(watcher.look().await, [], "half past six has not come yet");
    }
    office.now_is("2027-03-11T12:30:00Z");
    let mut raised = Vec::new();
    for _ in 0..3 {
        for watcher in &mut watchers {
            raised.extend(watcher.look().await);
        }
    }
    let [alarm] = &raised[..] else { panic!("once and not {raised:?}") };
    assert_eq!((alarm.kind, &*alarm.subject), (AlarmKind::MissingRun, "2027-03-11T12:00:00Z"));
    assert_eq!(
        alarm.detail,
        "The scan expected at 06:00 CST on 11 March 2027 has not completed; it is 30 minutes late."
    );
    assert_eq!(outbox(&office).await, ["missing_run raised email waits", "missing_run raised webhook waits"]);

    office.clock.advance(TimeDelta::minutes(5));
    let standing = "SELECT count(*)::text FROM alarms WHERE cleared_at IS NULL";
    office.scan_as_of(office.in_days(1)).await;
    for watcher in &mut watchers {
        assert_eq!(watcher.look().await, []);
    }
    assert_eq!(office.text(standing).await, ["1"], "a scan of another day says nothing of this one");
    office.scan().await;
    for watcher in &mut watchers {
        assert_eq!(watcher.look().await, []);
    }
    assert_eq!(office.text(standing).await, ["0"]);
    // Nobody had been told yet, so the last word is enough.
    assert_eq!(outbox(&office).await, ["missing_run cleared email waits", "missing_run cleared webhook waits"]);
    office.close().await;
}

#[tokio::test]
async fn each_missed_time_is_one_and_a_scan_clears_them_all() {
    let office = TestOffice::new().await;
    let mut watchers = three(&office).await;
    for day in ["11", "12"] {
        office.now_is(&format!("2027-03-{day}T12:45:00Z"));
        for watcher in &mut watchers {
            watcher.look().await;
        }
    }
    let subjects = office.text("SELECT subject FROM alarms ORDER BY raised_at").await;
    assert_eq!(subjects, ["2027-03-11T12:00:00Z", "2027-03-12T12:00:00Z"]);
    office.scan().await;
    watchers[1].look().await;
    assert_eq!(office.text("SELECT count(*)::text FROM alarms WHERE cleared_at IS NULL").await, ["0"]);
    office.close().await;
}

#[tokio::test]
async fn a_schedule_of_seconds_raises_no_alarm_for_each_of_them() {
    let office = TestOffice::new().await;
    let schedule = ScanSchedule::new("*/10 * * * * *", office.rules.zone).unwrap();
    let mut watcher = Watcher::new(WatchRules { schedule, ..rules(&office) }).await;
    let mut raised = 0;
    for _ in 0..95 {
        raised += watcher.look().await.len();
        office.clock.advance(TimeDelta::minutes(1));
    }
    assert_eq!(raised, 3, "one each half hour");
    office.close().await;
}

#[tokio::test]
async fn many_that_look_at_the_same_moment_raise_it_once() {
    let office = TestOffice::new().await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    let mut watchers = Vec::new();
    for _ in 0..8 {
        watchers.push(Watcher::new(rules(&office)).await);
    }
    office
        .sql("UPDATE deliveries SET state = 'failed'; UPDATE notices SET state = 'failed' WHERE state = 'pending'")
        .await;
    for _ in 0..5 {
        futures_util::future::join_all(watchers.iter_mut().map(Watcher::look)).await;
    }
    assert_eq!(office.text("SELECT kind FROM alarms").await, ["dead_letters"]);
    assert_eq!(outbox(&office).await.len(), 2);
    office.close().await;
}

#[tokio::test]
async fn replicas_that_disagree_about_the_schedule_both_notice_a_missing_run() {
    let office = TestOffice::new().await;
    let other = ScanSchedule::new("0 0 7 * * *", office.rules.zone).unwrap();
    let mut watchers =
        [Watcher::new(rules(&office)).await, Watcher::new(WatchRules { schedule: other, ..rules(&office) }).await];
    for _ in 0..3 {
        for watcher in &mut watchers {
            assert_eq!(watcher.look().await, []);
        }
    }
    assert_eq!(office.text("SELECT count(*)::text FROM scan_schedules").await, ["2"], "one row for each");
    office.now_is("2027-03-11T13:45:00Z");
    let mut kinds = Vec::new();
    for watcher in &mut watchers {
        kinds.extend(watcher.look().await.into_iter().map(|alarm| alarm.subject));
    }
    assert_eq!(kinds, ["2027-03-11T12:00:00Z"], "the other is within half an hour of it");
    for watcher in &mut watchers {
        watcher.look().await;
    }
    assert_eq!(office.text("SELECT count(*)::text FROM alarms WHERE cleared_at IS NULL").await, ["1"], "and it stays");
    office.close().await;
}

#[tokio::test]
async fn a_schedule_that_nobody_goes_by_any_more_comes_into_force_anew() {
    let office = TestOffice::new().await;
    let mut connection = office.connection().await;
    let first = office.clock.now();
    for (schedule, zone) in [("a", "UTC"), ("b", "UTC"), ("a", "UTC")] {
        keep_scan_schedule(&mut connection, schedule, zone, office.clock.now()).await.unwrap();
        office.clock.advance(TimeDelta::minutes(1));
    }
    assert_eq!(expected_since(&mut connection, "a", "UTC").await.unwrap(), Some(first), "a is still gone by");
    office.sql("UPDATE scan_schedules SET kept_at = kept_at - interval '1 hour' WHERE schedule = 'a'").await;
    assert_eq!(expected_since(&mut connection, "a", "UTC").await.unwrap(), None);
    let anew = office.clock.now();
    assert_eq!(keep_scan_schedule(&mut connection, "a", "UTC", anew).await.unwrap(), anew);
    drop(connection);
    office.close().await;
}

#[tokio::test]
async fn what_stands_is_told_once_and_shown_as_it_is_now() {
    let office = TestOffice::new().await;
    let mut watcher = Watcher::new(rules(&office)).await;
    office.permit_expiring_in(30).await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    let fail = "WITH one AS (SELECT id, notice_id FROM deliveries WHERE state = 'pending' LIMIT 1),
                     notice AS (UPDATE notices n SET state = 'failed' FROM one WHERE n.id = one.notice_id)
                UPDATE deliveries d SET state = 'failed' FROM one WHERE d.id = one.id";
    let details = "SELECT detail FROM alarms";
    office.sql(fail).await;
    assert_eq!(watcher.look().await.len(), 1);
    assert!(office.text(details).await[0].starts_with("1 mail failed for good or came back on "));
    let told = outbox(&office).await;
    office.sql(fail).await;
    assert_eq!(watcher.look().await, []);
    assert!(office.text(details).await[0].starts_with("2 mails failed for good or came back on "));
    assert_eq!(outbox(&office).await, told);
    office.close().await;
}
