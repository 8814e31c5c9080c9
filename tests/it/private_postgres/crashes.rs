//! The private server after `kill -9`: nothing runs on, nothing committed is lost, the next start works at once.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use super::holder::{self, Holder};
use super::{execute, open, postmaster, text};
use crate::support::run_folder::TestDir;

#[tokio::test]
async fn kill_9_of_the_owner_leaves_no_server_and_the_next_start_keeps_committed_rows() {
    let dir = TestDir::new();
    let mut owner = Holder::start(dir.path());
    assert_eq!(owner.role, "owner");
    execute(&owner.url, "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('committed')").await;
    owner.kill();
    // At once: the old server may still be writing its last pages.
    let next = open(&dir);
    assert!(next.is_owner());
    assert_eq!(text(&next.url(), "SELECT value FROM kept").await, "committed");
    next.stop();

    let mut owner = Holder::start(dir.path());
    let server = postmaster(&dir);
    owner.kill();
    // No event tells of the end of a process that is not our child. A zombie has no command line.
    let began = Instant::now();
    while fs::read(format!("/proc/{server}/cmdline")).is_ok_and(|line| !line.is_empty()) {
        assert!(began.elapsed() < Duration::from_secs(10), "a server outlived its owner");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!dir.path().join("postgres/data/postmaster.pid").exists(), "it ended in order");
}

#[tokio::test]
async fn kill_9_of_the_server_is_told_and_a_restart_at_once_recovers() {
    let dir = TestDir::new();
    let server = open(&dir);
    execute(&server.url(), "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('committed')").await;
    kill(postmaster(&dir), Signal::SIGKILL).expect("to kill the server");
    let sentence = server.ended().await;
    assert!(sentence.contains("ended unexpectedly (signal: 9 (SIGKILL))"), "{sentence}");
    server.stop();
    let next = open(&dir);
    assert!(next.is_owner());
    assert_eq!(text(&next.url(), "SELECT value FROM kept").await, "committed");
}

#[tokio::test]
async fn kill_9_of_owner_and_server_together_recovers() {
    let dir = TestDir::new();
    let mut owner = Holder::start(dir.path());
    execute(&owner.url, "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('committed')").await;
    kill(postmaster(&dir), Signal::SIGKILL).expect("to kill the server");
    owner.kill();
    // The server is now a zombie of whoever adopts orphans, and its pid file says that it runs.
    let next = open(&dir);
    assert_eq!(text(&next.url(), "SELECT value FROM kept").await, "committed");
}

#[tokio::test]
async fn kill_9_while_the_cluster_is_made_leaves_nothing_half_made() {
    let dir = TestDir::new();
    let unfinished = || {
        let entries = fs::read_dir(dir.path().join("postgres")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("data.new-")).count()
    };
    let mut owner = holder::spawn(dir.path());
    while unfinished() == 0 {
        thread::yield_now();
    }
    owner.kill().expect("to kill the owner");
    owner.wait().expect("its end");
    assert!(!dir.path().join("postgres/data").exists());
    assert_eq!(text(&open(&dir).url(), "SELECT 'up'").await, "up");
    // A program of the killed run may have written a last file during that; the start after it finds all of it.
    open(&dir).stop();
    assert_eq!(unfinished(), 0);
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
