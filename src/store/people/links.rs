//! One-time links by which somebody sets a password.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::store::Result;

/// How long a link is taken.
pub const VALID: TimeDelta = TimeDelta::days(3);

/// For whom a link is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkFor {
    /// Whoever becomes the first administrator.
    FirstAdmin,
    /// This user.
    User {
        /// Who.
        id: Uuid,
        /// Address with which they sign in.
        email: String,
    },
}

/// Records a link, which replaces those that the same user had. `None`: it makes the first administrator, and is good
/// beside others, for each of several replicas that start together prints one.
pub async fn insert_link(
    connection: &mut PgConnection,
    hash: &[u8; 32],
    user: Option<Uuid>,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!("DELETE FROM password_links WHERE user_id = $1 OR expires_at <= $2", user, now)
        .execute(&mut *connection)
        .await?;
    sqlx::query!(
        "INSERT INTO password_links (token_sha256, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)",
        &hash[..],
        user,
        now,
        now + VALID,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// For whom the link with this secret is, if it is still taken.
pub async fn find_link(executor: impl PgExecutor<'_>, hash: &[u8; 32], now: DateTime<Utc>) -> Result<Option<LinkFor>> {
    let row = sqlx::query!(
        r#"SELECT l.user_id, u.email AS "email?" FROM password_links l LEFT JOIN users u ON u.id = l.user_id
           WHERE l.token_sha256 = $1 AND l.expires_at > $2 AND u.disabled_at IS NULL
             AND (l.user_id IS NOT NULL OR NOT EXISTS (SELECT FROM users))"#,
        &hash[..],
        now,
    )
    .fetch_optional(executor)
    .await?;
    Ok(row.map(|row| match (row.user_id, row.email) {
        (Some(id), Some(email)) => LinkFor::User { id, email },
        _ => LinkFor::FirstAdmin,
    }))
}

/// Takes a link, so that it is good no more; says whether it still was.
pub async fn take_link(connection: &mut PgConnection, hash: &[u8; 32], now: DateTime<Utc>) -> Result<bool> {
    let gone = sqlx::query!("DELETE FROM password_links WHERE token_sha256 = $1 AND expires_at > $2", &hash[..], now)
        .execute(connection)
        .await?;
    Ok(gone.rows_affected() == 1)
}
