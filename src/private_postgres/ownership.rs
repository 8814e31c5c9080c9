//! Who owns the server: a lock that the kernel frees, and a record in the locked file that lets others join.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use super::account::Account;
use super::folders::SOCKET_FILE;
use super::{Error, folders};

/// How soon a joiner notices that the owner is gone.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// Last line of a complete record.
const COMPLETE: &str = "ready";

/// A server that answers, as its owner wrote it down. Lines of text: id, owner's process, socket folder, `ready`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Random; tells this server from the next one of the same process number.
    pub id: u64,
    pub pid: u32,
    pub socket_folder: PathBuf,
}

impl Record {
    pub(super) fn new(socket_folder: PathBuf) -> Self {
        Self { id: random(), pid: std::process::id(), socket_folder }
    }

    /// Whether somebody listens; a record may have outlived its server.
    pub(super) fn answers(&self) -> bool {
        UnixStream::connect(self.socket_folder.join(SOCKET_FILE)).is_ok()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let record = Self {
            id: u64::from_str_radix(lines.next()?, 16).ok()?,
            pid: lines.next()?.parse().ok()?,
            socket_folder: lines.next()?.into(),
        };
        (lines.next() == Some(COMPLETE)).then_some(record)
    }
}

/// The file whose lock is the ownership, as long as this value lives.
#[derive(Debug)]
pub(super) struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    pub(super) fn open(folder: &Path, account: &Account) -> Result<Self, Error> {
        let path = folder.join("lock");
        let file = folders::open_file(&path, account).map_err(Error::folder(&path))?;
        Ok(Self { file, path })
    }

    pub(super) fn try_take(&self) -> Result<bool, Error> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(Error::folder(&self.path)(error)),
        }
    }

    /// The owner's, once its server answers.
    pub(super) fn publish(&self, record: &Record) -> Result<(), Error> {
        let Record { id, pid, socket_folder } = record;
        let text = format!("{id:016x}\n{pid}\n{}\n{COMPLETE}\n", socket_folder.display());
        let write = || -> io::Result<()> {
            self.file.set_len(0)?;
            self.file.write_all_at(text.as_bytes(), 0)
        };
        write().map_err(Error::folder(&self.path))
    }

    /// The owner's, when nobody is to join any more.
    pub(super) fn clear(&self) {
        // If even this fails, joiners still find that nobody listens.
        let _ = self.file.set_len(0);
    }

    pub(super) fn read(&self) -> Option<Record> {
        let mut bytes = [0; 4096];
        let length = self.file.read_at(&mut bytes, 0).ok()?;
        Record::parse(std::str::from_utf8(&bytes[..length]).ok()?)
    }
}

/// Watches the owner from a joined process: it is gone when the lock is free or the record is another's.
pub(super) fn watch(lock: LockFile, record: Record) -> watch::Receiver<Option<String>> {
    let (sender, receiver) = watch::channel(None);
    thread::spawn(move || {
        while !sender.is_closed() {
            // Getting the lock for this one moment delays a process that wants it by one more look.
            if lock.read().as_ref() != Some(&record) || lock.try_take().is_ok_and(|free| free) {
                let pid = record.pid;
                let sentence = format!("the process {pid}, which owned the private PostgreSQL server, has ended it");
                drop(lock);
                sender.send_replace(Some(sentence));
                return;
            }
            thread::sleep(WATCH_EVERY);
        }
    });
    receiver
}

/// Enough chance to tell two runs apart; the standard library seeds its hash maps with it.
pub(super) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
