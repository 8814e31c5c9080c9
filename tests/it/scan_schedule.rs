//! Expected scan times by the real rules of zones, against computations of our own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::{America, Asia, Australia, Europe, Pacific, Tz};
use permit_notifier::scan::schedule::{ScanSchedule, ScheduleError};
use proptest::prelude::*;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn schedule(expression: &str, zone: Tz) -> ScanSchedule {
    ScanSchedule::new(expression, zone).unwrap()
}

fn upcoming(expression: &str, zone: Tz, after: &str, count: usize) -> Vec<String> {
    schedule(expression, zone)
        .upcoming(at(after), count)
        .iter()
        .map(|expected| expected.format("%d %H:%M").to_string())
        .collect()
}

#[test]
fn six_in_the_morning_stays_six_in_the_morning() {
    let daily = "0 0 6 * * *";
    // New York: 8 March (forward) and 1 November (back).
    assert_eq!(upcoming(daily, America::New_York, "2026-03-06T12:00:00Z", 3), ["07 11:00", "08 10:00", "09 10:00"]);
    assert_eq!(upcoming(daily, America::New_York, "2026-10-31T00:00:00Z", 3), ["31 10:00", "01 11:00", "02 11:00"]);
    // Berlin: 29 March and 25 October.
    assert_eq!(upcoming(daily, Europe::Berlin, "2026-03-28T00:00:00Z", 3), ["28 05:00", "29 04:00", "30 04:00"]);
    assert_eq!(upcoming(daily, Europe::Berlin, "2026-10-24T00:00:00Z", 3), ["24 04:00", "25 05:00", "26 05:00"]);
    // Lord Howe moves by half an hour: 5 April (back) and 4 October (forward).
    assert_eq!(upcoming(daily, Australia::Lord_Howe, "2026-04-03T12:00:00Z", 3), ["03 19:00", "04 19:30", "05 19:30"]);
    assert_eq!(upcoming(daily, Australia::Lord_Howe, "2026-10-02T12:00:00Z", 3), ["02 19:30", "03 19:00", "04 19:00"]);
}

#[test]
fn a_time_that_does_not_exist_runs_once_just_after_the_gap() {
    assert_eq!(upcoming("0 30 2 * * *", America::New_York, "2026-03-07T12:00:00Z", 2), ["08 07:00", "09 06:30"]);
    // Seven times lie in the gap and one, 03:00, just after it: together one.
    assert_eq!(
        upcoming("0 */10 2,3 * * *", Europe::Berlin, "2026-03-29T00:00:00Z", 3),
        ["29 01:00", "29 01:10", "29 01:20"]
    );
    // The gap of Lord Howe is 02:00 to 02:30.
    assert_eq!(upcoming("0 15 2 * * *", Australia::Lord_Howe, "2026-10-03T00:00:00Z", 2), ["03 15:30", "04 15:15"]);
    // Samoa had no 30 December 2011 at all.
    assert_eq!(upcoming("0 0 6 30 12 *", Pacific::Apia, "2011-12-01T00:00:00Z", 1), ["30 10:00"]);
}

#[test]
fn a_time_that_exists_twice_runs_the_first_time_only() {
    assert_eq!(upcoming("0 30 1 * * *", America::New_York, "2026-10-31T12:00:00Z", 2), ["01 05:30", "02 06:30"]);
    assert_eq!(
        upcoming("0 */30 * * * *", Europe::Berlin, "2026-10-24T23:59:00Z", 6),
        ["25 00:00", "25 00:30", "25 02:00", "25 02:30", "25 03:00", "25 03:30"]
    );
    assert_eq!(upcoming("0 45 1 * * *", Australia::Lord_Howe, "2026-04-04T00:00:00Z", 2), ["04 14:45", "05 15:15"]);
    // In the second pass the last expected time is the last one of the first pass.
    let half_hourly = schedule("0 */30 * * * *", Europe::Berlin);
    assert_eq!(half_hourly.last_expected(at("2026-10-25T01:59:59Z")), Some(at("2026-10-25T00:30:00Z")));
}

#[test]
fn a_day_whose_midnight_does_not_exist_has_a_first_time_all_the_same() {
    // Beirut goes forward at midnight on 29 March 2026.
    let day = at("2026-03-29T12:00:00Z").date_naive();
    let hourly = schedule("0 0 * * * *", Asia::Beirut);
    assert_eq!(hourly.first_on(day), Some(at("2026-03-28T22:00:00Z")));
    let on_mondays = schedule("0 0 6 * * MON", Asia::Beirut);
    assert_eq!(on_mondays.first_on(day), None);
    assert_eq!(on_mondays.first_on(day.succ_opt().unwrap()), Some(at("2026-03-30T03:00:00Z")));
}

#[test]
fn the_last_expected_time_includes_the_instant_and_the_next_one_does_not() {
    let daily = schedule("0 0 6 * * *", Tz::UTC);
    let six = at("2026-03-01T06:00:00Z");
    assert_eq!(daily.last_expected(six), Some(six));
    assert_eq!(daily.last_expected(six - TimeDelta::nanoseconds(1)), Some(six - TimeDelta::days(1)));
    assert_eq!(daily.next_expected(six), Some(six + TimeDelta::days(1)));
    assert_eq!(daily.next_expected(six - TimeDelta::milliseconds(1)), Some(six));
}

