//! The only part that speaks HTTP. `router` is the table of contents; what every answer has in
//! common (request id, log line, headers, panics) is in `layers`.

#[allow(unused_qualifications, reason = "the macros that describe routes write them")]
pub mod api;
mod docs;
mod health;
mod layers;

use std::sync::Arc;

use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use health::{Health, NotReady};

/// What the pages and routes need, given by the composition root.
#[derive(Clone)]
pub struct Web {
    pub health: Arc<dyn Health>,
    pub metrics: PrometheusHandle,
    /// None: only the open routes.
    pub api: Option<api::Api>,
}

pub fn router(web: &Web) -> Router {
    let mut routes = Router::new().merge(layers::small(health::router(web).merge(docs::router())));
    if let Some(api) = &web.api {
        routes = routes.merge(api::router(api));
    }
    layers::common(routes)
}

/// Serves until `stop`, then finishes the requests in flight.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> std::io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}
