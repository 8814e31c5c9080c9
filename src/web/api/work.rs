//! Where a request is worked on: in a task of its own, once all of it is there and there is room.
//!
//! Up to there a caller who hangs up takes the request along. From there on the work is done to its end, so that
//! nothing is left half done, and no connection in a state that the next user would inherit.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::{Duration, timeout};
use tracing::Instrument;

use super::body::{self, BODY_MAX};
use super::problem::{Kind, Problem};
use super::repeat::{self, Turn};
use super::{Api, ROOT};
use crate::store::idempotency::RequestKey;

/// Requests that are worked on at once; each has at most one connection of the pool at a time. The rest of the pool is
/// for looking up tokens, and for files.
pub const PLACES: usize = 12;
/// How long a request waits for a place.
const WAITS: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// The id of the request that a task works on.
    static REQUEST_ID: Option<String>;
}

/// The id of the request that is being worked on.
pub fn request_id() -> Option<String> {
    REQUEST_ID.try_with(Clone::clone).ok().flatten()
}

/// Lets everything inside know the id of the request.
pub async fn identified(request: Request, next: Next) -> Response {
    let id = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    REQUEST_ID.scope(id, next.run(request)).await
}

/// Works on a request in a task of its own.
pub async fn whole(State(api): State<Api>, request: Request, next: Next) -> Response {
    if streams(&request) {
        return to_the_end(&api, next.run(request)).await;
    }
    let (parts, body) = request.into_parts();
    let bytes = match body::read(Request::from_parts(parts.clone(), body), BODY_MAX).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    let turn = match waited(&api, repeat::key_to_wait_for(&request)).await {
        Ok(turn) => turn,
        Err(problem) => return problem.into_response(),
    };
    let work = next.run(request);
    in_a_place(&api, async move {
        let _turn = turn;
        work.await
    })
    .await
}

async fn waited(api: &Api, key: Result<Option<RequestKey>, Problem>) -> Result<Option<Turn>, Problem> {
    match key? {
        Some(key) => repeat::wait_for_turn(api, &key).await.map(Some),
        None => Ok(None),
    }
}

/// Does this work in a task of its own as soon as there is a place, and to its end.
pub async fn in_a_place(api: &Api, work: impl Future<Output = Response> + Send + 'static) -> Response {
    let Ok(Ok(place)) = timeout(WAITS, Arc::clone(&api.places).acquire_owned()).await else {
        return Problem::new(Kind::Unavailable, "too many requests are being worked on")
            .header(header::RETRY_AFTER, HeaderValue::from_static("2"))
            .into_response();
    };
    to_the_end(api, async move {
        let response = work.await;
        drop(place);
        response
    })
    .await
}

/// Files are read and written while the caller waits, and look after their limits themselves.
fn streams(request: &Request) -> bool {
    let original = request.extensions().get::<OriginalUri>();
    let path = original.map_or_else(|| request.uri(), |original| &original.0).path();
    path == format!("{ROOT}/imports") || path == format!("{ROOT}/permits/export")
}

/// Does this work in a task of its own, and to its end.
pub async fn to_the_end(api: &Api, work: impl Future<Output = Response> + Send + 'static) -> Response {
    detached(api, work).await.unwrap_or_else(IntoResponse::into_response)
}

/// Does this work in a task of its own, and to its end, whether the caller still waits or not.
pub async fn detached<T: Send + 'static>(
    api: &Api,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    let work = REQUEST_ID.scope(request_id(), work).in_current_span();
    // The panic itself is logged where it happened.
    let fault = |_panic| Problem::new(Kind::Internal, "the service has a fault, which is in its log");
    api.requests.spawn(work).await.map_err(fault)
}
