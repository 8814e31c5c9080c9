//! The private server: made, joined, killed, recovered, refused. Works as root and as an ordinary user.

mod crashes;
mod holder;
mod refusals;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use holder::Holder;
use nix::unistd::{Pid, geteuid};
use permit_notifier::private_postgres::{Options, PrivatePostgres};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::support::cluster;
use crate::support::run_folder::TestDir;

fn open(dir: &TestDir) -> PrivatePostgres {
    open_in(dir.path())
}

/// Without waiting for the disk, for what has nothing to do with a power cut.
fn open_fast(dir: &TestDir) -> PrivatePostgres {
    let options = Options { durable: false, ..Options::default() };
    PrivatePostgres::open_with(dir.path(), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn open_in(folder: &Path) -> PrivatePostgres {
    PrivatePostgres::open(folder).unwrap_or_else(|error| panic!("{error}"))
}

async fn execute(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::raw_sql(statement).execute(&mut connection).await.expect("the statement");
    connection.close().await.expect("the end of the connection");
}

async fn text(url: &str, query: &'static str) -> String {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::query(query).fetch_one(&mut connection).await.expect("a row").get(0)
}

pub fn postmaster(dir: &TestDir) -> Pid {
    let pid_file = fs::read_to_string(dir.path().join("postgres/data/postmaster.pid")).expect("the server's pid file");
    Pid::from_raw(pid_file.lines().next().expect("a line").parse().expect("a number"))
}

fn socket_folder(server: &PrivatePostgres) -> PathBuf {
    server.url().split_once("host=").expect("a host").1.replace("%2F", "/").into()
}

#[tokio::test]
async fn it_starts_answers_and_is_durable() {
    let dir = TestDir::new();
    let server = open(&dir);
    assert!(server.is_owner());
    assert_eq!(server.owner_pid(), std::process::id());
    let url = server.url();
    assert!(url.starts_with("postgres://permits@localhost/permits?host=%2F"), "{url}");
    assert_eq!(text(&url, "SELECT current_user || ' ' || current_database()").await, "permits permits");
    let encoding =
        "SELECT pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database WHERE datname = 'permits'";
    assert_eq!(text(&url, encoding).await, "UTF8 C.UTF-8");
    let settings = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings
        WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'unix_socket_permissions')";
    let expected = "fsync=on full_page_writes=on listen_addresses= synchronous_commit=on unix_socket_permissions=0700";
    assert_eq!(text(&url, settings).await, expected);
    server.stop();
    assert!(PgConnection::connect(&url).await.is_err(), "stopped means gone");
}

#[test]
fn its_folder_is_closed_to_others_and_its_server_is_not_root() {
    let dir = TestDir::new();
    let server = open_fast(&dir);
    let folder = fs::metadata(dir.path().join("postgres")).expect("the folder");
    assert_eq!(folder.mode() & 0o777, 0o700);
    let process = fs::metadata(format!("/proc/{}", postmaster(&dir))).expect("the server's process");
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
    let group = nix::unistd::getpgid(Some(postmaster(&dir))).expect("its group");
    assert_eq!(group, postmaster(&dir), "Ctrl-C in our terminal must not reach it before us");
    drop(server);
}

#[tokio::test]
async fn its_log_is_bounded_and_holds_no_values_of_rows() {
    let dir = TestDir::new();
    open_fast(&dir).stop();
    let folder = dir.path().join("postgres");
    fs::write(folder.join("log"), vec![b'\n'; 9 << 20]).expect("a long log");
    let server = open_fast(&dir);
    execute(&server.url(), "CREATE TABLE holder (email text UNIQUE); INSERT INTO holder VALUES ('a' || '@b')").await;
    let mut client = PgConnection::connect(&server.url()).await.expect("a connection");
    let again = sqlx::query("INSERT INTO holder VALUES ($1)").bind("a@b").execute(&mut client).await;
    again.expect_err("a second row of that value");
    server.stop();
    let log = fs::read_to_string(folder.join("log")).expect("the log");
    assert!(log.contains("duplicate key") && !log.contains("a@b"), "{log}");
    assert!(log.len() < 1 << 20);
    let before = fs::metadata(folder.join("log.1")).expect("the log before");
    assert_eq!(before.len() >> 20, 9);
}

#[tokio::test]
async fn a_second_process_joins_and_learns_when_the_owner_goes() {
    let dir = TestDir::new();
    let server = open_fast(&dir);
    let mut joiner = Holder::start(dir.path());
    assert_eq!(joiner.role, "joiner");
    assert_eq!(joiner.url, server.url());
    server.stop();
    let line = joiner.ended();
    assert!(line.contains(&format!("the process {}", std::process::id())), "{line}");
}

#[tokio::test]
async fn a_joiner_that_leaves_does_not_end_the_server() {
    let dir = TestDir::new();
    let server = open_fast(&dir);
    let joiner = open_fast(&dir);
    assert!(!joiner.is_owner());
    joiner.stop();
    assert_eq!(text(&server.url(), "SELECT 'still here'").await, "still here");
}

#[tokio::test]
async fn the_owner_stops_while_a_client_is_connected() {
    let dir = TestDir::new();
    let server = open_fast(&dir);
    let mut client = PgConnection::connect(&server.url()).await.expect("a connection");
    server.stop();
    assert!(client.ping().await.is_err());
}

#[test]
fn of_two_concurrent_opens_exactly_one_owns() {
    let dir = TestDir::new();
    for _ in 0..3 {
        let barrier = Barrier::new(4);
        let open_at_once = || {
            barrier.wait();
            open_fast(&dir)
        };
        let servers: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open_at_once)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a server")).collect()
        });
        assert_eq!(servers.iter().filter(|server| server.is_owner()).count(), 1);
        assert!(servers.iter().all(|server| server.url() == servers[0].url()));
    }
}

#[test]
fn who_waits_for_a_starting_owner_that_dies_becomes_the_owner() {
    let dir = TestDir::new();
    open_fast(&dir).stop();
    let lock = fs::File::open(dir.path().join("postgres/lock")).expect("the lock");
    lock.lock().expect("to hold it like a process that is starting");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| open_fast(&dir));
        drop(lock);
        assert!(waiting.join().expect("a server").is_owner());
    });
}

#[tokio::test]
async fn a_long_or_unusual_path_gets_a_short_socket_folder() {
    let dir = TestDir::new();
    for name in ["long-name-".repeat(12), "spaces, commas & umläüte".to_owned()] {
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
    let (one, other) = (cluster::empty_database().await, cluster::empty_database().await);
    assert_ne!(one, other);
    execute(&one, "CREATE TABLE only_here ()").await;
    execute(&other, "CREATE TABLE only_here ()").await;
    assert_eq!(text(&one, "SHOW fsync").await, "off");
}
