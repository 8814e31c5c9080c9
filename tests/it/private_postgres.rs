//! The private server: made, joined, killed, recovered, refused. Works as root and as an ordinary user.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use permit_notifier::private_postgres::{Error, Options, PrivatePostgres, choose_data_dir};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::support::cluster;
use crate::support::run_folder::TestDir;

/// Set in a process that a test starts to own a server, and to be killed.
const CHILD_DATA_DIR: &str = "PRIVATE_POSTGRES_CHILD_DATA_DIR";

/// What such a process prints once it has the server: this, its role and the URL.
const CHILD_READY: &str = "child-ready";

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

/// A process of its own that owns or joins the server of a folder, until it is killed.
struct Holder {
    child: Child,
    output: BufReader<ChildStdout>,
    role: String,
    url: String,
}

impl Holder {
    fn start(data_dir: &Path) -> Self {
        let mut child = Command::new(env::current_exe().expect("our own program"))
            .args([
                "--exact",
                "private_postgres::child_holds_a_server_until_killed",
                "--nocapture",
            ])
            .env(CHILD_DATA_DIR, data_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child process");
        let mut holder = Self {
            output: BufReader::new(child.stdout.take().expect("its output")),
            child,
            role: String::new(),
            url: String::new(),
        };
        let line = holder.line_with(CHILD_READY);
        let mut words = line
            .split_whitespace()
            .skip_while(|word| *word != CHILD_READY)
            .skip(1);
        holder.role = words.next().expect("a role").to_owned();
        holder.url = words.next().expect("a URL").to_owned();
        holder
    }

    fn line_with(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self
            .output
            .read_line(&mut line)
            .expect("the child's output")
            > 0
        {
            if line.contains(word) {
                return line;
            }
            line.clear();
        }
        panic!("the child ended without a line with {word}");
    }

    fn kill(&mut self) {
        self.child.kill().expect("to kill the child");
        self.child.wait().expect("its end");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test by itself: the role that [`Holder`] gives to this program.
#[tokio::test]
async fn child_holds_a_server_until_killed() {
    let Some(data_dir) = env::var_os(CHILD_DATA_DIR) else {
        return;
    };
    let server = open_in(Path::new(&data_dir));
    let role = if server.is_owner() { "owner" } else { "joiner" };
    println!("{CHILD_READY} {role} {}", server.url());
    // The parent's end closes our input too, should it die first.
    let parent_gone =
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    tokio::select! {
        sentence = server.ended() => println!("child-ended {sentence}"),
        _ = parent_gone => {}
    }
    std::process::exit(0);
}

/// Whether a process still uses the cluster. The kernel tells no event for a process that is not our child.
fn wait_until_no_server_uses(dir: &TestDir) {
    let data = fs::canonicalize(dir.path().join("postgres/data")).expect("the cluster");
    let uses =
        |entry: fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == data);
    let began = Instant::now();
    while fs::read_dir("/proc").expect("/proc").flatten().any(uses) {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "a server outlived its owner"
        );
        thread::sleep(Duration::from_millis(5));
    }
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
    let line = joiner.line_with("child-ended");
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
    owner.kill();
    wait_until_no_server_uses(&dir);
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
        let folder = url
            .split_once("host=")
            .expect("a host")
            .1
            .replace("%2F", "/");
        assert!(folder.len() < 80, "{folder}");
        let metadata = fs::metadata(&folder).expect("the socket folder");
        assert_eq!(metadata.mode() & 0o777, 0o700);
        assert_eq!(text(&url, "SELECT 'up'").await, "up");
        server.stop();
        assert!(!Path::new(&folder).exists(), "it goes with the server");
    }
}

#[test]
fn a_socket_folder_of_somebody_else_is_refused() {
    let dir = TestDir::new();
    let data_dir = dir.path().join("long-name-".repeat(12));
    let server = open_in(&data_dir);
    let folder = PathBuf::from(
        server
            .url()
            .split_once("host=")
            .expect("a host")
            .1
            .replace("%2F", "/"),
    );
    server.stop();
    if geteuid().is_root() {
        fs::create_dir(&folder).expect("the folder");
        std::os::unix::fs::chown(&folder, Some(1), None).expect("to give it away");
    } else {
        // Nobody can give a folder away; a link to a foreign one is the next best trick.
        std::os::unix::fs::symlink("/usr", &folder).expect("the link");
    }
    let error = PrivatePostgres::open(&data_dir)
        .expect_err("not with a foreign folder")
        .to_string();
    let _ = fs::remove_dir(&folder).or_else(|_| fs::remove_file(&folder));
    assert!(error.contains(folder.to_str().expect("text")), "{error}");
    one_sentence(&error);
}

