//! The loop around the scan: woken by the tick, it works out whether an expected time is not met, and scans.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{ScanReport, ScanRequest, ScanRules, pass::run_once, schedule::ScanSchedule};
use crate::store::{
    PgPool, Result,
    clock::database_now,
    connect::in_time,
    scans::{Setbacks, Trigger, is_met, keep_scan_schedule, setbacks},
};

/// If no tick comes, look all the same.
const WATCHDOG: Duration = Duration::from_secs(90);
/// Longest wait between two tries for one expected time.
const LONGEST_WAIT: TimeDelta = TimeDelta::minutes(15);

/// Scans whenever an expected time is not met, until `stop`.
pub async fn run(rules: ScanRules, schedule: ScanSchedule, pool: PgPool, poke: Arc<Notify>, stop: CancellationToken) {
    loop {
        tokio::select! {
            // First, for a tick may have come too.
            biased;
            () = stop.cancelled() => return,
            () = poke.notified() => {}
            () = tokio::time::sleep(WATCHDOG) => tracing::warn!("no tick for {} seconds", WATCHDOG.as_secs()),
        }
        if let Err(error) = scan_if_due(&rules, &schedule, &pool).await {
            tracing::warn!("no scan now: {error}");
        }
    }
}

/// Scans if the last expected time is not met and its last try is long enough ago.
pub async fn scan_if_due(rules: &ScanRules, schedule: &ScanSchedule, pool: &PgPool) -> Result<Option<ScanReport>> {
    let Some(expected) = in_time(due(rules, schedule, pool)).await? else { return Ok(None) };
    let request = ScanRequest { scheduled_for: Some(expected), trigger: Trigger::Schedule, as_of: None };
    run_once(rules, request).await.map(Some)
}

/// The last expected time, if it is to be scanned for now.
async fn due(rules: &ScanRules, schedule: &ScanSchedule, pool: &PgPool) -> Result<Option<DateTime<Utc>>> {
    let mut connection = pool.acquire().await?;
    let now = rules.clock.business(database_now(&mut *connection).await?);
    keep_scan_schedule(&mut connection, schedule.expression(), schedule.zone().name(), now).await?;
    let Some(expected) = schedule.last_expected(now) else { return Ok(None) };
    if is_met(&mut connection, expected, now).await? {
        return Ok(None);
    }
    let waits = setbacks(&mut connection, expected).await?.waits_at(now);
    Ok((!waits).then_some(expected))
}

impl Setbacks {
    /// Whether the next try still waits at `now`: one minute after the first setback, then twice as long each
    /// time, at most fifteen minutes.
    pub fn waits_at(&self, now: DateTime<Utc>) -> bool {
        let Some(last) = self.last else { return false };
        let doublings = u32::try_from(self.count - 1).unwrap_or(0).min(8);
        let wait = TimeDelta::minutes(1 << doublings).min(LONGEST_WAIT);
        now < last + wait
    }
}
