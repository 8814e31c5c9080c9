//! Users as rows.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::{
    domain::role::Role,
    store::{Result, StoreError},
};

/// A user as recorded; the password is nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRecord {
    /// UUID version 7.
    pub id: Uuid,
    /// Address with which they sign in.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Whether they have set a password.
    pub has_password: bool,
    /// Who added them.
    pub created_by: String,
    /// Business time.
    pub created_at: DateTime<Utc>,
    /// Business time.
    pub last_sign_in_at: Option<DateTime<Utc>>,
    /// Business time; they cannot sign in from then on.
    pub disabled_at: Option<DateTime<Utc>>,
}

/// By what an address is unique.
pub fn email_key(email: &str) -> String {
    email.trim().to_lowercase()
}

/// Adds a user, or gives a known one this role and lets them in again: who calls it has seen that it may be so. Says
/// the user, and whether they are new.
pub async fn add_user(
    connection: &mut PgConnection,
    email: &str,
    role: Role,
    by: &str,
    now: DateTime<Utc>,
) -> Result<(UserRecord, bool)> {
    let id = Uuid::now_v7();
    let key = email_key(email);
    sqlx::query!(
        "INSERT INTO users (id, email, email_key, role, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (email_key) DO UPDATE SET role = excluded.role, disabled_at = NULL",
        id,
        email,
        key,
        role.as_str(),
        by,
        now,
    )
    .execute(&mut *connection)
    .await?;
    let user =
        sqlx::query_scalar!("SELECT id FROM users WHERE email_key = $1", key).fetch_one(&mut *connection).await?;
    Ok((get_user(connection, user).await?, user == id))
}

/// Whether anybody can be an administrator here already.
pub async fn is_nobody(executor: impl PgExecutor<'_>) -> Result<bool> {
    Ok(sqlx::query_scalar!(r#"SELECT NOT EXISTS (SELECT FROM users) AS "nobody!""#).fetch_one(executor).await?)
}

/// Lets one caller at a time make the first administrator, until the transaction ends.
pub async fn lock_users(connection: &mut PgConnection) -> Result<()> {
    sqlx::query!("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE").execute(connection).await?;
    Ok(())
}

/// One user.
pub async fn get_user(executor: impl PgExecutor<'_>, id: Uuid) -> Result<UserRecord> {
    let row = sqlx::query_as!(
        UserRow,
        r#"SELECT id, email, role, password_hash IS NOT NULL AS "has_password!", created_by, created_at, last_sign_in_at,
                  disabled_at
           FROM users WHERE id = $1"#,
        id
    );
    row.fetch_optional(executor).await?.ok_or(StoreError::NotFound("user"))?.try_into()
}

/// The user with this address, disabled or not.
pub async fn find_user(executor: impl PgExecutor<'_>, email: &str) -> Result<Option<UserRecord>> {
    let row = sqlx::query_as!(
        UserRow,
        r#"SELECT id, email, role, password_hash IS NOT NULL AS "has_password!", created_by, created_at, last_sign_in_at,
                  disabled_at
           FROM users WHERE email_key = $1"#,
        email_key(email)
    );
    row.fetch_optional(executor).await?.map(TryInto::try_into).transpose()
}

/// All users, by address.
pub async fn list_users(executor: impl PgExecutor<'_>) -> Result<Vec<UserRecord>> {
    let rows = sqlx::query_as!(
        UserRow,
        r#"SELECT id, email, role, password_hash IS NOT NULL AS "has_password!", created_by, created_at, last_sign_in_at,
                  disabled_at
           FROM users ORDER BY email_key"#
    );
    rows.fetch_all(executor).await?.into_iter().map(TryInto::try_into).collect()
}

/// Who signs in with this address, and what is kept of the password. Whoever is disabled is nobody.
pub async fn find_sign_in(executor: impl PgExecutor<'_>, email: &str) -> Result<Option<(Uuid, Option<String>)>> {
    let row = sqlx::query!(
        "SELECT id, password_hash FROM users WHERE email_key = $1 AND disabled_at IS NULL",
        email_key(email)
    );
    Ok(row.fetch_optional(executor).await?.map(|row| (row.id, row.password_hash)))
}

/// Keeps a new password.
pub async fn set_password(executor: impl PgExecutor<'_>, user: Uuid, hash: &str) -> Result<()> {
    sqlx::query!("UPDATE users SET password_hash = $2 WHERE id = $1", user, hash).execute(executor).await?;
    Ok(())
}

/// Gives a user another role.
pub async fn set_role(executor: impl PgExecutor<'_>, user: Uuid, role: Role) -> Result<()> {
    sqlx::query!("UPDATE users SET role = $2 WHERE id = $1", user, role.as_str()).execute(executor).await?;
    Ok(())
}

/// Shuts a user out from `now` on, or lets them in again.
pub async fn set_disabled(executor: impl PgExecutor<'_>, user: Uuid, since: Option<DateTime<Utc>>) -> Result<()> {
    sqlx::query!("UPDATE users SET disabled_at = $2 WHERE id = $1", user, since).execute(executor).await?;
    Ok(())
}

/// Administrators who can sign in, besides this one.
async fn count_other_admins(executor: impl PgExecutor<'_>, user: Uuid) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM users
           WHERE role = 'admin' AND disabled_at IS NULL AND password_hash IS NOT NULL AND id <> $1"#,
        user
    );
    Ok(count.fetch_one(executor).await?)
}

/// Whether nobody could let anybody in again without this administrator.
pub async fn is_last_admin(executor: impl PgExecutor<'_>, user: &UserRecord) -> Result<bool> {
    Ok(user.role == Role::Admin && count_other_admins(executor, user.id).await? == 0)
}

struct UserRow {
    id: Uuid,
    email: String,
    role: String,
    has_password: bool,
    created_by: String,
    created_at: DateTime<Utc>,
    last_sign_in_at: Option<DateTime<Utc>>,
    disabled_at: Option<DateTime<Utc>>,
}

impl TryFrom<UserRow> for UserRecord {
    type Error = StoreError;

    fn try_from(row: UserRow) -> Result<Self> {
        Ok(Self {
            id: row.id,
            email: row.email,
            role: row.role.parse()?,
            has_password: row.has_password,
            created_by: row.created_by,
            created_at: row.created_at,
            last_sign_in_at: row.last_sign_in_at,
            disabled_at: row.disabled_at,
        })
    }
}
