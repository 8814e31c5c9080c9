//! Calendar arithmetic: whole days and months, and what day it is in a zone.

use chrono::{
    DateTime, Datelike, MappedLocalTime, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc,
};
use chrono_tz::{GapInfo, Tz};

/// The calendar day in `zone` at `instant`.
pub fn day_in(instant: DateTime<Utc>, zone: Tz) -> NaiveDate {
    instant.with_timezone(&zone).date_naive()
}

/// The last day that is written as `YYYY-MM-DD`.
pub const LAST_DAY: NaiveDate = match NaiveDate::from_ymd_opt(9999, 12, 31) {
    Some(day) => day,
    None => NaiveDate::MAX,
};

/// Whether a permit may have this day, as far as the calendar says. `9999` stands for never in more than one system.
pub fn is_in_use(date: NaiveDate) -> bool {
    date.year() >= 1900 && date <= LAST_DAY
}

/// `date` moved by `days`; dates outside chrono's range saturate, so that no input can panic.
pub fn plus_days(date: NaiveDate, days: i64) -> NaiveDate {
    let edge = if days < 0 { NaiveDate::MIN } else { NaiveDate::MAX };
    TimeDelta::try_days(days).and_then(|delta| date.checked_add_signed(delta)).unwrap_or(edge)
}

/// `date` moved by whole months, clamped to the last day of a shorter month: 31 January + 1 month is the
/// last day of February, 29 February + 12 months is 28 February.
pub fn plus_months(date: NaiveDate, months: i32) -> NaiveDate {
    let by = Months::new(months.unsigned_abs());
    let moved = if months < 0 { date.checked_sub_months(by) } else { date.checked_add_months(by) };
    moved.unwrap_or(if months < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
}

/// Whole days from `from` to `to`, negative if `to` is earlier.
pub fn days_between(from: NaiveDate, to: NaiveDate) -> i64 {
    i64::from(to.num_days_from_ce()) - i64::from(from.num_days_from_ce())
}

/// The first instant of `date` in `zone`. Where clocks skip midnight, or the whole day, it is the first one after.
pub fn start_of_day(date: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let midnight = date.and_time(NaiveTime::MIN);
    first_shown(midnight, zone).unwrap_or_else(|| midnight.and_utc())
}

/// The first instant at which clocks in `zone` show `wall`; the first one after the gap where they skip it.
pub fn first_shown(wall: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&wall) {
        MappedLocalTime::Single(instant) | MappedLocalTime::Ambiguous(instant, _) => Some(instant.to_utc()),
        MappedLocalTime::None => Some(GapInfo::new(&wall, &zone)?.end?.to_utc()),
    }
}
