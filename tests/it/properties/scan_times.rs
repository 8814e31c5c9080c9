//! Scan schedules: any text is one or is refused with a reason; and the expected times are those that a calendar of our
//! own names, in every zone and across every change of its clocks.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use permit_notifier::scan::schedule::ScanSchedule;
use proptest::{prelude::*, test_runner::TestCaseResult};
use serde::{Deserialize, Serialize};

use super::{
    check,
    zones::{first_shown, next_change, stretches},
};

#[derive(Debug, Clone, Serialize, Deserialize)]
enum DaysOf {
    Every,
    Month(BTreeSet<u32>),
    LastOfMonth,
    /// The weekday of the month that is nearest to a day.
    Nearest(u32),
    /// 0 is Sunday.
    Week(BTreeSet<u32>),
    /// The n-th of a weekday in the month.
    Nth(u32, u32),
    LastWeekday(u32),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Plan {
    zone: Tz,
    near: DateTime<Utc>,
    second: u32,
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    days: DaysOf,
    months: BTreeSet<u32>,
}

fn list(numbers: &BTreeSet<u32>) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl Plan {
    /// Each day at these times.
    fn daily(zone: Tz, near: DateTime<Utc>, time: NaiveTime) -> Self {
        use chrono::Timelike as _;
        let (minutes, hours) = (BTreeSet::from([time.minute()]), BTreeSet::from([time.hour()]));
        Self { zone, near, second: time.second(), minutes, hours, days: DaysOf::Every, months: BTreeSet::new() }
    }

    fn expression(&self) -> String {
        let (of_month, of_week) = match &self.days {
            DaysOf::Every => ("*".to_owned(), "*".to_owned()),
            DaysOf::Month(days) => (list(days), "*".to_owned()),
            DaysOf::LastOfMonth => ("L".to_owned(), "?".to_owned()),
            DaysOf::Nearest(day) => (format!("{day}W"), "*".to_owned()),
            DaysOf::Week(days) => ("?".to_owned(), list(days)),
            DaysOf::Nth(day, n) => ("*".to_owned(), format!("{day}#{n}")),
            DaysOf::LastWeekday(day) => ("*".to_owned(), format!("{day}#L")),
        };
        let months = if self.months.is_empty() { "*".to_owned() } else { list(&self.months) };
        format!("{} {} {} {of_month} {months} {of_week}", self.second, list(&self.minutes), list(&self.hours))
    }

    fn has(&self, day: NaiveDate) -> bool {
        let weekday = day.weekday().num_days_from_sunday();
        let last = (28..=31).rev().find_map(|last| day.with_day(last)).unwrap().day();
        let fits = match &self.days {
            DaysOf::Every => true,
            DaysOf::Month(days) => days.contains(&day.day()),
            DaysOf::LastOfMonth => day.day() == last,
            DaysOf::Nearest(wanted) => {
                let nearest =
                    day.with_day(*wanted).map(|wanted| match (wanted.weekday().num_days_from_sunday(), wanted.day()) {
                        (6, 1) => 3,
                        (6, day) => day - 1,
                        (0, day) if day == last => day - 2,
                        (0, day) => day + 1,
                        (_, day) => day,
                    });
                nearest == Some(day.day())
            }
            DaysOf::Week(days) => days.contains(&weekday),
            DaysOf::Nth(wanted, n) => weekday == *wanted && (day.day() - 1) / 7 + 1 == *n,
            DaysOf::LastWeekday(wanted) => weekday == *wanted && day.day() + 7 > last,
        };
        fits && (self.months.is_empty() || self.months.contains(&day.month()))
    }

    /// The schedule names what the calendar names, within `days` of the instant.
    fn holds(&self, days: i64) -> TestCaseResult {
        let (from, until) = (self.near - TimeDelta::days(days), self.near + TimeDelta::days(days));
        let margin = TimeDelta::days(3);
        let stretches = stretches(self.zone, from - margin..until + margin);
        let mut expected = BTreeSet::new();
        let start = from.date_naive() - Days::new(2);
        for day in
            start.iter_days().take_while(|day| *day <= until.date_naive() + Days::new(2)).filter(|day| self.has(*day))
        {
            for (hour, minute) in
                self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)))
            {
                let wall = day.and_hms_opt(hour, minute, self.second).unwrap();
                expected.extend(first_shown(&stretches, wall).filter(|instant| (from..=until).contains(instant)));
            }
        }
        let schedule =
            ScanSchedule::new(&self.expression(), self.zone).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut found = BTreeSet::new();
        let mut last = from - TimeDelta::seconds(1);
        while let Some(next) = schedule.next_expected(last).filter(|next| *next <= until) {
            prop_assert!(next > last, "{next} after {last}");
            found.insert(next);
            last = next;
        }
        prop_assert_eq!(&found, &expected);
        for instant in expected
            .iter()
            .flat_map(|at| [*at, *at + TimeDelta::seconds(1), *at + TimeDelta::hours(1)])
            .filter(|at| *at <= until)
        {
            let before = expected.range(..=instant).next_back().copied();
            prop_assert_eq!(schedule.last_expected(instant), before, "last at {}", instant);
        }
        Ok(())
    }
}

