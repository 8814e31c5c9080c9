//! Numbers of sheets as the text that people see, or that a permit needs: identifiers with all their digits, days of
//! the calendar as such, and zeros in front where the format of the cell puts them there.

use std::fmt::Write;

use chrono::{NaiveDate, NaiveDateTime, TimeDelta};

/// What the format of a cell makes of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NumberFormat {
    /// The number itself.
    Plain,
    /// A day, perhaps with a time.
    Day,
    /// A time of day.
    Time,
    /// Hundredths.
    Percent,
    /// Digits put into places: `00000`, `000-00-0000`.
    Digits(Vec<Place>),
}

/// A place in a format of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A digit, or a zero.
    Needed,
    /// A digit, or nothing.
    Wanted,
    /// Itself.
    Sign(char),
}

impl NumberFormat {
    /// One of those that a workbook need not write out.
    pub fn built_in(id: u32) -> Self {
        match id {
            14..=17 | 22 | 27..=31 | 36 | 50..=58 => Self::Day,
            18..=21 | 32..=35 | 45..=47 => Self::Time,
            9 | 10 => Self::Percent,
            _ => Self::Plain,
        }
    }

    /// By the code in which a workbook writes it.
    pub fn of_code(code: &str) -> Self {
        // Of the sections for positive numbers, negative ones, zero and text the first is that for our numbers.
        let mut places = Vec::new();
        let (mut day, mut time, mut month, mut percent, mut other) = (false, false, false, false, false);
        let mut worded = false;
        let is_general = code.trim().to_ascii_lowercase().starts_with("general");
        // Behind a text of its own it is the number as it is.
        let code = code.replace("General", "0");
        let mut signs = code.chars();
        while let Some(sign) = signs.next() {
            match sign {
                ';' => break,
                '"' => {
                    let word: String = signs.by_ref().take_while(|&c| c != '"').collect();
                    worded |= word.chars().any(char::is_alphanumeric);
                    places.extend(word.chars().map(Place::Sign));
                }
                '\\' => {
                    let sign = signs.next();
                    worded |= sign.is_some_and(char::is_alphanumeric);
                    places.extend(sign.map(Place::Sign));
                }
                // The width of a sign as blank, or a sign as often as it fits.
                '_' | '*' => drop(signs.next()),
                '[' => {
                    let inside: String = signs.by_ref().take_while(|&c| c != ']').collect();
                    time |=
                        !inside.is_empty() && inside.to_ascii_lowercase().chars().all(|c| matches!(c, 'h' | 'm' | 's'));
                }
                '0' => places.push(Place::Needed),
                '#' => places.push(Place::Wanted),
                '-' | ' ' | '/' | '(' | ')' => places.push(Place::Sign(sign)),
                'y' | 'Y' | 'd' | 'D' => day = true,
                'm' | 'M' => month = true,
                'h' | 'H' | 's' | 'S' => time = true,
                '%' => percent = true,
                _ => other = true,
            }
        }
        let count = |wanted: Place| places.iter().filter(|place| **place == wanted).count();
        let (needed, wanted) = (count(Place::Needed), count(Place::Wanted));
        if is_general {
            Self::Plain
        } else if day || (month && !time) {
            Self::Day
        } else if time {
            Self::Time
        } else if percent {
            Self::Percent
        } else if !other && (worded || needed > 1) && needed + wanted > 0 {
            Self::Digits(places)
        } else {
            Self::Plain
        }
    }
}

/// Most digits that a spreadsheet keeps of a number.
const DIGITS_KEPT: usize = 15;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Number,
    /// A day as `YYYY-MM-DD`, perhaps with a time after it.
    Day,
    /// More digits than a spreadsheet keeps, so the last ones may be wrong.
    Overlong,
}

