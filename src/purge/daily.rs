//! The loop around the purge: once a business day, by whichever process comes first; each looks after its own disk.

use std::time::Duration;

use chrono::NaiveDate;

use super::{PurgeRules, Purged, Removed, remove_mail_files, run_once};
use crate::{
    domain::calendar::day_in,
    store::{
        PgPool, Result, StoreError,
        clock::database_now,
        connect::in_time,
        purge::{PurgeTrigger, last_purge},
    },
    telemetry::metrics,
};

/// A start has other things to do first.
const FIRST_LOOK: Duration = Duration::from_mins(2);
/// How often a process looks whether it is time; what could not be done is tried again then.
const LOOK: Duration = Duration::from_mins(15);

/// Purges once a day until `rules.stop`: with `database` what stands there, and in any case mail on this disk.
pub async fn run(rules: PurgeRules, pool: PgPool, database: bool) {
    let (mut wait, mut tidied_on) = (FIRST_LOOK, None);
    while rules.stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        wait = LOOK;
        match look(&rules, &pool, database, &mut tidied_on).await {
            Err(StoreError::Stopping) => return,
            Err(error) => tracing::warn!("old data was not removed, and will be later: {error}"),
            Ok(()) => {}
        }
    }
}

async fn look(rules: &PurgeRules, pool: &PgPool, database: bool, tidied_on: &mut Option<NaiveDate>) -> Result<()> {
    if database {
        purge_if_due(rules, pool).await?;
    }
    let real = in_time(async { Ok(database_now(pool).await?) }).await?;
    let today = day_in(rules.clock.business(real), rules.zone);
    if *tidied_on != Some(today) {
        remove_mail_files(rules, real, false).await;
        *tidied_on = Some(today);
    }
    Ok(())
}

/// Purges if nobody has on this business day.
pub async fn purge_if_due(rules: &PurgeRules, pool: &PgPool) -> Result<Option<Removed>> {
    if !in_time(is_due(rules, pool)).await? {
        return Ok(None);
    }
    match run_once(rules, PurgeTrigger::Daily, false).await? {
        Purged::HeldElsewhere => Ok(None),
        Purged::Done(removed) => Ok(Some(removed)),
    }
}

async fn is_due(rules: &PurgeRules, pool: &PgPool) -> Result<bool> {
    let mut connection = pool.acquire().await?;
    let now = rules.clock.business(database_now(&mut *connection).await?);
    let Some(last) = last_purge(&mut connection).await? else { return Ok(true) };
    metrics::purge_completed(last.started_at.timestamp());
    Ok(day_in(last.started_at, rules.zone) < day_in(now, rules.zone))
}
