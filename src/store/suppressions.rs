//! Addresses that must not be mailed.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Result;

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
