//! How many callers may be connected, and how long they may take to ask.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::get};
use permit_notifier::web::{Limits, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_secs(20);
const WHOLE: &str = "GET /slow HTTP/1.1\r\nHost: test\r\n\r\n";

struct Site {
    address: String,
    stop: CancellationToken,
    served: JoinHandle<()>,
    /// The slow page was made.
    made: Arc<AtomicBool>,
}

impl Site {
    /// A service whose one page takes half a second.
    async fn open(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let made = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&made);
        let slow = || async move {
            sleep(Duration::from_millis(500)).await;
            done.store(true, Ordering::SeqCst);
            "done"
        };
        let router = Router::new().route("/slow", get(slow)).route("/livez", get(|| async { "ok" }));
        let stop = CancellationToken::new();
        #[expect(clippy::disallowed_methods, reason = "ends with the test")]
        let served = tokio::spawn(serve(listener, router, limits, stop.clone()));
        Self { address, stop, served, made }
    }

    async fn connect(&self, says: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(says.as_bytes()).await.unwrap();
        stream
    }
}

/// Waits for the end of the connection; what came until then.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    timeout(LONG, stream.read_to_string(&mut text)).await.expect("an end").expect("text");
    text
}

#[tokio::test]
async fn who_does_not_ask_is_not_kept() {
    let site = Site::open(Limits { head: Duration::from_millis(300), ..Limits::default() }).await;
    for says in ["", "GET /slow HTTP/1.1\r\nHost: te"] {
        assert_eq!(rest(site.connect(says).await).await, "", "{says:?}");
    }
    // The time of an answer does not count, and the connection ends only for saying nothing afterwards.
    let answer = rest(site.connect(WHOLE).await).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("done"), "{answer}");
}

#[tokio::test]
async fn more_connections_than_there_are_places_wait_for_one() {
    let site = Site::open(Limits { connections: 1, head: LONG }).await;
    let first = site.connect("").await;
    let mut second = site.connect(WHOLE).await;
    let mut start = [0; 12];
    let early = timeout(Duration::from_secs(1), second.read_exact(&mut start)).await;
    assert!(early.is_err(), "{early:?}");
    drop(first);
    timeout(LONG, second.read_exact(&mut start)).await.expect("a place").expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200");
}

#[tokio::test]
async fn who_asks_how_we_are_is_answered_when_all_places_are_taken() {
    let site = Site::open(Limits { connections: 2, head: LONG }).await;
    let _idle = [site.connect("").await, site.connect("GET / HTTP/1.1\r\n").await];
    for _ in 0..3 {
        let answer = rest(site.connect("GET /livez HTTP/1.1\r\nHost: test\r\n\r\n").await).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"), "{answer}");
    }
    // Whoever asks for more gets no place by that.
    let answer = rest(site.connect(WHOLE).await).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 5"), "{answer}");
    assert!(!site.made.load(Ordering::SeqCst));
}

#[tokio::test]
async fn what_was_asked_before_the_end_is_answered() {
    let site = Site::open(Limits::default()).await;
    let (idle, busy) = (site.connect("").await, site.connect(WHOLE).await);
    sleep(Duration::from_millis(100)).await;
    site.stop.cancel();
    timeout(LONG, site.served).await.expect("an end").unwrap();
    assert!(site.made.load(Ordering::SeqCst), "it ended before the answer was made");
    assert!(rest(busy).await.ends_with("done"));
    assert_eq!(rest(idle).await, "");
    TcpStream::connect(&site.address).await.expect_err("nobody listens");
}
