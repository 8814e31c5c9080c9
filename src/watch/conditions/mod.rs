//! What needs the operator at this moment: one question for each kind of alarm.

mod chance;
mod questions;

use std::time::Duration;

use super::WatchRules;
use crate::{
    domain::alarm::AlarmKind,
    store::{Moment, PgConnection, Result, StoreError, alarms::Condition, unit, watched::wait_for_locks},
};

pub use chance::open_time;

/// How long a question waits for a lock that somebody keeps.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a look found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What is wrong.
    pub conditions: Vec<Condition>,
    /// Kinds of which nobody knows at this moment, because something was in the way of their question.
    pub unanswered: Vec<AlarmKind>,
}

/// Asks for everything that may be wrong at `moment`. Each question is a savepoint of its own and has little patience, so
/// that a lock on one table hides only what stands in that table.
pub async fn conditions(rules: &WatchRules, connection: &mut PgConnection, moment: Moment) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut look = unit::begin(connection).await?;
    wait_for_locks(&mut look, PATIENCE).await?;
    for kind in AlarmKind::ALL {
        let mut question = unit::begin(&mut look).await?;
        let answer = questions::ask(*kind, rules, &mut question, moment).await;
        match answer {
            Ok(found) => seen.conditions.extend(found),
            // Whatever the database says about one question; without a connection there is no other.
            Err(StoreError::Database(error)) if error.as_database_error().is_some() => {
                tracing::debug!(alarm = kind.as_str(), "not known at this moment: {error}");
                seen.unanswered.push(*kind);
            }
            Err(error) => return Err(error),
        }
        question.rollback().await?;
    }
    look.rollback().await?;
    Ok(seen)
}
