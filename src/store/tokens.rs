//! Access tokens of the API as rows.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Result, StoreError};
use crate::domain::scope::Scope;

/// A token as it is recorded; the token itself is nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// UUID version 7.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// Its last characters.
    pub hint: String,
    /// Last day on which it is taken.
    pub expires_on: Option<NaiveDate>,
    /// Who made it.
    pub created_by: String,
    /// Business time.
    pub created_at: DateTime<Utc>,
    /// Business time, within a minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Business time.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// What a new token gets.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'t> {
    /// What people call it: 1 to 100 characters.
    pub name: &'t str,
    /// What it may do.
    pub scope: Scope,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// Its last characters.
    pub hint: &'t str,
    /// Last day on which it is taken.
    pub expires_on: Option<NaiveDate>,
    /// Who makes it.
    pub by: &'t str,
}

/// Records a token; says its id.
pub async fn insert_token(executor: impl PgExecutor<'_>, token: &NewToken<'_>, now: DateTime<Utc>) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query!(
        "INSERT INTO tokens (id, name, scope, token_sha256, hint, expires_on, created_by, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        id,
        token.name,
        token.scope.as_str(),
        &token.hash[..],
        token.hint,
        token.expires_on,
        token.by,
        now,
    )
    .execute(executor)
    .await?;
    Ok(id)
}

/// The token with this hash, revoked and expired ones too.
pub async fn find_token(executor: impl PgExecutor<'_>, hash: &[u8; 32]) -> Result<Option<TokenRecord>> {
    let row = sqlx::query_as!(
        TokenRow,
        "SELECT id, name, scope, hint, expires_on, created_by, created_at, last_used_at, revoked_at
         FROM tokens WHERE token_sha256 = $1",
        &hash[..]
    )
    .fetch_optional(executor)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// One token.
pub async fn get_token(executor: impl PgExecutor<'_>, id: Uuid) -> Result<TokenRecord> {
    let row = sqlx::query_as!(
        TokenRow,
        "SELECT id, name, scope, hint, expires_on, created_by, created_at, last_used_at, revoked_at
         FROM tokens WHERE id = $1",
        id
    )
    .fetch_optional(executor)
    .await?;
    row.ok_or(StoreError::NotFound("token"))?.try_into()
}

/// Up to `limit` tokens, newest first, after the one with the id `after`.
pub async fn list_tokens(executor: impl PgExecutor<'_>, after: Option<Uuid>, limit: i64) -> Result<Vec<TokenRecord>> {
    let rows = sqlx::query_as!(
        TokenRow,
        "SELECT id, name, scope, hint, expires_on, created_by, created_at, last_used_at, revoked_at
         FROM tokens WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2",
        after,
        limit
    )
    .fetch_all(executor)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// Notes that a token was used, at most once a minute.
pub async fn touch_token(executor: impl PgExecutor<'_>, id: Uuid, now: DateTime<Utc>) -> Result<()> {
    sqlx::query!(
        "UPDATE tokens SET last_used_at = $2
         WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2::timestamptz - interval '1 minute')",
        id,
        now
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Ends a token; ending it twice changes nothing.
pub async fn revoke_token(connection: &mut PgConnection, id: Uuid, now: DateTime<Utc>) -> Result<TokenRecord> {
    sqlx::query!("UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL", id, now)
        .execute(&mut *connection)
        .await?;
    get_token(connection, id).await
}

struct TokenRow {
    id: Uuid,
    name: String,
    scope: String,
    hint: String,
    expires_on: Option<NaiveDate>,
    created_by: String,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

impl TryFrom<TokenRow> for TokenRecord {
    type Error = StoreError;

    fn try_from(row: TokenRow) -> Result<Self> {
        Ok(Self {
            id: row.id,
            name: row.name,
            scope: row.scope.parse()?,
            hint: row.hint,
            expires_on: row.expires_on,
            created_by: row.created_by,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
        })
    }
}
