//! Addresses that must not be mailed.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Result, StoreError, lists::containing};
use crate::domain::recipient::SuppressionClass;

/// Suppresses an address that a mail server said does not exist; one that is suppressed already stays as it is.
pub async fn suppress_refused(
    connection: &mut PgConnection,
    address_key: &str,
    words: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO suppressions (id, address, class, reason, source, created_at)
         VALUES ($1, $2, 'all', $3, 'refused', $4) ON CONFLICT (address, class) DO NOTHING",
        Uuid::now_v7(),
        address_key,
        words,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A suppression as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionRow {
    /// UUID version 7.
    pub id: Uuid,
    /// In lower case.
    pub address: String,
    /// Nothing at all, or no courtesies.
    pub class: String,
    /// Why, in words.
    pub reason: String,
    /// What wrote it: `refused`, or who.
    pub source: String,
    /// Business time.
    pub created_at: DateTime<Utc>,
}

/// Up to `limit` suppressions before the one with the id `after`, newest first; those with `part` in the address.
pub async fn list_suppressions(
    connection: &mut PgConnection,
    part: Option<&str>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<SuppressionRow>> {
    let rows = sqlx::query_as!(
        SuppressionRow,
        "SELECT id, address, class, reason, source, created_at FROM suppressions
         WHERE ($1::uuid IS NULL OR id < $1) AND ($3::text IS NULL OR address LIKE $3) ORDER BY id DESC LIMIT $2",
        after,
        limit,
        part.map(|part| containing(&part.to_lowercase())),
    );
    Ok(rows.fetch_all(connection).await?)
}

/// Suppresses an address. Says the suppression, and whether it is new; one that is there stays as it is.
pub async fn suppress(
    connection: &mut PgConnection,
    address_key: &str,
    class: SuppressionClass,
    reason: &str,
    source: &str,
    now: DateTime<Utc>,
) -> Result<(SuppressionRow, bool)> {
    let made = sqlx::query!(
        "INSERT INTO suppressions (id, address, class, reason, source, created_at)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (address, class) DO NOTHING",
        Uuid::now_v7(),
        address_key,
        class.as_str(),
        reason,
        source,
        now,
    )
    .execute(&mut *connection)
    .await?
    .rows_affected();
    let row = sqlx::query_as!(
        SuppressionRow,
        "SELECT id, address, class, reason, source, created_at FROM suppressions WHERE address = $1 AND class = $2",
        address_key,
        class.as_str(),
    );
    Ok((row.fetch_one(connection).await?, made == 1))
}

/// Lets an address be mailed again, and says what was suppressed. What was not sent meanwhile stays so until somebody
/// retries it.
pub async fn lift_suppression(connection: &mut PgConnection, id: Uuid) -> Result<SuppressionRow> {
    let row = sqlx::query_as!(
        SuppressionRow,
        "DELETE FROM suppressions WHERE id = $1 RETURNING id, address, class, reason, source, created_at",
        id,
    );
    row.fetch_optional(connection).await?.ok_or(StoreError::NotFound("suppression"))
}
