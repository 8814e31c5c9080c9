//! The row of an import, with its report and the rows that it rejected.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{Connection, PgConnection, types::Json};
use uuid::Uuid;

use super::staging;
use crate::store::{Result, StoreError};

/// The file of an import, as far as it is kept.
#[derive(Debug, Clone, Copy)]
pub struct FileKept<'f> {
    /// Its name without its folder.
    pub name: &'f str,
    /// What stands between two cells.
    pub delimiter: char,
    /// Names of its columns.
    pub header: &'f [String],
}

/// When an import began.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'b> {
    /// Who began it.
    pub by: &'b str,
    /// Business time.
    pub at: DateTime<Utc>,
    /// What the database's clock showed then, so that the end is business time too.
    pub by_database: DateTime<Utc>,
}

/// Writes the row of an import that will be committed, before the notices that name it; its report follows.
pub(super) async fn insert_import(
    connection: &mut PgConnection,
    import: Uuid,
    file: FileKept<'_>,
    by: &str,
    at: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO imports (id, file_name, started_at, finished_at, report, committed, dry_run, delimiter, header, by)
         VALUES ($1, $2, $3, $3, '{}', true, false, $4, $5, $6)",
        import,
        file.name,
        at,
        file.delimiter.to_string(),
        file.header,
        by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes the report, and keeps the rejected rows.
pub(super) async fn finish_import(
    connection: &mut PgConnection,
    import: Uuid,
    by_database: DateTime<Utc>,
    report: &Value,
) -> Result<()> {
    sqlx::query!(
        "UPDATE imports SET report = $2, finished_at = started_at + (clock_timestamp() - $3::timestamptz) WHERE id = $1",
        import,
        report,
        by_database,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "INSERT INTO import_rejections (import_id, file_row, cells, errors)
         SELECT import_id, file_row, cells, errors FROM import_rejected_rows WHERE import_id = $1 AND kept",
        import,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records an import that committed nothing: rows were wrong, or it was a dry run.
pub async fn record_uncommitted(
    connection: &mut PgConnection,
    import: Uuid,
    file: FileKept<'_>,
    dry_run: bool,
    began: Beginning<'_>,
    report: &Value,
) -> Result<()> {
    let mut transaction = connection.begin().await?;
    insert_import(&mut transaction, import, file, began.by, began.at).await?;
    sqlx::query!("UPDATE imports SET committed = false, dry_run = $2 WHERE id = $1", import, dry_run)
        .execute(&mut *transaction)
        .await?;
    finish_import(&mut transaction, import, began.by_database, report).await?;
    Ok(transaction.commit().await?)
}

/// Whether an import whose commit was not answered is recorded; waits until its connection is gone in the database.
pub async fn is_recorded(connection: &mut PgConnection, import: Uuid) -> Result<bool> {
    staging::own(connection, import).await?;
    let found = sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM imports WHERE id = $1) AS "found!""#, import);
    Ok(found.fetch_one(connection).await?)
}

/// The report of an import, as it was given.
pub async fn read_report(connection: &mut PgConnection, import: Uuid) -> Result<Value> {
    let report = sqlx::query_scalar!("SELECT report FROM imports WHERE id = $1", import);
    report.fetch_optional(connection).await?.ok_or(StoreError::NotFound("import"))
}

/// How the file of an import was laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLayout {
    /// What stands between two cells.
    pub delimiter: char,
    /// Names of its columns.
    pub header: Vec<String>,
}

/// How the file of an import was laid out.
pub async fn read_layout(connection: &mut PgConnection, import: Uuid) -> Result<FileLayout> {
    let row = sqlx::query!("SELECT delimiter, header FROM imports WHERE id = $1", import)
        .fetch_optional(connection)
        .await?
        .ok_or(StoreError::NotFound("import"))?;
    Ok(FileLayout { delimiter: row.delimiter.chars().next().unwrap_or(','), header: row.header })
}

/// How many rejected rows of an import are kept.
pub async fn count_rejections(connection: &mut PgConnection, import: Uuid) -> Result<u64> {
    let count =
        sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM import_rejections WHERE import_id = $1"#, import);
    Ok(count.fetch_one(connection).await?.unsigned_abs())
}

/// Up to `limit` rejected rows of an import after row `after`, in the order of the file.
pub async fn list_rejections(
    connection: &mut PgConnection,
    import: Uuid,
    after: u64,
    limit: u32,
) -> Result<Vec<staging::RejectedRow>> {
    let rows = sqlx::query!(
        r#"SELECT file_row, cells AS "cells: Json<Vec<String>>", errors FROM import_rejections
           WHERE import_id = $1 AND file_row > $2 ORDER BY file_row LIMIT $3"#,
        import,
        i64::try_from(after).unwrap_or(i64::MAX),
        i64::from(limit),
    )
    .fetch_all(connection)
    .await?;
    let rows = rows.into_iter();
    Ok(rows
        .map(|row| staging::RejectedRow {
            file_row: row.file_row.unsigned_abs(),
            number_key: None,
            cell_keys: Vec::new(),
            kept: true,
            cells: row.cells.0,
            errors: row.errors,
        })
        .collect())
}
