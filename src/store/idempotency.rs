//! Answers kept for repeated requests, each written in the transaction of the request itself: a crash takes back both.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Result;

/// How long an answer is kept.
pub const KEPT: TimeDelta = TimeDelta::days(7);
/// How long a request waits for the first one with its key.
const WAITS: &str = "30s";

/// Which request it is.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// Who asks.
    pub token_id: Uuid,
    /// HTTP method.
    pub method: String,
    /// Path.
    pub path: String,
    /// What the caller calls it; 1 to 255 characters.
    pub key: String,
}

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// HTTP status.
    pub status: u16,
    /// Headers that belong to the answer.
    pub headers: Value,
    /// Body.
    pub body: Vec<u8>,
}

/// What is known of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Nothing: it is ours to do now, until the transaction ends.
    New,
    /// It was done.
    Answered(KeptAnswer),
    /// The key was used for another request.
    Reused,
    /// The first request still runs, and longer than anybody waits.
    StillRunning,
}

/// Takes the key inside a transaction. Waits up to 30 s while the first request with it runs.
pub async fn take_key(
    transaction: &mut PgConnection,
    request: &RequestKey,
    sha256: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Known> {
    let before = sqlx::query_scalar!(r#"SELECT current_setting('lock_timeout') AS "before!""#)
        .fetch_one(&mut *transaction)
        .await?;
    wait_for_locks(transaction, WAITS).await?;
    let taken = insert_key(transaction, request, sha256, now).await;
    match taken {
        Ok(true) => {
            wait_for_locks(transaction, &before).await?;
            Ok(Known::New)
        }
        Ok(false) => find_answer(transaction, request, sha256).await,
        Err(error) if super::imports::was_in_the_way(&error) => Ok(Known::StillRunning),
        Err(error) => Err(error),
    }
}

/// Until the end of the transaction.
async fn wait_for_locks(transaction: &mut PgConnection, limit: &str) -> Result<()> {
    sqlx::query!(r#"SELECT set_config('lock_timeout', $1, true) AS "set!""#, limit).fetch_one(transaction).await?;
    Ok(())
}

/// Whether the key was free.
async fn insert_key(
    transaction: &mut PgConnection,
    request: &RequestKey,
    sha256: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<bool> {
    sqlx::query!(
        "DELETE FROM idempotency_keys
         WHERE token_id = $1 AND method = $2 AND path = $3 AND key = $4 AND created_at < $5",
        request.token_id,
        request.method,
        request.path,
        request.key,
        now - KEPT,
    )
    .execute(&mut *transaction)
    .await?;
    let inserted = sqlx::query!(
        "INSERT INTO idempotency_keys (token_id, method, path, key, request_sha256, created_at)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
        request.token_id,
        request.method,
        request.path,
        request.key,
        &sha256[..],
        now,
    );
    Ok(inserted.execute(transaction).await?.rows_affected() == 1)
}

async fn find_answer(transaction: &mut PgConnection, request: &RequestKey, sha256: &[u8; 32]) -> Result<Known> {
    let row = sqlx::query!(
        "SELECT request_sha256, status, headers, body FROM idempotency_keys
         WHERE token_id = $1 AND method = $2 AND path = $3 AND key = $4",
        request.token_id,
        request.method,
        request.path,
        request.key,
    )
    .fetch_optional(transaction)
    .await?;
    // Gone between the two statements: it had just become too old.
    let Some(row) = row else { return Ok(Known::StillRunning) };
    if row.request_sha256 != sha256 {
        return Ok(Known::Reused);
    }
    let status = row.status.and_then(|status| u16::try_from(status).ok()).unwrap_or(500);
    Ok(Known::Answered(KeptAnswer { status, headers: row.headers, body: row.body }))
}

/// Keeps the answer, and forgets some that are too old.
pub async fn keep_answer(
    transaction: &mut PgConnection,
    request: &RequestKey,
    answer: &KeptAnswer,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE idempotency_keys SET status = $5, headers = $6, body = $7
         WHERE token_id = $1 AND method = $2 AND path = $3 AND key = $4",
        request.token_id,
        request.method,
        request.path,
        request.key,
        i32::from(answer.status),
        answer.headers,
        &answer.body[..],
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY (
             SELECT ctid FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at
             LIMIT 20 FOR UPDATE SKIP LOCKED))",
        now - KEPT,
    )
    .execute(transaction)
    .await?;
    Ok(())
}
