//! What happens at once, with real connections on real threads, and in real processes.

mod asked_to_stop;
mod changes;
mod dropped;
mod lost_lock;
mod scans;
mod stopped;

use std::{future::Future, sync::Arc, time::Duration};

use sqlx::{Connection, PgConnection};
use tokio::{sync::Barrier, task::JoinSet};

use crate::support::office::TestOffice;

/// Runs `count` of them at once, each on a task of its own that waits for the others before it begins.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    count: usize,
    one: impl Fn(usize) -> F,
) -> Vec<T> {
    let barrier = Arc::new(Barrier::new(count));
    let mut tasks = JoinSet::new();
    for i in 0..count {
        let (barrier, one) = (barrier.clone(), one(i));
        tasks.spawn(async move {
            barrier.wait().await;
            one.await
        });
    }
    tasks.join_all().await
}

/// Somebody else's transaction that holds a lock until it is dropped.
struct Blocker(PgConnection);

impl Blocker {
    /// Begins a transaction with `lock`, a statement.
    async fn begin(office: &TestOffice, lock: &str) -> Self {
        let mut connection = PgConnection::connect(&office.url).await.expect("a connection");
        let statement = sqlx::AssertSqlSafe(format!("BEGIN; {lock}"));
        sqlx::raw_sql(statement).execute(&mut connection).await.expect("the lock");
        Self(connection)
    }

    async fn release(mut self) {
        sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await.expect("the end of the lock");
        self.0.close().await.expect("the end of the connection");
    }
}

/// Waits until `query` finds something: the database is the marker, there is nothing else to wait on.
async fn until(office: &TestOffice, query: &str) -> Vec<String> {
    for _ in 0..2000 {
        let found = office.text(query).await;
        if !found.is_empty() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {query}");
}

/// The backend of a scan that waits for a lock in this office's database.
const PARKED_SCAN: &str = "SELECT pid::text FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'permit-notifier scan' AND wait_event_type = 'Lock'";

/// Something as soon as no session of a scan is left in this office's database.
const NO_SCAN_LEFT: &str = "SELECT 'none' WHERE NOT EXISTS (SELECT FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'permit-notifier scan')";
