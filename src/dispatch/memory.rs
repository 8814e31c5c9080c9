//! The look of one process at the memory guard: at its start, on each new connection of its row, and once a minute.
//! It only tells; what keeps mail back looks for itself ([`crate::store::memory`]).

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    store::{
        PgConnection, Result,
        memory::{compare_marks, difference, sentence},
    },
    telemetry::metrics,
};

/// How old the last look may be.
const AGE: Duration = Duration::from_mins(1);

/// What this process saw last.
#[derive(Debug, Default)]
pub(super) struct MemoryWatch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    at: Option<Instant>,
    /// What differed and was told.
    told: Option<String>,
}

impl MemoryWatch {
    /// Looks, if the last look is a minute old.
    pub(super) async fn look_again(&self, connection: &mut PgConnection) -> Result<()> {
        let is_recent = self.lock().at.is_some_and(|at| at.elapsed() < AGE);
        if is_recent { Ok(()) } else { self.look(connection).await }
    }

    /// Looks, and tells once what changed.
    pub(super) async fn look(&self, connection: &mut PgConnection) -> Result<()> {
        let found = difference(&compare_marks(connection).await?);
        let mut seen = self.lock();
        seen.at = Some(Instant::now());
        metrics::set_alarm("memory_went_back", found.is_some());
        match (&found, &seen.told) {
            (Some(differs), told) if told.as_ref() != Some(differs) => tracing::error!("{}", sentence(differs)),
            (None, Some(_)) => tracing::info!("the memory is confirmed; mail goes on"),
            _ => {}
        }
        seen.told = found;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
