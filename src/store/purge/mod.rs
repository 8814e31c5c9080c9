//! Removing old content and personal data, in batches, each a bounded transaction.
//!
//! 1. A session lock lets one process purge at a time. It lives on the connection that does the work.
//! 2. Each kind is walked by its key, a chunk at a time; what is found is locked in the order of all locks (permit,
//!    notice, delivery, attempt, each by id), and what a change or a scan holds at that moment is left for the next day.
//! 3. What is locked is judged anew, blanked and committed. A kill between two batches leaves nothing half done, and
//!    the next purge goes on.
//!
//! A dry run does the same and takes each batch back, so that it cannot count otherwise.

pub mod content;
pub mod notices;
pub mod office;
pub mod permits;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{Connection, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::{
    Result,
    connect::{Purpose, RELEASE_LIMIT, connect, in_time},
};
use crate::domain::words;

/// Key of the lock, the same for every version.
const LOCK: i64 = 8_099_005_319_141_944_952;

/// What stands where a name, an address or a person's words were.
pub const REMOVED: &str = "(removed)";

words! {
    /// What started a purge.
    "trigger" PurgeTrigger {
        /// The loop of a process that serves.
        Daily = "daily",
        /// A person.
        Command = "command",
    }
}

/// What is older than this goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// For instants, in business time.
    pub before: DateTime<Utc>,
    /// For days.
    pub day: NaiveDate,
    /// The day that counts as today.
    pub today: NaiveDate,
    /// Business time, written beside what was removed.
    pub now: DateTime<Utc>,
    /// Everything is taken back.
    pub dry_run: bool,
}

/// How many of one chunk went, and where the next chunk begins; at the end nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<K> {
    /// How many went.
    pub removed: u64,
    /// The last one that was looked at.
    pub last: Option<K>,
}

impl<K> Chunk<K> {
    const END: Self = Self { removed: 0, last: None };
}

/// The right to purge, held as long as this lives.
#[derive(Debug)]
pub struct PurgeLock(PgConnection);

impl PurgeLock {
    /// Opens a connection and tries to take the lock; `None` if another session holds it.
    pub async fn try_take(url: &str) -> Result<Option<Self>> {
        let mut connection = connect(url, Purpose::Purge).await?;
        let taking = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "had!""#, LOCK);
        if in_time(async { Ok(taking.fetch_one(&mut connection).await?) }).await? {
            return Ok(Some(Self(connection)));
        }
        let _ = connection.close().await;
        Ok(None)
    }

    /// The connection that holds the lock.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }

    /// Gives the lock back and closes the connection.
    pub async fn release(mut self) {
        let unlocked = sqlx::query_scalar!(r#"SELECT pg_advisory_unlock($1) AS "had!""#, LOCK);
        let _ = tokio::time::timeout(RELEASE_LIMIT, async {
            let _ = unlocked.fetch_one(&mut self.0).await;
            let _ = self.0.close().await;
        })
        .await;
    }
}

/// When the last purge began that came to its end.
pub async fn last_purge(connection: &mut PgConnection) -> Result<Option<DateTime<Utc>>> {
    Ok(sqlx::query_scalar!("SELECT max(started_at) FROM purges").fetch_one(connection).await?)
}

/// Records a purge that came to its end.
pub async fn record_purge(
    connection: &mut PgConnection,
    trigger: PurgeTrigger,
    (started_at, finished_at): (DateTime<Utc>, DateTime<Utc>),
    removed: serde_json::Value,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO purges (id, trigger, started_at, finished_at, removed) VALUES ($1, $2, $3, $4, $5)",
        Uuid::now_v7(),
        trigger.as_str(),
        started_at,
        finished_at,
        removed,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Keeps what a batch did, or takes it back.
async fn end(transaction: Transaction<'_, Postgres>, limit: &Limit) -> Result<()> {
    let ended = if limit.dry_run { transaction.rollback().await } else { transaction.commit().await };
    Ok(ended?)
}
