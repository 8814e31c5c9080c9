//! One kind after the other, each chunk after chunk to its end; between two chunks the service may stop.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{
    PgConnection, Result, StoreError,
    connect::within,
    purge::{Kind, Limit, may_be_a_row, remove_rows},
};

/// Longest time for one chunk.
pub(super) const PATIENCE: Duration = Duration::from_mins(6);
/// When more rows than this cannot be changed, it is not the rows.
const LEFT_MAX: u64 = 1000;

/// A purge on its way.
#[derive(Debug)]
pub(super) struct Walk<'w> {
    connection: &'w mut PgConnection,
    stop: &'w CancellationToken,
    left: u64,
}

impl<'w> Walk<'w> {
    pub fn new(connection: &'w mut PgConnection, stop: &'w CancellationToken) -> Self {
        Self { connection, stop, left: 0 }
    }

    pub fn connection(&mut self) -> &mut PgConnection {
        self.connection
    }

    /// Rows that could not be changed so far.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Removes what is old of one kind; says how much it was.
    pub async fn remove<K: Kind>(&mut self, limit: &Limit) -> Result<u64> {
        let (mut after, mut removed) = (None, 0);
        loop {
            self.go_on()?;
            let mut rows = within(PATIENCE, K::find(self.connection, after.as_ref(), limit)).await?;
            if rows.is_empty() {
                return Ok(removed);
            }
            removed += match within(PATIENCE, remove_rows::<K>(self.connection, &rows, limit)).await {
                Err(error) if may_be_a_row(&error) => self.remove_one_by_one::<K>(&rows, limit).await?,
                done => done?,
            };
            after = rows.pop();
        }
    }

    /// Leaves the rows that the database refuses to change: they must not keep all others.
    async fn remove_one_by_one<K: Kind>(&mut self, rows: &[K::Key], limit: &Limit) -> Result<u64> {
        let mut removed = 0;
        for row in rows {
            self.go_on()?;
            match within(PATIENCE, remove_rows::<K>(self.connection, std::slice::from_ref(row), limit)).await {
                Err(error) if may_be_a_row(&error) && self.left < LEFT_MAX => {
                    self.left += 1;
                    tracing::error!(
                        ?row,
                        "one of the {} is old and cannot be changed, so it is left: {error}",
                        K::NAME
                    );
                }
                done => removed += done?,
            }
        }
        Ok(removed)
    }

    fn go_on(&self) -> Result<()> {
        if self.stop.is_cancelled() { Err(StoreError::Stopping) } else { Ok(()) }
    }
}
