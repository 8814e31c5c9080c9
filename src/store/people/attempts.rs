//! Tries to sign in that failed: each makes the next wait longer, for the account and for where they come from.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use crate::{domain::words, store::Result};

words! {
    /// What failed tries are counted for.
    "kind of failure" Counted {
        /// An address that was typed, known or not.
        Account = "account",
        /// Where the tries came from.
        Address = "address",
    }
}

/// Failures are forgotten after so long without one.
const FORGOTTEN: TimeDelta = TimeDelta::hours(1);
/// Longest wait.
const LONGEST: TimeDelta = TimeDelta::minutes(15);

impl Counted {
    /// Tries that cost nothing: people mistype, and a whole office may come from one address.
    const fn free(self) -> i32 {
        match self {
            Self::Account => 4,
            Self::Address => 30,
        }
    }

    /// How long after the last of so many failures the next try is looked at: it doubles from a second.
    pub fn wait(self, failures: i32) -> TimeDelta {
        match failures - self.free() {
            ..=0 => TimeDelta::zero(),
            more => TimeDelta::seconds(1_i64 << (more - 1).min(20)).min(LONGEST),
        }
    }
}

/// How long still until a try is looked at.
pub async fn wait_left(
    connection: &mut PgConnection,
    counted: Counted,
    key: &str,
    now: DateTime<Utc>,
) -> Result<TimeDelta> {
    let row = sqlx::query!(
        "SELECT count, last_at FROM sign_in_failures WHERE kind = $1 AND key = $2 AND last_at > $3",
        counted.as_str(),
        key,
        now - FORGOTTEN,
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map_or(TimeDelta::zero(), |row| (row.last_at + counted.wait(row.count) - now).max(TimeDelta::zero())))
}

/// Counts a failure, before it is known whether it is one: tries that come at once are all counted.
pub async fn count_failure(
    connection: &mut PgConnection,
    counted: Counted,
    key: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    forget_old(connection, now).await?;
    sqlx::query!(
        "INSERT INTO sign_in_failures AS f (kind, key, count, last_at) VALUES ($1, $2, 1, $3)
         ON CONFLICT (kind, key) DO UPDATE SET count = f.count + 1, last_at = greatest(f.last_at, excluded.last_at)",
        counted.as_str(),
        key,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Forgets failures that were so long ago that they count no more; says how many.
pub async fn forget_old(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<u64> {
    let gone = sqlx::query!("DELETE FROM sign_in_failures WHERE last_at <= $1", now - FORGOTTEN);
    Ok(gone.execute(connection).await?.rows_affected())
}

/// Forgets the failures after a success: all of the account, and of where it came from the one that this try was.
pub async fn forget_failures(connection: &mut PgConnection, account: &str, address: &str) -> Result<()> {
    sqlx::query!("DELETE FROM sign_in_failures WHERE kind = 'account' AND key = $1", account)
        .execute(&mut *connection)
        .await?;
    sqlx::query!("DELETE FROM sign_in_failures WHERE kind = 'address' AND key = $1 AND count = 1", address)
        .execute(&mut *connection)
        .await?;
    sqlx::query!("UPDATE sign_in_failures SET count = count - 1 WHERE kind = 'address' AND key = $1", address)
        .execute(connection)
        .await?;
    Ok(())
}
