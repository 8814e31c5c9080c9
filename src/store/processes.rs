//! Process rows: who is alive, by the database's clock alone.

use sqlx::PgConnection;
use uuid::Uuid;

use super::Result;

/// A process that comes to life.
#[derive(Debug, Clone)]
pub struct NewProcess {
    /// Random identity of this life.
    pub boot_id: Uuid,
    /// Machine and process, for people.
    pub host: String,
    /// What it does.
    pub roles: String,
    /// Zone, schedule, From, public URL and version.
    pub fingerprint: String,
    /// After how many seconds without renewal it is dead.
    pub lease_seconds: i32,
}

/// Records a process.
pub async fn register_process(connection: &mut PgConnection, process: &NewProcess) -> Result<()> {
    sqlx::query!(
        "INSERT INTO processes (boot_id, host, roles, version, fingerprint, lease_seconds)
         VALUES ($1, $2, $3, $4, $5, $6)",
        process.boot_id,
        process.host,
        process.roles,
        env!("CARGO_PKG_VERSION"),
        process.fingerprint,
        process.lease_seconds,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether the others take a process for alive.
pub async fn is_alive(connection: &mut PgConnection, boot_id: Uuid) -> Result<bool> {
    let alive =
        sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM living_processes WHERE boot_id = $1) AS "alive!""#, boot_id);
    Ok(alive.fetch_one(connection).await?)
}

/// How many processes are alive.
pub async fn count_living(connection: &mut PgConnection) -> Result<i64> {
    Ok(sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM living_processes"#).fetch_one(connection).await?)
}

/// Renews a process; `false` if it is dead, which it then stays.
pub async fn renew_process(connection: &mut PgConnection, boot_id: Uuid) -> Result<bool> {
    let renewed = sqlx::query!(
        "UPDATE processes SET renewed_at = clock_timestamp()
         WHERE boot_id = $1 AND boot_id IN (SELECT boot_id FROM living_processes)",
        boot_id
    );
    Ok(renewed.execute(connection).await?.rows_affected() == 1)
}

/// Marks an orderly end: what it still holds is free at once.
pub async fn end_process(connection: &mut PgConnection, boot_id: Uuid) -> Result<()> {
    sqlx::query!("UPDATE processes SET ended_at = clock_timestamp() WHERE boot_id = $1 AND ended_at IS NULL", boot_id)
        .execute(connection)
        .await?;
    Ok(())
}
