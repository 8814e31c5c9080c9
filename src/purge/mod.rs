//! Removing what is old, so that an office keeps no more about people than it needs: content after
//! `KEEP_CONTENT_DAYS`, names and addresses after `KEEP_PERSONAL_DAYS`. Keys, states, times, hashes and Message-IDs stay,
//! so nothing is ever sent again because its memory was cleaned. Suppressions stay too: an address that must not be
//! mailed must be known to stay so, and a hash of it would hide from the office whom it does not mail, and from nobody
//! else who it is.

pub mod daily;
mod mail_files;

use std::{path::PathBuf, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    config::Retention,
    domain::calendar::day_in,
    store::{
        PgConnection, Result, StoreError,
        clock::database_now,
        connect::within,
        purge::{Chunk, Limit, PurgeLock, PurgeTrigger, content, notices, office, permits, record_purge},
    },
};

/// Longest time for one batch.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(6);

/// What purges of this process go by.
#[derive(Debug, Clone)]
pub struct PurgeRules {
    /// Where the purge's own connection is opened; never through a transaction pooler.
    pub direct_url: String,
    /// Turns the database's time into business time.
    pub clock: Arc<dyn Clock>,
    /// The office's zone.
    pub zone: Tz,
    /// How long things are kept.
    pub keep: Retention,
    /// Where this process keeps mail on disk.
    pub mail_folder: PathBuf,
    /// Asks a purge to end between two batches.
    pub stop: CancellationToken,
}

/// How many of each kind were removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Messages whose bytes went.
    pub messages: u64,
    /// Files of mail on this machine's disk.
    pub mail_files: u64,
    /// Rejected rows, and reports that repeated values.
    pub import_rows: u64,
    /// Files that nobody imported within a day.
    pub uploads: u64,
    /// Notices whose recipients went.
    pub notices: u64,
    /// Permits whose names and addresses went.
    pub permits: u64,
    /// Changes of permits that no longer say what was there before.
    pub changes: u64,
    /// Deeds of the office that no longer say more than who, when and what.
    pub deeds: u64,
}

impl Removed {
    /// Each kind in words, with its number.
    pub fn kinds(&self) -> [(&'static str, u64); 8] {
        [
            ("messages' bytes", self.messages),
            ("mail files", self.mail_files),
            ("rejected rows and reports of imports", self.import_rows),
            ("uploads that nobody imported", self.uploads),
            ("notices' recipients", self.notices),
            ("permits' names and addresses", self.permits),
            ("values in the history of permits", self.changes),
            ("values in the office's log", self.deeds),
        ]
    }
}

/// What became of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purged {
    /// Another process is at it.
    HeldElsewhere,
    /// It came to its end.
    Done(Removed),
}

/// Removes everything that is old enough, or with `dry_run` only counts it.
pub async fn run_once(rules: &PurgeRules, trigger: PurgeTrigger, dry_run: bool) -> Result<Purged> {
    let Some(mut lock) = PurgeLock::try_take(&rules.direct_url).await? else { return Ok(Purged::HeldElsewhere) };
    let removed = remove(rules, lock.connection(), trigger, dry_run).await;
    lock.release().await;
    removed.map(Purged::Done)
}

async fn remove(
    rules: &PurgeRules,
    connection: &mut PgConnection,
    trigger: PurgeTrigger,
    dry_run: bool,
) -> Result<Removed> {
    let real = database_now(&mut *connection).await?;
    let now = rules.clock.business(real);
    let limit = |keep: TimeDelta| limit(now, keep, rules.zone, dry_run);
    let mut removed = Removed::default();
    if let Some(limit) = rules.keep.content.and_then(&limit) {
        removed.messages = walk(rules, connection, &limit, async |connection, after, limit| {
            content::purge_messages(connection, after, limit).await
        })
        .await?;
        removed.import_rows = walk(rules, connection, &limit, async |connection, after, limit| {
            content::purge_rejections(connection, after, limit).await
        })
        .await?;
    }
    removed.mail_files = remove_mail_files(rules, real, dry_run).await;
    if let Some(limit) = limit(TimeDelta::zero()) {
        removed.uploads = content::purge_kept_files(connection, &limit).await?;
    }
    if let Some(limit) = rules.keep.personal.and_then(&limit) {
        remove_personal(rules, connection, &limit, &mut removed).await?;
    }
    if !dry_run {
        let ended = rules.clock.business(database_now(&mut *connection).await?);
        let counts = serde_json::to_value(&removed).unwrap_or_default();
        record_purge(connection, trigger, (now, ended), counts).await?;
        tracing::info!(?removed, "old data was removed");
    }
    Ok(removed)
}

/// Removes old mail from this machine's disk. The files have real times.
async fn remove_mail_files(rules: &PurgeRules, real: DateTime<Utc>, dry_run: bool) -> u64 {
    match rules.keep.content.and_then(|keep| real.checked_sub_signed(keep)) {
        Some(before) => mail_files::remove(&rules.mail_folder, before, dry_run).await,
        None => 0,
    }
}

/// Notices before their permits, which keep their names while one of them is open.
async fn remove_personal(
    rules: &PurgeRules,
    connection: &mut PgConnection,
    limit: &Limit,
    removed: &mut Removed,
) -> Result<()> {
    removed.notices = walk(rules, connection, limit, async |connection, after, limit| {
        notices::purge_notices(connection, after.as_ref(), limit).await
    })
    .await?;
    removed.permits = walk(rules, connection, limit, async |connection, after, limit| {
        permits::purge_permits(connection, after, limit).await
    })
    .await?;
    removed.changes = walk(rules, connection, limit, async |connection, after, limit| {
        permits::purge_history(connection, after, limit).await
    })
    .await?;
    removed.deeds = walk(rules, connection, limit, async |connection, after, limit| {
        office::purge_deeds(connection, after, limit).await
    })
    .await?;
    Ok(())
}

/// What is older than `keep` at `now`; nothing when the calendar does not reach so far back.
fn limit(now: DateTime<Utc>, keep: TimeDelta, zone: Tz, dry_run: bool) -> Option<Limit> {
    let before = now.checked_sub_signed(keep)?;
    Some(Limit { before, day: day_in(before, zone), today: day_in(now, zone), now, dry_run })
}

/// Chunk after chunk to the end; between two of them the service may stop.
async fn walk<K>(
    rules: &PurgeRules,
    connection: &mut PgConnection,
    limit: &Limit,
    purge: impl AsyncFn(&mut PgConnection, Option<K>, &Limit) -> Result<Chunk<K>>,
) -> Result<u64> {
    let (mut after, mut removed) = (None, 0);
    loop {
        if rules.stop.is_cancelled() {
            return Err(StoreError::Stopping);
        }
        let chunk = within(PATIENCE, purge(&mut *connection, after, limit)).await?;
        removed += chunk.removed;
        if chunk.last.is_none() {
            return Ok(removed);
        }
        after = chunk.last;
    }
}
