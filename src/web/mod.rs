//! The only part that speaks HTTP. `router` is the table of contents; what every answer has in
//! common (request id, log line, headers, panics) is in `layers`.

#[allow(unused_qualifications, reason = "the macros that describe routes write them")]
pub mod api;
mod connections;
mod docs;
mod health;
mod layers;
pub mod pages;
mod prospects;

use std::sync::Arc;

use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;

pub use connections::{Limits, serve};
pub use health::{Health, NotReady};

/// What the pages and routes need, given by the composition root.
#[derive(Clone)]
pub struct Web {
    pub health: Arc<dyn Health>,
    pub metrics: PrometheusHandle,
    /// None: only the open routes.
    pub api: Option<api::Api>,
    /// None: no pages.
    pub pages: Option<pages::Pages>,
}

pub fn router(web: &Web) -> Router {
    let mut routes = Router::new().merge(layers::small(health::router(web).merge(docs::router())));
    if let Some(api) = &web.api {
        routes = routes.merge(api::router(api));
    }
    if let Some(pages) = &web.pages {
        routes = routes.merge(pages::router(pages));
        if pages.is_secure() {
            routes = layers::https_only(routes);
        }
    }
    layers::common(routes)
}
