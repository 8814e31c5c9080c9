//! `/livez`, `/readyz` and `/metrics`: open to everybody, so they show no personal data.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Web;

/// Orchestrators ask every few seconds; an answer that comes later is no answer.
const READY_LIMIT: Duration = Duration::from_millis(1500);
/// Counting deliveries costs the database something; many scrapers must not multiply it.
const SCRAPE_AGE: Duration = Duration::from_secs(5);
/// A scrape with numbers that are a little old is worth more than none.
const SCRAPE_LIMIT: Duration = Duration::from_secs(3);

/// What the routes ask of the service behind them; the web needs no database for it.
pub trait Health: Send + Sync + 'static {
    /// Whether the database can be reached and its migrations are done.
    fn ready(&self) -> BoxFuture<'_, Result<(), NotReady>>;

    /// Sets the gauges that are counted when scraped.
    fn refresh_metrics(&self) -> BoxFuture<'_, ()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    Database,
    /// Some of this program's are not done.
    Migrations,
    /// The database needs a newer program.
    Version,
}

/// One plain word: enough to know where to look, nothing about the inside.
impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Database => "database",
            Self::Migrations => "migrations",
            Self::Version => "version",
        })
    }
}

struct Probe {
    web: Web,
    /// When the gauges were last counted; held while they are, so that scrapers share one count.
    counted_at: Mutex<Option<Instant>>,
}

pub(super) fn router(web: &Web) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(Probe { web: web.clone(), counted_at: Mutex::new(None) }))
}

/// Only whether the process answers: a database that is away is no reason to restart it.
async fn livez() -> &'static str {
    "ok\n"
}

async fn readyz(State(probe): State<Arc<Probe>>) -> Response {
    let ready = timeout(READY_LIMIT, probe.web.health.ready()).await;
    match ready.unwrap_or(Err(NotReady::Database)) {
        Ok(()) => "ok\n".into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

async fn metrics(State(probe): State<Arc<Probe>>) -> Response {
    if timeout(SCRAPE_LIMIT, probe.count()).await.is_err() {
        tracing::debug!("the deliveries could not be counted in time for a scrape");
    }
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, probe.web.metrics.render()).into_response()
}

impl Probe {
    async fn count(&self) {
        let mut counted_at = self.counted_at.lock().await;
        if counted_at.is_none_or(|at| at.elapsed() >= SCRAPE_AGE) {
            self.web.health.refresh_metrics().await;
            *counted_at = Some(Instant::now());
        }
    }
}