/// A zone and an instant at which its clocks change, if they do within a year.
pub fn change() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    (prop::sample::select(&TZ_VARIANTS[..]), 0_i64..2_145_000_000).prop_map(|(zone, second)| {
        let after = DateTime::from_timestamp(second, 0).unwrap();
        (zone, next_change(zone, after))
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    use prop::collection::btree_set;
    let days = prop_oneof![
        3 => Just(DaysOf::Every),
        1 => btree_set(1_u32..32, 1..5).prop_map(DaysOf::Month),
        1 => Just(DaysOf::LastOfMonth),
        1 => (1_u32..29).prop_map(DaysOf::Nearest),
        2 => btree_set(0_u32..7, 1..5).prop_map(DaysOf::Week),
        1 => (0_u32..7, 1_u32..6).prop_map(|(day, n)| DaysOf::Nth(day, n)),
        1 => (0_u32..7).prop_map(DaysOf::LastWeekday),
    ];
    let hours = prop_oneof![2 => btree_set(0_u32..5, 1..3), 1 => btree_set(0_u32..24, 1..3)];
    let months = prop_oneof![3 => Just(BTreeSet::new()), 1 => btree_set(1_u32..13, 6..12)];
    (change(), prop_oneof![2 => Just(0_u32), 1 => 0_u32..60], btree_set(0_u32..60, 1..3), hours, days, months).prop_map(
        |((zone, near), second, minutes, hours, days, months)| Plan {
            zone,
            near,
            second,
            minutes,
            hours,
            days,
            months,
        },
    )
}

#[test]
fn expected_scans_are_those_of_a_calendar_in_any_zone_across_any_change() {
    check("scan-times", 120, plan(), |plan| plan.holds(20));
}

#[test]
fn a_daily_scan_is_expected_once_a_day_in_every_zone_across_the_changes_to_come() {
    let from: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    for zone in TZ_VARIANTS {
        let change = next_change(zone, from);
        let other = next_change(zone, change + TimeDelta::hours(12));
        for near in BTreeSet::from([change, other]) {
            // Inside the gap, or the hour that comes twice.
            let shown = (near - TimeDelta::minutes(10)).with_timezone(&zone).time();
            for time in [shown, shown.overflowing_add_signed(TimeDelta::minutes(25)).0] {
                let plan = Plan::daily(zone, near, time);
                plan.holds(2).unwrap_or_else(|error| panic!("{plan:?}: {error}"));
            }
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Expression {
    text: String,
    zone: Tz,
    at: DateTime<Utc>,
}

fn expression() -> impl Strategy<Value = Expression> {
    let word = prop::sample::select(vec![
        "*",
        "*",
        "0",
        "6",
        "59",
        "60",
        "?",
        "L",
        "LW",
        "W",
        "1W",
        "31W",
        "L-3",
        "*/7",
        "*/0",
        "0/0",
        "5-1",
        "1-5/2",
        "1,2,3",
        ",",
        "-",
        "/",
        "#",
        "MON",
        "MON#5",
        "MON#6",
        "FRI#L",
        "5L",
        "mon-fri",
        "SUN-SAT/3",
        "FEB",
        "29",
        "30",
        "+1",
        "99999999999999999999",
        "é",
        "*/1000000000",
        "0-59/59",
        "7",
        "8",
        "JAN-DEC",
        "@daily",
        "\u{1}",
    ]);
    let words = prop::collection::vec(word, 4..8).prop_map(|words| words.join(" "));
    let glued =
        (words.clone(), "[0-9*/,#LW?-]{0,6}").prop_map(|(words, more)| words.replacen(' ', &format!("{more} "), 2));
    let text = prop_oneof![3 => words, 2 => glued, 1 => any::<String>()];
    (text, change()).prop_map(|(text, (zone, at))| Expression { text, zone, at })
}

#[test]
fn any_text_is_a_schedule_or_is_refused_with_a_reason() {
    check("scan-expressions", 600, expression(), |case| {
        let schedule = match ScanSchedule::new(&case.text, case.zone) {
            Ok(schedule) => schedule,
            Err(error) => {
                prop_assert!(error.to_string().len() > 10);
                return Ok(());
            }
        };
        let again = ScanSchedule::new(schedule.expression(), case.zone);
        prop_assert_eq!(again.as_ref(), Ok(&schedule));
        let next = schedule.next_expected(case.at).expect("what fires at all fires again");
        let last = schedule.last_expected(next).expect("it has fired now");
        prop_assert!(next > case.at && last == next, "{next} and {last}");
        if let Some(before) = schedule.last_expected(case.at) {
            prop_assert!(before <= case.at && schedule.next_expected(before) == Some(next));
        }
        let day = next.with_timezone(&case.zone).date_naive();
        let first = schedule.first_on(day).expect("it is expected on that day");
        prop_assert!(first <= next && first.with_timezone(&case.zone).date_naive() == day);
        Ok(())
    });
}
