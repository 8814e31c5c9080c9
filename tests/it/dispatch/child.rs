//! This program again, as a process that dispatches and can be killed.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use permit_notifier::{
    clock::ManualClock, config::AmbiguousPolicy, dispatch::DispatchRules, mail::FileMailer, store::connect,
};

use crate::support::postbox::{Replica, noon, office};

/// Set in a process that is to dispatch: the database, the folder for mail, senders, and the lease in seconds.
const DATABASE: &str = "DISPATCH_CHILD_DATABASE";
const FOLDER: &str = "DISPATCH_CHILD_FOLDER";
const SENDERS: &str = "DISPATCH_CHILD_SENDERS";
const LEASE: &str = "DISPATCH_CHILD_LEASE";

/// What it prints once it is a member.
const READY: &str = "child-dispatches";

/// A dispatching process with mail as files.
pub struct Dispatching(Child);

impl Dispatching {
    /// Waits until it has its process row and begins to lease.
    pub fn start(url: &str, folder: &Path, senders: usize, lease: Duration) -> Self {
        let mut child = Command::new(env::current_exe().expect("our own program"))
            .args(["--exact", "dispatch::child::child_dispatches_until_killed", "--nocapture"])
            .env(DATABASE, url)
            .env(FOLDER, folder)
            .env(SENDERS, senders.to_string())
            .env(LEASE, lease.as_secs().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let ready = output.lines().map_while(Result::ok).any(|line| line.contains(READY));
        assert!(ready, "the child ended before it was ready");
        Self(child)
    }

    /// `kill -9`
    pub fn kill(mut self) {
        self.0.kill().expect("to kill the child");
        self.0.wait().expect("its end");
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).expect("to reach the child");
    }
}

impl Drop for Dispatching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test by itself: the role that [`Dispatching`] gives to this program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_dispatches_until_killed() {
    let Some(url) = env::var(DATABASE).ok() else {
        return;
    };
    let set = |name| env::var(name).expect("a variable that the parent set");
    let folder = PathBuf::from(set(FOLDER));
    let rules = DispatchRules {
        pool: connect::pool(&url, 8).expect("a pool"),
        direct_url: url,
        clock: Arc::new(ManualClock::new(noon())),
        zone: chrono_tz::UTC,
        window: None,
        office: office(),
        mailer: Arc::new(FileMailer::new(folder)),
        concurrency: set(SENDERS).parse().expect("a number"),
        max_attempts: 16,
        lease: Duration::from_secs(set(LEASE).parse().expect("a number")),
        as_of: None,
        rate: 0,
        allowlist: None,
        policy: AmbiguousPolicy::Hold,
    };
    let mut replica = Replica::start(rules).await;
    println!("{READY}");
    replica.begin();
    // The parent's end closes our input, should it die first.
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await;
    std::process::exit(0);
}
