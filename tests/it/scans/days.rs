//! Days are the office's, whatever the host's zone, the clock changes and the calendar do.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::{America::Chicago, Europe::Berlin, Tz};
use permit_notifier::scan::{schedule::ScanSchedule, supervisor::scan_if_due};

use crate::support::office::TestOffice;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant")
}

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day")
}

#[tokio::test]
async fn the_day_begins_at_local_midnight_on_a_host_in_utc() {
    for (zone, last_second, midnight, today) in [
        (Chicago, "2027-06-01T04:59:59Z", "2027-06-01T05:00:00Z", "2027-06-01"),
        (Chicago, "2027-12-01T05:59:59Z", "2027-12-01T06:00:00Z", "2027-12-01"),
        (Berlin, "2027-05-31T21:59:59Z", "2027-05-31T22:00:00Z", "2027-06-01"),
    ] {
        let office = TestOffice::at("2027-02-01T12:00:00Z", zone).await;
        let permit = office.create_permit(|p| p.expires_on = day(today)).await;
        office.now_is(last_second);
        office.scan().await;
        assert_eq!(office.open(permit).await, ["expires-1d"], "{zone}");
        office.transport(permit, "accepted").await;
        office.now_is(midnight);
        assert_eq!(office.scan().await.as_of, day(today));
        assert_eq!(office.open(permit).await, ["expires-today"], "{zone}");
        office.close().await;
    }
}

#[tokio::test]
async fn a_permit_is_valid_through_the_last_second_of_its_last_day() {
    let office = TestOffice::at("2027-02-01T12:00:00Z", Chicago).await;
    let permit = office.create_permit(|p| p.expires_on = day("2027-03-14")).await;
    office.now_is("2027-03-15T04:59:59Z");
    office.scan().await;
    assert_eq!(office.open(permit).await, ["expires-today"]);
    office.now_is("2027-03-15T05:00:00Z");
    office.scan().await;
    assert_eq!(office.notice(permit, "expires-today").await.said(), "expires-today skipped (too_late)");
    assert_eq!(office.open(permit).await, ["expired-1d"]);
    office.close().await;
}

/// Scans at each instant if a time is expected; says at which it did.
async fn scans(office: &TestOffice, schedule: &ScanSchedule, instants: &[&'static str]) -> Vec<&'static str> {
    let mut scanned = Vec::new();
    for instant in instants {
        office.now_is(instant);
        if scan_if_due(&office.rules, schedule, &office.pool).await.expect("a scan").is_some() {
            scanned.push(*instant);
        }
    }
    scanned
}

fn schedule(expression: &str, zone: Tz) -> ScanSchedule {
    ScanSchedule::new(expression, zone).expect("a schedule")
}

#[tokio::test]
async fn six_in_the_morning_stays_six_in_the_morning_through_both_clock_changes() {
    for (zone, instants, expected) in [
        (
            Chicago,
            // 14 March and 7 November 2027.
            [
                ["2027-03-13T12:00:00Z", "2027-03-14T10:59:59Z", "2027-03-14T11:00:00Z", "2027-03-14T12:00:00Z"],
                ["2027-11-06T11:00:00Z", "2027-11-07T11:59:59Z", "2027-11-07T12:00:00Z", "2027-11-07T13:00:00Z"],
            ],
            ["2027-03-13T12:00:00Z", "2027-03-14T11:00:00Z", "2027-11-06T11:00:00Z", "2027-11-07T12:00:00Z"],
        ),
        (
            Berlin,
            // 28 March and 31 October 2027.
            [
                ["2027-03-27T05:00:00Z", "2027-03-28T03:59:59Z", "2027-03-28T04:00:00Z", "2027-03-28T05:00:00Z"],
                ["2027-10-30T04:00:00Z", "2027-10-31T04:59:59Z", "2027-10-31T05:00:00Z", "2027-10-31T06:00:00Z"],
            ],
            ["2027-03-27T05:00:00Z", "2027-03-28T04:00:00Z", "2027-10-30T04:00:00Z", "2027-10-31T05:00:00Z"],
        ),
    ] {
        let office = TestOffice::at("2027-01-01T12:00:00Z", zone).await;
        let six = schedule("0 0 6 * * *", zone);
        assert_eq!(scans(&office, &six, &instants.concat()).await, expected, "{zone}");
        office.close().await;
    }
}

#[tokio::test]
async fn a_time_that_does_not_exist_or_exists_twice_is_scanned_once() {
    let office = TestOffice::at("2027-01-01T12:00:00Z", Chicago).await;
    let half_past_two = schedule("0 30 2 * * *", Chicago);
    let spring = ["2027-03-13T08:30:00Z", "2027-03-14T07:59:59Z", "2027-03-14T08:00:00Z", "2027-03-14T08:30:00Z"];
    let expected = ["2027-03-13T08:30:00Z", "2027-03-14T08:00:00Z"];
    assert_eq!(scans(&office, &half_past_two, &spring).await, expected);
    let half_past_one = schedule("0 30 1 * * *", Chicago);
    let autumn = ["2027-11-06T06:30:00Z", "2027-11-07T06:29:59Z", "2027-11-07T06:30:00Z", "2027-11-07T07:30:00Z"];
    let expected = ["2027-11-06T06:30:00Z", "2027-11-07T06:30:00Z"];
    assert_eq!(scans(&office, &half_past_one, &autumn).await, expected);
    office.close().await;
}

#[tokio::test]
async fn a_permit_that_expires_on_29_february_is_told_on_the_right_days() {
    let office = TestOffice::at("2027-11-30T12:00:00Z", Chicago).await;
    let permit = office.create_permit(|p| p.expires_on = day("2028-02-29")).await;
    let renewed = permit_notifier::domain::calendar::plus_months(day("2028-02-29"), 12);
    assert_eq!(renewed, day("2029-02-28"));
    let mut told = Vec::new();
    while office.today() < day("2028-04-01") {
        office.scan().await;
        for name in office.open(permit).await {
            told.push(format!("{} {name}", office.today().format("%m-%d")));
        }
        office.transport(permit, "accepted").await;
        office.clock.set(office.clock.now() + chrono::TimeDelta::days(1));
    }
    let expected = [
        "12-01 expires-90d",
        "12-31 expires-60d",
        "01-30 expires-30d",
        "02-15 expires-14d",
        "02-22 expires-7d",
        "02-28 expires-1d",
        "02-29 expires-today",
        "03-01 expired-1d",
        "03-30 expired-30d",
    ];
    assert_eq!(told, expected);
    assert_eq!(office.clock.now(), at("2028-04-01T12:00:00Z"));
    office.close().await;
}
