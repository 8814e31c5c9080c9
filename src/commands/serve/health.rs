//! What the web asks about the service: whether it is ready, and what a scrape counts.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::timeout;

use crate::{
    domain::alarm::AlarmKind,
    store::{self, PgPool},
    telemetry::metrics,
    watch::{WatchRules, conditions::conditions},
    web::{Health, NotReady},
};

/// A database that has not answered by then counts as away; the scrape has time left for the rest.
const UP_LIMIT: Duration = Duration::from_secs(1);

/// What the web asks about the service.
pub(super) struct ServiceHealth {
    pub pool: PgPool,
    /// By which a scrape sees the alarms.
    pub rules: WatchRules,
}

impl Health for ServiceHealth {
    fn ready(&self) -> BoxFuture<'_, Result<(), NotReady>> {
        Box::pin(async {
            let mut connection = self.pool.acquire().await.map_err(|_| NotReady::Database)?;
            match store::migrate::is_up_to_date(&mut connection).await {
                // After a wrong failover, or where a provider found the disk full.
                Ok(true) => match store::connect::may_write(&mut connection).await {
                    Ok(true) => Ok(()),
                    _ => Err(NotReady::Database),
                },
                Ok(false) => Err(match store::migrate::outdated(&mut connection).await {
                    Ok(Some(_)) => NotReady::Version,
                    _ => NotReady::Migrations,
                }),
                Err(_) => Err(NotReady::Database),
            }
        })
    }

    fn refresh_metrics(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // None if it did not answer: then there is nothing to count.
            let may_write = timeout(UP_LIMIT, self.may_write()).await.ok().and_then(Result::ok);
            metrics::set_database_up(may_write == Some(true));
            if may_write.is_none() {
                return;
            }
            if let Err(error) = self.count().await {
                tracing::debug!("metrics were not counted: {error}");
            }
        })
    }
}

impl ServiceHealth {
    async fn may_write(&self) -> store::Result<bool> {
        store::connect::may_write(&mut *self.pool.acquire().await?).await
    }

    /// Alarms first: what counts deliveries may have to wait for whom they tell of.
    async fn count(&self) -> store::Result<()> {
        let mut connection = self.pool.acquire().await?;
        let standing = store::alarms::list_standing(&mut connection).await?;
        let stands = |kind: AlarmKind| standing.iter().any(|alarm| alarm.kind == kind);
        // That questions have had no answer for long only those know who have asked all along.
        metrics::set_alarm(AlarmKind::DatabaseHeld.as_str(), stands(AlarmKind::DatabaseHeld));
        let moment = self.rules.moment(&mut connection).await?;
        let seen = conditions(&self.rules, &mut connection, moment).await?;
        for kind in AlarmKind::ALL.iter().copied().filter(|kind| !seen.unanswered.contains(kind)) {
            let is_seen = seen.conditions.iter().any(|condition| condition.kind == kind);
            metrics::set_alarm(kind.as_str(), is_seen || kind == AlarmKind::DatabaseHeld && stands(kind));
        }
        if let Some(at) = store::scans::last_completed_at(&mut connection).await? {
            metrics::scan_succeeded(at.timestamp());
        }
        let stock = store::stock::count_deliveries(&mut connection).await?;
        metrics::set_deliveries(stock.iter().map(|s| (s.channel.as_str(), s.state.as_str(), s.count.unsigned_abs())));
        let oldest = store::stock::oldest_pending(&mut connection, moment.now).await?;
        let age = oldest.and_then(|since| (moment.now - since).to_std().ok()).unwrap_or_default();
        metrics::set_oldest_pending(age);
        Ok(())
    }
}
