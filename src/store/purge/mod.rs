//! Removing old content and personal data, in batches, each a bounded transaction.
//!
//! 1. A session lock lets one process purge at a time. It lives on the connection that does the work.
//! 2. Each [`Kind`] is walked by its key, a chunk at a time; what is found is locked in the order of all locks (permit,
//!    notice, delivery, attempt, each by id), and what a change or a scan holds at that moment is left for the next day.
//! 3. What is locked is judged anew, blanked and committed. A kill between two batches leaves nothing half done, and
//!    the next purge goes on.
//! 4. A chunk that the database refuses is done row by row, and the row that it refuses is left: one that cannot be
//!    changed must not keep all others.
//!
//! A dry run does the same and takes each batch back, so that it cannot count otherwise.

pub mod content;
pub mod notices;
pub mod office;
pub mod passing;
pub mod permits;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use sqlx::{Connection, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::{
    Result, StoreError,
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

/// Earlier than every period.
const FIRST: NaiveDate = NaiveDate::from_ymd_opt(-4000, 1, 1).unwrap();

/// One kind of what is old, and how it is found and removed.
pub trait Kind {
    /// By what its rows are walked, and named in the log.
    type Key: std::fmt::Debug + Send + Sync;
    /// What its rows are, for the log.
    const NAME: &'static str;

    /// The next rows after a key that may be old, in order; none at the end.
    fn find(
        connection: &mut PgConnection,
        after: Option<&Self::Key>,
        limit: &Limit,
    ) -> impl Future<Output = Result<Vec<Self::Key>>> + Send;

    /// Removes what is old of these rows, inside a transaction; says how much it was.
    fn remove(
        connection: &mut PgConnection,
        rows: &[Self::Key],
        limit: &Limit,
    ) -> impl Future<Output = Result<u64>> + Send;
}

/// Removes what is old of these rows, in a transaction of its own; says how much it was.
pub async fn remove_rows<K: Kind>(connection: &mut PgConnection, rows: &[K::Key], limit: &Limit) -> Result<u64> {
    let mut transaction = connection.begin().await?;
    let removed = K::remove(&mut transaction, rows, limit).await?;
    end(transaction, limit).await?;
    Ok(removed)
}

/// Whether one of the rows may be what is wrong: the database looked at them and said no, a trigger did, or they cannot
/// be read.
pub fn may_be_a_row(error: &StoreError) -> bool {
    let StoreError::Database(error) = error else { return false };
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| ["22", "23", "38", "39", "44", "P0", "XX"].iter().any(|class| code.starts_with(class)))
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

/// The last purge that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastPurge {
    /// Business time at which it began.
    pub started_at: DateTime<Utc>,
    /// Rows that it had to leave.
    pub left: u64,
}

/// The last purge that came to its end.
pub async fn last_purge(connection: &mut PgConnection) -> Result<Option<LastPurge>> {
    let last = sqlx::query!(
        r#"SELECT started_at, coalesce((removed ->> 'left')::bigint, 0) AS "left!" FROM purges
           ORDER BY started_at DESC LIMIT 1"#
    );
    let last = last.fetch_optional(connection).await?;
    Ok(last.map(|row| LastPurge { started_at: row.started_at, left: row.left.unsigned_abs() }))
}

/// For how long there have been processes that scan, and so purge, if one of them is alive.
pub async fn scanning_for(connection: &mut PgConnection) -> Result<Option<TimeDelta>> {
    let seconds = sqlx::query_scalar!(
        r#"SELECT extract(epoch FROM clock_timestamp() - min(started_at))::bigint FROM processes
           WHERE 'scan' = ANY (string_to_array(roles, ','))
           HAVING bool_or(boot_id IN (SELECT boot_id FROM living_processes))"#
    );
    Ok(seconds.fetch_optional(connection).await?.flatten().map(TimeDelta::seconds))
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
