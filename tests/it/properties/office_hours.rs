//! Windows, zones and days: any text in the settings is a value or a fault that names its variable; a day begins where
//! it does; and no step may go before it can.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use permit_notifier::{
    config::Config,
    domain::{
        calendar::{day_in, days_between, plus_days, plus_months, start_of_day},
        window::SendWindow,
    },
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    check,
    scan_times::change,
    zones::{first_of_day, stretches},
};

/// Days from Monday, first and last minute of a window; none if it is none.
fn window(text: &str) -> Option<([bool; 7], u32, u32)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let &[days, times] = &words[..] else { return None };
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let place = |day: &str| {
        let day = day.to_ascii_lowercase();
        names.iter().position(|name| day == name[..3] || day == *name)
    };
    let mut open = [false; 7];
    for part in days.split(',') {
        let ends: Vec<&str> = part.splitn(2, '-').collect();
        let (first, last) = (place(ends[0])?, place(ends[ends.len() - 1])?);
        let length = (last + 7 - first) % 7;
        (0..=length).for_each(|day| open[(first + day) % 7] = true);
    }
    let minute = |time: &str| {
        let (hour, minute) = time.split_once(':')?;
        let number = |text: &str| {
            let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            if digits { text.parse::<u32>().ok() } else { None }
        };
        let (hour, minute) = (number(hour)?, number(minute)?);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    };
    let (from, until) = times.split_once('-')?;
    let (from, until) = (minute(from)?, if until == "24:00" { 1440 } else { minute(until)? });
    (from < until).then_some((open, from, until))
}

