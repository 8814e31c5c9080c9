//! The in-process cron tick: once a minute, in UTC, it pokes a channel, and nothing else happens in it.
//!
//! The scheduler's zones drift at clock changes, its runs overlap and its stop does not wait; none of that
//! matters to a poke. When a scan is expected, and whether, is worked out by the loop that is poked.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// A running tick; stops poking when stopped.
pub struct Ticker {
    scheduler: JobScheduler,
}

impl Ticker {
    /// Pokes now and at every full minute.
    pub async fn start(poke: Arc<Notify>) -> Result<Self, JobSchedulerError> {
        let scheduler = JobScheduler::new().await?;
        poke.notify_one();
        let job = Job::new("0 * * * * *", move |_, _| poke.notify_one())?;
        scheduler.add(job).await?;
        scheduler.start().await?;
        Ok(Self { scheduler })
    }

    /// Ends the tick.
    pub async fn stop(mut self) {
        if let Err(error) = self.scheduler.shutdown().await {
            tracing::debug!("the tick did not stop: {error}");
        }
    }
}