/// Adds the number that a workbook writes as `stored`. Days count from 1904 in workbooks of old Macintoshes.
pub(super) fn write(stored: &str, format: &NumberFormat, from_1904: bool, text: &mut String) -> Written {
    let stored = stored.trim();
    let Ok(value) = stored.parse::<f64>() else {
        text.push_str(stored);
        return Written::Number;
    };
    match format {
        NumberFormat::Day => {
            if let Some(moment) = moment(value, from_1904) {
                write_moment(moment, text);
                return Written::Day;
            }
            plain(stored, value, text);
        }
        NumberFormat::Time if (0.0..1.0).contains(&value) => {
            let midnight = NaiveDateTime::default();
            let _ = write!(text, "{}", (midnight + seconds_of(value)).format("%H:%M:%S"));
        }
        NumberFormat::Percent => {
            plain("", value * 100.0, text);
            text.push('%');
        }
        NumberFormat::Digits(places) if value >= 0.0 && value.fract() == 0.0 && value < 1e15 => {
            let mut digits = String::new();
            plain(stored, value, &mut digits);
            put_into_places(&digits, places, text);
        }
        _ => return plain(stored, value, text),
    }
    Written::Number
}

/// A moment as days have it that are no text: without midnight.
pub(super) fn write_moment(moment: NaiveDateTime, text: &mut String) {
    let _ = write!(text, "{}", moment.date());
    if moment.time() != chrono::NaiveTime::MIN {
        let _ = write!(text, " {}", moment.time());
    }
}

/// A moment in ISO 8601 as other days are written; false, and as it stands, when it is none.
pub(super) fn write_iso(value: &str, text: &mut String) -> bool {
    let value = value.trim();
    let moment = value.parse::<NaiveDateTime>().ok();
    let moment = moment.or_else(|| value.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0));
    match moment {
        Some(moment) => write_moment(moment, text),
        None => text.push_str(value),
    }
    moment.is_some()
}

/// The number as it stands if it is digits alone; else as a person would write it.
fn plain(stored: &str, value: f64, text: &mut String) -> Written {
    let digits = stored.strip_prefix('-').unwrap_or(stored);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        text.push_str(stored);
        let significant = digits.trim_matches('0').len();
        return if significant > DIGITS_KEPT { Written::Overlong } else { Written::Number };
    }
    if !value.is_finite() {
        text.push_str(stored);
        return Written::Number;
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let _ = write!(text, "{value:.0}");
        return Written::Number;
    }
    // 15 digits are what a spreadsheet shows: 4.52 is stored as 4.5199999999999996.
    let shown: f64 = format!("{value:.14e}").parse().unwrap_or(value);
    let _ = write!(text, "{shown}");
    if value.fract() == 0.0 { Written::Overlong } else { Written::Number }
}

/// From the right, as spreadsheets do; digits without a place stand at the left.
fn put_into_places(digits: &str, places: &[Place], text: &mut String) {
    let first = places.iter().position(|place| !matches!(place, Place::Sign(_))).unwrap_or(0);
    let mut left = digits.trim_start_matches('0').chars().rev().peekable();
    let mut reversed = String::new();
    for (at, place) in places.iter().enumerate().rev() {
        match place {
            Place::Sign(sign) => reversed.push(*sign),
            Place::Needed => reversed.push(left.next().unwrap_or('0')),
            Place::Wanted => reversed.extend(left.next()),
        }
        if at == first {
            reversed.extend(left.by_ref());
        }
    }
    text.extend(reversed.chars().rev());
}

fn seconds_of(days: f64) -> TimeDelta {
    TimeDelta::seconds((days * 86_400.0).round() as i64)
}

/// The moment of a day number. Excel has a 29 February 1900, so earlier days are one off; day 60 is none at all.
fn moment(value: f64, from_1904: bool) -> Option<NaiveDateTime> {
    if !(0.0..3_000_000.0).contains(&value) {
        return None;
    }
    let (year, month, day) = match value {
        _ if from_1904 => (1904, 1, 1),
        60.0..61.0 => return None,
        0.0..60.0 => (1899, 12, 31),
        _ => (1899, 12, 30),
    };
    let begin = NaiveDate::from_ymd_opt(year, month, day)?.and_hms_opt(0, 0, 0)?;
    begin.checked_add_signed(seconds_of(value))
}
