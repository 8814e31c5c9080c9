//! This program again, as a process that dispatches, with mail as files or by SMTP. It can be killed or stopped, and
//! it can be made to wait at a seam between two steps of a message, so that this happens exactly there.

mod seams;

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
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
    store::connect,
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
/// What it prints once it is a member.
const READY: &str = "child-dispatches";
/// What it prints at its orderly end.
const ENDED: &str = "child-ended";
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
        let input = self.child.stdin.as_mut().expect("its input");
        input.write_all(b"go on\n").and_then(|()| input.flush()).expect("to reach the child");
    }

    /// `kill -9`
    pub fn kill(mut self) {
        self.child.kill().expect("to kill the child");
        self.child.wait().expect("its end");
    }

    /// Lets it end in order: what it has begun is finished.
    pub async fn end(mut self) {
        drop(self.child.stdin.take());
        self.hear(ENDED).await;
    }

    /// Whether it ended although nobody asked it to.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("its standing").is_some()
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

/// Not a test by itself: the role that [`Dispatching`] gives to this program.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn child_dispatches_until_killed() {
    let Ok(role) = env::var(ROLE) else { return };
    let role: Role = serde_json::from_str(&role).expect("the role that the parent gave");
    let seams = Arc::new(Seams::new(role.wait));
    let mut replica = Replica::start(role.rules(&seams)).await;
    println!("{READY}");
    replica.begin();
    // The parent's end closes our input, should it die first.
    let obey = tokio::task::spawn_blocking(move || {
        for _ in std::io::stdin().lines().map_while(Result::ok) {
            seams.let_go();
        }
    });
    let _ = obey.await;
    replica.leave().await;
    println!("{ENDED}");
    std::process::exit(0);
}
