//! What is kept for a short while only, whatever is to be kept: answers for repeated requests, rows of imports that broke
//! off, and counts of failed sign-ins. Whoever uses them removes them in passing; these are the rest.

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};

use super::{Kind, Limit, end};
use crate::store::{Result, idempotency::KEPT, imports::staging, people::attempts};

/// Answers that were kept for requests with an `Idempotency-Key`, by the time at which they were given.
#[derive(Debug)]
pub struct Answers;

impl Kind for Answers {
    type Key = DateTime<Utc>;
    const NAME: &'static str = "answers";

    async fn find(
        connection: &mut PgConnection,
        after: Option<&DateTime<Utc>>,
        limit: &Limit,
    ) -> Result<Vec<DateTime<Utc>>> {
        let times = sqlx::query_scalar!(
            "SELECT created_at FROM idempotency_keys WHERE created_at > $1 AND created_at < $2
             ORDER BY created_at LIMIT 1000",
            after.copied().unwrap_or_default(),
            limit.now - KEPT,
        );
        Ok(times.fetch_all(connection).await?)
    }

    /// A request that uses its key anew at this moment is left alone.
    async fn remove(connection: &mut PgConnection, times: &[DateTime<Utc>], _: &Limit) -> Result<u64> {
        let gone = sqlx::query!(
            "DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY (
                 SELECT ctid FROM idempotency_keys WHERE created_at BETWEEN $1 AND $2 FOR UPDATE SKIP LOCKED))",
            times.first().copied().unwrap_or_default(),
            times.last().copied().unwrap_or_default(),
        );
        Ok(gone.execute(connection).await?.rows_affected())
    }
}

/// Rows of files that no living import has.
pub async fn purge_staging(connection: &mut PgConnection, limit: &Limit) -> Result<u64> {
    let mut transaction = connection.begin().await?;
    let gone = staging::remove_orphans(&mut transaction).await?;
    end(transaction, limit).await?;
    Ok(gone)
}

/// Addresses that were typed, and places, of tries to sign in that make nobody wait any more.
pub async fn purge_failures(connection: &mut PgConnection, limit: &Limit) -> Result<u64> {
    let mut transaction = connection.begin().await?;
    let gone = attempts::forget_old(&mut transaction, limit.now).await?;
    end(transaction, limit).await?;
    Ok(gone)
}
