//! Content: the bytes of messages, rows that imports rejected, and files that wait too long to be imported.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Chunk, Limit, end};
use crate::store::{Result, kept_files::KEPT_FOR};

/// Bytes of attempts that ended so long ago. An ambiguous one keeps them until somebody has found out.
pub async fn purge_messages(connection: &mut PgConnection, after: Option<Uuid>, limit: &Limit) -> Result<Chunk<Uuid>> {
    let mut transaction = connection.begin().await?;
    let row = sqlx::query!(
        r#"WITH chunk AS MATERIALIZED (
               SELECT attempt_id FROM attempt_messages WHERE attempt_id > $1 ORDER BY attempt_id LIMIT 2000),
           gone AS (
               DELETE FROM attempt_messages m USING chunk c, attempts a
               WHERE m.attempt_id = c.attempt_id AND a.id = c.attempt_id AND a.finished_at < $2
                 AND NOT (a.outcome = 'ambiguous' AND a.resolution IS NULL)
               RETURNING m.attempt_id)
           SELECT (SELECT count(*) FROM gone) AS "removed!",
                  (SELECT attempt_id FROM chunk ORDER BY attempt_id DESC LIMIT 1) AS last"#,
        after.unwrap_or_default(),
        limit.before,
    )
    .fetch_one(&mut *transaction)
    .await?;
    end(transaction, limit).await?;
    Ok(Chunk { removed: row.removed.unsigned_abs(), last: row.last })
}

/// Rejected rows of imports that ended so long ago, and what their reports repeat of the file.
pub async fn purge_rejections(
    connection: &mut PgConnection,
    after: Option<Uuid>,
    limit: &Limit,
) -> Result<Chunk<Uuid>> {
    let mut transaction = connection.begin().await?;
    let row = sqlx::query!(
        r#"WITH chunk AS MATERIALIZED (SELECT id FROM imports WHERE id > $1 ORDER BY id LIMIT 20),
           old AS MATERIALIZED (
               SELECT i.id FROM imports i JOIN chunk USING (id) WHERE i.finished_at < $2
               ORDER BY i.id FOR NO KEY UPDATE OF i),
           gone AS (DELETE FROM import_rejections r USING old WHERE r.import_id = old.id RETURNING r.import_id),
           blanked AS (
               UPDATE imports i SET report = import_report_unsaid(i.report) FROM old
               WHERE i.id = old.id AND i.report <> import_report_unsaid(i.report) RETURNING i.id)
           SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM blanked) AS "removed!",
                  (SELECT id FROM chunk ORDER BY id DESC LIMIT 1) AS last"#,
        after.unwrap_or_default(),
        limit.before,
    )
    .fetch_one(&mut *transaction)
    .await?;
    end(transaction, limit).await?;
    Ok(Chunk { removed: row.removed.unsigned_abs(), last: row.last })
}

/// Files that people sent and did not import in time; these go whatever is to be kept.
pub async fn purge_kept_files(connection: &mut PgConnection, limit: &Limit) -> Result<u64> {
    let mut transaction = connection.begin().await?;
    let gone = sqlx::query!("DELETE FROM kept_files WHERE kept_at < $1", limit.now - KEPT_FOR);
    let gone = gone.execute(&mut *transaction).await?.rows_affected();
    end(transaction, limit).await?;
    Ok(gone)
}
