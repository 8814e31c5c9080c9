//! The connection that a request works on: one of the pool, or a transaction around the whole request.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use sqlx::{Connection, PgConnection, PgPool, Postgres, Transaction, pool::PoolConnection};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::Result;

/// A transaction around a request, so that what the request writes and the answer that is kept for it are recorded
/// together or not at all. What works inside it may begin transactions of its own; they become savepoints.
#[derive(Debug)]
pub struct Unit(Transaction<'static, Postgres>);

impl Unit {
    /// Begins one.
    pub async fn begin(pool: &PgPool) -> Result<Self> {
        Ok(Self(pool.begin().await?))
    }

    /// The connection, in the transaction.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }

    /// Marks the place to which [`take_back`](Self::take_back) returns.
    pub async fn mark(&mut self) -> Result<()> {
        sqlx::query!("SAVEPOINT request").execute(&mut *self.0).await?;
        Ok(())
    }

    /// Lets the transaction wait for work that is done elsewhere; its connection ends with its process all the same.
    pub async fn may_idle(&mut self) -> Result<()> {
        sqlx::query!(r#"SELECT set_config('idle_in_transaction_session_timeout', '2h', true) AS "set!""#)
            .fetch_one(&mut *self.0)
            .await?;
        Ok(())
    }

    /// Takes back everything since the mark.
    pub async fn take_back(&mut self) -> Result<()> {
        sqlx::query!("ROLLBACK TO SAVEPOINT request").execute(&mut *self.0).await?;
        Ok(())
    }

    /// Records everything.
    pub async fn commit(self) -> Result<()> {
        Ok(self.0.commit().await?)
    }

    /// Takes back everything.
    pub async fn rollback(self) -> Result<()> {
        Ok(self.0.rollback().await?)
    }
}

/// A transaction, or inside one a savepoint, that is taken back unless it is committed: to find out what would happen,
/// or to answer with what was written before anybody else can change it.
pub async fn begin(connection: &mut PgConnection) -> Result<Transaction<'_, Postgres>> {
    Ok(connection.begin().await?)
}

/// A transaction in which all that is read is of one moment, so that a notice does not contradict its deliveries.
/// Inside another transaction it is only a part of that one.
pub async fn snapshot(connection: &mut PgConnection) -> Result<Transaction<'_, Postgres>> {
    if connection.is_in_transaction() {
        return begin(connection).await;
    }
    Ok(connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
}

/// What a request works on.
#[derive(Debug)]
pub enum Session {
    /// A connection of the pool; each change is a transaction of its own.
    Pooled(PoolConnection<Postgres>),
    /// The request's own transaction.
    Unit(OwnedMutexGuard<Unit>),
}

impl Session {
    /// A connection of the pool.
    pub async fn pooled(pool: &PgPool) -> Result<Self> {
        Ok(Self::Pooled(pool.acquire().await?))
    }

    /// The transaction around the request, as soon as nobody else uses it.
    pub async fn of(unit: Arc<Mutex<Unit>>) -> Self {
        Self::Unit(unit.lock_owned().await)
    }
}

impl Deref for Session {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Pooled(connection) => connection,
            Self::Unit(unit) => &unit.0,
        }
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Pooled(connection) => connection,
            Self::Unit(unit) => &mut unit.0,
        }
    }
}
