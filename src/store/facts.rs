//! Facts about the database server itself, and about what it lets our account do.

use std::fmt;

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
    /// In which the database keeps texts.
    pub encoding: String,
}

/// Asks the server about itself.
pub async fn server_facts(connection: &mut PgConnection) -> Result<ServerFacts> {
    let row = sqlx::query!(
        r#"SELECT current_setting('server_version') AS "version!",
                  current_setting('server_version_num')::int AS "number!",
                  current_setting('fsync') = 'on' AS "fsync!",
                  current_setting('full_page_writes') = 'on' AS "full_page_writes!",
                  current_setting('synchronous_commit') <> 'off' AS "synchronous_commit!",
                  current_setting('server_encoding') AS "encoding!""#
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
        encoding: row.encoding,
    })
}

/// Why a database can only be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesNoChanges {
    /// It follows another one.
    Standby,
    /// By a setting.
    ReadOnly,
}

impl TakesNoChanges {
    /// What to do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Standby => "let DATABASE_URL lead to the primary",
            Self::ReadOnly => "switch default_transaction_read_only off, for the server, the database and the account",
        }
    }
}

/// The end of a sentence about the database.
impl fmt::Display for TakesNoChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standby => "is a standby, which takes no changes",
            Self::ReadOnly => "is read-only",
        })
    }
}

/// Whether the database can only be read, and why.
pub async fn takes_no_changes(connection: &mut PgConnection) -> Result<Option<TakesNoChanges>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT pg_is_in_recovery() AS "standby!", current_setting('transaction_read_only') = 'on' AS "read_only!""#
    )
    .fetch_one(connection)
    .await?;
    Ok(match (row.standby, row.read_only) {
        (true, _) => Some(TakesNoChanges::Standby),
        (false, true) => Some(TakesNoChanges::ReadOnly),
        (false, false) => None,
    })
}

/// What our account may do. Names are quoted as statements need them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFacts {
    /// Its name.
    pub account: String,
    /// Where its tables are made; none if no schema that it may use is on its path.
    pub schema: Option<String>,
    /// Whether it may make tables there.
    pub may_create: bool,
    /// Whether it sees what sessions of others do.
    pub sees_others: bool,
    /// How many connections it may have at most, other accounts' included.
    pub connections: i64,
}

/// Asks the server what our account may do. Limits of the database and of the account do not bind a superuser.
pub async fn account_facts(connection: &mut PgConnection) -> Result<AccountFacts> {
    let facts = sqlx::query_as!(
        AccountFacts,
        r#"SELECT quote_ident(current_user::text) AS "account!", quote_ident(current_schema()::text) AS schema,
                  coalesce(has_schema_privilege(current_schema()::text, 'CREATE'), false) AS "may_create!",
                  r.rolsuper OR pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS "sees_others!",
                  least(current_setting('max_connections')::bigint
                            - current_setting('superuser_reserved_connections')::bigint
                            - coalesce(current_setting('reserved_connections', true)::bigint, 0),
                        CASE WHEN d.datconnlimit >= 0 AND NOT r.rolsuper THEN d.datconnlimit::bigint END,
                        CASE WHEN r.rolconnlimit >= 0 AND NOT r.rolsuper THEN r.rolconnlimit::bigint END)
                      AS "connections!"
           FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()"#
    );
    Ok(facts.fetch_one(connection).await?)
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
