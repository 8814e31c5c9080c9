//! The single-flight lock of the scan.
//!
//! It lives on a connection of its own, and the whole scan runs on that connection: losing the lock is losing
//! the connection, so a scan that lost it cannot write.

use sqlx::{Connection, PgConnection, Postgres, Transaction};

use super::{
    Result,
    claims::Authority,
    connect::{Purpose, RELEASE_LIMIT, connect, in_time},
};

/// Key of the lock, the same for every version.
pub const LOCK: i64 = 8_099_005_319_141_944_948;

/// The lock, held as long as this lives.
#[derive(Debug)]
pub struct ScanLock {
    connection: PgConnection,
    authority: Authority,
}

impl ScanLock {
    /// Opens a connection and tries to take the lock; `None` if another session holds it.
    pub async fn try_take(url: &str) -> Result<Option<Self>> {
        let mut connection = connect(url, Purpose::Scan).await?;
        let taking = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "had!""#, LOCK);
        let had = in_time(async { Ok(taking.fetch_one(&mut connection).await?) }).await?;
        if had {
            return Ok(Some(Self { connection, authority: Authority::new() }));
        }
        let _ = connection.close().await;
        Ok(None)
    }

    /// The connection that holds the lock, for reading and for rows about the scan itself.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// A transaction on that connection with the proof that claiming asks for.
    pub async fn begin(&mut self) -> Result<(Transaction<'_, Postgres>, &Authority)> {
        Ok((self.connection.begin().await?, &self.authority))
    }

    /// Gives the lock back and closes the connection. Closing alone would do, but the server does it in its own
    /// time, and whoever comes right after would find the lock held. A connection that says nothing is dropped.
    pub async fn release(mut self) {
        let unlocked = sqlx::query_scalar!(r#"SELECT pg_advisory_unlock($1) AS "had!""#, LOCK);
        let _ = tokio::time::timeout(RELEASE_LIMIT, async {
            let _ = unlocked.fetch_one(&mut self.connection).await;
            let _ = self.connection.close().await;
        })
        .await;
    }
}
