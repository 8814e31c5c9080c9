use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::{America, Pacific};
use permit_notifier::clock::{Clock, ManualClock, SystemClock};
use permit_notifier::domain::calendar::day_in;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

#[test]
fn business_time_is_the_databases_clock_plus_the_offset() {
    let database_now = at("2026-03-01T08:00:00Z");
    assert_eq!(SystemClock::default().business(database_now), database_now);

    let moved = SystemClock { offset: TimeDelta::days(-400) };
    assert_eq!(moved.business(database_now), at("2025-01-25T08:00:00Z"));
}

#[test]
fn a_manual_clock_stands_still_until_it_is_moved() {
    let clock = ManualClock::new(at("2026-03-01T08:00:00Z"));
    assert_eq!(clock.business(at("2031-01-01T00:00:00Z")), clock.now());

    clock.advance(TimeDelta::hours(25));
    assert_eq!(clock.now(), at("2026-03-02T09:00:00Z"));
    clock.set(at("2026-02-01T00:00:00Z"));
    assert_eq!(clock.business(clock.now()), at("2026-02-01T00:00:00Z"));
}

#[test]
fn today_is_the_day_of_the_offices_zone() {
    let instant = at("2026-03-01T03:00:00Z");
    let day = |d| NaiveDate::from_ymd_opt(2026, 2, d).unwrap();
    assert_eq!(day_in(instant, America::New_York), day(28));
    assert_eq!(day_in(instant, Pacific::Kiritimati), day(28).succ_opt().unwrap());
}
