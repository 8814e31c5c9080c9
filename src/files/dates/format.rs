//! Formats that a clerk names.

use std::str::FromStr;

use chrono::NaiveDate;
use chrono::format::{Item, Parsed, StrftimeItems};

use super::guesses::{ISO, parse_guess};
use crate::domain::calendar::is_in_use;
use crate::files::option_faults::OptionError;

/// A strftime format of dates, checked to name every day and to read back what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    text: String,
    items: Vec<Item<'static>>,
    /// A date in the form of ISO 8601 cannot be mistaken for one in this format.
    iso_too: bool,
}

impl DateFormat {
    /// As it was named.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a date is written in it.
    pub(super) fn fits(&self, value: &str) -> bool {
        self.parse(value).is_some_and(is_in_use)
    }

    /// The date that is written in it, or in the form of ISO 8601.
    pub(super) fn read(&self, value: &str) -> Option<NaiveDate> {
        let by_iso = || self.iso_too.then(|| parse_guess(ISO, value)).flatten();
        self.parse(value).filter(|date| is_in_use(*date)).or_else(by_iso)
    }

    fn parse(&self, value: &str) -> Option<NaiveDate> {
        let mut parsed = Parsed::new();
        chrono::format::parse(&mut parsed, value, self.items.iter()).ok()?;
        parsed.to_naive_date().ok()
    }
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
