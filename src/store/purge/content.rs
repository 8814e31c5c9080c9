//! Content: the bytes of messages, rows that imports rejected, and files that wait too long to be imported.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Kind, Limit, end};
use crate::store::{Result, kept_files::KEPT_FOR};

/// Bytes of attempts that ended so long ago. An ambiguous one keeps them until somebody has found out.
#[derive(Debug)]
pub struct Messages;

impl Kind for Messages {
    type Key = Uuid;
    const NAME: &'static str = "messages";

    async fn find(connection: &mut PgConnection, after: Option<&Uuid>, _: &Limit) -> Result<Vec<Uuid>> {
        let attempts = sqlx::query_scalar!(
            "SELECT attempt_id FROM attempt_messages WHERE attempt_id > $1 ORDER BY attempt_id LIMIT 2000",
            after.copied().unwrap_or_default(),
        );
        Ok(attempts.fetch_all(connection).await?)
    }

    async fn remove(connection: &mut PgConnection, attempts: &[Uuid], limit: &Limit) -> Result<u64> {
        let gone = sqlx::query!(
            "DELETE FROM attempt_messages m USING attempts a
             WHERE m.attempt_id = ANY ($1) AND a.id = m.attempt_id AND a.finished_at < $2
               AND NOT (a.outcome = 'ambiguous' AND a.resolution IS NULL)",
            attempts,
            limit.before,
        );
        Ok(gone.execute(connection).await?.rows_affected())
    }
}

/// Rejected rows of imports that ended so long ago, and what their reports repeat of the file.
#[derive(Debug)]
pub struct Rejections;

impl Kind for Rejections {
    type Key = Uuid;
    const NAME: &'static str = "imports";

    async fn find(connection: &mut PgConnection, after: Option<&Uuid>, limit: &Limit) -> Result<Vec<Uuid>> {
        let imports = sqlx::query_scalar!(
            "SELECT id FROM imports WHERE id > $1 AND finished_at < $2 ORDER BY id LIMIT 20",
            after.copied().unwrap_or_default(),
            limit.before,
        );
        Ok(imports.fetch_all(connection).await?)
    }

    async fn remove(connection: &mut PgConnection, imports: &[Uuid], limit: &Limit) -> Result<u64> {
        let removed = sqlx::query_scalar!(
            r#"WITH old AS MATERIALIZED (
                   SELECT id FROM imports WHERE id = ANY ($1) AND finished_at < $2 ORDER BY id FOR NO KEY UPDATE),
               gone AS (DELETE FROM import_rejections r USING old WHERE r.import_id = old.id RETURNING r.import_id),
               blanked AS (
                   UPDATE imports i SET report = import_report_unsaid(i.report) FROM old
                   WHERE i.id = old.id AND i.report <> import_report_unsaid(i.report) RETURNING i.id)
               SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM blanked) AS "removed!""#,
            imports,
            limit.before,
        );
        Ok(removed.fetch_one(connection).await?.unsigned_abs())
    }
}

/// Files that people sent and did not import in time; these go whatever is to be kept.
pub async fn purge_kept_files(connection: &mut PgConnection, limit: &Limit) -> Result<u64> {
    let mut transaction = connection.begin().await?;
    let gone = sqlx::query!("DELETE FROM kept_files WHERE kept_at < $1", limit.now - KEPT_FOR);
    let gone = gone.execute(&mut *transaction).await?.rows_affected();
    end(transaction, limit).await?;
    Ok(gone)
}
