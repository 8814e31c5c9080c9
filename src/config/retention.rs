//! For how long old content and personal data are kept.

use chrono::TimeDelta;

use super::reader::Reader;

/// How old things become before they are removed; `None`: they stay for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bytes of messages, files of mail, rejected rows of imports.
    pub content: Option<TimeDelta>,
    /// Names and addresses, counted from the end of a permit's last term.
    pub personal: Option<TimeDelta>,
}

/// Two years.
const DEFAULT: i64 = 730;
/// While a notice may still be disputed, or its bounce come in, nothing of it goes.
const LEAST: i64 = 30;
const MOST: i64 = 36_500;

pub(super) fn read(reader: &mut Reader<'_>) -> Retention {
    Retention { content: days(reader, "KEEP_CONTENT_DAYS"), personal: days(reader, "KEEP_PERSONAL_DAYS") }
}

fn days(reader: &mut Reader<'_>, variable: &str) -> Option<TimeDelta> {
    let allowed = format!("a whole number of days from {LEAST} to {MOST}, or 0 to keep everything");
    let days = reader.parsed(variable, &allowed, |text| {
        text.parse().ok().filter(|days: &i64| *days == 0 || (LEAST..=MOST).contains(days))
    });
    Some(TimeDelta::days(days.unwrap_or(DEFAULT))).filter(|keep| !keep.is_zero())
}
