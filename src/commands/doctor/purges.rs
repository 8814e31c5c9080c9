//! Whether old data is really removed.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Check, ok, warning};
use crate::{
    config::Config,
    store::{
        PgConnection,
        purge::{LastPurge, last_purge, scanning_for},
    },
};

const NAME: &str = "purge";
/// One a day is due; one that is missing may be made up for.
const LATE: TimeDelta = TimeDelta::days(3);

/// About the last purge; nothing to say before the first start.
pub(super) async fn check(connection: &mut PgConnection, config: &Config, now: DateTime<Utc>) -> Option<Check> {
    let last = last_purge(connection).await.ok()?;
    let scanning = scanning_for(connection).await.ok()?;
    // With CLOCK business time is not the database's, and nobody relies on it.
    let now = if config.clock.is_none() { Some(now) } else { None };
    Some(judge(last, scanning, now))
}

/// `scanning`: for how long there have been processes that purge, if one is alive; `now` if it can be compared.
pub fn judge(last: Option<LastPurge>, scanning: Option<TimeDelta>, now: Option<DateTime<Utc>>) -> Check {
    let Some(LastPurge { started_at, left }) = last else {
        return if scanning.is_some_and(|long| long > LATE) {
            late("no purge has come to its end yet")
        } else {
            ok(NAME, "none has come to its end yet; one is due each day")
        };
    };
    let began = format!("the last one that came to its end began at {}", started_at.format("%Y-%m-%d %H:%M:%S UTC"));
    if scanning.is_some() && now.is_some_and(|now| now - started_at > LATE) {
        return late(&began);
    }
    if left > 0 {
        let found = format!("{began} and left {left} old rows, which the database does not let change");
        return warning(NAME, found, "the log names each; mend what keeps them, then run permit-notifier purge");
    }
    ok(NAME, began)
}

fn late(found: &str) -> Check {
    warning(NAME, found, "run permit-notifier purge: it says what stops it, as does the log of the processes that scan")
}
