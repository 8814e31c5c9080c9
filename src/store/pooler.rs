//! Whether a URL leads through a transaction pooler, which gives each transaction whatever server process is free.
//!
//! Through one the scan's lock would belong to nobody, notifications would not be heard, and prepared statements would
//! meet those of others. No answer of the server tells it, so it is tried out: while another session is in a
//! transaction, a session of our own must still be served by its own process, and by no other.

use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection, Row};

use super::connect::connect_bare;

/// Other clients of a busy pooler may hide it in one round, hardly in all.
const ROUNDS: usize = 3;
/// A session with a process of its own answers at once; one of a pooler whose last process is taken waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Limits of the transaction only: others may be given the same server process after it.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = '15s'; SET LOCAL lock_timeout = '10s';
                     SET LOCAL idle_in_transaction_session_timeout = '30s'";

/// Whether sessions opened under `url` share server processes.
pub async fn is_pooled(url: &str) -> Result<bool, sqlx::Error> {
    match try_out(url).await {
        Err(error) if speaks_as_pooler(&error) => Ok(true),
        tried => tried,
    }
}

async fn try_out(url: &str) -> Result<bool, sqlx::Error> {
    let mut ours = connect_bare(url).await?;
    let process = server_process(&mut ours).await?;
    for _ in 0..ROUNDS {
        let mut other = connect_bare(url).await?;
        other.execute(sqlx::raw_sql(BEGIN)).await?;
        let taken = server_process(&mut other).await?;
        let Ok(again) = tokio::time::timeout(PATIENCE, server_process(&mut ours)).await else { return Ok(true) };
        if again? != process || taken == process {
            return Ok(true);
        }
        let _ = other.close().await;
    }
    let _ = ours.close().await;
    Ok(false)
}

/// As text, because a prepared statement may be prepared in one process and used in another.
async fn server_process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    connection.fetch_one(sqlx::raw_sql("SELECT pg_backend_pid()")).await?.try_get(0)
}

/// What a server never says: that it does not take a setting with the connection, or no transactions.
fn speaks_as_pooler(error: &sqlx::Error) -> bool {
    let said = error.as_database_error().map(sqlx::error::DatabaseError::message).unwrap_or_default();
    said.contains("unsupported startup parameter") || said.contains("statement pooling mode")
}
