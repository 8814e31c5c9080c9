//! Dates in cells: one format for a whole column, decided from all its values, and never silently the wrong one.
//!
//! `YYYY-MM-DD` is understood in any column, for it can mean only one thing. For the rest each value votes for the
//! formats it fits. Day-first and month-first differ only in values that fit one of them alone; a column with none
//! of those is ambiguous, and one with a good number of both is mixed. Both are refused: guessing would be right
//! for most rows and move the others by months.

use std::str::FromStr;

use chrono::format::{Item, Parsed, StrftimeItems};
use chrono::{Datelike, NaiveDate};

use super::fault::FileFault;
use super::fields::Field;
use super::mapping::Mapping;
use super::options::OptionError;
use super::reading::Row;
use super::remarks::{Reason, Remark, shorten};
use super::values::is_no_value;
use crate::domain::calendar::is_in_use;

/// A strftime format of dates, checked to name every day and to read back what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    text: String,
    items: Vec<Item<'static>>,
    /// A date in the form of ISO 8601 cannot be mistaken for one in this format.
    iso_too: bool,
}

impl DateFormat {
    fn parse(&self, value: &str) -> Option<NaiveDate> {
        let mut parsed = Parsed::new();
        chrono::format::parse(&mut parsed, value, self.items.iter()).ok()?;
        parsed.to_naive_date().ok()
    }
}

/// The formats that are guessed, each with a date written in it.
pub(super) fn usual() -> impl Iterator<Item = (&'static str, String)> {
    let example = NaiveDate::from_ymd_opt(2027, 3, 25).unwrap_or_default();
    GUESSES.iter().map(move |&(format, _)| (format, example.format(format).to_string()))
}

impl std::fmt::Display for DateFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for DateFormat {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let refused = || OptionError::DateFormat(text.to_owned());
        let items = StrftimeItems::new(text).parse_to_owned().map_err(|_| refused())?;
        let mut format = Self { text: text.to_owned(), items, iso_too: true };
        // Days that tell apart day and month, two years of a century, and the leap day. Writing fails where a date
        // lacks what the format asks for, such as an hour.
        for (year, month, day) in [(2026, 2, 15), (2027, 2, 3), (1999, 12, 31), (2024, 2, 29), (2024, 11, 1)] {
            use std::fmt::Write;
            let date = NaiveDate::from_ymd_opt(year, month, day).ok_or_else(refused)?;
            let mut written = String::new();
            write!(written, "{}", date.format_with_items(format.items.iter())).map_err(|_| refused())?;
            if format.parse(&written) != Some(date) {
                return Err(refused());
            }
            format.iso_too &= parse_guess(ISO, &written).is_none_or(|by_iso| by_iso == date);
        }
        Ok(format)
    }
}

/// How a format that is guessed puts a date together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Year, month, day apart by this character.
    Ymd(u8),
    Mdy(u8),
    Dmy(u8),
    /// Eight digits.
    Compact,
    /// With the name of a month in English; left to chrono.
    Named,
}

/// Formats that are guessed; of two that fit equally well the earlier is taken.
const GUESSES: [(&str, Shape); 12] = [
    ("%Y-%m-%d", Shape::Ymd(b'-')),
    ("%m/%d/%Y", Shape::Mdy(b'/')),
    ("%d/%m/%Y", Shape::Dmy(b'/')),
    ("%d.%m.%Y", Shape::Dmy(b'.')),
    ("%Y/%m/%d", Shape::Ymd(b'/')),
    ("%d-%m-%Y", Shape::Dmy(b'-')),
    ("%m-%d-%Y", Shape::Mdy(b'-')),
    ("%Y.%m.%d", Shape::Ymd(b'.')),
    ("%Y%m%d", Shape::Compact),
    ("%d %b %Y", Shape::Named),
    ("%d-%b-%Y", Shape::Named),
    ("%b %d, %Y", Shape::Named),
];
const ISO: usize = 0;

