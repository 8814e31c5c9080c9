//! Names and addresses of permits that ended so long ago, and what their history says of those of all permits.

use chrono::NaiveDate;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{FIRST, Kind, Limit, REMOVED};
use crate::store::Result;

/// Who purged, in the history of a permit.
const BY: &str = "purge";

/// Names and addresses of permits whose last term ended, and that nobody has changed for as long. One whose schedule has a
/// step to come, or of which a notice waits or is to be found out, keeps them.
#[derive(Debug)]
pub struct Permits;

impl Kind for Permits {
    type Key = (NaiveDate, Uuid);
    const NAME: &'static str = "permits";

    async fn find(connection: &mut PgConnection, after: Option<&Self::Key>, limit: &Limit) -> Result<Vec<Self::Key>> {
        let (expires_on, id) = after.copied().unwrap_or((FIRST, Uuid::nil()));
        let rows = sqlx::query!(
            "SELECT id, expires_on FROM permits
             WHERE (expires_on, id) > ($1, $2) AND expires_on < $3 AND updated_at < $4
               AND (purged_at IS NULL OR updated_at > purged_at)
             ORDER BY expires_on, id LIMIT 200",
            expires_on,
            id,
            limit.day,
            limit.before,
        );
        Ok(rows.fetch_all(connection).await?.into_iter().map(|row| (row.expires_on, row.id)).collect())
    }

    async fn remove(connection: &mut PgConnection, permits: &[Self::Key], limit: &Limit) -> Result<u64> {
        let locked = sqlx::query_scalar!(
            "SELECT id FROM permits WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
            &permits.iter().map(|(_, id)| *id).collect::<Vec<_>>(),
        )
        .fetch_all(&mut *connection)
        .await?;
        let ended = find_ended(connection, &locked, limit).await?;
        blank(connection, &ended, limit).await?;
        Ok(ended.len() as u64)
    }
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

/// Names and addresses in what the history says permits were, of every permit, living or not.
#[derive(Debug)]
pub struct Histories;

impl Kind for Histories {
    type Key = (Uuid, i64);
    const NAME: &'static str = "changes of permits";

    async fn find(connection: &mut PgConnection, after: Option<&Self::Key>, _: &Limit) -> Result<Vec<Self::Key>> {
        let (permit, version) = after.copied().unwrap_or_default();
        let rows = sqlx::query!(
            "SELECT permit_id, version FROM permit_history WHERE (permit_id, version) > ($1, $2)
             ORDER BY permit_id, version LIMIT 2000",
            permit,
            version,
        );
        Ok(rows.fetch_all(connection).await?.into_iter().map(|row| (row.permit_id, row.version)).collect())
    }

    async fn remove(connection: &mut PgConnection, changes: &[Self::Key], limit: &Limit) -> Result<u64> {
        let (permits, versions): (Vec<Uuid>, Vec<i64>) = changes.iter().copied().unzip();
        let blanked = sqlx::query!(
            "UPDATE permit_history h SET before = permit_unsaid(h.before)
             FROM unnest($1::uuid[], $2::bigint[]) AS changes (permit_id, version)
             WHERE h.permit_id = changes.permit_id AND h.version = changes.version AND h.at < $3
               AND h.before <> permit_unsaid(h.before)",
            &permits,
            &versions,
            limit.before,
        );
        Ok(blanked.execute(connection).await?.rows_affected())
    }
}
