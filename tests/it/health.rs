//! The open routes over a real socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use permit_notifier::telemetry::metrics;
use permit_notifier::web::{self, Health, Limits, NotReady, Web};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Copy)]
enum State {
    Ready,
    Not(NotReady),
    Hanging,
    Panicking,
}

struct Scripted {
    state: State,
    counts: AtomicUsize,
}

impl Health for Scripted {
    fn ready(&self) -> BoxFuture<'_, Result<(), NotReady>> {
        match self.state {
            State::Ready => async { Ok(()) }.boxed(),
            State::Not(reason) => async move { Err(reason) }.boxed(),
            State::Hanging => std::future::pending().boxed(),
            State::Panicking => async { panic!("the secret inside") }.boxed(),
        }
    }

    fn refresh_metrics(&self) -> BoxFuture<'_, ()> {
        self.counts.fetch_add(1, Ordering::SeqCst);
        async {}.boxed()
    }
}

struct Site {
    address: String,
    health: Arc<Scripted>,
    stop: CancellationToken,
}

impl Site {
    async fn open(state: State) -> Self {
        let counts = AtomicUsize::new(0);
        let health = Arc::new(Scripted { state, counts });
        let metrics = metrics::start().unwrap();
        let router = web::router(&Web { health: health.clone(), metrics, api: None, pages: None });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = CancellationToken::new();
        #[expect(clippy::disallowed_methods, reason = "ends with the test")]
        tokio::spawn(web::serve(listener, router, Limits::default(), stop.clone()));
        Self { address, health, stop }
    }

    /// The whole answer as text, header names in lower case.
    async fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
}

#[tokio::test]
async fn a_healthy_service_is_live_and_ready_with_careful_headers() {
    let site = Site::open(State::Ready).await;
    for path in ["/livez", "/readyz"] {
        let answer = site.get(path, "").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
        assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
        assert_eq!(header(&answer, "referrer-policy"), "no-referrer");
        assert_eq!(header(&answer, "cache-control"), "no-store");
        let policy = header(&answer, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'"));
    }
    let missing = site.get("/nowhere", "").await;
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
}

#[tokio::test]
async fn what_is_not_ready_says_why_in_one_word_and_stays_live() {
    let reasons =
        [(NotReady::Database, "database"), (NotReady::Migrations, "migrations"), (NotReady::Version, "version")];
    for (reason, word) in reasons {
        let site = Site::open(State::Not(reason)).await;
        let answer = site.get("/readyz", "").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{word}\n")), "{answer}");
        assert!(site.get("/livez", "").await.starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn a_database_that_hangs_does_not_hold_up_the_answer() {
    let site = Site::open(State::Hanging).await;
    let asked = Instant::now();
    let answer = site.get("/readyz", "").await;
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("database\n"));
}

#[tokio::test]
async fn a_panic_shows_nothing_of_the_inside() {
    let site = Site::open(State::Panicking).await;
    let answer = site.get("/readyz", "").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(answer.ends_with("\r\n\r\ninternal error\n"), "{answer}");
    assert_ne!(header(&answer, "x-request-id"), "");
}

#[tokio::test]
async fn requests_have_an_id_of_ours_unless_a_proxy_gave_a_plain_one() {
    let site = Site::open(State::Ready).await;
    let answer = site.get("/livez", "").await;
    assert!(header(&answer, "x-request-id").parse::<uuid::Uuid>().is_ok());

    let answer = site.get("/livez", "X-Request-Id: proxy-7.a_b\r\n").await;
    assert_eq!(header(&answer, "x-request-id"), "proxy-7.a_b");

    let long = "a".repeat(65);
    for strange in ["a b", "<script>", &long] {
        let answer = site.get("/livez", &format!("X-Request-Id: {strange}\r\n")).await;
        assert!(header(&answer, "x-request-id").parse::<uuid::Uuid>().is_ok());
    }
}

#[tokio::test]
async fn scrapes_in_quick_succession_share_one_count() {
    let site = Site::open(State::Ready).await;
    for _ in 0..3 {
        let answer = site.get("/metrics", "").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(header(&answer, "content-type").starts_with("text/plain; version=0.0.4"));
        assert!(answer.contains("\npermit_notifier_alarm{kind=\"transport\"} "));
    }
    assert_eq!(site.health.counts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stopped_site_takes_no_new_connection() {
    let site = Site::open(State::Ready).await;
    site.get("/livez", "").await;
    site.stop.cancel();
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(&site.address).await.is_ok() {
        assert!(Instant::now() < deadline, "the listener is still open");
        tokio::task::yield_now().await;
    }
}
