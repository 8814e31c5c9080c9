//! The hours of the week in which mail may leave: `Mon-Fri 08:00-18:00`.
//! Local days and times only; the zone is applied by whoever asks.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, Weekday};
use thiserror::Error;

const WEEK: [Weekday; 7] = [
    Weekday::Mon,
    Weekday::Tue,
    Weekday::Wed,
    Weekday::Thu,
    Weekday::Fri,
    Weekday::Sat,
    Weekday::Sun,
];

/// At least one weekday, and on each the same half-open span of local time, within one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendWindow {
    weekdays: [bool; 7],
    from: NaiveTime,
    /// The first moment outside; `None` is the end of the day (`24:00`), which no time names.
    until: Option<NaiveTime>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WindowError {
    #[error("it has the form `Mon-Fri 08:00-18:00`: days, one space, times")]
    Shape,
    #[error("`{0}` is no day of the week; days are Mon, Tue, Wed, Thu, Fri, Sat and Sun")]
    Weekday(String),
    #[error("`{0}` is no time of day; times are 00:00 to 23:59, and 24:00 as an end")]
    Time(String),
    #[error("it must end after it begins, on the same day")]
    OverMidnight,
}

impl SendWindow {
    pub fn from(&self) -> NaiveTime {
        self.from
    }

    /// The first moment outside the window; `None` when it lasts to the end of the day.
    pub fn until(&self) -> Option<NaiveTime> {
        self.until
    }

    pub fn is_window_day(&self, day: NaiveDate) -> bool {
        self.weekdays[index(day.weekday())]
    }

    pub fn is_open(&self, local: NaiveDateTime) -> bool {
        self.is_window_day(local.date())
            && local.time() >= self.from
            && self.is_before_end(local.time())
    }

    /// Whether a time of a window day lies before the window's end.
    pub fn is_before_end(&self, time: NaiveTime) -> bool {
        self.until.is_none_or(|until| time < until)
    }

    /// The latest window day strictly before `day`.
    pub fn last_window_day_before(&self, day: NaiveDate) -> NaiveDate {
        self.nearest(day, 1, NaiveDate::checked_sub_days)
    }

    /// `day` itself when it is a window day, else the next one.
    pub fn next_window_day_on_or_after(&self, day: NaiveDate) -> NaiveDate {
        self.nearest(day, 0, NaiveDate::checked_add_days)
    }

    /// A week holds every weekday, so eight steps always find one; the day itself is returned
    /// only where the calendar of chrono ends.
    fn nearest(
        &self,
        day: NaiveDate,
        first_step: u64,
        step: fn(NaiveDate, Days) -> Option<NaiveDate>,
    ) -> NaiveDate {
        (first_step..first_step + 7)
            .filter_map(|days| step(day, Days::new(days)))
            .find(|candidate| self.is_window_day(*candidate))
            .unwrap_or(day)
    }
}

impl FromStr for SendWindow {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split_whitespace();
        let (Some(days), Some(times), None) = (words.next(), words.next(), words.next()) else {
            return Err(WindowError::Shape);
        };
        let (from, until) = times.split_once('-').ok_or(WindowError::Shape)?;
        let from = parse_time(from)?;
        let until = match until {
            "24:00" => None,
            other => Some(parse_time(other)?),
        };
        if until.is_some_and(|until| until <= from) {
            return Err(WindowError::OverMidnight);
        }
        Ok(Self {
            weekdays: parse_days(days)?,
            from,
            until,
        })
    }
}

/// Runs of days as ranges and the rest one by one, so that it reads back as the same window.
impl fmt::Display for SendWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut day = 0;
        while day < 7 {
            if !self.weekdays[day] {
                day += 1;
                continue;
            }
            let first = day;
            while day < 7 && self.weekdays[day] {
                day += 1;
            }
            let (start, end) = (WEEK[first], WEEK[day - 1]);
            match day - first {
                1 => write!(f, "{separator}{start}")?,
                2 => write!(f, "{separator}{start},{end}")?,
                _ => write!(f, "{separator}{start}-{end}")?,
            }
            separator = ",";
        }
        write!(f, " {}-", self.from.format("%H:%M"))?;
        match self.until {
            Some(until) => write!(f, "{}", until.format("%H:%M")),
            None => f.write_str("24:00"),
        }
    }
}

/// A range may run over the end of the week: `Fri-Mon` is Friday to Monday.
fn parse_days(text: &str) -> Result<[bool; 7], WindowError> {
    let mut weekdays = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let last = parse_day(last)?;
        let mut day = parse_day(first)?;
        weekdays[index(day)] = true;
        while day != last {
            day = day.succ();
            weekdays[index(day)] = true;
        }
    }
    Ok(weekdays)
}

fn parse_day(text: &str) -> Result<Weekday, WindowError> {
    text.parse()
        .map_err(|_| WindowError::Weekday(text.to_owned()))
}

fn parse_time(text: &str) -> Result<NaiveTime, WindowError> {
    NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| WindowError::Time(text.to_owned()))
}

fn index(day: Weekday) -> usize {
    day.num_days_from_monday() as usize
}
