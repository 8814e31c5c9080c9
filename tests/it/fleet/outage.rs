//! The mail server is away for a while, and much waits for it. All replicas together knock at its door at growing
//! intervals; when it is back, everything goes, as fast as the rate allows and no faster.
//!
//! The whole hour: `OUTAGE_MINUTES=60 OUTAGE_NOTICES=20000 cargo test --test it fleet::outage -- --ignored --nocapture`

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinSet,
};

use super::{UNSENT, all_sent_once, due, land, launch};
use crate::support::{
    postbox::{Postbox, until, until_within},
    service::Service,
    smtp_server::{Behaviour, SmtpServer},
};

const REPLICAS: usize = 3;
/// What [`crate::support::service::desk`] sets.
const SENDERS: usize = 4;

struct Outage {
    length: Duration,
    notices: usize,
    /// Messages a second.
    rate: usize,
    /// What met the outage itself waits for its next try; a short test lets it go at once.
    hurries: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_seconds_without_the_mail_server_cost_nothing_but_time() {
    endure(&Outage { length: Duration::from_secs(8), notices: 300, rate: 100, hurries: true }).await;
}

#[ignore = "takes an hour"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_without_the_mail_server_costs_nothing_but_time() {
    let length = Duration::from_mins(number("OUTAGE_MINUTES", 60));
    let notices = number("OUTAGE_NOTICES", 20_000) as usize;
    let rate = number("OUTAGE_RATE", 200) as usize;
    endure(&Outage { length, notices, rate, hurries: false }).await;
}