fn window_text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "Mon",
        "fri",
        "Sunday",
        "thurs",
        "Tues",
        "MON",
        "Foo",
        "-",
        ",",
        "-",
        ",",
        " ",
        " ",
        "\u{a0}",
        "8:00",
        "08:00",
        "18:00",
        "24:00",
        "00:00",
        "23:59",
        "8:5",
        "+8:00",
        "8: 00",
        "25:00",
        "08:60",
        "08:00:00",
        "0800",
        "é",
        "١٨:٠٠",
        "",
    ]);
    let time = (0_u32..26, 0_u32..61).prop_map(|(hour, minute)| format!("{hour:02}:{minute:02}"));
    let day = prop::sample::select(vec!["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "saturday"]);
    let good = (day.clone(), prop::sample::select(vec!["-", ","]), day, time.clone(), time)
        .prop_map(|(one, mark, two, from, until)| format!("{one}{mark}{two} {from}-{until}"));
    prop_oneof![2 => good, 2 => prop::collection::vec(word, 1..10).prop_map(|words| words.concat()), 1 => any::<String>()]
}

#[test]
fn any_text_is_the_window_that_it_says_or_is_refused_with_a_reason() {
    check("send-windows", 2_000, window_text(), |text| {
        let (found, expected) = (text.parse::<SendWindow>(), window(text));
        prop_assert_eq!(found.is_ok(), expected.is_some(), "{:?}", found);
        let (Ok(found), Some((open, from, until))) = (&found, expected) else {
            prop_assert!(found.unwrap_err().to_string().len() > 10);
            return Ok(());
        };
        let monday = NaiveDate::from_ymd_opt(2026, 11, 23).unwrap();
        for (day, is_open) in monday.iter_days().zip(open) {
            for second in [0, from.saturating_sub(1), from, until - 1, until, 1439].map(|minute| minute * 60) {
                for second in [second, second + 59].into_iter().filter(|second| *second < 86_400) {
                    let time = NaiveTime::from_num_seconds_from_midnight_opt(second, 0).unwrap();
                    let expected = is_open && (from * 60..until * 60).contains(&second);
                    prop_assert_eq!(found.is_open(day.and_time(time)), expected, "{} {}", day, time);
                }
            }
        }
        prop_assert_eq!(&found.to_string().parse::<SendWindow>().unwrap(), found);
        Ok(())
    });
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Settings {
    zone: String,
    schedule: String,
    window: String,
}

fn settings() -> impl Strategy<Value = Settings> {
    let zones = TZ_VARIANTS.iter().map(|zone| zone.name().to_owned()).collect::<Vec<_>>();
    let zone = prop_oneof![
        3 => prop::sample::select(zones.clone()),
        1 => prop::sample::select(zones).prop_map(|zone| zone.to_lowercase()),
        1 => prop::sample::select(vec!["", "Local", "CEST", "+02:00", "Europe/ Berlin", "../etc/passwd", "Europe/Berlin\n", "UTC+1", "\u{feff}UTC"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let schedule = prop::sample::select(vec![
        "",
        "0 0 6 * * *",
        "0 30 2 * * MON-FRI",
        "0 0 23 L * *",
        "0 0 6 * *",
        "0 0 6 31 2 *",
        "* * * * * *",
        "0 0 6 29 2 *",
        "every day",
        "\u{7f}",
        "0 0 17 * * *",
    ]);
    let window = prop_oneof![
        3 => prop::sample::select(vec!["", "Mon-Fri 08:00-18:00", "Mon-Sun 00:00-24:00", "Sat 3:00-03:10"]).prop_map(str::to_owned),
        2 => window_text(),
    ];
    (zone, schedule, window).prop_map(|(zone, schedule, window)| Settings {
        zone,
        schedule: schedule.to_owned(),
        window,
    })
}

#[test]
fn any_settings_of_time_are_values_or_faults_that_name_their_variable() {
    check("time-settings", 80, settings(), |case| {
        let value = |name: &str| match name {
            "TIME_ZONE" => Some(case.zone.clone()),
            "SCAN_SCHEDULE" => Some(case.schedule.clone()),
            "SEND_WINDOW" => Some(case.window.clone()),
            _ => None,
        };
        let faults = match Config::read(&value) {
            Ok(config) => {
                let zone = if case.zone.trim().is_empty() { "UTC" } else { case.zone.trim() };
                prop_assert_eq!(config.time_zone.name(), zone);
                prop_assert_eq!(config.scan_schedule.zone(), config.time_zone);
                let window = config.send_window.map(|window| window.to_string());
                prop_assert_eq!(window.is_none(), case.window.trim().is_empty());
                return Ok(());
            }
            Err(errors) => errors.0,
        };
        for fault in &faults {
            prop_assert!(
                ["TIME_ZONE", "SCAN_SCHEDULE", "SEND_WINDOW"].contains(&fault.variable.as_str()),
                "{:?}",
                fault
            );
            prop_assert!(fault.message.len() > 10 && !fault.message.contains(char::is_control), "{:?}", fault);
        }
        let blamed = |name| faults.iter().any(|fault| fault.variable == name);
        prop_assert!(!blamed("TIME_ZONE") || case.zone.trim().parse::<Tz>().is_err());
        Ok(())
    });
}

#[test]
fn a_day_begins_at_its_first_instant_in_any_zone_across_any_change() {
    check("first-instants", 400, change(), |(zone, near)| {
        let (from, until) = (*near - TimeDelta::days(6), *near + TimeDelta::days(6));
        let stretches = stretches(*zone, from..until);
        let mut last: Option<DateTime<Utc>> = None;
        for day in near.date_naive().iter_days().take(5).map(|day| day - Days::new(2)) {
            let begins = start_of_day(day, *zone);
            prop_assert_eq!(Some(begins), first_of_day(&stretches, day), "{}", day);
            prop_assert!(day_in(begins, *zone) >= day);
            prop_assert!(last.is_none_or(|last| last <= begins));
            last = Some(begins);
        }
        Ok(())
    });
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Moves {
    day: NaiveDate,
    days: i64,
    months: i32,
}

#[test]
fn days_and_months_move_as_in_a_calendar_and_never_beyond_it() {
    let day = prop_oneof![
        8 => (1900_i32..2200, 1_u32..366).prop_map(|(year, day)| NaiveDate::from_yo_opt(year, day).unwrap()),
        1 => prop::sample::select(vec![NaiveDate::MIN, NaiveDate::MAX]),
    ];
    let days = prop_oneof![4 => -4000_i64..4000, 1 => any::<i64>()];
    let months = prop_oneof![4 => -400_i32..400, 1 => any::<i32>()];
    let cases = (day, days, months).prop_map(|(day, days, months)| Moves { day, days, months });
    check("calendar-moves", 2_000, cases, |&Moves { day, days, months }| {
        use chrono::Datelike as _;
        let moved = plus_days(day, days);
        let edge = moved == NaiveDate::MIN || moved == NaiveDate::MAX;
        prop_assert!(days_between(day, moved) == days || edge, "{} days to {}", days, moved);
        prop_assert!((days < 0) == (moved < day) || edge);
        let later = plus_months(day, months);
        if later != NaiveDate::MIN && later != NaiveDate::MAX {
            let count = |day: NaiveDate| i64::from(day.year()) * 12 + i64::from(day.month0());
            prop_assert_eq!(count(later) - count(day), i64::from(months));
            let is_last = later.succ_opt().is_none_or(|next| next.day() == 1);
            prop_assert!(later.day() == day.day() || later.day() < day.day() && is_last);
        }
        Ok(())
    });
}
