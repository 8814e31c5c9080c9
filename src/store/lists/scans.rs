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
