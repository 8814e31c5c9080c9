//! Removing what is old, so that an office keeps no more about people than it needs: content after
//! `KEEP_CONTENT_DAYS`, names and addresses after `KEEP_PERSONAL_DAYS`. Keys, states, times, hashes and Message-IDs stay,
//! so nothing is ever sent again because its memory was cleaned. Suppressions stay too: an address that must not be
//! mailed must be known to stay so, and a hash of it would hide from the office whom it does not mail, and from nobody
//! else who it is. What was only to pass goes whatever is to be kept: files that nobody imported, rows of imports that
//! broke off, answers for repeated requests, counts of failed sign-ins.

pub mod daily;
mod mail_files;
mod walk;

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
        PgConnection, Result,
        clock::database_now,
        connect::within,
        purge::{
            Limit, PurgeLock, PurgeTrigger,
            content::{self, Messages, Rejections},
            notices::Notices,
            office::{Deeds, FileNames},
            passing::{self, Answers},
            permits::{Histories, Permits},
            record_purge,
        },
    },
    telemetry::metrics,
};
use walk::{PATIENCE, Walk};

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
    /// Rows that imports left which broke off.
    pub staged: u64,
    /// Answers that were kept for requests with an `Idempotency-Key`, longer than they are taken.
    pub answers: u64,
    /// Counts of failed sign-ins that make nobody wait any more.
    pub sign_ins: u64,
    /// Notices whose recipients went.
    pub notices: u64,
    /// Permits whose names and addresses went.
    pub permits: u64,
    /// Changes of permits that no longer say what was there before.
    pub changes: u64,
    /// Deeds of the office that no longer say more than who, when and what.
    pub deeds: u64,
    /// Imports that no longer say what their file was called.
    pub file_names: u64,
    /// Rows that are old and could not be changed; the log names them.
    pub left: u64,
}

impl Removed {
    /// Each kind in words, with its number.
    pub fn kinds(&self) -> [(&'static str, u64); 12] {
        [
            ("messages' bytes", self.messages),
            ("mail files", self.mail_files),
            ("rejected rows and reports of imports", self.import_rows),
            ("uploads that nobody imported", self.uploads),
            ("rows of imports that broke off", self.staged),
            ("answers kept for repeated requests", self.answers),
            ("counts of failed sign-ins", self.sign_ins),
            ("notices' recipients", self.notices),
            ("permits' names and addresses", self.permits),
            ("values in the history of permits", self.changes),
            ("values in the office's log", self.deeds),
            ("names of imported files", self.file_names),
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
    let mut walk = Walk::new(connection, &rules.stop);
    if let Some(limit) = limit(TimeDelta::zero()) {
        remove_passing(&mut walk, &limit, &mut removed).await?;
    }
    if let Some(limit) = rules.keep.content.and_then(&limit) {
        removed.messages = walk.remove::<Messages>(&limit).await?;
        removed.import_rows = walk.remove::<Rejections>(&limit).await?;
    }
    removed.mail_files = remove_mail_files(rules, real, dry_run).await;
    if let Some(limit) = rules.keep.personal.and_then(&limit) {
        remove_personal(&mut walk, &limit, &mut removed).await?;
    }
    removed.left = walk.left();
    if !dry_run {
        let ended = rules.clock.business(database_now(&mut *connection).await?);
        let counts = serde_json::to_value(&removed).unwrap_or_default();
        record_purge(connection, trigger, (now, ended), counts).await?;
        metrics::purge_completed(now.timestamp());
        tracing::info!(?removed, "old data was removed");
    }
    Ok(removed)
}

/// What was never to be kept for long.
async fn remove_passing(walk: &mut Walk<'_>, limit: &Limit, removed: &mut Removed) -> Result<()> {
    removed.uploads = within(PATIENCE, content::purge_kept_files(walk.connection(), limit)).await?;
    removed.staged = within(PATIENCE, passing::purge_staging(walk.connection(), limit)).await?;
    removed.answers = walk.remove::<Answers>(limit).await?;
    removed.sign_ins = within(PATIENCE, passing::purge_failures(walk.connection(), limit)).await?;
    Ok(())
}

/// Removes old mail from this machine's disk. The files have real times.
async fn remove_mail_files(rules: &PurgeRules, real: DateTime<Utc>, dry_run: bool) -> u64 {
    match rules.keep.content.and_then(|keep| real.checked_sub_signed(keep)) {
        Some(before) => mail_files::remove(&rules.mail_folder, before, dry_run).await,
        None => 0,
    }
}

/// Notices before their permits, which keep their names while one of them is open.
async fn remove_personal(walk: &mut Walk<'_>, limit: &Limit, removed: &mut Removed) -> Result<()> {
    removed.notices = walk.remove::<Notices>(limit).await?;
    removed.permits = walk.remove::<Permits>(limit).await?;
    removed.changes = walk.remove::<Histories>(limit).await?;
    removed.deeds = walk.remove::<Deeds>(limit).await?;
    removed.file_names = walk.remove::<FileNames>(limit).await?;
    Ok(())
}

/// What is older than `keep` at `now`; nothing when the calendar does not reach so far back.
fn limit(now: DateTime<Utc>, keep: TimeDelta, zone: Tz, dry_run: bool) -> Option<Limit> {
    let before = now.checked_sub_signed(keep)?;
    Some(Limit { before, day: day_in(before, zone), today: day_in(now, zone), now, dry_run })
}
