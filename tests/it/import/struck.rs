//! The command itself, ended by kill -9 early and late: all of a file is there or nothing of it, and the next import is
//! as ever. The large one wants time: `cargo test --test it import::struck -- --ignored --nocapture`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sqlx::{Connection as _, PgConnection};

use super::{Desk, HEADER, rules};
use crate::support::program;

/// Where it is struck.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// When so many rows are staged.
    Staged(u32),
    /// When it applies them, in a statement that begins so.
    Applying(&'static str),
}

impl Point {
    async fn is_reached(self, desk: &Desk) -> bool {
        match self {
            Self::Staged(rows) => desk.ask("SELECT count(*) FROM import_rows").await.parse::<u32>().unwrap() >= rows,
            Self::Applying(words) => {
                let at_work = format!(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
                     AND application_name = 'permit-notifier bulk' AND query LIKE '{words}%'"
                );
                desk.ask(&at_work).await != "0"
            }
        }
    }
}

/// How often permits and what belongs to them were read from end to end.
const READS: &str = "SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_user_tables
                     WHERE relname IN ('permits', 'terms', 'expiry_periods', 'permit_history', 'contacts')";

/// What a struck import could have changed: permits, terms, imports, and the permit that was there.
async fn state(desk: &Desk) -> String {
    desk.rows(
        "SELECT (SELECT count(*) FROM permits) AS permits, (SELECT count(*) FROM terms) AS terms,
                (SELECT count(*) FROM imports) AS imports,
                (SELECT concat_ws(' ', holder_name, expires_on, version) FROM permits WHERE number_key = 'p-0') AS known",
    )
    .await
}

async fn until_its_connection_is_gone(desk: &Desk) {
    let alive = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                 AND application_name = 'permit-notifier bulk'";
    let until = Instant::now() + Duration::from_mins(3);
    while desk.ask(alive).await != "0" {
        assert!(Instant::now() < until, "the connection of the import does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Strikes an import of `rows` rows at each of the points, and lets the last one end.
async fn strike(rows: u32, points: &[Point]) {
    let desk = Desk::new().await;
    desk.import(HEADER, &["P-0,Food,Before,,2029-01-31"], &rules()).await;
    let program = program::Desk::new().with("DATABASE_URL", &desk.url).with("CLOCK", "2026-06-01T09:00:00Z");
    let mut text = format!("{HEADER}\n");
    for i in 0..rows {
        writeln!(text, "P-{i},Food,After {i},a{i}@example.org,2030-{:02}-28", 1 + i % 12).unwrap();
    }
    std::fs::write(program.folder().join("permits.csv"), text).unwrap();
    let before = state(&desk).await;
    for &point in points {
        let mut import = program.start(&["import", "permits.csv"]);
        let until = Instant::now() + Duration::from_mins(5);
        while !point.is_reached(&desk).await {
            assert!(Instant::now() < until && state(&desk).await == before, "{point:?} is not reached");
        }
        import.signal(Signal::SIGKILL);
        assert_eq!(import.wait(), None, "it was killed");
        until_its_connection_is_gone(&desk).await;
        assert_eq!(state(&desk).await, before, "struck at {point:?}");
        let staged = desk.ask("SELECT count(DISTINCT import_id) FROM import_rows").await;
        assert_eq!(staged, "1", "what the one before it left is cleared away");
        println!("{rows} rows, struck at {point:?}: nothing of them is there");
    }
    // As autovacuum does sooner or later: from then on the tables count as empty.
    let mut session = PgConnection::connect(&desk.url).await.expect("a session");
    sqlx::raw_sql("VACUUM (ANALYZE)").execute(&mut session).await.expect("statistics");
    sqlx::raw_sql("SELECT pg_stat_reset()").execute(&mut session).await.expect("counters that begin anew");
    let begun = Instant::now();
    let report = program.json(&["import", "permits.csv", "--json"]);
    assert_eq!((&report["permits_created"], &report["permits_renewed"]), (&(rows - 1).into(), &1.into()), "{report}");
    assert_eq!(state(&desk).await, format!("{rows},{},2,\"After 0 2030-01-28 2\"", rows + 1));
    for table in ["import_rows", "import_permits", "import_rejected_rows"] {
        assert_eq!(desk.ask(&format!("SELECT count(*) FROM {table}")).await, "0", "{table}");
    }
    let took = begun.elapsed();
    // Each statement may read them once or twice, but not once for each row; what was asked above may be counted late.
    let reads: u32 = desk.ask(READS).await.parse().expect("a count");
    assert!(reads < rows / 10, "permits or terms were read from end to end {reads} times");
    println!("{rows} rows, then imported in {took:.1?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_command_leaves_nothing_of_its_file() {
    let points = [
        Point::Staged(1),
        Point::Staged(5_000),
        Point::Applying("INSERT INTO permits "),
        Point::Applying("INSERT INTO terms"),
    ];
    strike(12_000, &points).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn a_killed_command_leaves_nothing_of_a_large_file() {
    let points = [
        Point::Staged(5_000),
        Point::Staged(100_000),
        Point::Staged(200_000),
        Point::Applying("WITH kinds"),
        Point::Applying("INSERT INTO permits "),
        Point::Applying("INSERT INTO terms"),
        Point::Applying("INSERT INTO expiry_periods"),
        Point::Applying("SELECT p.id AS permit_id"),
    ];
    strike(200_000, &points).await;
}
