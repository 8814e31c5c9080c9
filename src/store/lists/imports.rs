//! Imports as they are listed.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::{Result, StoreError};

/// An import in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRow {
    pub id: Uuid,
    pub file_name: String,
    /// Business time.
    pub started_at: DateTime<Utc>,
    pub by: Option<String>,
    pub committed: bool,
    pub dry_run: bool,
    pub rows: i64,
    pub created: i64,
    pub renewed: i64,
    pub updated: i64,
    pub rejected: i64,
}

/// Up to `limit` imports before the one with the id `after`, newest first; without dry runs unless they are wanted.
pub async fn list_imports(
    connection: &mut PgConnection,
    dry_runs: bool,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<ImportRow>> {
    let rows = sqlx::query_as!(
        ImportRow,
        r#"SELECT id, file_name, started_at, by, committed, dry_run,
                  coalesce((report ->> 'rows')::bigint, 0) AS "rows!",
                  coalesce((report ->> 'permits_created')::bigint, 0) AS "created!",
                  coalesce((report ->> 'permits_renewed')::bigint, 0) AS "renewed!",
                  coalesce((report ->> 'permits_updated')::bigint, 0) AS "updated!",
                  coalesce((report ->> 'rejected')::bigint, 0) AS "rejected!"
           FROM imports WHERE ($1::uuid IS NULL OR id < $1) AND (NOT dry_run OR $2) ORDER BY id DESC LIMIT $3"#,
        after,
        dry_runs,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}

/// One import with its report.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportSeen {
    pub id: Uuid,
    pub file_name: String,
    pub started_at: DateTime<Utc>,
    pub by: Option<String>,
    pub report: Value,
}

/// One import with its report.
pub async fn read_import(connection: &mut PgConnection, id: Uuid) -> Result<ImportSeen> {
    let import =
        sqlx::query_as!(ImportSeen, "SELECT id, file_name, started_at, by, report FROM imports WHERE id = $1", id);
    import.fetch_optional(connection).await?.ok_or(StoreError::NotFound("import"))
}
