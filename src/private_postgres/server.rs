//! The running server: started, kept and ended.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::watch;

use super::account::Account;
use super::binaries::Binaries;
use super::cluster::DATA;
use super::log::{Log, Tail};
use super::ownership::{LockFile, Record};
use super::{Error, LOOK_AGAIN, leftovers};

/// Recovery after a crash replays at most `max_wal_size` and some more; a server that takes longer hangs.
const READY_WITHIN: Duration = Duration::from_mins(10);

/// How long a fast shutdown may take before an immediate one, which costs a recovery at the next start.
const STOP_WITHIN: Duration = Duration::from_mins(1);

/// How long a dead server's output may keep the news waiting.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// What nobody may change: reached by the socket only, output to us, no values of rows in the log.
const FIXED: [&str; 8] = [
    "listen_addresses=",
    "port=5432",
    "unix_socket_permissions=0700",
    "logging_collector=off",
    "log_destination=stderr",
    "log_line_prefix=%m [%p] ",
    "log_error_verbosity=terse",
    "timezone=UTC",
];

/// For a machine that has other things to do, and disks without a seek.
const SIZES: [&str; 4] = ["max_connections=200", "shared_buffers=128MB", "max_wal_size=2GB", "random_page_cost=1.1"];

const DURABLE: [&str; 3] = ["fsync=on", "synchronous_commit=on", "full_page_writes=on"];
const FAST: [&str; 3] = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/// What to start.
pub(super) struct Plan {
    pub binaries: Binaries,
    pub account: Account,
    /// The private server's folder; the cluster is in `data` below.
    pub folder: PathBuf,
    pub socket_folder: PathBuf,
    pub tag: String,
    pub durable: bool,
}

/// A server that this process owns.
#[derive(Debug)]
pub(super) struct Server {
    process: Arc<Process>,
    keeper: JoinHandle<()>,
    ended: watch::Receiver<Option<String>>,
    lock: Arc<LockFile>,
}

/// The server's process, until it has been reaped. Signals are sent under the lock, so that they never hit a stranger.
#[derive(Debug, Default)]
struct Process {
    pid: Mutex<Option<Pid>>,
    reaped: Condvar,
}

impl Process {
    fn lock(&self) -> MutexGuard<'_, Option<Pid>> {
        self.pid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = *self.lock() {
            // It is our child and not yet reaped, so this cannot fail.
            let _ = kill(pid, signal);
        }
    }

    /// Whether it has been reaped when the time is over.
    fn ends_within(&self, limit: Duration) -> bool {
        let waited = self.reaped.wait_timeout_while(self.lock(), limit, |pid| pid.is_some());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_none()
    }
}

/// Starts the server and returns when it answers and others can join.
pub(super) fn start(plan: Plan, lock: LockFile) -> Result<Server, Error> {
    let began = Instant::now();
    let folder = plan.folder.clone();
    let record = Record::new(plan.socket_folder.clone());
    let log = Log::new(folder.join("log"), plan.account.clone());
    let tail = log.tail();
    let (server, pid) = Server::spawn(plan, log, lock)?;
    let pid_file = folder.join(DATA).join("postmaster.pid");
    while !(is_ready(&pid_file, pid) && record.answers()) {
        if server.has_ended() || began.elapsed() > READY_WITHIN {
            server.stop();
            return Err(Error::start(&folder, &words(&tail)));
        }
        thread::sleep(LOOK_AGAIN);
    }
    if let Err(error) = server.lock.publish(&record) {
        server.stop();
        return Err(error);
    }
    let took_ms = began.elapsed().as_millis() as u64;
    tracing::info!(folder = %folder.display(), pid = pid.as_raw(), took_ms, "the private database server is running");
    Ok(server)
}

/// Line 8 of the server's pid file tells what it is doing.
fn is_ready(pid_file: &Path, pid: Pid) -> bool {
    let text = fs::read_to_string(pid_file).unwrap_or_default();
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
}

