//! A database that takes no writing for a while, as after a wrong failover or with a full disk.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sqlx::{AssertSqlSafe, Connection, PgConnection, postgres::PgConnectOptions};

use crate::support::{
    cluster::empty_database,
    program::{Desk, get},
};

async fn run(url: &str, statement: &str) {
    let options: PgConnectOptions = url.parse().expect("a URL");
    let options = options.options([("default_transaction_read_only", "off")]);
    let mut connection = PgConnection::connect_with(&options).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.expect("it runs");
}

/// From now on sessions of the database begin so, and no other is left.
async fn sessions_are(url: &str, setting: &str) {
    let database = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I ";
    run(url, &format!("{database}{setting}', current_database()); END $$")).await;
}

async fn no_other_session_is_left(url: &str) {
    run(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await;
}

/// What `/readyz` answers, and what a scrape says of the database.
fn seen(url: &str) -> (u16, String) {
    let (_, metrics) = get(&format!("{url}metrics"));
    let up = metrics.lines().find_map(|line| line.strip_prefix("permit_notifier_database_up "));
    (get(&format!("{url}readyz")).0, up.unwrap_or("not there").to_owned())
}

/// Waits for it so many times in a row: each asks another of the connections that are kept.
fn until_seen(url: &str, wanted: (u16, &str)) {
    let (until, mut in_a_row) = (Instant::now() + Duration::from_mins(1), 0);
    while in_a_row < 20 {
        let found = seen(url);
        in_a_row = if (found.0, &*found.1) == wanted { in_a_row + 1 } else { 0 };
        assert!(Instant::now() < until, "{found:?}, and not {wanted:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[tokio::test]
async fn while_it_takes_no_writing_a_service_is_not_ready_and_goes_on_when_that_is_over() {
    let url = empty_database().await;
    let desk = Desk::new().with("DATABASE_URL", &url);
    let mut serve = desk.start(&["serve"]);
    let listening = serve.wait_for("Listening on http://");
    let address = listening.split_whitespace().last().expect("an address").to_owned();
    serve.wait_for("scan completed");
    until_seen(&address, (200, "1"));
    sessions_are(&url, "SET default_transaction_read_only = on").await;
    no_other_session_is_left(&url).await;
    until_seen(&address, (503, "0"));
    // Sessions that began meanwhile go on as they began.
    sessions_are(&url, "RESET default_transaction_read_only").await;
    until_seen(&address, (200, "1"));
    serve.signal(Signal::SIGTERM);
    assert_eq!(serve.wait(), Some(0));
}
