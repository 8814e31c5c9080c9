//! What can go wrong, each as one sentence that names the folder and says what to do.

use std::io;
use std::path::{Path, PathBuf};

use super::account::Account;
use super::binaries::OLDEST_MAJOR;

/// Why there is no private server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither on `PATH` nor in the usual folders.
    #[error(
        "no PostgreSQL server (initdb and postgres, version {OLDEST_MAJOR} or newer) was found: install one \
         (apt-get install postgresql), or set DATABASE_URL to a database that you run yourself"
    )]
    NoBinaries,
    /// A cluster opens only with the major version that made it.
    #[error(
        "the database in {} was made by PostgreSQL {cluster}, but only {found} was found: install it \
         (apt-get install postgresql-{cluster}), or set DATABASE_URL",
        folder.display()
    )]
    OtherVersion {
        /// The private server's folder.
        folder: PathBuf,
        /// Major version of the cluster.
        cluster: u32,
        /// What is installed, for reading.
        found: String,
    },
    /// We are root, PostgreSQL refuses root, and there is nobody to step down to.
    #[error(
        "PostgreSQL does not run as root, and there is no account postgres or nobody: add one, or set DATABASE_URL"
    )]
    NoAccount,
    /// PostgreSQL refuses a user id that has no name.
    #[error(
        "PostgreSQL does not run under the user id {0}, which has no name in the system's account list: \
         add an account for it, or set DATABASE_URL"
    )]
    NamelessAccount(u32),
    /// The server's account cannot go where its files are.
    #[error(
        "the account {account}, which runs the database, cannot enter {}: set DATA_DIR to a folder that it can enter \
         (for example /var/lib/permit-notifier), or let it through with chmod o+x on the folders above",
        folder.display()
    )]
    Unreachable {
        /// The data folder.
        folder: PathBuf,
        /// Name of the account.
        account: String,
    },
    /// The folder is another account's.
    #[error(
        "{} belongs to the user id {owner}: run as that account or as root, or set DATA_DIR to another folder",
        folder.display()
    )]
    Foreign {
        /// The folder in question.
        folder: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// The folder for the socket, under the system's temporary folder, is another account's.
    #[error(
        "{} is needed for the database's socket but belongs to the user id {owner}: remove it, or set DATA_DIR to a \
         shorter path",
        folder.display()
    )]
    ForeignSocketFolder {
        /// The folder in question.
        folder: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Missing rights, a file in the way, a failing disk.
    #[error("the folder {} cannot be used: {source}; mend that, or set DATA_DIR to another folder", folder.display())]
    Folder {
        /// The folder or file in question.
        folder: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk is full.
    #[error("there is no room left on the disk of {}: free some, or set DATA_DIR to a folder on another disk", folder.display())]
    NoRoom {
        /// The private server's folder.
        folder: PathBuf,
    },
    /// The lock is held, but its holder has no server yet.
    #[error("another process is still starting or stopping the database in {}: try again in a while", folder.display())]
    Busy {
        /// The private server's folder.
        folder: PathBuf,
    },
    /// Server processes without an owner, which do not end.
    #[error("the process {pid} still uses the database in {}: end it first", folder.display())]
    StillUsed {
        /// The private server's folder.
        folder: PathBuf,
        /// One of the processes.
        pid: i32,
    },
    /// `initdb` or the first `CREATE DATABASE` failed.
    #[error("the database in {} could not be made: {detail}", folder.display())]
    Create {
        /// The private server's folder.
        folder: PathBuf,
        /// The tool's own words, one line.
        detail: String,
    },
    /// The server did not come up.
    #[error("the database in {} could not be started: {detail} (more in {})", folder.display(), folder.join("log").display())]
    Start {
        /// The private server's folder.
        folder: PathBuf,
        /// The server's own words, one line.
        detail: String,
    },
}

impl Error {
    pub(super) fn folder(folder: &Path) -> impl FnOnce(io::Error) -> Self {
        let folder = folder.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoRoom { folder },
            _ => Self::Folder { folder, source },
        }
    }

    pub(super) fn unreachable(folder: &Path, account: &Account) -> Self {
        Self::Unreachable { folder: folder.to_owned(), account: account.name.clone() }
    }

    /// `initdb` failed and said `output`.
    pub(super) fn create(folder: &Path, output: &str) -> Self {
        Self::no_room(folder, output)
            .unwrap_or_else(|| Self::Create { folder: folder.to_owned(), detail: complaint(output) })
    }

    /// The server ended at the start and said `output`.
    pub(super) fn start(folder: &Path, output: &str) -> Self {
        Self::no_room(folder, output)
            .unwrap_or_else(|| Self::Start { folder: folder.to_owned(), detail: complaint(output) })
    }

    /// PostgreSQL's tools tell a full disk only in words; they run in English here.
    fn no_room(folder: &Path, output: &str) -> Option<Self> {
        let full = output.contains("No space left on device") || output.contains("Disk quota exceeded");
        full.then(|| Self::NoRoom { folder: folder.to_owned() })
    }
}

/// The line that matters in what a PostgreSQL program printed: its first complaint, else its last line.
fn complaint(output: &str) -> String {
    const WORDS: [&str; 4] = ["error: ", "FATAL:  ", "PANIC:  ", "ERROR:  "];
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    lines()
        .find_map(|line| WORDS.iter().find_map(|word| line.split_once(word)).map(|(_, rest)| rest))
        .or_else(|| lines().next_back())
        .unwrap_or("it ended without a word")
        .to_owned()
}
