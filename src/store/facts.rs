//! Facts about the database server itself.

use chrono::{DateTime, NaiveDateTime, Utc};
use sqlx::PgConnection;

use super::Result;

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its version in words.
    pub version: String,
    /// Its version as a number, such as 150018.
    pub version_number: i32,
    /// Settings that must be on, and whether they are.
    pub durability: [(&'static str, bool); 3],
}

/// Asks the server about itself.
pub async fn server_facts(connection: &mut PgConnection) -> Result<ServerFacts> {
    let row = sqlx::query!(
        r#"SELECT current_setting('server_version') AS "version!",
                  current_setting('server_version_num')::int AS "number!",
                  current_setting('fsync') = 'on' AS "fsync!",
                  current_setting('full_page_writes') = 'on' AS "full_page_writes!",
                  current_setting('synchronous_commit') <> 'off' AS "synchronous_commit!""#
    )
    .fetch_one(connection)
    .await?;
    Ok(ServerFacts {
        version: row.version,
        version_number: row.number,
        durability: [
            ("fsync", row.fsync),
            ("full_page_writes", row.full_page_writes),
            ("synchronous_commit", row.synchronous_commit),
        ],
    })
}

/// What the clocks of a zone show at these instants, by the database's own rules.
pub async fn local_times(
    connection: &mut PgConnection,
    zone: &str,
    instants: &[DateTime<Utc>],
) -> Result<Vec<NaiveDateTime>> {
    let shown = sqlx::query_scalar!(
        r#"SELECT at AT TIME ZONE $2 AS "shown!" FROM unnest($1::timestamptz[]) WITH ORDINALITY AS instants (at, place)
           ORDER BY place"#,
        instants,
        zone,
    );
    Ok(shown.fetch_all(connection).await?)
}
