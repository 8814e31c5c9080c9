//! When scans are expected: a six-field cron read as local wall time of one zone.
//!
//! 1. The cron is evaluated on bare wall time, so that its library never sees a clock change.
//! 2. Each wall time is mapped to an instant by the zone's own rules: one that does not exist
//!    becomes the first instant after the gap (several in one gap become one), one that exists
//!    twice is the first of the two.
//! 3. That mapping never goes backwards, so the question "what was expected last?" becomes
//!    "which wall times lie behind us?", which a short binary search answers; the cost is the
//!    same for a schedule of every second and for one of every 29 February.

use std::fmt;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use thiserror::Error;

use crate::domain::calendar::first_shown;

/// No zone differs from UTC, and no clock change moves a clock, by more than this.
const WIDEST_OFFSET: TimeDelta = TimeDelta::hours(27);

/// What a person wrote, checked; two are equal when they expect the same times for the same reason.
#[derive(Clone, PartialEq)]
pub struct ScanSchedule {
    expression: String,
    cron: Cron,
    zone: Tz,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    #[error(
        "it has six fields (second, minute, hour, day of month, month, day of week), such as \
         `0 0 6 * * *`; this has {0}"
    )]
    FieldCount(usize),
    #[error(
        "it names days of the month and days of the week; programs disagree whether both or \
         either must match, so leave one of the two as *"
    )]
    TwoKindsOfDay,
    #[error("it is no cron expression ({0})")]
    Syntax(String),
    #[error("no day ever matches it, so it would never run")]
    NeverFires,
}

impl ScanSchedule {
    /// Day names, month names, lists, ranges, steps, `L`, `W` and `#` are understood; nicknames
    /// such as `@daily` and a year field are not.
    pub fn new(expression: &str, zone: Tz) -> Result<Self, ScheduleError> {
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let [_, _, _, day_of_month, _, day_of_week] = fields[..] else {
            return Err(ScheduleError::FieldCount(fields.len()));
        };
        let restricts = |field| !matches!(field, "*" | "?");
        if restricts(day_of_month) && restricts(day_of_week) {
            return Err(ScheduleError::TwoKindsOfDay);
        }
        let cron = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Disallowed)
            .build()
            .parse(expression)
            .map_err(|error| ScheduleError::Syntax(error.to_string()))?;
        let schedule = Self { expression: fields.join(" "), cron, zone };
        // Without a year field what matches at all matches within 40 years (a leap day on a
        // given weekday, across 2100), so one look ahead settles it.
        let start = NaiveDate::default().and_time(NaiveTime::MIN);
        match schedule.next_wall_time(start) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::NeverFires),
        }
    }

    /// The expression with single spaces, as it is kept beside its since-when.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The latest expected time at or before `instant`.
    pub fn last_expected(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let reached = self.wall_time_reached(instant)?;
        let wall = self.cron.find_previous_occurrence(&reached.and_utc(), true).ok()?;
        self.instant_of(wall.naive_utc())
    }

    /// The earliest expected time strictly after `instant`.
    pub fn next_expected(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let reached = self.wall_time_reached(instant)?;
        self.instant_of(self.next_wall_time(reached)?)
    }

    /// The next `count` expected times after `instant`, in order.
    pub fn upcoming(&self, instant: DateTime<Utc>, count: usize) -> Vec<DateTime<Utc>> {
        std::iter::successors(self.next_expected(instant), |last| self.next_expected(*last)).take(count).collect()
    }

    /// The first expected time that falls on `day` in the schedule's zone.
    pub fn first_on(&self, day: NaiveDate) -> Option<DateTime<Utc>> {
        let start = self.instant_of(day.and_time(NaiveTime::MIN))?;
        let expected = self.next_expected(start - TimeDelta::seconds(1))?;
        (expected.with_timezone(&self.zone).date_naive() == day).then_some(expected)
    }

    fn next_wall_time(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        self.cron.find_next_occurrence(&after.and_utc(), false).ok().map(|found| found.naive_utc())
    }

    /// The latest wall time, in whole seconds, whose instant lies at or before `instant`.
    fn wall_time_reached(&self, instant: DateTime<Utc>) -> Option<NaiveDateTime> {
        let about = instant.naive_utc();
        let about = about - TimeDelta::nanoseconds(i64::from(about.and_utc().timestamp_subsec_nanos()));
        let mut reached = about.checked_sub_signed(WIDEST_OFFSET)?;
        let mut beyond = about.checked_add_signed(WIDEST_OFFSET)?;
        while beyond - reached > TimeDelta::seconds(1) {
            let middle = reached + TimeDelta::seconds((beyond - reached).num_seconds() / 2);
            if self.instant_of(middle)? <= instant {
                reached = middle;
            } else {
                beyond = middle;
            }
        }
        Some(reached)
    }

    fn instant_of(&self, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
        first_shown(wall, self.zone)
    }
}

impl fmt::Display for ScanSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.expression, self.zone)
    }
}

/// The parsed cron is pages of bits; what was written says more.
impl fmt::Debug for ScanSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScanSchedule({self})")
    }
}
