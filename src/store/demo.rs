//! What only the demo needs: an empty database to start from, and the list it shows.

use chrono::NaiveDate;
use sqlx::{Executor, PgConnection};

use super::Result;

/// Removes everything. The demo calls this on a private server of its own, and nobody else calls it.
pub async fn empty_database(connection: &mut PgConnection) -> Result<()> {
    connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await?;
    Ok(())
}

/// One line of what was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The permit's number.
    pub permit_number: String,
    /// Its last valid day.
    pub expires_on: NaiveDate,
    /// Which notice.
    pub notice_type: String,
    /// To whom; empty for a letter.
    pub recipient: Option<String>,
    /// What became of it.
    pub state: String,
}

/// Every delivery, the earliest expiry first.
pub async fn list_mailed(connection: &mut PgConnection) -> Result<Vec<Shown>> {
    let shown = sqlx::query_as!(
        Shown,
        "SELECT p.permit_number, n.expires_on, n.notice_type, d.recipient, d.state
         FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN permits p ON p.id = n.permit_id
         ORDER BY n.expires_on, p.permit_number, d.id",
    );
    Ok(shown.fetch_all(connection).await?)
}
