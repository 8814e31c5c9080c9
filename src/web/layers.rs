//! What every request and answer has in common.

use std::any::Any;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::map_request;
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tracing::Span;
use uuid::Uuid;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Routes that take little and answer soon.
const SMALL_BODY: usize = 64 * 1024;
const SMALL_TIME: Duration = Duration::from_secs(10);

/// For routes without uploads and without long work.
pub(super) fn small(routes: Router) -> Router {
    routes
        .layer(RequestBodyLimitLayer::new(SMALL_BODY))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, SMALL_TIME))
}

/// For all routes; the last layer is the outermost. Headers are only added where a route has not
/// set its own, so that pages may allow themselves what they need.
pub(super) fn common(routes: Router) -> Router {
    routes
        .layer(CatchPanicLayer::custom(answer_panic))
        .layer(if_absent(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"))
        .layer(if_absent(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(if_absent(header::REFERRER_POLICY, "no-referrer"))
        .layer(if_absent(header::CACHE_CONTROL, "no-store"))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(span)
                .on_request(())
                .on_response(log_response)
                // Told by the line of the answer, and by whoever made it fail.
                .on_failure(()),
        )
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(SetRequestIdLayer::new(REQUEST_ID, NewRequestId))
        .layer(map_request(drop_strange_request_id))
}

/// For a service that people reach by https: browsers come by nothing else for a year.
pub(super) fn https_only(routes: Router) -> Router {
    routes.layer(if_absent(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000"))
}

fn if_absent(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}

#[derive(Clone)]
struct NewRequestId;

impl MakeRequestId for NewRequestId {
    fn make_request_id<B>(&mut self, _request: &axum::http::Request<B>) -> Option<RequestId> {
        let id = HeaderValue::from_str(&Uuid::now_v7().to_string()).ok()?;
        Some(RequestId::new(id))
    }
}

/// A proxy in front may name the request; anybody else may not write into our logs.
async fn drop_strange_request_id(mut request: Request) -> Request {
    let is_plain = |value: &HeaderValue| {
        let bytes = value.as_bytes();
        (1..=64).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
    };
    if request.headers().get(REQUEST_ID).is_some_and(|id| !is_plain(id)) {
        request.headers_mut().remove(REQUEST_ID);
    }
    request
}

/// The route's pattern, never the path: paths and queries carry tokens and names.
fn span(request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str);
    let request_id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let method = known_method(request.method());
    // Probes come every few seconds and would bury the rest.
    if matches!(route, "/livez" | "/readyz" | "/metrics") {
        tracing::debug_span!("request", method, route, request_id)
    } else {
        tracing::info_span!("request", method, route, request_id)
    }
}

/// The method, unless the caller has made up a word.
fn known_method(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    if known.contains(method) { method.as_str() } else { "(other)" }
}

fn log_response<B>(response: &axum::http::Response<B>, took: Duration, span: &Span) {
    let status = response.status().as_u16();
    let took_ms = took.as_millis() as u64;
    let is_probe = span.metadata().is_none_or(|metadata| *metadata.level() == tracing::Level::DEBUG);
    if is_probe {
        tracing::debug!(status, took_ms, "request answered");
    } else if response.status().is_server_error() {
        tracing::warn!(status, took_ms, "request answered");
    } else {
        tracing::info!(status, took_ms, "request answered");
    }
}

/// The panic itself is logged where it happened; the answer says nothing about the inside.
fn answer_panic(_panic: Box<dyn Any + Send>) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "internal error\n").into_response()
}
