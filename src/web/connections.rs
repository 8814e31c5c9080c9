//! The connections of callers: how many there may be, and how long each may take to ask.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::add_extension::AddExtension;

/// What callers may take of us before they have asked for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; those beyond wait in the system's queue.
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
    let places = Arc::new(Semaphore::new(limits.connections));
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    let next = async || {
        // The semaphore is never closed.
        let place = Arc::clone(&places).acquire_owned().await.ok()?;
        Some((place, accept(&listener).await))
    };
    while let Some(Some((place, (stream, peer)))) = stop.run_until_cancelled(next()).await {
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
