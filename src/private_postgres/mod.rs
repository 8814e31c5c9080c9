//! The PostgreSQL server that belongs to this program, for when `DATABASE_URL` is not set.
//!
//! It lives in `<data dir>/postgres/` and is reached by a Unix socket only. One process owns it:
//!
//! 1. Whoever gets the lock on `postgres/lock` is the owner; the kernel frees the lock however the owner ends.
//! 2. The owner waits for leftovers of a killed predecessor, makes the cluster if there is none, starts the server.
//! 3. Once the server answers, the owner writes its address into the lock file, and others join with it.
//! 4. The server dies with its owner, also by `kill -9`: the kernel sends it SIGINT when the keeper thread ends.
//! 5. A joiner watches lock and address, and learns that way when the owner goes.

mod account;
mod binaries;
mod cluster;
mod data_dir;
mod error;
mod folders;
mod leftovers;
mod log;
mod ownership;
mod server;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use account::Account;
use ownership::LockFile;
use server::Server;

pub use data_dir::{choose_data_dir, resolve_data_dir};
pub use error::Error;

/// The role the program connects as, and the name of its database.
const NAME: &str = "permits";

/// How long somebody else's start may take before we give up joining it.
const JOIN_WITHIN: Duration = Duration::from_secs(30);

/// How often a waiting process looks again; file locks and readiness of the server have nothing to wait on.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What may differ from the product's way of running the server.
#[derive(Clone, Debug)]
pub struct Options {
    /// `false` gives up surviving a power cut for speed; for throw-away clusters in tests.
    pub durable: bool,
    /// Folders to look in for `initdb` and `postgres`; `None` means `PATH` and the places packages use.
    pub binary_folders: Option<Vec<PathBuf>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { durable: true, binary_folders: None }
    }
}

/// A running private server, owned by this process or shared with the process that owns it.
///
/// Dropping it is the same as [`stop`](Self::stop).
#[derive(Debug)]
pub struct PrivatePostgres {
    socket_folder: PathBuf,
    owner_pid: u32,
    /// Some when we are the owner.
    server: Option<Server>,
    ended: watch::Receiver<Option<String>>,
}

impl PrivatePostgres {
    /// Starts the server of `data_dir`, or joins the process that has it. Blocks: about a second when the cluster has
    /// to be made, tens of milliseconds on an existing one, longer while it recovers from a crash.
    ///
    /// Every error is one sentence that names the folder and says what to do.
    pub fn open(data_dir: &Path) -> Result<Self, Error> {
        Self::open_with(data_dir, &Options::default())
    }

    /// [`open`](Self::open) with [`Options`].
    pub fn open_with(data_dir: &Path, options: &Options) -> Result<Self, Error> {
        let data_dir = folders::absolute(data_dir)?;
        let folder = data_dir.join("postgres");
        let account = Account::for_folder(&folder)?;
        folders::create(&data_dir, &account)?;
        folders::claim(&folder, &account)?;
        if !account.can_enter(&folder) {
            return Err(Error::unreachable(&data_dir, &account));
        }
        let lock = LockFile::open(&folder, &account)?;
        let began = Instant::now();
        loop {
            if lock.try_take()? {
                return Self::own(folder, account, lock, options);
            }
            if let Some(record) = lock.read().filter(ownership::Record::answers) {
                tracing::info!(owner = record.pid, "using the database server of another process");
                return Ok(Self {
                    socket_folder: record.socket_folder.clone(),
                    owner_pid: record.pid,
                    server: None,
                    ended: ownership::watch(lock, record),
                });
            }
            if began.elapsed() > JOIN_WITHIN {
                return Err(Error::Busy { folder });
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn own(folder: PathBuf, account: Account, lock: LockFile, options: &Options) -> Result<Self, Error> {
        lock.clear();
        let tag = folders::tag(&folder);
        let socket_folder = folders::socket_folder(&folder, &tag, &account)?;
        leftovers::clear(&folder, &socket_folder, &tag, &account)?;
        let binaries = cluster::prepare(&folder, &account, options)?;
        let server = server::start(
            server::Plan {
                binaries,
                account,
                folder,
                socket_folder: socket_folder.clone(),
                tag,
                durable: options.durable,
            },
            lock,
        )?;
        Ok(Self { socket_folder, owner_pid: std::process::id(), ended: server.ended(), server: Some(server) })
    }

    /// The connection URL of the program's database: `postgres://permits@localhost/permits?host=<socket folder>`.
    pub fn url(&self) -> String {
        self.url_for(NAME)
    }

    /// The URL of another database of the same server; `database` is a plain identifier.
    pub fn url_for(&self, database: &str) -> String {
        let host = folders::percent_encoded(&self.socket_folder);
        format!("postgres://{NAME}@localhost/{database}?host={host}")
    }

    /// Whether this process started the server, and ends it.
    pub fn is_owner(&self) -> bool {
        self.server.is_some()
    }

    /// The process that owns the server; our own id when [`is_owner`](Self::is_owner).
    pub fn owner_pid(&self) -> u32 {
        self.owner_pid
    }

    /// Resolves with one sentence when the server, or the process that owns it, has gone without our doing.
    /// Safe to drop and to call again.
    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(sentence) => sentence.clone().unwrap_or_default(),
            Err(_) => "nobody watches the private PostgreSQL server any more".to_owned(),
        }
    }

    /// The owner ends the server and waits for it (blocking, tens of milliseconds when little is unwritten); open
    /// connections are cut. A joiner just leaves.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        self.end();
    }
}
