//! Counts of what the office has before it today, each read from an index.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;

use crate::store::Result;

/// Notices of one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfState {
    pub state: String,
    pub count: i64,
}

/// The notices that are due on that day, by state.
pub async fn count_due(connection: &mut PgConnection, day: NaiveDate) -> Result<Vec<OfState>> {
    let counts = sqlx::query_as!(
        OfState,
        r#"SELECT state, count(*) AS "count!" FROM notices WHERE due_on = $1 GROUP BY state ORDER BY state"#,
        day,
    );
    Ok(counts.fetch_all(connection).await?)
}

/// Mails that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// May go now.
    pub due: i64,
    /// Wait for their day, or for their next attempt.
    pub later: i64,
}

/// How many mails wait to be sent.
pub async fn count_waiting(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<Waiting> {
    let waiting = sqlx::query_as!(
        Waiting,
        r#"SELECT count(*) FILTER (WHERE next_attempt_at <= $1) AS "due!",
                  count(*) FILTER (WHERE next_attempt_at > $1) AS "later!"
           FROM deliveries WHERE state = 'pending' AND channel = 'email'"#,
        now,
    );
    Ok(waiting.fetch_one(connection).await?)
}

/// How many mails were accepted in each of these spans of time; an end is not a part of its span.
pub async fn count_accepted(
    connection: &mut PgConnection,
    spans: &[(DateTime<Utc>, DateTime<Utc>)],
) -> Result<Vec<i64>> {
    let (starts, ends): (Vec<_>, Vec<_>) = spans.iter().copied().unzip();
    let counts = sqlx::query_scalar!(
        r#"SELECT (SELECT count(*) FROM attempts
                   WHERE outcome = 'accepted' AND transport <> 'letter'
                     AND finished_at >= span.start AND finished_at < span.stop) AS "count!"
           FROM unnest($1::timestamptz[], $2::timestamptz[]) WITH ORDINALITY AS span (start, stop, place)
           ORDER BY span.place"#,
        &starts,
        &ends,
    );
    Ok(counts.fetch_all(connection).await?)
}

/// How many active permits expire from each of these days to the other.
pub async fn count_expiring(connection: &mut PgConnection, spans: &[(NaiveDate, NaiveDate)]) -> Result<Vec<i64>> {
    let (firsts, lasts): (Vec<_>, Vec<_>) = spans.iter().copied().unzip();
    let counts = sqlx::query_scalar!(
        r#"SELECT (SELECT count(*) FROM permits
                   WHERE status = 'active' AND archived_at IS NULL
                     AND expires_on BETWEEN span.first AND span.last) AS "count!"
           FROM unnest($1::date[], $2::date[]) WITH ORDINALITY AS span (first, last, place) ORDER BY span.place"#,
        &firsts,
        &lasts,
    );
    Ok(counts.fetch_all(connection).await?)
}
