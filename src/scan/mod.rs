//! Finding what is owed: when a scan is expected, one pass, and the loop around it.

pub mod asked;
pub mod pass;
pub mod preview;
pub mod schedule;
pub mod supervisor;
mod telling;
pub mod ticker;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    clock::Clock,
    domain::{
        calendar::{day_in, plus_days},
        window::SendWindow,
    },
    outgoing::heartbeat::Heartbeat,
    store::{
        Moment,
        claims::Counts,
        owing::Sight,
        scans::{ScanOutcome, Trigger},
    },
};

/// Longest time for one step of a scan, which is a search or a batch. The database ends a statement after five minutes.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// What every scan of this process goes by.
#[derive(Debug, Clone)]
pub struct ScanRules {
    /// Where the lock and the scan's own connection are opened; never through a transaction pooler.
    pub direct_url: String,
    /// Turns the database's time into business time.
    pub clock: Arc<dyn Clock>,
    /// The office's zone.
    pub zone: Tz,
    /// When mail may go.
    pub window: Option<SendWindow>,
    /// More pending notices than this at once are held; 0 for no limit.
    pub claim_limit: u64,
    /// This process.
    pub boot_id: Uuid,
    /// A connection that says nothing for so long about one step is dead; usually [`PATIENCE`].
    pub patience: Duration,
    /// Asks a scan to end between two batches.
    pub stop: CancellationToken,
    /// Who outside hears of it.
    pub heartbeat: Heartbeat,
}

/// One scan that somebody wants.
#[derive(Debug, Clone, Copy)]
pub struct ScanRequest {
    /// The expected time it is for.
    pub scheduled_for: Option<DateTime<Utc>>,
    /// What started it.
    pub trigger: Trigger,
    /// The day that counts as today, if it is not the business day.
    pub as_of: Option<NaiveDate>,
}

/// What one scan did.
#[derive(Debug, Clone, Serialize)]
pub struct ScanReport {
    /// The scan's row; none for a dry run.
    pub id: Option<Uuid>,
    /// How it ended.
    pub outcome: ScanOutcome,
    /// The day that was today.
    pub as_of: NaiveDate,
    /// How many notices were written.
    #[serde(flatten)]
    pub counts: Counts,
    /// Nothing was written.
    pub dry_run: bool,
    /// With a dry run: what would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<preview::Item>>,
}

impl ScanRules {
    /// What counts as now and today when the database's clock shows `database_now`.
    pub fn moment(&self, database_now: DateTime<Utc>, as_of: Option<NaiveDate>) -> Moment {
        let now = self.clock.business(database_now);
        Moment { now, today: as_of.unwrap_or_else(|| day_in(now, self.zone)) }
    }

    /// What a scan on `today` looks at; `last` is the day of the last completed one.
    pub fn sight(&self, today: NaiveDate, last: Option<NaiveDate>) -> Sight {
        let tomorrow = plus_days(today, 1);
        let horizon =
            self.window.as_ref().map_or(today, |window| plus_days(window.next_window_day_on_or_after(tomorrow), -1));
        Sight { today, horizon, from: last.map(|day| day.min(today)) }
    }
}
