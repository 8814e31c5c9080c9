//! Scans as they are shown.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::{Result, StoreError};

/// A scan as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRow {
    pub id: Uuid,
    pub scheduled_for: Option<DateTime<Utc>>,
    pub trigger: String,
    pub as_of: NaiveDate,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub outcome: String,
    pub lock: String,
    pub claimed: i64,
    pub already_claimed: i64,
    pub revived: i64,
    pub superseded: i64,
    pub skipped: i64,
    pub held: i64,
    pub error: Option<String>,
}

/// Up to `limit` scans before the one with the id `after`, newest first.
pub async fn list_scans(connection: &mut PgConnection, after: Option<Uuid>, limit: i64) -> Result<Vec<ScanRow>> {
    let scans = sqlx::query_as!(
        ScanRow,
        "SELECT id, scheduled_for, trigger, as_of, started_at, finished_at, outcome, lock, claimed, already_claimed,
                revived, superseded, skipped, held, error
         FROM scans WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2",
        after,
        limit,
    );
    Ok(scans.fetch_all(connection).await?)
}

/// One scan.
pub async fn read_scan(connection: &mut PgConnection, id: Uuid) -> Result<ScanRow> {
    let scan = sqlx::query_as!(
        ScanRow,
        "SELECT id, scheduled_for, trigger, as_of, started_at, finished_at, outcome, lock, claimed, already_claimed,
                revived, superseded, skipped, held, error
         FROM scans WHERE id = $1",
        id,
    );
    scan.fetch_optional(connection).await?.ok_or(StoreError::NotFound("scan"))
}

/// The tries for one expected time, in order.
pub async fn list_tries(connection: &mut PgConnection, scheduled_for: DateTime<Utc>) -> Result<Vec<ScanRow>> {
    let scans = sqlx::query_as!(
        ScanRow,
        "SELECT id, scheduled_for, trigger, as_of, started_at, finished_at, outcome, lock, claimed, already_claimed,
                revived, superseded, skipped, held, error
         FROM scans WHERE scheduled_for = $1 ORDER BY id LIMIT 100",
        scheduled_for,
    );
    Ok(scans.fetch_all(connection).await?)
}

/// The scan that completed last.
pub async fn last_completed(connection: &mut PgConnection) -> Result<Option<ScanRow>> {
    let scan = sqlx::query_as!(
        ScanRow,
        "SELECT id, scheduled_for, trigger, as_of, started_at, finished_at, outcome, lock, claimed, already_claimed,
                revived, superseded, skipped, held, error
         FROM scans WHERE outcome = 'completed' ORDER BY started_at DESC LIMIT 1"
    );
    Ok(scan.fetch_optional(connection).await?)
}

/// A scan that met the times that were expected up to its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meeting {
    pub id: Uuid,
    pub started_at: DateTime<Utc>,
    pub finished_at: DateTime<Utc>,
}

/// Scans that completed and began from `from` to `to`, in order, each for its own day: those that meet expected times.
pub async fn list_meetings(
    connection: &mut PgConnection,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<Vec<Meeting>> {
    let meetings = sqlx::query_as!(
        Meeting,
        r#"SELECT id, started_at, finished_at AS "finished_at!" FROM scans
           WHERE outcome = 'completed' AND own_day AND started_at BETWEEN $1 AND $2 ORDER BY started_at LIMIT 1000"#,
        from,
        to,
    );
    Ok(meetings.fetch_all(connection).await?)
}

/// The scan that runs at this moment, if one does.
pub async fn running_scan(connection: &mut PgConnection) -> Result<Option<Uuid>> {
    let id = sqlx::query_scalar!("SELECT id FROM scans WHERE outcome = 'running' ORDER BY id DESC LIMIT 1");
    Ok(id.fetch_optional(connection).await?)
}
