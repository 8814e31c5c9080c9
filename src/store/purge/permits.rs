//! Names and addresses of permits that ended so long ago, and what their history says of those of all permits.

use chrono::NaiveDate;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Chunk, Limit, REMOVED, end};
use crate::store::Result;

/// Who purged, in the history of a permit.
const BY: &str = "purge";

/// Removes names and addresses of permits whose last term ended, and that nobody has changed for as long. One whose
/// schedule has a step to come, or of which a notice waits or is to be found out, keeps them.
pub async fn purge_permits(
    connection: &mut PgConnection,
    after: Option<(NaiveDate, Uuid)>,
    limit: &Limit,
) -> Result<Chunk<(NaiveDate, Uuid)>> {
    let mut transaction = connection.begin().await?;
    let (expires_on, id) = after.unwrap_or((NaiveDate::from_ymd_opt(-4000, 1, 1).unwrap_or_default(), Uuid::nil()));
    let found = sqlx::query!(
        "SELECT id, expires_on FROM permits
         WHERE (expires_on, id) > ($1, $2) AND expires_on < $3 AND updated_at < $4
           AND (purged_at IS NULL OR updated_at > purged_at)
         ORDER BY expires_on, id LIMIT 200",
        expires_on,
        id,
        limit.day,
        limit.before,
    )
    .fetch_all(&mut *transaction)
    .await?;
    let Some(last) = found.last().map(|row| (row.expires_on, row.id)) else {
        transaction.rollback().await?;
        return Ok(Chunk::END);
    };
    let ids: Vec<Uuid> = found.iter().map(|row| row.id).collect();
    let locked = sqlx::query_scalar!(
        "SELECT id FROM permits WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        &ids
    )
    .fetch_all(&mut *transaction)
    .await?;
    let ended = find_ended(&mut transaction, &locked, limit).await?;
    blank(&mut transaction, &ended, limit).await?;
    end(transaction, limit).await?;
    Ok(Chunk { removed: ended.len() as u64, last: Some(last) })
}

async fn find_ended(connection: &mut PgConnection, permits: &[Uuid], limit: &Limit) -> Result<Vec<Uuid>> {
    let ended = sqlx::query_scalar!(
        "SELECT p.id FROM permits p
         WHERE p.id = ANY ($1) AND p.expires_on < $2 AND p.updated_at < $3
           AND NOT EXISTS (SELECT FROM notices n WHERE n.permit_id = p.id AND n.purged_at IS NULL
                             AND n.state IN ('pending', 'held', 'ambiguous'))
           AND NOT EXISTS (SELECT FROM schedule_steps s
                           WHERE s.permit_type = p.permit_type AND s.enabled AND s.offset_days > 0
                             AND p.expires_on + s.offset_days + s.late_by_days >= $4)
         ORDER BY p.id",
        permits,
        limit.day,
        limit.before,
        limit.today,
    );
    Ok(ended.fetch_all(connection).await?)
}

async fn blank(connection: &mut PgConnection, permits: &[Uuid], limit: &Limit) -> Result<()> {
    sqlx::query!(
        "INSERT INTO permit_history (permit_id, version, action, at, by, before)
         SELECT id, version + 1, 'purged', $2, $3, permit_unsaid(permit_said(permits)) FROM permits WHERE id = ANY ($1)",
        permits,
        limit.now,
        BY,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("DELETE FROM contacts WHERE permit_id = ANY ($1)", permits).execute(&mut *connection).await?;
    sqlx::query!(
        "UPDATE permits
         SET holder_name = $2, holder_email = NULL, site_address = NULL, description = NULL, custom = '{}',
             version = version + 1, updated_at = $3, purged_at = $3
         WHERE id = ANY ($1)",
        permits,
        REMOVED,
        limit.now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes names and addresses from what the history says permits were, of every permit, living or not.
pub async fn purge_history(
    connection: &mut PgConnection,
    after: Option<(Uuid, i64)>,
    limit: &Limit,
) -> Result<Chunk<(Uuid, i64)>> {
    let mut transaction = connection.begin().await?;
    let (permit, version) = after.unwrap_or_default();
    let row = sqlx::query!(
        r#"WITH chunk AS MATERIALIZED (
               SELECT permit_id, version FROM permit_history WHERE (permit_id, version) > ($1, $2)
               ORDER BY permit_id, version LIMIT 2000),
           blanked AS (
               UPDATE permit_history h SET before = permit_unsaid(h.before) FROM chunk c
               WHERE h.permit_id = c.permit_id AND h.version = c.version AND h.at < $3
                 AND h.before <> permit_unsaid(h.before)
               RETURNING h.permit_id),
           last AS (SELECT permit_id, version FROM chunk ORDER BY permit_id DESC, version DESC LIMIT 1)
           SELECT (SELECT count(*) FROM blanked) AS "removed!", (SELECT permit_id FROM last) AS permit_id,
                  (SELECT version FROM last) AS version"#,
        permit,
        version,
        limit.before,
    )
    .fetch_one(&mut *transaction)
    .await?;
    end(transaction, limit).await?;
    Ok(Chunk { removed: row.removed.unsigned_abs(), last: row.permit_id.zip(row.version) })
}
