//! The connections of callers: how many there may be, and how long each may take to ask.
//!
//! When all places are taken, few connections more are let in, each for one request: whoever asks whether we are alive or
//! ready is answered at once, whatever idles in the places; anybody else waits a little for one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::add_extension::AddExtension;

/// Connections beyond the places.
const SPARE: usize = 64;
/// How long one of them may take until the head of its request is there.
const SPARE_HEAD: Duration = Duration::from_secs(5);
/// How long its request waits for a place.
const WAIT: Duration = Duration::from_secs(5);

/// What callers may take of us before they have asked for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once, besides a few that ask how we are.
    pub connections: usize,
    /// How long a connection may take until the head of its next request is there, idle or not.
    pub head: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 512, head: Duration::from_secs(75) }
    }
}

/// How long to wait after the system had no connection to give, such as when all file handles are taken.
const PAUSE: Duration = Duration::from_millis(500);

/// Serves until `stop`, then finishes the requests in flight.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let (places, spare) = (Arc::new(Semaphore::new(limits.connections)), Arc::new(Semaphore::new(SPARE)));
    let beyond = router.clone().layer(from_fn_with_state(Arc::clone(&places), wait_for_place));
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    let mut once = http.clone();
    once.header_read_timeout(SPARE_HEAD).keep_alive(false);
    let next = async || {
        let (place, is_spare) = tokio::select! {
            biased;
            place = Arc::clone(&places).acquire_owned() => (place, false),
            place = Arc::clone(&spare).acquire_owned() => (place, true),
        };
        // The semaphores are never closed.
        Some((place.ok()?, is_spare, accept(&listener).await))
    };
    while let Some(Some((place, is_spare, (stream, peer)))) = stop.run_until_cancelled(next()).await {
        let (http, router) = if is_spare { (&once, &beyond) } else { (&http, &router) };
        let service = TowerToHyperService::new(AddExtension::new(router.clone(), ConnectInfo(peer)));
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        #[expect(clippy::disallowed_methods, reason = "ends with its connection, and is waited for at the end")]
        tokio::spawn(async move {
            // What goes wrong on a connection is its caller's affair.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    open.shutdown().await;
}

/// For a connection without a place: a request that is no probe waits for one, and keeps it until it is answered.
async fn wait_for_place(State(places): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    if matches!(request.uri().path(), "/livez" | "/readyz") {
        return next.run(request).await;
    }
    let Ok(Ok(_place)) = tokio::time::timeout(WAIT, places.acquire()).await else {
        let after = [(header::RETRY_AFTER, "5")];
        return (StatusCode::SERVICE_UNAVAILABLE, after, "all connections are taken\n").into_response();
    };
    next.run(request).await
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // An answer is written at once, and must not wait for what the caller has received.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) => {
                tracing::warn!("no connection could be taken: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
