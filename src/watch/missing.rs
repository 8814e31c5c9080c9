//! A scan that was expected and did not run.

use chrono::{DateTime, Utc};

use super::WatchRules;
use crate::store::{
    PgConnection, Result,
    scans::{expected_since, is_met},
};

/// The last expected time whose grace is over, if no scan has met it. Times before the schedule came into force were
/// never expected.
pub(super) async fn missing_run(
    rules: &WatchRules,
    connection: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>> {
    let schedule = &rules.schedule;
    let since = expected_since(connection, schedule.expression(), schedule.zone().name()).await?;
    let expected = schedule.last_expected(now - rules.grace);
    let Some(expected) = expected.filter(|expected| since.is_some_and(|since| since <= *expected)) else {
        return Ok(None);
    };
    Ok((!is_met(connection, expected, now).await?).then_some(expected))
}
