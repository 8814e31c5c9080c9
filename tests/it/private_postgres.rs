//! The private server: made, joined, killed, recovered, refused. Works as root and as an ordinary user.

mod holder;
mod refusals;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use holder::Holder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use permit_notifier::private_postgres::PrivatePostgres;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::support::cluster;
use crate::support::run_folder::TestDir;

fn open(dir: &TestDir) -> PrivatePostgres {
    open_in(dir.path())
}

fn open_in(folder: &Path) -> PrivatePostgres {
    PrivatePostgres::open(folder).unwrap_or_else(|error| panic!("{error}"))
}

async fn execute(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::raw_sql(statement)
        .execute(&mut connection)
        .await
        .expect("the statement");
    connection.close().await.expect("the end of the connection");
}

async fn text(url: &str, query: &'static str) -> String {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::query(query)
        .fetch_one(&mut connection)
        .await
        .expect("a row")
        .get(0)
}

fn postmaster(dir: &TestDir) -> Pid {
    let pid_file = fs::read_to_string(dir.path().join("postgres/data/postmaster.pid"))
        .expect("the server's pid file");
    Pid::from_raw(
        pid_file
            .lines()
            .next()
            .expect("a line")
            .parse()
            .expect("a number"),
    )
}

fn socket_folder(server: &PrivatePostgres) -> PathBuf {
    server
        .url()
        .split_once("host=")
        .expect("a host")
        .1
        .replace("%2F", "/")
        .into()
}

#[tokio::test]
async fn it_starts_answers_and_is_durable() {
    let dir = TestDir::new();
    let server = open(&dir);
    assert!(server.is_owner());
    assert_eq!(server.owner_pid(), std::process::id());
    let url = server.url();
    assert!(
        url.starts_with("postgres://permits@localhost/permits?host=%2F"),
        "{url}"
    );
    assert_eq!(
        text(&url, "SELECT current_user || ' ' || current_database()").await,
        "permits permits"
    );
    let encoding = "SELECT pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database WHERE datname = 'permits'";
    assert_eq!(text(&url, encoding).await, "UTF8 C.UTF-8");
    let settings = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings
        WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'unix_socket_permissions')";
    let expected = "fsync=on full_page_writes=on listen_addresses= synchronous_commit=on unix_socket_permissions=0700";
    assert_eq!(text(&url, settings).await, expected);
    server.stop();
    assert!(
        PgConnection::connect(&url).await.is_err(),
        "stopped means gone"
    );
}

#[test]
fn its_folder_is_closed_to_others_and_its_server_is_not_root() {
    let dir = TestDir::new();
    let server = open(&dir);
    let folder = fs::metadata(dir.path().join("postgres")).expect("the folder");
    assert_eq!(folder.mode() & 0o777, 0o700);
    let process =
        fs::metadata(format!("/proc/{}", postmaster(&dir))).expect("the server's process");
    assert_eq!(process.uid(), folder.uid());
    if geteuid().is_root() {
        assert_ne!(folder.uid(), 0);
    } else {
        assert_eq!(folder.uid(), geteuid().as_raw());
    }
    for file in ["lock", "log"] {
        let file = fs::metadata(dir.path().join("postgres").join(file)).expect("a file of ours");
        assert_eq!((file.mode() & 0o777, file.uid()), (0o600, folder.uid()));
    }
    drop(server);
}

#[tokio::test]
async fn a_second_process_joins_and_learns_when_the_owner_goes() {
    let dir = TestDir::new();
    let server = open(&dir);
    let mut joiner = Holder::start(dir.path());
    assert_eq!(joiner.role, "joiner");
    assert_eq!(joiner.url, server.url());
    server.stop();
    let line = joiner.ended();
    assert!(
        line.contains(&format!("the process {}", std::process::id())),
        "{line}"
    );
}

#[tokio::test]
async fn a_joiner_that_leaves_does_not_end_the_server() {
    let dir = TestDir::new();
    let server = open(&dir);
    let joiner = open(&dir);
    assert!(!joiner.is_owner());
    joiner.stop();
    assert_eq!(
        text(&server.url(), "SELECT 'still here'").await,
        "still here"
    );
}

#[tokio::test]
async fn the_owner_stops_while_a_client_is_connected() {
    let dir = TestDir::new();
    let server = open(&dir);
    let mut client = PgConnection::connect(&server.url())
        .await
        .expect("a connection");
    server.stop();
    assert!(client.ping().await.is_err());
}

