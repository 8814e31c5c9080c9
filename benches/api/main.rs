//! The API against the database under it, as figures of one run: `cargo bench --bench api`, or with a number behind
//! `--` that says for how many seconds each part goes on.
//!
//! A private PostgreSQL with durable settings holds permits, and the program itself serves them, in a process of its
//! own. Each round lets `pgbench -M prepared` and then 64 connections with a token read one permit after the other, by
//! the same select. Then permits are recorded at 200 requests a second, whether the answers before have come or not, and
//! the time of each counts from when it was due. The machine is shared by server, database and whoever asks.

mod client;
mod office;
mod pgbench;

use std::time::Duration;

use permit_notifier::private_postgres::PrivatePostgres;

use office::Office;

type Error = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: usize = 3;
const SECONDS: u64 = 5;
const CONNECTIONS: usize = 64;
/// Permits that are recorded in a second.
const RATE: u32 = 200;

fn main() -> Result<(), Error> {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(SECONDS);
    let folder = tempfile::Builder::new().prefix("pn-bench").tempdir_in("/tmp")?;
    // The server's account must be able to enter.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let postgres = PrivatePostgres::open(folder.path())?;
    // One thread asks, so that the others are left to who answers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(measure(&postgres.url(), folder.path(), Duration::from_secs(seconds)));
    postgres.stop();
    measured
}

async fn measure(url: &str, folder: &std::path::Path, time: Duration) -> Result<(), Error> {
    let office = Office::open(url, folder).await?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let select = pgbench::run(url, folder, time)?;
        let read = client::read_for(&office, time).await?;
        println!("  a round: pgbench {select:.0}/s, GET {read:.0}/s");
        bare.push(select);
        ours.push(read);
    }
    let (ours, bare) = (median(ours), median(bare));
    println!(
        "GET one permit, {CONNECTIONS} connections   ours {ours:>6.0}/s   pgbench {bare:>6.0}/s   ratio {:.2}  (bar: 0.4)",
        ours / bare
    );
    let mut times = client::record_at(&office, RATE, time * 2).await?;
    times.sort_unstable();
    let part = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1000.0;
    println!(
        "POST a permit, {RATE}/s   median {:.1} ms   p99 {:.1} ms  (bar: 50 ms)   of {}",
        part(0.5),
        part(0.99),
        times.len()
    );
    Ok(())
}

fn median(mut speeds: Vec<f64>) -> f64 {
    speeds.sort_unstable_by(f64::total_cmp);
    speeds[speeds.len() / 2]
}
