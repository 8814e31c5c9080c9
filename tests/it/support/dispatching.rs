//! This program again, as a process that dispatches, with mail as files or by SMTP. It can be killed or stopped, and
//! it can be made to wait at a seam between two steps of a message, so that this happens exactly there.

mod seams;

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use permit_notifier::{
    clock::ManualClock,
    config::AmbiguousPolicy,
    dispatch::DispatchRules,
    mail::{FileMailer, Mailer, smtp::Limits},
    scan::{ScanRequest, ScanRules, pass::run_once},
    shutdown::{Drained, Shutdown},
    store::{connect, scans::Trigger},
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{
    postbox::{Postbox, Replica, office},
    smtp_server::SmtpServer,
};
use seams::Seams;
pub use seams::{Seam, Wait};

/// Set in a process that is to dispatch: its [`Role`].
const ROLE: &str = "DISPATCH_CHILD";
/// What it is told.
const GO_ON: &str = "go on";
const SCAN: &str = "scan";
/// Its exit code when it stopped in order and could not finish what was in flight; `serve` says 1.
pub const CUT_OFF: i32 = 3;
/// What it prints once it is a member.
const READY: &str = "child-dispatches";
/// What it prints at its orderly end.
const ENDED: &str = "child-ended";
/// What it prints before it stops itself at a seam.
const STANDING: &str = "child-stands-still";
/// What it prints when a sender waits at its seam, with the recipient behind it.
const WAITS: &str = "child-waits-with ";

/// What carries the mail of a dispatching process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Carrier {
    /// Files in this folder.
    Folder(PathBuf),
    /// The server at this URL, with the limits of the product.
    Server(String),
    /// The server at this URL, with little patience for its replies.
    SlowServer(String),
}

/// What a dispatching process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Role {
    /// The URL of the database, or of a way to it that the test can cut.
    pub way: String,
    pub carrier: Carrier,
    pub senders: usize,
    pub lease: Duration,
    pub rate: u32,
    pub now: DateTime<Utc>,
    /// Where its senders wait.
    pub wait: Option<Wait>,
    /// So long at most its senders loiter at some seams, so that more is going on at each when something happens; and
    /// now and then the process stops itself there. Both until [`Dispatching::let_go`].
    pub loiter: Duration,
    /// How long a stop lasts before what is in flight is dropped.
    pub stop_limit: Duration,
}

impl Role {
    fn of(post: &Postbox, carrier: Carrier) -> Self {
        Self {
            way: post.url.clone(),
            carrier,
            senders: 2,
            lease: Duration::from_mins(1),
            rate: 0,
            now: post.clock.now(),
            wait: None,
            loiter: Duration::ZERO,
            stop_limit: Duration::from_secs(25),
        }
    }

    /// Two senders with mail as files.
    pub fn with_files(post: &Postbox, folder: &Path) -> Self {
        Self::of(post, Carrier::Folder(folder.to_owned()))
    }

    /// Two senders with mail by SMTP.
    pub fn with_server(post: &Postbox, server: &SmtpServer) -> Self {
        Self::of(post, Carrier::Server(server.url()))
    }

    /// Two senders with mail by SMTP, and little patience.
    pub fn with_slow_server(post: &Postbox, server: &SmtpServer) -> Self {
        Self::of(post, Carrier::SlowServer(server.url()))
    }

    fn scan_rules(&self, replica: &Replica) -> ScanRules {
        ScanRules {
            direct_url: self.way.clone(),
            clock: Arc::new(ManualClock::new(self.now)),
            zone: chrono_tz::UTC,
            window: None,
            claim_limit: 0,
            boot_id: replica.membership.boot_id(),
            patience: permit_notifier::scan::PATIENCE,
            stop: replica.soft.clone(),
            heartbeat: permit_notifier::outgoing::heartbeat::Heartbeat::default(),
        }
    }

    fn rules(&self, seams: &Arc<Seams>) -> DispatchRules {
        let mailer: Arc<dyn Mailer> = match &self.carrier {
            Carrier::Folder(folder) => Arc::new(FileMailer::new(folder)),
            Carrier::Server(url) => Arc::new(crate::smtp::mailer(url, Limits::default())),
            Carrier::SlowServer(url) => Arc::new(crate::smtp::mailer(url, crate::smtp::impatient())),
        };
        DispatchRules {
            pool: connect::pool(&self.way, 8).expect("a pool"),
            direct_url: self.way.clone(),
            clock: Arc::new(ManualClock::new(self.now)),
            zone: chrono_tz::UTC,
            window: None,
            office: office(),
            mailer: seams.around(mailer),
            concurrency: self.senders,
            max_attempts: 16,
            lease: self.lease,
            as_of: None,
            rate: self.rate,
            allowlist: None,
            policy: AmbiguousPolicy::Hold,
        }
    }
}

