//! Notifications: a hint that there is something to send. Dispatchers look anyway, so nothing rests on them.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::connect::{listening_pool, said};

/// Pokes `wake` whenever a scan or a change says that deliveries are due, until `stop`.
pub async fn wake_on_notify(url: &str, wake: &Notify, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let listened = stop.run_until_cancelled(listen(url, wake)).await;
        if let Some(Err(error)) = listened {
            tracing::debug!("notifications are not heard; polling goes on: {}", said(&error));
            stop.run_until_cancelled(tokio::time::sleep(Duration::from_secs(5))).await;
        }
    }
}

async fn listen(url: &str, wake: &Notify) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(&listening_pool(url)?).await?;
    listener.listen("deliveries_due").await?;
    loop {
        // None: the connection was lost and is back; something may have been missed.
        let _ = listener.try_recv().await?;
        wake.notify_one();
    }
}
