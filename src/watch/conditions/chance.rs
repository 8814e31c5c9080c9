//! Whether a mail that waits has had its chance to go.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::{
    domain::{
        calendar::{first_shown, plus_days, start_of_day},
        window::SendWindow,
    },
    watch::WatchRules,
};

/// A mail has had its chance when it might have gone for so long.
const CHANCE: TimeDelta = TimeDelta::hours(1);

/// Whether a mail that has been due since then is late. With a window it must have had its chance: over a long weekend
/// nothing is wrong.
pub(super) fn waits_too_long(rules: &WatchRules, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    let chance = CHANCE.min(rules.oldest_pending);
    now - since >= rules.oldest_pending
        && rules.window.as_ref().is_none_or(|window| open_time(window, rules.zone, since, now) >= chance)
}

/// How long the window was open between two instants; longer than two months counts as that.
pub fn open_time(window: &SendWindow, zone: Tz, since: DateTime<Utc>, now: DateTime<Utc>) -> TimeDelta {
    let day = |at: DateTime<Utc>| at.with_timezone(&zone).date_naive();
    let first = day(since).max(plus_days(day(now), -62));
    let days = std::iter::successors(Some(first), |day| Some(plus_days(*day, 1))).take_while(|at| *at <= day(now));
    days.filter(|day| window.is_window_day(*day)).map(|day| open_on(window, zone, day, since, now)).sum()
}

fn open_on(window: &SendWindow, zone: Tz, day: NaiveDate, since: DateTime<Utc>, now: DateTime<Utc>) -> TimeDelta {
    let opens = first_shown(day.and_time(window.from()), zone);
    let closes = match window.until() {
        Some(until) => first_shown(day.and_time(until), zone),
        None => Some(start_of_day(plus_days(day, 1), zone)),
    };
    let Some((opens, closes)) = opens.zip(closes) else { return TimeDelta::zero() };
    (closes.min(now) - opens.max(since)).max(TimeDelta::zero())
}
