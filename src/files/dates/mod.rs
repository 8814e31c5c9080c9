//! Dates in cells: one format for a whole column, decided from all its values, and never silently the wrong one.
//!
//! `YYYY-MM-DD` is understood in any column, for it can mean only one thing. For the rest each value votes for the
//! formats it fits. Day-first and month-first differ only in values that fit one of them alone; a column with none
//! of those is ambiguous, and one with a good number of both is mixed. Both are refused: guessing would be right
//! for most rows and move the others by months.

mod format;
mod guesses;
mod votes;

use chrono::NaiveDate;

pub use format::DateFormat;
pub(super) use guesses::usual;
use guesses::{GUESSES, ISO, example, has_short_year, parse_guess};
pub(super) use votes::Votes;

use super::fields::Field;
use super::mapping::Mapping;
use super::remarks::{Reason, Remark, shorten};
use super::values::is_no_value;

/// Why a cell is no date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateFault {
    /// Not a date in the column's format, or no day of the calendar.
    NoDate,
    /// A time of day other than midnight.
    Time,
    /// The same, and its year has two digits.
    ShortYear,
    /// What a spreadsheet counts days by, in a cell that is not formatted as a day.
    DayNumber,
}

/// The date alone of a value that may carry midnight, as databases write it. A zone is refused with any time: the
/// same instant is another day elsewhere.
fn without_midnight(value: &str) -> Result<&str, DateFault> {
    let value = value.trim();
    let Some(colon) = value.find(':') else { return Ok(value) };
    let hour = value[..colon].trim_end_matches(|c: char| c.is_ascii_digit());
    let (day, time) = (hour.trim_end_matches(['T', 't', ' ']), value[hour.len()..].to_ascii_lowercase());
    let (clock, half) = match time.strip_suffix("am") {
        Some(clock) => (clock.trim_end(), true),
        None => (time.as_str(), false),
    };
    let mut parts = clock.splitn(3, ':');
    let first = parts.next().unwrap_or_default();
    let rest_is_zero = parts.all(|part| !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'0' | b'.')));
    let midnight = rest_is_zero && if half { first == "12" } else { matches!(first, "0" | "00") };
    if midnight && !day.is_empty() { Ok(day) } else { Err(DateFault::Time) }
}

/// Whether it looks like the number of a day from 1927 to 2173, as spreadsheets count them.
fn is_day_number(value: &str) -> bool {
    let whole = value.split('.').next().unwrap_or_default();
    whole.len() == 5 && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && whole >= "10000"
}

/// How the date columns of a file are read.
#[derive(Debug)]
pub(super) struct ColumnDates {
    /// The format that somebody named; of columns that have one of their own, that goes before it.
    given: Option<DateFormat>,
    /// By [`Field::DATES`].
    guessed: [Option<usize>; Field::DATES.len()],
    /// By the same: whether some program seems to have read days as months.
    swapped: [bool; Field::DATES.len()],
}

impl ColumnDates {
    /// Warnings about columns in which day and month may be swapped.
    pub fn doubts(&self, mapping: &Mapping) -> Vec<Remark> {
        let columns = Field::DATES.into_iter().zip(self.swapped).filter(|(_, swapped)| *swapped);
        let detail = |column: &str| {
            format!(
                "every cell of {:?} that is formatted as a date could also be one with day and month swapped, and every \
                 date that stands there as text could not; the program that made the file may have swapped them: \
                 compare a few with the originals",
                shorten(column)
            )
        };
        columns
            .filter_map(|(field, _)| mapping.column(field))
            .map(|column| Remark::whole(Reason::DatesSwapped, detail(column)))
            .collect()
    }

    fn guess(&self, field: Field) -> Option<usize> {
        Field::DATES.iter().position(|&date| date == field).and_then(|at| self.guessed[at])
    }

    /// The date of a cell; none where the cell is empty or says that there is none.
    /// `is_day` says that its text is a day as `YYYY-MM-DD`, whatever the others of its column are.
    pub fn parse(&self, field: Field, cell: &str, is_day: bool) -> Result<Option<NaiveDate>, DateFault> {
        if is_no_value(cell) {
            return Ok(None);
        }
        let value = without_midnight(cell)?;
        let date = match &self.given {
            _ if is_day => parse_guess(ISO, value),
            Some(format) if self.guess(field).is_none() => format.read(value),
            _ => parse_guess(ISO, value).or_else(|| self.guess(field).and_then(|guess| parse_guess(guess, value))),
        };
        date.map(Some).ok_or_else(|| match value {
            _ if is_day_number(value) => DateFault::DayNumber,
            _ if has_short_year(value) => DateFault::ShortYear,
            _ => DateFault::NoDate,
        })
    }

    /// A day as the column of `field` writes it.
    pub fn example(&self, field: Field) -> String {
        example(self.format(field))
    }

    /// The date of a cell as `YYYY-MM-DD`, where it has one and this is read as the same date.
    pub fn as_iso(&self, field: Field, cell: &str, is_day: bool) -> Option<String> {
        let date = self.parse(field, cell, is_day).ok()??;
        let written = date.to_string();
        (self.parse(field, &written, false) == Ok(Some(date))).then_some(written)
    }

    /// The same of a cell that may stand in any column: what every column of dates reads as one date, and what is no mere
    /// number.
    pub fn as_iso_anywhere(&self, mapping: &Mapping, cell: &str) -> Option<String> {
        if cell.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut readings = Field::DATES.into_iter().filter(|&field| mapping.has(field));
        let first = self.as_iso(readings.next()?, cell, false)?;
        readings.all(|field| self.as_iso(field, cell, false).as_ref() == Some(&first)).then_some(first)
    }

    /// The format in which the column of `field` is read.
    pub fn format(&self, field: Field) -> &str {
        match (self.guess(field), &self.given) {
            (None, Some(format)) => format.text(),
            (guess, _) => GUESSES[guess.unwrap_or(ISO)].0,
        }
    }

    /// The format of the file's dates; where columns differ, each with its field.
    pub fn summary(&self, mapping: &Mapping) -> String {
        let present = Field::DATES.into_iter().filter(|&field| mapping.has(field));
        let of = |field| self.given.is_some() || self.guess(field).is_some();
        let used: Vec<(Field, &str)> =
            present.filter(|&field| of(field)).map(|field| (field, self.format(field))).collect();
        match used.first() {
            None => GUESSES[ISO].0.to_owned(),
            Some(&(_, first)) if used.iter().all(|&(_, format)| format == first) => first.to_owned(),
            Some(_) => used.iter().map(|(field, format)| format!("{field} {format}")).collect::<Vec<_>>().join(", "),
        }
    }
}
