//! Recipients and replies of notices whose period ended so long ago. What stays is a tombstone: its key, its states,
//! its times, its hashes and its Message-IDs.

use chrono::NaiveDate;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{FIRST, Kind, Limit, REMOVED};
use crate::store::{Result, cases::lock_deliveries};

/// A notice, and where it stands in the order in which they are walked.
#[derive(Debug)]
pub struct NoticeKey {
    expires_on: NaiveDate,
    permit_id: Uuid,
    notice_type: String,
    id: Uuid,
}

/// Notices that are over become tombstones: nothing of them waits, is on its way, or is to be found out.
#[derive(Debug)]
pub struct Notices;

impl Kind for Notices {
    type Key = NoticeKey;
    const NAME: &'static str = "notices";

    async fn find(connection: &mut PgConnection, after: Option<&NoticeKey>, limit: &Limit) -> Result<Vec<NoticeKey>> {
        let (expires_on, permit, notice_type) =
            after.map_or((FIRST, Uuid::nil(), ""), |key| (key.expires_on, key.permit_id, key.notice_type.as_str()));
        let notices = sqlx::query_as!(
            NoticeKey,
            "SELECT id, permit_id, expires_on, notice_type FROM notices
             WHERE (expires_on, permit_id, notice_type) > ($1, $2, $3) AND expires_on < $4 AND send_by < $4
               AND purged_at IS NULL AND created_at < $5
             ORDER BY expires_on, permit_id, notice_type LIMIT 500",
            expires_on,
            permit,
            notice_type,
            limit.day,
            limit.before,
        );
        Ok(notices.fetch_all(connection).await?)
    }

    async fn remove(connection: &mut PgConnection, notices: &[NoticeKey], limit: &Limit) -> Result<u64> {
        let mut permits: Vec<Uuid> = notices.iter().map(|key| key.permit_id).collect();
        permits.sort_unstable();
        permits.dedup();
        let notices: Vec<Uuid> = notices.iter().map(|key| key.id).collect();
        let locked = lock(connection, &permits, &notices).await?;
        let over = find_over(connection, &locked, limit).await?;
        blank(connection, &over, limit).await?;
        Ok(over.len() as u64)
    }
}

/// Locks what nobody else is at; says which notices those are.
async fn lock(connection: &mut PgConnection, permits: &[Uuid], notices: &[Uuid]) -> Result<Vec<Uuid>> {
    let permits =
        sqlx::query_scalar!("SELECT id FROM permits WHERE id = ANY ($1) ORDER BY id FOR SHARE SKIP LOCKED", permits)
            .fetch_all(&mut *connection)
            .await?;
    let notices = sqlx::query_scalar!(
        "SELECT id FROM notices WHERE id = ANY ($1) AND permit_id = ANY ($2) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        notices,
        &permits,
    )
    .fetch_all(&mut *connection)
    .await?;
    lock_deliveries(connection, &notices).await?;
    Ok(notices)
}

async fn find_over(connection: &mut PgConnection, notices: &[Uuid], limit: &Limit) -> Result<Vec<Uuid>> {
    let over = sqlx::query_scalar!(
        "SELECT n.id FROM notices n
         WHERE n.id = ANY ($1) AND n.purged_at IS NULL AND n.send_by < $2
           AND n.state NOT IN ('pending', 'held', 'ambiguous')
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id
                             AND (d.state IN ('pending', 'held', 'sending', 'ambiguous') OR d.updated_at >= $3))
         ORDER BY n.id",
        notices,
        limit.day,
        limit.before,
    );
    Ok(over.fetch_all(connection).await?)
}

/// A recipient's key stays unique, and belongs to no address any more. Who posted a letter, and when, is the proof of it.
async fn blank(connection: &mut PgConnection, notices: &[Uuid], limit: &Limit) -> Result<()> {
    sqlx::query!(
        "UPDATE attempts a
         SET response = CASE WHEN a.transport = 'letter' THEN a.response ELSE without_addresses(a.response) END,
             late_result = without_addresses(a.late_result),
             resolution_reason = CASE WHEN a.resolution_reason IS NULL THEN NULL ELSE $2 END
         FROM deliveries d WHERE d.notice_id = ANY ($1) AND a.delivery_id = d.id AND a.transport <> 'file'",
        notices,
        REMOVED,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE transport
         SET policy_refusals = ARRAY (SELECT key FROM unnest(policy_refusals) AS key
                                      WHERE key NOT IN (SELECT recipient_key FROM deliveries WHERE notice_id = ANY ($1)))
         WHERE policy_refusals && ARRAY (SELECT recipient_key FROM deliveries WHERE notice_id = ANY ($1))",
        notices,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE deliveries
         SET recipient = CASE WHEN recipient IS NULL THEN NULL ELSE $2 END, recipient_name = '',
             recipient_key = CASE WHEN channel = 'letter' THEN recipient_key ELSE 'removed:' || id END,
             last_error = without_addresses(last_error)
         WHERE notice_id = ANY ($1)",
        notices,
        REMOVED,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE notices
         SET purged_at = $2, reason = CASE WHEN reason IS NULL THEN NULL
                           -- Without a code it is what a person said of a release or of one more copy.
                           WHEN reason_code IS NULL OR reason_code = 'by_person' THEN $3
                           ELSE without_addresses(reason) END,
             held_reason = CASE WHEN held_reason IS NULL THEN NULL ELSE $3 END
         WHERE id = ANY ($1)",
        notices,
        limit.now,
        REMOVED,
    )
    .execute(connection)
    .await?;
    Ok(())
}
