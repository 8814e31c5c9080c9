//! Time: the database's clock, and the offset from it to business time.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgConnection, PgExecutor};

/// The database's clock.
pub async fn database_now(executor: impl PgExecutor<'_>) -> Result<DateTime<Utc>, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(executor).await
}

/// The offset from database time to business time for a value of `CLOCK`. The first process that meets the
/// value makes it; all that come later share it.
pub async fn business_offset(
    connection: &mut PgConnection,
    setting: &str,
    starts_at: DateTime<Utc>,
) -> Result<TimeDelta, sqlx::Error> {
    sqlx::query!(
        "INSERT INTO business_clocks (setting, offset_micros)
         VALUES ($1, (extract(epoch FROM ($2::timestamptz - clock_timestamp())) * 1000000)::bigint)
         ON CONFLICT (setting) DO NOTHING",
        setting,
        starts_at,
    )
    .execute(&mut *connection)
    .await?;
    let micros = sqlx::query_scalar!("SELECT offset_micros FROM business_clocks WHERE setting = $1", setting)
        .fetch_one(connection)
        .await?;
    Ok(TimeDelta::microseconds(micros))
}
