//! The row of an import.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::staging;
use crate::store::Result;

/// Writes the row before the notices that name it; its report follows.
pub(super) async fn insert_import(
    connection: &mut PgConnection,
    import: Uuid,
    file_name: &str,
    started_at: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO imports (id, file_name, started_at, finished_at, report) VALUES ($1, $2, $3, $3, '{}')",
        import,
        file_name,
        started_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes the report. `began` is what the database's clock showed at `started_at`, so that the end is business time.
pub(super) async fn finish_import(
    connection: &mut PgConnection,
    import: Uuid,
    began: DateTime<Utc>,
    report: &Value,
) -> Result<()> {
    sqlx::query!(
        "UPDATE imports SET report = $2, finished_at = started_at + (clock_timestamp() - $3::timestamptz) WHERE id = $1",
        import,
        report,
        began,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether an import whose commit was not answered is recorded; waits until its connection is gone in the database.
pub async fn is_recorded(connection: &mut PgConnection, import: Uuid) -> Result<bool> {
    staging::own(connection, import).await?;
    let found = sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM imports WHERE id = $1) AS "found!""#, import);
    Ok(found.fetch_one(connection).await?)
}
