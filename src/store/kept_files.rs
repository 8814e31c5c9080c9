//! Files that people have sent and not imported yet.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Result, StoreError};

/// A file that nobody has imported for so long is removed.
pub const KEPT_FOR: TimeDelta = TimeDelta::days(1);

/// A file that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptFile {
    /// UUID version 7.
    pub id: Uuid,
    /// What its owner calls it.
    pub file_name: String,
    /// Its size.
    pub bytes: i64,
    /// Who sent it.
    pub kept_by: String,
    /// Business time.
    pub kept_at: DateTime<Utc>,
    /// How it is to be read and applied.
    pub words: Value,
    /// What it looks like.
    pub look: Option<Value>,
    /// The dry run with these words.
    pub import_id: Option<Uuid>,
    /// Why it was refused as a whole.
    pub refusal: Option<String>,
}

/// Records a file, whose pieces follow in the same transaction.
pub async fn insert_kept_file(
    connection: &mut PgConnection,
    file_name: &str,
    bytes: u64,
    by: &str,
    now: DateTime<Utc>,
) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query!(
        "INSERT INTO kept_files (id, file_name, bytes, kept_by, kept_at) VALUES ($1, $2, $3, $4, $5)",
        id,
        file_name,
        bytes as i64,
        by,
        now,
    )
    .execute(connection)
    .await?;
    Ok(id)
}

/// Records one piece.
pub async fn insert_part(connection: &mut PgConnection, file: Uuid, number: i32, content: &[u8]) -> Result<()> {
    sqlx::query!("INSERT INTO kept_file_parts (file_id, number, content) VALUES ($1, $2, $3)", file, number, content)
        .execute(connection)
        .await?;
    Ok(())
}

/// One piece; none behind the last.
pub async fn read_part(connection: &mut PgConnection, file: Uuid, number: i32) -> Result<Option<Vec<u8>>> {
    let content =
        sqlx::query_scalar!("SELECT content FROM kept_file_parts WHERE file_id = $1 AND number = $2", file, number);
    Ok(content.fetch_optional(connection).await?)
}

/// Files that wait, newest first, those left out that are about to be removed.
pub async fn list_kept_files(executor: impl PgExecutor<'_>, now: DateTime<Utc>) -> Result<Vec<KeptFile>> {
    let files = sqlx::query_as!(
        KeptFile,
        "SELECT id, file_name, bytes, kept_by, kept_at, words, look, import_id, refusal FROM kept_files
         WHERE kept_at >= $1 ORDER BY id DESC",
        now - KEPT_FOR,
    );
    Ok(files.fetch_all(executor).await?)
}

/// One of them.
pub async fn get_kept_file(executor: impl PgExecutor<'_>, id: Uuid) -> Result<KeptFile> {
    let file = sqlx::query_as!(
        KeptFile,
        "SELECT id, file_name, bytes, kept_by, kept_at, words, look, import_id, refusal FROM kept_files WHERE id = $1",
        id,
    );
    file.fetch_optional(executor)
        .await?
        .ok_or(StoreError::NotFound("file; it was imported, discarded or kept too long"))
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq)]
pub struct FileCheck {
    /// How the file was read.
    pub words: Value,
    /// What it looks like; none leaves what was seen before.
    pub look: Option<Value>,
    /// The dry run.
    pub import_id: Option<Uuid>,
    /// Why it was refused as a whole.
    pub refusal: Option<String>,
}

/// Notes what a check came to.
pub async fn note_check(connection: &mut PgConnection, id: Uuid, check: &FileCheck) -> Result<()> {
    sqlx::query!(
        "UPDATE kept_files SET words = $2, look = coalesce($3, look), import_id = $4, refusal = $5 WHERE id = $1",
        id,
        check.words,
        check.look,
        check.import_id,
        check.refusal,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes a file.
pub async fn remove_kept_file(connection: &mut PgConnection, id: Uuid) -> Result<()> {
    sqlx::query!("DELETE FROM kept_files WHERE id = $1", id).execute(connection).await?;
    Ok(())
}

/// Removes what nobody has imported for too long.
pub async fn remove_old_files(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<()> {
    sqlx::query!("DELETE FROM kept_files WHERE kept_at < $1", now - KEPT_FOR).execute(connection).await?;
    Ok(())
}
