//! Whether this program and the database have the same rules for the office's zone.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::{Check, fault, ok, one_line, warning};
use crate::store::{PgConnection, StoreError, connect::said, facts::local_times};

const NAME: &str = "zone data";
/// So far ahead the rules are compared: a law that changes them comes into force within this time.
const DAYS: i64 = 800;

/// Compares both at every day of the next two years, and to the second around each change of the clocks.
pub(super) async fn check(connection: &mut PgConnection, zone: Tz, now: DateTime<Utc>) -> Check {
    let changes = clock_changes(zone, now);
    let around = changes.iter().flat_map(|at| [*at - TimeDelta::seconds(1), *at]);
    let instants: Vec<DateTime<Utc>> = (0..DAYS).map(|day| now + TimeDelta::days(day)).chain(around).collect();
    match local_times(connection, zone.name(), &instants).await {
        Ok(theirs) => compare(zone, &instants, &theirs, &changes),
        Err(StoreError::Database(error)) if error.as_database_error().is_some() => fault(
            NAME,
            format!("the database does not know the zone {zone}: {}", said(&error)),
            "install or update tzdata on the database's machine",
        ),
        Err(error) => fault(NAME, one_line(&error.into()), "look at the database's log"),
    }
}

/// Whether the database's clocks show what ours do at these instants.
pub fn compare(zone: Tz, instants: &[DateTime<Utc>], theirs: &[NaiveDateTime], changes: &[DateTime<Utc>]) -> Check {
    let differs = instants.iter().zip(theirs).find(|(at, theirs)| at.with_timezone(&zone).naive_local() != **theirs);
    if let Some((at, theirs)) = differs {
        let ours = at.with_timezone(&zone).naive_local();
        let found = format!("at {at} the clocks of {zone} show {ours} by our rules and {theirs} by the database's");
        return warning(NAME, found, "update tzdata on the database's machine, and this program");
    }
    let next = changes.first().map_or_else(
        || "no change of the clocks is coming".to_owned(),
        |at| format!("the clocks change next on {}", at.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %Z")),
    );
    ok(NAME, format!("this program and the database agree on {zone}; {next}"))
}

/// The instants at which the zone's clocks are moved.
pub fn clock_changes(zone: Tz, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let shown = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local() - at.naive_utc();
    let start = DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now);
    let mut changes = Vec::new();
    for day in 0..DAYS {
        let (mut before, mut after) = (start + TimeDelta::days(day), start + TimeDelta::days(day + 1));
        if shown(before) == shown(after) {
            continue;
        }
        let old = shown(before);
        while after - before > TimeDelta::seconds(1) {
            let middle = before + TimeDelta::seconds((after - before).num_seconds() / 2);
            let side = if shown(middle) == old { &mut before } else { &mut after };
            *side = middle;
        }
        changes.push(after);
    }
    changes
}