/// The other reading of a format's digits, where there is one.
fn rival(guess: usize) -> Option<usize> {
    let other = match GUESSES[guess].1 {
        Shape::Mdy(separator) => Shape::Dmy(separator),
        Shape::Dmy(separator) => Shape::Mdy(separator),
        _ => return None,
    };
    GUESSES.iter().position(|&(_, shape)| shape == other)
}

fn parse_guess(guess: usize, value: &str) -> Option<NaiveDate> {
    let (format, shape) = GUESSES[guess];
    match shape {
        Shape::Ymd(separator) => match numbers(value, separator)? {
            [(year, 4), (month, 1 | 2), (day, 1 | 2)] => date(year, month, day),
            _ => None,
        },
        Shape::Mdy(separator) => match numbers(value, separator)? {
            [(month, 1 | 2), (day, 1 | 2), (year, 4)] => date(year, month, day),
            _ => None,
        },
        Shape::Dmy(separator) => match numbers(value, separator)? {
            [(day, 1 | 2), (month, 1 | 2), (year, 4)] => date(year, month, day),
            _ => None,
        },
        Shape::Compact if value.len() == 8 && value.bytes().all(|byte| byte.is_ascii_digit()) => {
            let number: u32 = value.parse().ok()?;
            date(number / 10_000, number / 100 % 100, number % 100)
        }
        Shape::Named if value.bytes().any(|byte| byte.is_ascii_alphabetic()) => {
            NaiveDate::parse_from_str(value, format).ok().filter(|date| is_in_use(*date))
        }
        Shape::Compact | Shape::Named => None,
    }
}

/// Three numbers apart by `separator`, each with its count of digits.
fn numbers(value: &str, separator: u8) -> Option<[(u32, usize); 3]> {
    let mut parts = value.split(char::from(separator));
    let mut number = || {
        let part = parts.next()?;
        let digits = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse().ok().map(|number| (number, part.len())) } else { None }
    };
    let three = [number()?, number()?, number()?];
    parts.next().is_none().then_some(three)
}

fn date(year: u32, month: u32, day: u32) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day).filter(|date| is_in_use(*date))
}

/// Why a cell is no date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateFault {
    /// Not a date in the column's format, or no day of the calendar.
    NoDate,
    /// A time of day other than midnight.
    Time,
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

/// What the values of one column say.
#[derive(Debug, Default)]
struct ColumnVotes {
    /// Values that fit each format.
    fit: [u64; GUESSES.len()],
    /// Values that fit each format and not its rival.
    only: [u64; GUESSES.len()],
    /// A value that means one day by a format and another by its rival.
    example: Option<String>,
    /// Cells that hold a day by their format, and how many of them could be none with day and month swapped.
    days: u64,
    days_beyond_12: u64,
}

impl ColumnVotes {
    fn count(&mut self, value: &str, is_day: bool) {
        let Ok(value) = without_midnight(value) else { return };
        if let Some(date) = parse_guess(ISO, value) {
            self.fit[ISO] += 1;
            self.days += u64::from(is_day);
            self.days_beyond_12 += u64::from(is_day && date.day() > 12);
            return;
        }
        for guess in 1..GUESSES.len() {
            let Some(date) = parse_guess(guess, value) else { continue };
            self.fit[guess] += 1;
            match rival(guess).map(|rival| parse_guess(rival, value)) {
                Some(None) => self.only[guess] += 1,
                Some(Some(other)) if other != date && self.example.is_none() => {
                    self.example = Some(value.to_owned());
                }
                _ => {}
            }
        }
    }

