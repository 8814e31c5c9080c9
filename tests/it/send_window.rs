use chrono::{NaiveDate, NaiveDateTime};
use permit_notifier::domain::window::{SendWindow, WindowError};
use proptest::prelude::*;

fn window(text: &str) -> SendWindow {
    text.parse().unwrap()
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn time(text: &str) -> NaiveDateTime {
    text.parse().unwrap()
}

#[test]
fn the_window_is_open_from_its_first_minute_until_just_before_its_last() {
    let window = window("Mon-Fri 08:00-18:00");
    // 27 November 2026 is a Friday.
    assert!(!window.is_open(time("2026-11-27T07:59:59")));
    assert!(window.is_open(time("2026-11-27T08:00:00")));
    assert!(window.is_open(time("2026-11-27T17:59:59")));
    assert!(!window.is_open(time("2026-11-27T18:00:00")));
    assert!(!window.is_open(time("2026-11-28T12:00:00")));
}

#[test]
fn a_window_until_24_00_holds_the_last_second_of_the_day() {
    let window = window("Sat 20:00-24:00");
    assert!(window.is_open(time("2026-11-28T23:59:59")));
    assert!(!window.is_open(time("2026-11-29T00:00:00")));
}

#[test]
fn days_may_be_listed_ranged_and_run_over_the_end_of_the_week() {
    let days = |text: &str| {
        let window = window(text);
        // 23 November 2026 is a Monday.
        day("2026-11-23")
            .iter_days()
            .take(7)
            .map(|day| if window.is_window_day(day) { 'x' } else { '.' })
            .collect::<String>()
    };
    assert_eq!(days("Mon,Wed,Fri 08:00-18:00"), "x.x.x..");
    assert_eq!(days("mon-wed,friday 08:00-18:00"), "xxx.x..");
    assert_eq!(days("Fri-Mon 08:00-18:00"), "x...xxx");
    assert_eq!(days("Sun 08:00-18:00"), "......x");
    assert_eq!(days("Mon-Sun 00:00-24:00"), "xxxxxxx");
}

#[test]
fn neighbouring_window_days_are_found_across_the_weekend() {
    let window = window("Mon-Fri 08:00-18:00");
    assert_eq!(window.last_window_day_before(day("2026-11-29")), day("2026-11-27"));
    assert_eq!(window.last_window_day_before(day("2026-11-27")), day("2026-11-26"));
    assert_eq!(window.next_window_day_on_or_after(day("2026-11-28")), day("2026-11-30"));
    assert_eq!(window.next_window_day_on_or_after(day("2026-11-30")), day("2026-11-30"));

    let weekly = self::window("Wed 08:00-18:00");
    assert_eq!(weekly.last_window_day_before(day("2026-11-25")), day("2026-11-18"));
    assert_eq!(weekly.next_window_day_on_or_after(day("2026-11-26")), day("2026-12-02"));
}

#[test]
fn what_is_no_window_is_refused_with_what_is_allowed() {
    let error = |text: &str| text.parse::<SendWindow>().unwrap_err();
    assert_eq!(error("08:00-18:00"), WindowError::Shape);
    assert_eq!(error("Mon-Fri 08:00"), WindowError::Shape);
    assert_eq!(error("Mon - Fri 08:00-18:00"), WindowError::Shape);
    assert_eq!(error("Mon-Foo 08:00-18:00"), WindowError::Weekday("Foo".into()));
    assert_eq!(error("Mon,,Tue 08:00-18:00"), WindowError::Weekday(String::new()));
    assert_eq!(error("Mon 8-18:00"), WindowError::Time("8".into()));
    assert_eq!(error("Mon 24:00-24:00"), WindowError::Time("24:00".into()));
    assert_eq!(error("Mon 08:00-18:60"), WindowError::Time("18:60".into()));
    assert_eq!(error("Mon 22:00-06:00"), WindowError::OverMidnight);
    assert_eq!(error("Mon 08:00-08:00"), WindowError::OverMidnight);
    assert_eq!(error("Mon 22:00-00:00"), WindowError::OverMidnight);
}

#[test]
fn it_is_written_with_ranges_where_there_are_some() {
    for text in ["Mon-Fri 08:00-18:00", "Mon,Wed,Fri 08:00-18:00", "Tue,Wed,Sat,Sun 00:00-24:00"] {
        assert_eq!(window(text).to_string(), text);
    }
    assert_eq!(window("fri-mon 8:00-9:30").to_string(), "Mon,Fri-Sun 08:00-09:30");
}

proptest! {
    #[test]
    fn every_window_reads_back_as_itself(
        days in 1_u8..128,
        from in 0_u32..1439,
        length in 1_u32..1440,
    ) {
        let until = (from + length).min(1440);
        let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let listed: Vec<_> = (0..7).filter(|d| days & (1 << d) != 0).map(|d| names[d]).collect();
        let written = format!(
            "{} {:02}:{:02}-{:02}:{:02}",
            listed.join(","), from / 60, from % 60, until / 60, until % 60,
        );
        let window: SendWindow = written.parse().unwrap();
        prop_assert_eq!(&window.to_string().parse::<SendWindow>().unwrap(), &window);

        let today = day("2026-11-27");
        let last = window.last_window_day_before(today);
        let next = window.next_window_day_on_or_after(today);
        prop_assert!(last < today && today <= next);
        prop_assert!(window.is_window_day(last) && window.is_window_day(next));
        let between = last.succ_opt().unwrap().iter_days().take_while(|d| *d < next);
        prop_assert!(between.into_iter().all(|d| !window.is_window_day(d)));
    }
}
