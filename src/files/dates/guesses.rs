//! Formats that are guessed.

use chrono::NaiveDate;

use crate::domain::calendar::is_in_use;

/// How a format that is guessed puts a date together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
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
pub(super) const GUESSES: [(&str, Shape); 14] = [
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
    ("%B %d, %Y", Shape::Named),
    ("%d %B %Y", Shape::Named),
];
pub(super) const ISO: usize = 0;

/// The other reading of a format's digits, where there is one.
pub(super) fn rival(guess: usize) -> Option<usize> {
    let other = match GUESSES[guess].1 {
        Shape::Mdy(separator) => Shape::Dmy(separator),
        Shape::Dmy(separator) => Shape::Mdy(separator),
        _ => return None,
    };
    GUESSES.iter().position(|&(_, shape)| shape == other)
}

pub(super) fn parse_guess(guess: usize, value: &str) -> Option<NaiveDate> {
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

/// The formats that are guessed, each with a date written in it.
pub(in crate::files) fn usual() -> impl Iterator<Item = (&'static str, String)> {
    GUESSES.iter().map(|&(format, _)| (format, example(format)))
}

/// 25 March 2027 as it is written in a format.
pub(super) fn example(format: &str) -> String {
    NaiveDate::from_ymd_opt(2027, 3, 25).unwrap_or_default().format(format).to_string()
}

/// Whether it looks like a date whose year has two digits: which century is meant is never guessed.
pub(super) fn has_short_year(value: &str) -> bool {
    let parts: Vec<&str> = value.split(['/', '.', '-', ' ', ',']).filter(|part| !part.is_empty()).collect();
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = |part: &&str| part.len() <= 2 && is_number(part);
    match parts[..] {
        [day, month, year] => {
            let is_month = |part: &&str| is_short(part) || part.bytes().all(|byte| byte.is_ascii_alphabetic());
            year.len() == 2
                && is_number(year)
                && is_month(&day)
                && is_month(&month)
                && (is_short(&day) || is_short(&month))
        }
        _ => false,
    }
}
