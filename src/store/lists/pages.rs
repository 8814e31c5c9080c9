//! All permits of a filter as they were at one moment, page by page.

use chrono::NaiveDate;
use sqlx::{Connection, PgConnection};

use super::permits::{After, PermitFilter, PermitRow, list_permits};
use crate::store::{
    Result,
    connect::{Purpose, connect},
};

/// Permits read at once.
const PAGE: i64 = 500;

/// What is left to read, on a connection of its own. While it is not asked for a page the database cannot tidy up
/// behind it, and ends it after some minutes.
#[derive(Debug)]
pub struct PermitPages {
    connection: PgConnection,
    filter: PermitFilter,
    today: NaiveDate,
    after: Option<After>,
}

impl PermitPages {
    /// Begins. `url` leads to the database directly.
    pub async fn open(url: &str, filter: PermitFilter, today: NaiveDate) -> Result<Self> {
        let mut connection = connect(url, Purpose::Bulk).await?;
        sqlx::query!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(&mut connection).await?;
        Ok(Self { connection, filter, today, after: None })
    }

    /// The next page; an empty one is the end.
    pub async fn next_page(&mut self) -> Result<Vec<PermitRow>> {
        let rows = list_permits(&mut self.connection, &self.filter, self.today, self.after, PAGE).await?;
        self.after = rows.last().map(|row| (row.life.expires_on, row.id));
        Ok(rows)
    }

    /// Ends it.
    pub async fn close(self) -> Result<()> {
        Ok(self.connection.close().await?)
    }
}
