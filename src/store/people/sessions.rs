//! Browsers in which somebody is signed in.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::{domain::role::Role, store::Result};

/// A session that nobody uses ends after so long.
pub const IDLE: TimeDelta = TimeDelta::hours(2);
/// However it is used, a session ends after so long: a working day.
pub const WHOLE: TimeDelta = TimeDelta::hours(12);

/// Who is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The session.
    pub session: Uuid,
    /// The user.
    pub user: Uuid,
    /// Address of the user.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Whether the session was last noted as used more than a minute ago.
    pub is_unnoted: bool,
}

/// Begins a session, and forgets those that have ended.
pub async fn begin_session(
    connection: &mut PgConnection,
    user: Uuid,
    hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!("DELETE FROM sessions WHERE created_at <= $1 OR last_seen_at <= $2", now - WHOLE, now - IDLE)
        .execute(&mut *connection)
        .await?;
    sqlx::query!(
        "INSERT INTO sessions (id, user_id, token_sha256, created_at, last_seen_at) VALUES ($1, $2, $3, $4, $4)",
        Uuid::now_v7(),
        user,
        &hash[..],
        now,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("UPDATE users SET last_sign_in_at = $2 WHERE id = $1", user, now).execute(connection).await?;
    Ok(())
}

/// Who is signed in with this secret, if the session has not ended and the user is not shut out.
pub async fn find_session(
    executor: impl PgExecutor<'_>,
    hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Option<SignedIn>> {
    let row = sqlx::query!(
        r#"SELECT s.id, s.user_id, s.last_seen_at, u.email, u.role FROM sessions s JOIN users u ON u.id = s.user_id
           WHERE s.token_sha256 = $1 AND s.created_at > $2 AND s.last_seen_at > $3 AND u.disabled_at IS NULL"#,
        &hash[..],
        now - WHOLE,
        now - IDLE,
    )
    .fetch_optional(executor)
    .await?;
    row.map(|row| {
        Ok(SignedIn {
            session: row.id,
            user: row.user_id,
            email: row.email,
            role: row.role.parse()?,
            is_unnoted: row.last_seen_at < now - TimeDelta::minutes(1),
        })
    })
    .transpose()
}

/// Notes that a session is used.
pub async fn touch_session(executor: impl PgExecutor<'_>, session: Uuid, now: DateTime<Utc>) -> Result<()> {
    sqlx::query!("UPDATE sessions SET last_seen_at = $2 WHERE id = $1 AND last_seen_at < $2", session, now)
        .execute(executor)
        .await?;
    Ok(())
}

/// Ends one session.
pub async fn end_session(executor: impl PgExecutor<'_>, session: Uuid) -> Result<()> {
    sqlx::query!("DELETE FROM sessions WHERE id = $1", session).execute(executor).await?;
    Ok(())
}

/// Ends all sessions of a user; says how many.
pub async fn end_sessions(executor: impl PgExecutor<'_>, user: Uuid) -> Result<u64> {
    Ok(sqlx::query!("DELETE FROM sessions WHERE user_id = $1", user).execute(executor).await?.rows_affected())
}