#[test]
fn frequent_and_rare_schedules_are_answered_at_once() {
    let started = Instant::now();
    let now = at("2026-10-25T01:30:00.5Z");
    let each_second = schedule("* * * * * *", Europe::Berlin);
    // The second pass of the repeated hour: 02:59:59 came for the first time an hour ago.
    assert_eq!(each_second.last_expected(now), Some(at("2026-10-25T00:59:59Z")));
    assert_eq!(each_second.next_expected(now), Some(at("2026-10-25T02:00:00Z")));
    assert_eq!(each_second.upcoming(now, 1000).len(), 1000);

    let leap_day = schedule("0 0 6 29 2 *", Europe::Berlin);
    assert_eq!(leap_day.last_expected(now), Some(at("2024-02-29T05:00:00Z")));
    assert_eq!(leap_day.next_expected(now), Some(at("2028-02-29T05:00:00Z")));

    let five_mondays_in_february = schedule("0 0 6 * 2 MON#5", Europe::Berlin);
    assert_eq!(five_mondays_in_february.next_expected(now), Some(at("2044-02-29T05:00:00Z")));
    // Far above what it takes, far below a loop over minutes.
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_is_no_schedule_is_refused_with_a_reason() {
    let error = |text| ScanSchedule::new(text, Tz::UTC).unwrap_err();
    assert_eq!(error("0 6 * * *"), ScheduleError::FieldCount(5));
    assert_eq!(error("0 0 6 * * * 2027"), ScheduleError::FieldCount(7));
    assert_eq!(error("@daily"), ScheduleError::FieldCount(1));
    assert_eq!(error(""), ScheduleError::FieldCount(0));
    assert_eq!(error("0 0 8 31 2 *"), ScheduleError::NeverFires);
    assert_eq!(error("0 0 8 1 * MON"), ScheduleError::TwoKindsOfDay);
    assert_eq!(error("0 0 8 */2 * +MON"), ScheduleError::TwoKindsOfDay);
    for text in ["0 0 24 * * *", "0 60 6 * * *", "a b c * * *", "0 0 6 * * FOO"] {
        assert!(matches!(error(text), ScheduleError::Syntax(_)), "{text}");
    }
    assert!(error("0 6 * * *").to_string().contains("`0 0 6 * * *`"));
}

#[test]
fn names_last_days_and_question_marks_are_understood() {
    assert_eq!(upcoming("0  0 6 ? jan-MAR mon", Tz::UTC, "2026-11-29T00:00:00Z", 2), ["04 06:00", "11 06:00"]);
    assert_eq!(upcoming("0 0 6 L * ?", Tz::UTC, "2026-11-29T00:00:00Z", 3), ["30 06:00", "31 06:00", "31 06:00"]);
    assert_eq!(schedule(" 0  0 6 * * * ", Europe::Berlin).to_string(), "0 0 6 * * * Europe/Berlin");
}

/// The same by looking at every minute of real time: a wall time counts when it is seen for the
/// first time, and what a gap jumped over counts at the first minute after it.
fn minute_by_minute(
    matches: impl Fn(NaiveDateTime) -> bool,
    zone: Tz,
    from: DateTime<Utc>,
    minutes: i64,
) -> BTreeSet<DateTime<Utc>> {
    let mut expected = BTreeSet::new();
    let wall = |instant: DateTime<Utc>| instant.with_timezone(&zone).naive_local();
    let mut reached = wall(from - TimeDelta::days(1));
    for minute in 0..=(24 * 60 + minutes) {
        let instant = from - TimeDelta::days(1) + TimeDelta::minutes(minute);
        while reached < wall(instant) {
            reached += TimeDelta::minutes(1);
            if matches(reached) {
                expected.insert(instant);
            }
        }
    }
    expected.split_off(&from)
}

const WEEK: i64 = 7 * 24 * 60;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn expected_times_agree_with_a_walk_through_every_minute(
        minutes in proptest::collection::btree_set(0_u32..60, 1..4),
        hours in prop_oneof![
            proptest::collection::btree_set(0_u32..5, 1..4),
            Just((0..24).collect::<BTreeSet<u32>>()),
        ],
        zone_and_change in prop_oneof![
            Just((America::New_York, "2026-03-08T07:00:00Z")),
            Just((America::New_York, "2026-11-01T06:00:00Z")),
            Just((Europe::Berlin, "2026-03-29T01:00:00Z")),
            Just((Europe::Berlin, "2026-10-25T01:00:00Z")),
            Just((Australia::Lord_Howe, "2026-04-04T15:00:00Z")),
            Just((Australia::Lord_Howe, "2026-10-03T15:30:00Z")),
            Just((Asia::Beirut, "2026-03-28T22:00:00Z")),
            Just((Pacific::Apia, "2011-12-30T10:00:00Z")),
        ],
        before in 0_i64..WEEK,
        probe in 0_i64..WEEK,
    ) {
        let (zone, change) = zone_and_change;
        let from = at(change) - TimeDelta::minutes(before);
        let list = |set: &BTreeSet<u32>| {
            set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let schedule = schedule(&format!("0 {} {} * * *", list(&minutes), list(&hours)), zone);
        let matches = |wall: NaiveDateTime| {
            minutes.contains(&wall.minute()) && hours.contains(&wall.hour())
        };
        let walked = minute_by_minute(matches, zone, from, WEEK);

        let mut found = BTreeSet::new();
        let mut last = from - TimeDelta::seconds(1);
        while let Some(next) = schedule.next_expected(last)
            && next <= from + TimeDelta::minutes(WEEK)
        {
            prop_assert!(next > last);
            found.insert(next);
            last = next;
        }
        prop_assert_eq!(&found, &walked);

        let probe = from + TimeDelta::minutes(probe);
        if let Some(before) = walked.range(..=probe).next_back() {
            prop_assert_eq!(schedule.last_expected(probe), Some(*before));
        }
    }
}