#[tokio::test]
async fn kill_9_of_the_owner_leaves_no_server_and_the_next_start_keeps_committed_rows() {
    let dir = TestDir::new();
    let mut owner = Holder::start(dir.path());
    assert_eq!(owner.role, "owner");
    execute(
        &owner.url,
        "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('committed')",
    )
    .await;
    owner.kill();
    // At once: the old server may still be writing its last pages.
    let next = open(&dir);
    assert!(next.is_owner());
    assert_eq!(
        text(&next.url(), "SELECT value FROM kept").await,
        "committed"
    );
    next.stop();

    let mut owner = Holder::start(dir.path());
    let server = postmaster(&dir);
    owner.kill();
    // No event tells of the end of a process that is not our child. A zombie has no command line.
    let began = Instant::now();
    while fs::read(format!("/proc/{server}/cmdline")).is_ok_and(|line| !line.is_empty()) {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "a server outlived its owner"
        );
        thread::sleep(Duration::from_millis(5));
    }
    assert!(
        !dir.path().join("postgres/data/postmaster.pid").exists(),
        "it ended in order"
    );
}

#[tokio::test]
async fn kill_9_of_the_server_is_told_and_a_restart_at_once_recovers() {
    let dir = TestDir::new();
    let server = open(&dir);
    execute(
        &server.url(),
        "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('committed')",
    )
    .await;
    kill(postmaster(&dir), Signal::SIGKILL).expect("to kill the server");
    let sentence = server.ended().await;
    assert!(
        sentence.contains("ended unexpectedly (signal: 9 (SIGKILL))"),
        "{sentence}"
    );
    server.stop();
    let next = open(&dir);
    assert!(next.is_owner());
    assert_eq!(
        text(&next.url(), "SELECT value FROM kept").await,
        "committed"
    );
}

#[tokio::test]
async fn kill_9_of_owner_and_server_together_recovers() {
    let dir = TestDir::new();
    let mut owner = Holder::start(dir.path());
    execute(
        &owner.url,
        "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('committed')",
    )
    .await;
    kill(postmaster(&dir), Signal::SIGKILL).expect("to kill the server");
    owner.kill();
    // The server is now a zombie of whoever adopts orphans, and its pid file says that it runs.
    let next = open(&dir);
    assert_eq!(
        text(&next.url(), "SELECT value FROM kept").await,
        "committed"
    );
}

#[tokio::test]
async fn a_pid_file_that_names_a_stranger_does_not_block_the_start() {
    let dir = TestDir::new();
    open(&dir).stop();
    // As after a restart of a container, where low process numbers come back.
    let pid_file = dir.path().join("postgres/data/postmaster.pid");
    fs::write(&pid_file, format!("{}\n", std::process::id())).expect("a stale pid file");
    assert_eq!(text(&open(&dir).url(), "SELECT 'up'").await, "up");
}

#[test]
fn of_two_concurrent_opens_exactly_one_owns() {
    let dir = TestDir::new();
    for _ in 0..3 {
        let barrier = Barrier::new(4);
        let open_at_once = || {
            barrier.wait();
            open(&dir)
        };
        let servers: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open_at_once)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a server"))
                .collect()
        });
        assert_eq!(servers.iter().filter(|server| server.is_owner()).count(), 1);
        assert!(
            servers
                .iter()
                .all(|server| server.url() == servers[0].url())
        );
    }
}

#[test]
fn who_waits_for_a_starting_owner_that_dies_becomes_the_owner() {
    let dir = TestDir::new();
    open(&dir).stop();
    let lock = fs::File::open(dir.path().join("postgres/lock")).expect("the lock");
    lock.lock()
        .expect("to hold it like a process that is starting");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| open(&dir));
        drop(lock);
        assert!(waiting.join().expect("a server").is_owner());
    });
}

#[tokio::test]
async fn a_long_or_unusual_path_gets_a_short_socket_folder() {
    let dir = TestDir::new();
    for name in [
        "long-name-".repeat(12),
        "spaces, commas & umläüte".to_owned(),
    ] {
        let server = open_in(&dir.path().join(name));
        let url = server.url();
        let folder = socket_folder(&server);
        assert!(folder.as_os_str().len() < 80, "{}", folder.display());
        let metadata = fs::metadata(&folder).expect("the socket folder");
        assert_eq!(metadata.mode() & 0o777, 0o700);
        assert_eq!(text(&url, "SELECT 'up'").await, "up");
        server.stop();
        assert!(!folder.exists(), "it goes with the server");
    }
}

#[tokio::test]
async fn the_tests_own_cluster_gives_each_test_an_empty_database() {
    let (one, other) = (
        cluster::empty_database().await,
        cluster::empty_database().await,
    );
    assert_ne!(one, other);
    execute(&one, "CREATE TABLE only_here ()").await;
    execute(&other, "CREATE TABLE only_here ()").await;
    assert_eq!(text(&one, "SHOW fsync").await, "off");
}
