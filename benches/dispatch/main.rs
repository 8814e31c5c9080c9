//! Dispatching against a bare loop over lettre, as ratios in one run: `cargo bench --bench dispatch`, or with words
//! behind `--`: `loopback`, `final-reply` and `round-trip` choose rows, a number says how many notices.
//!
//! A private PostgreSQL with durable settings holds permits whose notices the product's scan claims. Each round sends
//! them all, ours through the whole dispatch and the bare loop from memory, in turn, to the same scripted mail server
//! in a process of its own. Then the server's ledger must hold every message exactly once, and the database must call
//! every delivery sent, with the hash of the bytes that arrived; else the run fails. The machine is shared by all
//! three: what server and database use is missing for the rest.

mod bare;
mod composing;
mod office;
mod server;

use std::time::Duration;

use permit_notifier::private_postgres::PrivatePostgres;

use office::{Office, Sent};
use server::Server;

type Error = Box<dyn std::error::Error + Send + Sync>;

const NOTICES: usize = 5000;
const ROUNDS: usize = 3;
/// Senders of ours, connections of the bare loop.
const CONCURRENCY: usize = 20;
/// With delays the bare loop sends so many only: its speed does not depend on how many there are.
const BARE_WITH_DELAY: usize = 1000;

/// One line of the table.
struct Row {
    word: &'static str,
    what: &'static str,
    delays: server::Delays,
    bar: Bar,
}

/// What ours must reach.
enum Bar {
    /// This share of the bare loop's speed.
    OfBare(f64),
    /// So many a second.
    PerSecond(f64),
}

const DELAY: Duration = Duration::from_millis(20);

const ROWS: [Row; 3] = [
    Row {
        word: "loopback",
        what: "no delays",
        delays: server::Delays { round_trip: Duration::ZERO, final_reply: Duration::ZERO },
        bar: Bar::OfBare(0.4),
    },
    Row {
        word: "final-reply",
        what: "20 ms for the final reply",
        delays: server::Delays { round_trip: Duration::ZERO, final_reply: DELAY },
        // Of the 1,000 a second that 20 senders could reach.
        bar: Bar::PerSecond(950.0),
    },
    Row {
        word: "round-trip",
        what: "20 ms for every round trip",
        delays: server::Delays { round_trip: DELAY, final_reply: Duration::ZERO },
        bar: Bar::PerSecond(850.0),
    },
];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == server::ARGUMENT) {
        return server::serve(&arguments[1..]);
    }
    let notices = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(NOTICES);
    let chosen = |row: &&Row| arguments.iter().any(|argument| argument == row.word);
    let mut rows: Vec<&Row> = ROWS.iter().filter(chosen).collect();
    if rows.is_empty() {
        rows = ROWS.iter().collect();
    }
    let folder = tempfile::Builder::new().prefix("pn-bench").tempdir_in("/tmp")?;
    // The server's account must be able to enter.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let postgres = PrivatePostgres::open(folder.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let measured = runtime.block_on(async {
        let office = Office::open(&postgres.url(), notices).await?;
        for row in rows {
            let server = Server::start(row.delays, &folder.path().join(format!("{}.jsonl", row.word)))?;
            measure(row, &office, server, notices).await?;
        }
        composing::measure()
    });
    postgres.stop();
    measured
}

async fn measure(row: &Row, office: &Office, mut server: Server, notices: usize) -> Result<(), Error> {
    println!("\n{notices} notices, {CONCURRENCY} at once, {}", row.what);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        office.claim(notices).await?;
        let commit = office.commit_time().await?.as_micros();
        let took = office.dispatch(server.port).await?;
        let sent = office.sent().await?;
        must_be_the_same(sent.iter().map(Sent::taken), server.taken()?, notices)?;
        ours.push(notices as f64 / took.as_secs_f64());

        let messages = &sent[..if row.delays.any() { notices.min(BARE_WITH_DELAY) } else { notices }];
        let took = bare::send_all(server.port, messages).await?;
        must_be_the_same(messages.iter().map(Sent::taken), server.taken()?, messages.len())?;
        bare.push(messages.len() as f64 / took.as_secs_f64());
        let size = sent.iter().map(|message| message.content.len()).sum::<usize>() / notices;
        let speeds = (ours[ours.len() - 1], bare[bare.len() - 1]);
        println!(
            "  a round: ours {:.0}/s, bare {:.0}/s; {size} bytes a message, {commit} µs a commit",
            speeds.0, speeds.1
        );
    }
    let (ours, bare) = (median(ours), median(bare));
    let ratio = ours / bare;
    let bar = match row.bar {
        Bar::OfBare(share) => format!("ratio {share}"),
        Bar::PerSecond(speed) => format!("{speed:.0}/s"),
    };
    println!("{:<28} ours {ours:>6.0}/s   bare {bare:>6.0}/s   ratio {ratio:.2}  (bar: {bar})", row.what);
    Ok(())
}

/// Every message once, to whom it was meant, and with the very bytes.
fn must_be_the_same(
    sent: impl Iterator<Item = server::Taken>,
    mut taken: Vec<server::Taken>,
    count: usize,
) -> Result<(), Error> {
    let mut sent: Vec<server::Taken> = sent.collect();
    sent.sort_unstable();
    taken.sort_unstable();
    if sent.len() == count && sent == taken {
        return Ok(());
    }
    let differing = sent.iter().zip(&taken).find(|(sent, taken)| sent != taken);
    let (sent, taken) = (sent.len(), taken.len());
    let fault =
        format!("{count} messages, {sent} sent, {taken} taken by the server; the first that differ: {differing:?}");
    Err(fault.into())
}

fn median(mut speeds: Vec<f64>) -> f64 {
    speeds.sort_unstable_by(f64::total_cmp);
    speeds[speeds.len() / 2]
}