#[test]
fn a_data_dir_that_postgresql_cannot_reach_is_an_error_or_falls_back() {
    let dir = TestDir::new();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("its mode");
    let (wanted, fallback) = (closed.join("data"), dir.path().join("fallback"));
    if geteuid().is_root() {
        let error = choose_data_dir(Some(&wanted), &wanted, &fallback)
            .expect_err("unreachable")
            .to_string();
        assert!(
            error.contains("DATA_DIR") && error.contains(wanted.to_str().expect("text")),
            "{error}"
        );
        one_sentence(&error);
        assert!(
            !wanted.exists() && !fallback.exists(),
            "nothing is made in vain"
        );
        let (taken, sentence) = choose_data_dir(None, &wanted, &fallback).expect("the fallback");
        assert_eq!(taken, fallback);
        one_sentence(&sentence.expect("it is said"));
        assert!(matches!(
            PrivatePostgres::open(&wanted),
            Err(Error::Unreachable { .. })
        ));
    } else {
        let (taken, sentence) = choose_data_dir(None, &wanted, &fallback).expect("our own folder");
        assert_eq!((taken, sentence), (wanted, None));
    }
    let (taken, sentence) =
        choose_data_dir(Some(&dir.path().join("a/b")), &closed, &closed).expect("a reachable one");
    assert_eq!((taken.clone(), sentence), (dir.path().join("a/b"), None));
    open_in(&taken).stop();
}

#[test]
fn a_data_dir_that_cannot_be_made_is_named() {
    let dir = TestDir::new();
    let file = dir.path().join("file");
    fs::write(&file, "").expect("a file");
    let error = PrivatePostgres::open(&file.join("data"))
        .expect_err("a file is in the way")
        .to_string();
    assert!(error.contains(file.to_str().expect("text")), "{error}");
    one_sentence(&error);
}

/// A folder with programs that say what a test wants.
fn fake_programs(dir: &TestDir, version: &str, words_of_initdb: &str) -> Options {
    let folder = dir.path().join("bin");
    fs::create_dir(&folder).expect("a folder");
    for (name, words) in [
        ("postgres", format!("postgres (PostgreSQL) {version}")),
        ("initdb", String::new()),
    ] {
        let script = format!(
            "#!/bin/sh\necho '{words}'\necho '{words_of_initdb}' >&2\n[ {name} = postgres ]\n"
        );
        let program = folder.join(name);
        fs::write(&program, script).expect("a script");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("its mode");
    Options {
        binary_folders: Some(vec![folder]),
        ..Options::default()
    }
}

fn failure(dir: &TestDir, options: &Options) -> String {
    let error = PrivatePostgres::open_with(dir.path(), options)
        .expect_err("no server")
        .to_string();
    one_sentence(&error);
    error
}

#[test]
fn without_programs_the_error_says_how_to_get_them() {
    let dir = TestDir::new();
    let options = Options {
        binary_folders: Some(vec![dir.path().to_owned()]),
        ..Options::default()
    };
    let error = failure(&dir, &options);
    assert!(
        error.contains("apt-get install postgresql") && error.contains("DATABASE_URL"),
        "{error}"
    );
}

#[test]
fn programs_that_are_too_old_are_not_taken() {
    let dir = TestDir::new();
    let error = failure(&dir, &fake_programs(&dir, "13.2", ""));
    assert!(error.contains("14 or newer"), "{error}");
}

#[test]
fn a_cluster_of_another_version_is_not_touched() {
    let dir = TestDir::new();
    open(&dir).stop();
    let error = failure(&dir, &fake_programs(&dir, "99beta1", ""));
    assert!(error.contains("but only 99 was found"), "{error}");
    open(&dir).stop();
}

#[test]
fn a_full_disk_is_one_sentence_with_the_folder_and_leaves_nothing_behind() {
    let dir = TestDir::new();
    let words = "initdb: error: could not write to file: No space left on device";
    let error = failure(&dir, &fake_programs(&dir, "15.1", words));
    assert!(
        error.contains("no room") && error.contains(dir.path().to_str().expect("text")),
        "{error}"
    );
    open(&dir).stop();
    let names = fs::read_dir(dir.path().join("postgres"))
        .expect("the folder")
        .flatten();
    let unfinished =
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with("data.new"));
    assert_eq!(unfinished.count(), 0);
}

#[test]
fn a_server_that_does_not_come_up_says_why() {
    let dir = TestDir::new();
    open(&dir).stop();
    let conf = dir.path().join("postgres/data/postgresql.conf");
    fs::write(&conf, "no_such_setting = 1\n").expect("a broken configuration");
    let error = failure(&dir, &Options::default());
    assert!(
        error.contains("could not be started") && error.contains("postgres/log"),
        "{error}"
    );
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

fn one_sentence(text: &str) {
    assert!(
        !text.contains('\n') && !text.contains("  ") && text.len() < 400,
        "{text}"
    );
}