fn words(tail: &Tail) -> String {
    tail.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Server {
    fn spawn(plan: Plan, log: Log, lock: LockFile) -> Result<(Self, Pid), Error> {
        let folder = plan.folder.clone();
        let lock = Arc::new(lock);
        let process = Arc::new(Process::default());
        let (spawned, was_spawned) = mpsc::channel();
        let (end, ended) = watch::channel(None);
        // The kernel ends the server with the thread that spawned it, so that thread does nothing but keep it.
        let keeper = {
            let (lock, process) = (lock.clone(), process.clone());
            move || {
                let sentence = keep(&plan, log, &lock, &process, &spawned);
                end.send_replace(Some(sentence));
            }
        };
        let keeper = thread::Builder::new().name("private-postgres".into()).spawn(keeper);
        let keeper = keeper.map_err(Error::folder(&folder))?;
        let pid = was_spawned.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        let pid = pid.map_err(|error| Error::start(&folder, &error.to_string()))?;
        let server = Self { process, keeper, ended, lock };
        Ok((server, pid))
    }

    pub(super) fn ended(&self) -> watch::Receiver<Option<String>> {
        self.ended.clone()
    }

    fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Ends the server, waits for it, and only then frees the lock.
    pub(super) fn stop(self) {
        self.lock.clear();
        let began = Instant::now();
        self.process.signal(Signal::SIGINT);
        if !self.process.ends_within(STOP_WITHIN) {
            tracing::warn!("the private database server takes long to end; ending it at once, its next start recovers");
            self.process.signal(Signal::SIGQUIT);
        }
        let _ = self.keeper.join();
        tracing::info!(took_ms = began.elapsed().as_millis() as u64, "the private database server has ended");
    }
}

/// The keeper's work: spawns the server, stays until it has ended, and says how.
fn keep(plan: &Plan, log: Log, lock: &LockFile, process: &Process, spawned: &mpsc::Sender<io::Result<Pid>>) -> String {
    let mut child = match command(plan).spawn() {
        Ok(child) => child,
        Err(error) => {
            let sentence = error.to_string();
            let _ = spawned.send(Err(error));
            return sentence;
        }
    };
    let pid = Pid::from_raw(child.id() as i32);
    *process.lock() = Some(pid);
    let (copying, copied) = mpsc::channel::<()>();
    if let Some(stderr) = child.stderr.take() {
        thread::spawn(move || {
            log.copy(stderr);
            drop(copying);
        });
    }
    let _ = spawned.send(Ok(pid));

    until_exit(&mut child);
    let status = {
        let mut pid = process.lock();
        *pid = None;
        child.wait()
    };
    process.reaped.notify_all();
    // Its last words, unless a process of the killed server still holds the pipe.
    let _ = copied.recv_timeout(LAST_WORDS_WITHIN);
    lock.clear();
    if plan.socket_folder != plan.folder {
        let _ = fs::remove_dir(&plan.socket_folder);
    }
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let log = plan.folder.join("log");
    format!("the private PostgreSQL server has ended unexpectedly ({how}); its log is {}", log.display())
}

fn command(plan: &Plan) -> Command {
    // SIGINT is PostgreSQL's fast shutdown: cut the connections, write everything, end.
    let mut command = plan.account.command(&plan.binaries.postgres(), Signal::SIGINT);
    command.arg("-D").arg(plan.folder.join(DATA)).arg("-k").arg(&plan.socket_folder);
    let durability = if plan.durable { DURABLE } else { FAST };
    for setting in FIXED.iter().chain(&SIZES).chain(&durability) {
        command.args(["-c", setting]);
    }
    command.arg("-c").arg(format!("cluster_name={}", leftovers::cluster_name(&plan.tag)));
    // A group of its own: Ctrl-C in the terminal is for us, who still need the database to end in order.
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Waits, but leaves the zombie, so that its number stays taken until nobody sends it a signal any more.
#[cfg(target_os = "linux")]
fn until_exit(child: &mut Child) {
    use nix::errno::Errno;
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let pid = Pid::from_raw(child.id() as i32);
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
}

#[cfg(not(target_os = "linux"))]
fn until_exit(child: &mut Child) {
    let _ = child.wait();
}