/// A dispatching process.
pub struct Dispatching {
    child: Child,
    said: mpsc::UnboundedReceiver<String>,
}

impl Dispatching {
    /// Waits until it has its process row and begins to lease.
    pub async fn start(role: &Role) -> Self {
        let mut child = Command::new(env::current_exe().expect("our own program"))
            .args(["--exact", "support::dispatching::child_dispatches_until_killed", "--nocapture"])
            .env(ROLE, serde_json::to_string(role).expect("plain data"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (tell, said) = mpsc::unbounded_channel();
        // Ends with the child's output.
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let mut dispatching = Self { child, said };
        dispatching.hear(READY).await;
        dispatching
    }

    /// Waits until so many senders wait at their seam; says with which recipients.
    pub async fn waits(&mut self, senders: usize) -> Vec<String> {
        let mut recipients = Vec::with_capacity(senders);
        while recipients.len() < senders {
            recipients.push(self.hear(WAITS).await);
        }
        recipients
    }

    /// Lets all senders go on, now and later.
    pub fn let_go(&mut self) {
        self.tell(GO_ON).expect("to reach the child");
    }

    /// Has it scan once beside its dispatching; one that just died does not.
    pub fn scan(&mut self) {
        let _ = self.tell(SCAN);
    }

    fn tell(&mut self, what: &str) -> std::io::Result<()> {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{what}").and_then(|()| input.flush())
    }

    /// `kill -9`
    pub fn kill(mut self) {
        self.child.kill().expect("to kill the child");
        self.child.wait().expect("its end");
    }

    /// Lets it end in order: what it has begun is finished.
    pub async fn end(mut self) {
        self.close_input();
        self.hear(ENDED).await;
    }

    /// Its number, as its process rows have it.
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    /// Whether it ended, asked to or not.
    pub fn has_ended(&mut self) -> bool {
        self.exit_status().is_some()
    }

    /// Whether it stopped itself since this was asked last; then it wants a SIGCONT.
    pub fn stands_still(&mut self) -> bool {
        let mut stands = false;
        while let Ok(line) = self.said.try_recv() {
            stands |= line.contains(STANDING);
        }
        stands
    }

    /// How it ended, if it did.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its standing")
    }

    /// Lets it end in order, in its own time.
    pub fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("to reach the child");
    }

    /// What the child says behind `word`, once it says that.
    async fn hear(&mut self, word: &str) -> String {
        let hear = async {
            loop {
                let line = self.said.recv().await.unwrap_or_else(|| panic!("the child ended before it said {word}"));
                if let Some((_, rest)) = line.split_once(word) {
                    return rest.to_owned();
                }
            }
        };
        let heard = tokio::time::timeout(Duration::from_secs(30), hear).await;
        heard.unwrap_or_else(|_| panic!("the child never said {word}"))
    }
}

impl Drop for Dispatching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test by itself: the role that [`Dispatching`] gives to this program. It stops as `serve` does, at SIGTERM or
/// at the end of its input.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn child_dispatches_until_killed() {
    let Ok(role) = env::var(ROLE) else { return };
    let role: Role = serde_json::from_str(&role).expect("the role that the parent gave");
    let shutdown = Shutdown::new();
    shutdown.listen_for_signals().expect("the signals");
    let seams = Arc::new(Seams::new(role.wait, role.loiter));
    let mut replica = Replica::start(role.rules(&seams)).await;
    (replica.soft, replica.hard) = (shutdown.soft().clone(), shutdown.hard().clone());
    println!("{READY}");
    let dispatcher = replica.dispatcher.clone();
    let (soft, hard) = (replica.soft.clone(), replica.hard.clone());
    shutdown.spawn("dispatch", async move {
        dispatcher.run(soft, hard).await;
        Ok::<(), String>(())
    });
    let (scan, mut scans) = mpsc::unbounded_channel();
    let rules = role.scan_rules(&replica);
    shutdown.spawn("scan", async move {
        let request = ScanRequest { scheduled_for: None, trigger: Trigger::Manual, as_of: None };
        while let Some(Some(())) = rules.stop.run_until_cancelled(scans.recv()).await {
            // One whose connection is cut is tried again by somebody else.
            let _ = run_once(&rules, request).await;
        }
        Ok::<(), String>(())
    });
    // The parent's end closes our input, should it die first.
    let stop = shutdown.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            match line.as_str() {
                SCAN => drop(scan.send(())),
                _ => seams.let_go(),
            }
        }
        stop.stop();
    });
    shutdown.soft().cancelled().await;
    let was_whole = !shutdown.has_failed();
    let drained = shutdown.drain(role.stop_limit).await;
    // As with `serve`, a database that is away does not change how it ended.
    let _ = replica.part().await;
    println!("{ENDED}");
    std::process::exit(match drained {
        Drained::CutOff(_) if was_whole => CUT_OFF,
        _ => i32::from(shutdown.has_failed()),
    });
}