    /// The format of the column; none if no value is a date in any.
    fn decide(&self, column: &str) -> Result<Option<usize>, Undecided> {
        let mut best = ISO;
        for guess in 1..GUESSES.len() {
            if self.fit[guess] > self.fit[best] || (best == ISO && self.fit[guess] > 0) {
                best = guess;
            }
        }
        if self.fit[best] == 0 {
            return Ok(None);
        }
        if let (Some(rival), Some(example)) = (rival(best), &self.example) {
            let (for_it, against) = (self.only[best], self.only[rival]);
            let formats = [GUESSES[best].0, GUESSES[rival].0];
            if for_it == 0 {
                return Err(Undecided::Ambiguous { column: format!("{column} (such as {example})"), formats });
            }
            // A few impossible dates among many good ones are typing errors, and are reported by row.
            if against > 0 && for_it < 20 * against {
                let counts = [for_it, against];
                return Err(Undecided::Mixed(FileFault::MixedDates { column: column.to_owned(), formats, counts }));
            }
        }
        Ok(Some(best))
    }
}

impl ColumnVotes {
    /// A program that reads days where months stand takes `12/01/2026` for 1 December and leaves `31/12/2026` as it is:
    /// then all its days could be months, and no text could be two days.
    fn look_swapped(&self, guess: Option<usize>) -> bool {
        const FEW: u64 = 5;
        let has_rival = guess.is_some_and(|guess| rival(guess).is_some() && self.only[guess] > 0);
        has_rival && self.example.is_none() && self.days >= FEW && self.days_beyond_12 == 0
    }
}

enum Undecided {
    Ambiguous { column: String, formats: [&'static str; 2] },
    Mixed(FileFault),
}

/// The votes of all date columns of a file.
pub(super) struct Votes<'m> {
    mapping: &'m Mapping,
    columns: [ColumnVotes; Field::DATES.len()],
}

impl<'m> Votes<'m> {
    pub fn new(mapping: &'m Mapping) -> Self {
        Self { mapping, columns: Default::default() }
    }

    pub fn count(&mut self, row: &Row<'_>) {
        for (votes, field) in self.columns.iter_mut().zip(Field::DATES) {
            votes.count(self.mapping.cell(row, field), self.mapping.is_day(row, field));
        }
    }

    /// Decides every column; all ambiguous ones are named at once.
    pub fn decide(self, given: Option<&DateFormat>) -> Result<ColumnDates, FileFault> {
        if let Some(format) = given {
            let (guessed, swapped) = ([None; Field::DATES.len()], [false; Field::DATES.len()]);
            return Ok(ColumnDates { given: Some(format.clone()), guessed, swapped });
        }
        let mut guessed = [None; Field::DATES.len()];
        let (mut ambiguous, mut both) = (Vec::new(), [""; 2]);
        for (at, (votes, field)) in self.columns.iter().zip(Field::DATES).enumerate() {
            match votes.decide(self.mapping.column(field).unwrap_or_default()) {
                Ok(guess) => guessed[at] = guess,
                Err(Undecided::Ambiguous { column, formats }) => {
                    ambiguous.push(column);
                    both = formats;
                }
                Err(Undecided::Mixed(fault)) => return Err(fault),
            }
        }
        if ambiguous.is_empty() {
            let swapped = std::array::from_fn(|at| self.columns[at].look_swapped(guessed[at]));
            Ok(ColumnDates { given: None, guessed, swapped })
        } else {
            Err(FileFault::AmbiguousDates { columns: ambiguous, formats: both })
        }
    }
}

/// How the date columns of a file are read.
#[derive(Debug)]
pub(super) struct ColumnDates {
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
                "every cell of {} that is formatted as a date could also be one with day and month swapped, and every \
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
            Some(format) => {
                let by_iso = || format.iso_too.then(|| parse_guess(ISO, value)).flatten();
                format.parse(value).filter(|date| is_in_use(*date)).or_else(by_iso)
            }
            None => parse_guess(ISO, value).or_else(|| self.guess(field).and_then(|guess| parse_guess(guess, value))),
        };
        date.map(Some).ok_or(if is_day_number(value) { DateFault::DayNumber } else { DateFault::NoDate })
    }

    /// The format in which the column of `field` is read.
    pub fn format(&self, field: Field) -> &str {
        match &self.given {
            Some(format) => &format.text,
            None => GUESSES[self.guess(field).unwrap_or(ISO)].0,
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
