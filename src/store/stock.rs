//! Counts of what is there, for metrics and reports.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Result;

/// Deliveries of one channel in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// The channel.
    pub channel: String,
    /// The state.
    pub state: String,
    /// How many.
    pub count: i64,
}

/// Counts deliveries by channel and state.
pub async fn count_deliveries(connection: &mut PgConnection) -> Result<Vec<Stock>> {
    let stock = sqlx::query_as!(
        Stock,
        r#"SELECT channel, state, count(*) AS "count!" FROM deliveries GROUP BY channel, state"#
    );
    Ok(stock.fetch_all(connection).await?)
}

/// Since when the delivery that has been due longest waits.
pub async fn oldest_pending(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    let oldest = sqlx::query_scalar!(
        "SELECT min(next_attempt_at) FROM deliveries
         WHERE state = 'pending' AND channel = 'email' AND next_attempt_at <= $1",
        now,
    );
    Ok(oldest.fetch_one(connection).await?)
}

/// How many deliveries wait to be mailed, due or not.
pub async fn count_pending(connection: &mut PgConnection) -> Result<i64> {
    let pending = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM deliveries WHERE state IN ('pending', 'sending') AND channel = 'email'"#
    );
    Ok(pending.fetch_one(connection).await?)
}
