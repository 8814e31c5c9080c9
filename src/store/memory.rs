//! The memory guard: whether the database that answers is the one that wrote the memory of what was sent.
//!
//! A restored dump, a recovery to a point in time, a failover to a standby that lost writes and a copied database all
//! remember less than was done, and would mail it again. Their marks differ from those on record. Until a person
//! confirms, dispatch leases nothing, the gate lets nobody through, and a scan holds what it claims. What was pending
//! then may have been sent since; the first scan holds it too, so that only a person's release lets it go.

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Result, cases::lock_deliveries, claims::refresh_states, reasons};
use crate::domain::notice::ReasonCode;

/// Notices held in one transaction.
const BATCH: i64 = 1000;

/// One mark of a database, as it is on record and as it is now. One that cannot be read is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// What it is, for people.
    pub name: String,
    /// As it is on record.
    pub recorded: Option<i64>,
    /// As it is now.
    pub present: Option<i64>,
}

impl Mark {
    /// Whether both are known and differ.
    pub fn differs(&self) -> bool {
        matches!((self.recorded, self.present), (Some(recorded), Some(present)) if recorded != present)
    }
}

/// What differs, as the end of a sentence; `None` while the memory may be trusted.
pub fn difference(marks: &[Mark]) -> Option<String> {
    let number = |mark: Option<i64>| mark.map_or_else(String::new, |mark| mark.cast_unsigned().to_string());
    let differing = marks.iter().filter(|mark| mark.differs());
    let said: Vec<String> = differing
        .map(|mark| format!("the {} was {} and is {}", mark.name, number(mark.recorded), number(mark.present)))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Why nothing is sent, as a sentence for logs and people.
pub fn sentence(difference: &str) -> String {
    format!(
        "This is not the database that wrote its memory, or an older state of it ({difference}). Nothing is sent and \
         scans hold what they claim, until an administrator confirms with: permit-notifier resume --reason TEXT"
    )
}

/// Compares every mark; none are on record in a database that never started.
pub async fn compare_marks(connection: &mut PgConnection) -> Result<Vec<Mark>> {
    let marks = sqlx::query_as!(Mark, r#"SELECT name AS "name!", recorded, present FROM memory_comparison"#);
    Ok(marks.fetch_all(connection).await?)
}

/// The marks of the database that answers, but for the timeline, which a standby does not tell.
pub async fn present_marks(connection: &mut PgConnection) -> Result<(Option<i64>, i64, i64)> {
    let row = sqlx::query!(
        r#"SELECT system_identifier, database_oid AS "database_oid!", notices_oid AS "notices_oid!"
           FROM present_memory_marks()"#
    )
    .fetch_one(connection)
    .await?;
    Ok((row.system_identifier, row.database_oid, row.notices_oid))
}

/// Whether the memory may have gone back.
pub async fn went_back(connection: &mut PgConnection) -> Result<bool> {
    let went_back =
        sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM memory_comparison WHERE recorded <> present) AS "yes!""#);
    Ok(went_back.fetch_one(connection).await?)
}

/// Records the marks at the first start, and later what could not be read then, while nothing differs.
pub async fn record_marks(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO memory_marks (system_identifier, timeline, database_oid, notices_oid)
         SELECT system_identifier, timeline, database_oid, notices_oid FROM present_memory_marks()
         ON CONFLICT (single) DO UPDATE
             SET system_identifier = coalesce(memory_marks.system_identifier, EXCLUDED.system_identifier),
                 timeline = coalesce(memory_marks.timeline, EXCLUDED.timeline)
             WHERE (memory_marks.system_identifier IS NULL OR memory_marks.timeline IS NULL)
               AND NOT EXISTS (SELECT FROM memory_comparison WHERE recorded <> present)"
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Holds what was pending when the memory went back, once for each time that it did. What is released meanwhile, or
/// written since, is not held again.
pub async fn hold_pending(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<()> {
    if is_held(connection).await? {
        return Ok(());
    }
    let (mut held, mut after) = (0, Uuid::nil());
    loop {
        let notices = next_pending(connection, after).await?;
        let Some(last) = notices.last() else { break };
        after = *last;
        held += hold_batch(connection, &notices, now).await?;
    }
    note_lapse(connection, now, held).await?;
    tracing::error!(held, "{held} notices that were pending are held: they may have been sent since");
    Ok(())
}

/// Whether what was pending has been held for the marks of now.
async fn is_held(connection: &mut PgConnection) -> Result<bool> {
    let held = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM memory_lapses l, present_memory_marks() p
               WHERE l.confirmed_at IS NULL AND l.database_oid = p.database_oid AND l.notices_oid = p.notices_oid
                 AND l.system_identifier IS NOT DISTINCT FROM p.system_identifier
                 AND l.timeline IS NOT DISTINCT FROM p.timeline) AS "held!""#
    );
    Ok(held.fetch_one(connection).await?)
}

async fn next_pending(connection: &mut PgConnection, after: Uuid) -> Result<Vec<Uuid>> {
    let notices = sqlx::query_scalar!(
        r#"SELECT DISTINCT notice_id AS "id!" FROM deliveries WHERE state = 'pending' AND channel = 'email' AND notice_id > $1
           ORDER BY 1 LIMIT $2"#,
        after,
        BATCH,
    );
    Ok(notices.fetch_all(connection).await?)
}

async fn hold_batch(connection: &mut PgConnection, notices: &[Uuid], now: DateTime<Utc>) -> Result<i64> {
    let mut transaction = connection.begin().await?;
    sqlx::query!("SELECT 1 AS locked FROM notices WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", notices)
        .fetch_all(&mut *transaction)
        .await?;
    lock_deliveries(&mut transaction, notices).await?;
    let mut held = sqlx::query_scalar!(
        "UPDATE deliveries SET state = 'held', reason_code = $2, lease_token = NULL, lease_owner = NULL, updated_at = $3
         WHERE notice_id = ANY ($1) AND state = 'pending' AND channel = 'email' RETURNING notice_id",
        notices,
        ReasonCode::MemoryWentBack.as_str(),
        now,
    )
    .fetch_all(&mut *transaction)
    .await?;
    refresh_states(&mut transaction, notices).await?;
    held.sort_unstable();
    held.dedup();
    let why: Vec<_> = held.iter().map(|notice| (*notice, ReasonCode::MemoryWentBack)).collect();
    reasons::explain(&mut transaction, &why).await?;
    transaction.commit().await?;
    Ok(i64::try_from(held.len()).unwrap_or(i64::MAX))
}

async fn note_lapse(connection: &mut PgConnection, now: DateTime<Utc>, held: i64) -> Result<()> {
    sqlx::query!(
        "INSERT INTO memory_lapses (system_identifier, timeline, database_oid, notices_oid, noticed_at, held)
         SELECT system_identifier, timeline, database_oid, notices_oid, $1, $2 FROM present_memory_marks()",
        now,
        held,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes the marks of now those on record, for that reason of a person: mail may go again. What was pending has been
/// held ([`hold_pending`]).
pub async fn confirm(connection: &mut PgConnection, reason: &str, now: DateTime<Utc>) -> Result<()> {
    let mut transaction = connection.begin().await?;
    sqlx::query!(
        "UPDATE memory_marks r
         SET system_identifier = p.system_identifier, timeline = p.timeline, database_oid = p.database_oid,
             notices_oid = p.notices_oid, recorded_at = clock_timestamp()
         FROM present_memory_marks() p"
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!("UPDATE memory_lapses SET confirmed_at = $1, reason = $2 WHERE confirmed_at IS NULL", now, reason)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}

/// How many notices are held because the memory went back.
pub async fn count_held(connection: &mut PgConnection) -> Result<i64> {
    let held = sqlx::query_scalar!(
        r#"SELECT count(*) AS "held!" FROM notices WHERE state = 'held' AND reason_code = 'memory_went_back'"#
    );
    Ok(held.fetch_one(connection).await?)
}