fn number(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

async fn endure(outage: &Outage) {
    let post = Postbox::open().await;
    due(&post, outage.notices).await;
    let door = Door::new();
    let began = Instant::now();
    let some = |replicas| {
        let url = format!("smtp://127.0.0.1:{}", door.port);
        launch(&post, &url, replicas, |desk| desk.with("MAIL_RATE_PER_SECOND", outage.rate.to_string()))
    };
    // The senders of one meet the outage; from then on each connection is a probe for all.
    let mut services: Vec<Service> = some(1);
    until("one has met it", async || knocks(&post).await.all() > 0).await;
    services.extend(some(REPLICAS - 1));

    wait_out(&post, began, outage.length / 2, "refused", || true).await;
    let slammed = door.slam();
    wait_out(&post, began, outage.length, "closed at once", || slammed.count() > 0).await;
    let away = began.elapsed();
    let (connections, slammed) = (knocks(&post).await, slammed.end().await);
    let server = SmtpServer::start(Behaviour { port: door.port, ..Behaviour::default() });
    let back = Instant::now();

    // A probe, a minute until what met the outage is tried again, and what a busy machine can do of the rate.
    let patience = Duration::from_mins(5) + Duration::from_secs(20 * (outage.notices / outage.rate) as u64);
    until_within(patience, "all is sent", async || {
        if outage.hurries {
            post.hurry().await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        post.count(UNSENT).await == 0
    })
    .await;
    let took = back.elapsed();
    for service in &services {
        assert_eq!(service.status("readyz"), 200);
    }
    land(services);

    assert_eq!(connections.slammed, slammed, "every connection is on record, and no more");
    let bound = SENDERS + probes_at_most(away);
    assert!(connections.all() <= bound, "{connections:?}, and at most {bound} in {away:?}");
    all_sent_once(&post, &server, outage.notices).await;
    let [one, ten] = [1, 10].map(|seconds| most_within(&server.mails(), Duration::from_secs(seconds)));
    assert!(one <= 2 * outage.rate && ten <= 10 * outage.rate, "{one} in one second, {ten} in ten");
    println!(
        "away for {away:.0?}: {} connections ({} refused, {} closed at once) by {REPLICAS} replicas, at most {bound}; \
         back: {} sent in {took:.0?}, at most {one} in one second and {ten} in ten",
        connections.all(),
        connections.refused,
        connections.slammed,
        outage.notices,
    );
}

/// Waits until so much of the outage is over and `enough` says so too; nothing ends meanwhile.
async fn wait_out(post: &Postbox, began: Instant, until: Duration, how: &str, enough: impl Fn() -> bool) {
    let mut said = Instant::now();
    while began.elapsed() < until || !enough() {
        tokio::time::sleep(Duration::from_millis(500).min(until / 10)).await;
        assert!(began.elapsed() < until + Duration::from_secs(90), "nobody knocks any more");
        if said.elapsed() > Duration::from_mins(1) {
            said = Instant::now();
            println!("{:.0?}, {how}: {:?}", began.elapsed(), knocks(post).await);
            nothing_ended(post).await;
        }
    }
    nothing_ended(post).await;
}

/// All wait as they did before: none has used up any of its attempts.
async fn nothing_ended(post: &Postbox) {
    let other = "SELECT count(*) FROM deliveries WHERE state <> 'pending' OR attempt_count <> 0";
    assert_eq!(post.count(other).await, 0);
}

/// Connections that were tried, as the database knows them.
#[derive(Debug)]
struct Knocks {
    refused: usize,
    slammed: usize,
}

impl Knocks {
    fn all(&self) -> usize {
        self.refused + self.slammed
    }
}

async fn knocks(post: &Postbox) -> Knocks {
    let (refused, slammed, other): (i64, i64, i64) = sqlx::query_as(
        "SELECT count(*) FILTER (WHERE phase = 'connect'), count(*) FILTER (WHERE phase <> 'connect'),
                count(*) FILTER (WHERE NOT transport_fault OR outcome <> 'not_sent')
         FROM attempts",
    )
    .fetch_one(&mut post.session().await)
    .await
    .expect("the attempts");
    assert_eq!(other, 0, "each is the server's fault");
    Knocks { refused: refused as usize, slammed: slammed as usize }
}

/// How many probes fit into that time, if each pause is as short as it may be: a second and then twice the last, up to
/// a minute, and of each up to a quarter is left out at random.
fn probes_at_most(length: Duration) -> usize {
    let pauses = std::iter::successors(Some(1.0_f64), |pause| Some((pause * 2.0).min(60.0)));
    let ends = pauses.scan(0.0, |end, pause| {
        *end += pause * 0.75;
        Some(*end)
    });
    ends.take_while(|end| *end <= length.as_secs_f64()).count()
}

/// The most that fell into any time of that length.
fn most_within(times: &[Instant], length: Duration) -> usize {
    let mut times = times.to_vec();
    times.sort();
    let ends = (0..times.len())
        .map(|first| times.partition_point(|time| *time - times[0] < times[first] - times[0] + length) - first);
    ends.max().expect("some")
}

/// The port of a server that is away: nobody else gets it meanwhile.
struct Door {
    port: u16,
    _bound: TcpSocket,
}

impl Door {
    fn new() -> Self {
        let bound = socket(0);
        Self { port: bound.local_addr().expect("its address").port(), _bound: bound }
    }

    /// From now on it takes connections and closes them without a word.
    fn slam(&self) -> Slammed {
        let listener = socket(self.port).listen(64).expect("a listener");
        let count = Arc::new(AtomicUsize::new(0));
        let slamming = JoinSet::from_iter([slam_all(listener, Arc::clone(&count))]);
        Slammed { count, slamming }
    }
}

fn socket(port: u16) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("to share the port with who listens there later");
    socket.bind(([127, 0, 0, 1], port).into()).expect("a port");
    socket
}

async fn slam_all(listener: TcpListener, count: Arc<AtomicUsize>) {
    while listener.accept().await.is_ok() {
        count.fetch_add(1, Ordering::SeqCst);
    }
}

struct Slammed {
    count: Arc<AtomicUsize>,
    slamming: JoinSet<()>,
}

impl Slammed {
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Nobody is there any more; says how many came.
    async fn end(mut self) -> usize {
        self.slamming.shutdown().await;
        self.count()
    }
}
