//! Bringing the database up to date.
//!
//! Several replicas may start at once. sqlx's own lock waits inside a statement, which is a snapshot that can
//! deadlock with a migration, and stays behind when a migration fails. So: a connection of our own, a lock that
//! is tried and not waited for, and the connection closed in every case.

use std::time::Duration;

use sqlx::{Connection, PgConnection, migrate::Migrator};

use super::{
    connect::{Purpose, connect, said},
    facts::{TakesNoChanges, takes_no_changes},
    memory::record_marks,
};

/// Key of the advisory lock around migrations.
const LOCK: i64 = 8_099_005_319_141_944_949;
/// How long to wait for another process that migrates.
const PATIENCE: Duration = Duration::from_mins(10);

/// Why the database is not up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// Not reachable, or it refused.
    #[error("the database cannot be used: {}", said(.0))]
    Database(sqlx::Error),
    /// It can only be read.
    #[error("the database {}, so nothing can be done with it; {}", .0, .0.advice())]
    TakesNoChanges(TakesNoChanges),
    /// One migration failed; nothing of it is left.
    #[error("a migration failed: {}", said_of_migration(.0))]
    Failed(sqlx::migrate::MigrateError),
    /// Another process migrates and does not end.
    #[error("another process has been migrating this database for ten minutes")]
    Busy,
    /// The database needs a newer program.
    #[error("this database needs version {needed} of permit-notifier or newer, and this is {ours}")]
    TooOld {
        /// Oldest version it takes.
        needed: String,
        /// The version of this program.
        ours: &'static str,
    },
}

impl From<sqlx::Error> for MigrateError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<sqlx::migrate::MigrateError> for MigrateError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        Self::Failed(error)
    }
}

fn said_of_migration(error: &sqlx::migrate::MigrateError) -> String {
    match error {
        sqlx::migrate::MigrateError::Execute(error) => said(error),
        sqlx::migrate::MigrateError::ExecuteMigration(error, version) => {
            format!("while executing migration {version}: {}", said(error))
        }
        error => error.to_string(),
    }
}

/// Applies what is missing, and at the first start records by which marks this database is known; refuses one that
/// needs a newer program.
pub async fn migrate(url: &str) -> Result<(), MigrateError> {
    let mut connection = connect(url, Purpose::Bulk).await?;
    let done = migrate_on(&mut connection).await;
    // Closing gives the lock back, whatever happened.
    let _ = connection.close().await;
    done
}

async fn migrate_on(connection: &mut PgConnection) -> Result<(), MigrateError> {
    if let Some(why) = takes_no_changes(connection).await? {
        return Err(MigrateError::TakesNoChanges(why));
    }
    let mut waited = Duration::ZERO;
    while !try_lock(connection).await? {
        if waited >= PATIENCE {
            return Err(MigrateError::Busy);
        }
        let pause = Duration::from_millis(100);
        tokio::time::sleep(pause).await;
        waited += pause;
    }
    refuse_if_too_old(connection).await?;
    embedded().run(&mut *connection).await?;
    refuse_if_too_old(connection).await?;
    Ok(record_marks(connection).await?)
}

fn embedded() -> Migrator {
    let mut migrator = sqlx::migrate!();
    // A newer program may have migrated further; min_binary decides whether that is ours to use.
    migrator.set_ignore_missing(true).set_locking(false);
    migrator
}

async fn try_lock(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "had!""#, LOCK).fetch_one(connection).await
}

async fn refuse_if_too_old(connection: &mut PgConnection) -> Result<(), MigrateError> {
    outdated(connection).await?.map_or(Ok(()), Err)
}

/// Why this program may not use the database, if it or a newer program has said so there.
pub async fn outdated(connection: &mut PgConnection) -> Result<Option<MigrateError>, sqlx::Error> {
    let known = sqlx::query_scalar!(r#"SELECT to_regclass('installation') IS NOT NULL AS "known!""#)
        .fetch_one(&mut *connection)
        .await?;
    if !known {
        return Ok(None);
    }
    let needed = sqlx::query_scalar!("SELECT min_binary FROM installation").fetch_optional(connection).await?;
    let ours = env!("CARGO_PKG_VERSION");
    let newer = needed.filter(|needed| parts(needed) > parts(ours));
    Ok(newer.map(|needed| MigrateError::TooOld { needed, ours }))
}

/// The numbers of a version, comparable.
fn parts(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0)).collect()
}

/// Whether every migration of this program is applied, and the database does not need a newer program.
pub async fn is_up_to_date(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let Some(newest) = embedded().iter().map(|migration| migration.version).max() else { return Ok(true) };
    let known = sqlx::query_scalar!(r#"SELECT to_regclass('_sqlx_migrations') IS NOT NULL AS "known!""#)
        .fetch_one(&mut *connection)
        .await?;
    if !known {
        return Ok(false);
    }
    // Not a checked query: the table is sqlx's own and absent while queries are prepared.
    let applied: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM _sqlx_migrations WHERE version = $1 AND success)")
            .bind(newest)
            .fetch_one(&mut *connection)
            .await?;
    Ok(applied && outdated(connection).await?.is_none())
}

/// A migration that was applied with another text than this program has, which then refuses to start. `true` from
/// [`is_up_to_date`] says nothing of it.
pub async fn altered(connection: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
    // Not a checked query, as above.
    let applied: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT version, checksum FROM _sqlx_migrations ORDER BY version").fetch_all(connection).await?;
    let ours = embedded();
    let differs = |(version, checksum): &(i64, Vec<u8>)| {
        ours.iter().any(|own| own.version == *version && *own.checksum != **checksum)
    };
    Ok(applied.iter().find(|one| differs(one)).map(|(version, _)| *version))
}

/// The embedded migrations in order, as (version, SQL); for tests that replay sample data through each.
pub fn migrations() -> Vec<(i64, String)> {
    embedded().iter().map(|migration| (migration.version, migration.sql.as_str().to_owned())).collect()
}
