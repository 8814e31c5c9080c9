//! Mail as files: `<folder>/<message id>.eml`, for an office that has no mail server configured.
//!
//! 1. The message is written to a hidden name in the same folder and synced.
//! 2. `may_finish` is asked; then it is renamed to its final name. That is the point of no return.
//! 3. The folder is synced. Only then is the message accepted, and the file's name is the proof.
//!
//! A file of that name from an earlier attempt is replaced: the Message-ID is the same at every attempt, and the
//! bytes of each attempt are kept in the database.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{FutureExt as _, future::BoxFuture};

use super::{Composed, Ended, Envelope, Mailer, MayFinish, Session, Transmitted};
use crate::domain::attempt::{Outcome, Phase, Transport};

/// The reason when the folder cannot be made or entered.
const FOLDER_UNUSABLE: &str = "folder_unusable";
/// The reason when the file could not be written, synced or renamed.
const WRITE_FAILED: &str = "write_failed";
/// The reason when the file has its name, but nobody knows whether that survives a power cut.
const SYNC_FAILED: &str = "sync_failed";
/// The reason when the thread that wrote broke off.
const BROKEN_OFF: &str = "broken_off";

/// Keeps mail in a folder.
#[derive(Debug, Clone)]
pub struct FileMailer {
    folder: Arc<Path>,
}

impl FileMailer {
    /// A mailer that writes into `folder`, which is made at the first use, for its owner only.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into().into() }
    }

    /// The name of a message's file: its Message-ID without brackets, and nothing but safe characters.
    pub fn file_name(message_id: &str) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "@.-_+=".contains(c) { c } else { '_' };
        let id: String = message_id.trim_matches(['<', '>']).chars().map(safe).collect();
        format!("{}.eml", id.trim_start_matches('.'))
    }
}

impl Mailer for FileMailer {
    fn transport(&self) -> Transport {
        Transport::File
    }

    fn session(&self) -> Box<dyn Session> {
        Box::new(FileSession { folder: Arc::clone(&self.folder), ready: false })
    }
}

struct FileSession {
    folder: Arc<Path>,
    /// The folder was there when last looked at; a failed write makes us look again.
    ready: bool,
}

impl Session for FileSession {
    fn offer<'a>(&'a mut self, _: &'a Envelope) -> BoxFuture<'a, Result<(), Ended>> {
        async {
            if !self.ready {
                let folder = Arc::clone(&self.folder);
                let made = tokio::task::spawn_blocking(move || make_folder(&folder)).await;
                made.unwrap_or_else(|error| Err(error.into())).map_err(|error| unusable(&error))?;
                self.ready = true;
            }
            Ok(())
        }
        .boxed()
    }

    fn transmit<'a>(
        &'a mut self,
        _: &'a Envelope,
        message: &'a Composed,
        _: Option<&'a Envelope>,
        may_finish: &'a MayFinish,
    ) -> BoxFuture<'a, Transmitted> {
        async {
            let folder = Arc::clone(&self.folder);
            let name = FileMailer::file_name(&message.message_id);
            let bytes = message.bytes.clone();
            let may_finish = may_finish.clone();
            // One call for all steps: the way to the blocking threads and back costs as much as a small write.
            let task = tokio::task::spawn_blocking(move || keep(&folder, &name, &bytes, &may_finish));
            let ended = task.await.unwrap_or_else(|error| {
                // A call that was never begun did nothing; one that panicked may have renamed.
                let outcome = if error.is_cancelled() { Outcome::NotSent } else { Outcome::Ambiguous };
                Ended::new(outcome, Phase::Body).because(BROKEN_OFF)
            });
            self.ready &= !ended.transport_fault;
            ended.into()
        }
        .boxed()
    }

    fn withdraw(&mut self) -> BoxFuture<'_, ()> {
        // An offer left nothing behind.
        std::future::ready(()).boxed()
    }
}

/// Makes the folder and its parents, and proves that it can be written to.
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let probe = Hidden::create(folder, "probe")?;
    drop(probe);
    File::open(folder)?.sync_all()
}

fn keep(folder: &Path, name: &str, bytes: &[u8], may_finish: &MayFinish) -> Ended {
    let mut hidden = match Hidden::create(folder, name) {
        Ok(hidden) => hidden,
        Err(error) => return unusable(&error),
    };
    // Opened before the point of no return, so that less can go wrong after it.
    let directory = match File::open(folder) {
        Ok(directory) => directory,
        Err(error) => return unusable(&error),
    };
    if let Err(error) = hidden.file.write_all(bytes).and_then(|()| hidden.file.sync_all()) {
        return failed(Outcome::NotSent, WRITE_FAILED, &error);
    }
    if !may_finish.ask() {
        return Ended::lease_too_old();
    }
    if let Err(error) = fs::rename(&hidden.path, folder.join(name)) {
        // A network file system can fail a rename that it did. If the hidden name is gone, nobody knows.
        let outcome = if hidden.path.exists() { Outcome::NotSent } else { Outcome::Ambiguous };
        return failed(outcome, WRITE_FAILED, &error);
    }
    hidden.renamed = true;
    match directory.sync_all() {
        Ok(()) => Ended::new(Outcome::Accepted, Phase::Dot).saying(name),
        Err(error) => Ended { phase: Phase::Dot, ..failed(Outcome::Ambiguous, SYNC_FAILED, &error) },
    }
}

/// A file under a name that nobody looks at; removed when dropped, unless it was renamed.
struct Hidden {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Hidden {
    fn create(folder: &Path, name: &str) -> io::Result<Self> {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{:016x}.part", fastrand::u64(..)));
        let path = folder.join(hidden);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file, renamed: false })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.renamed {
            // Nobody reads hidden names, so one that stays only takes room.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Nothing could be begun: the folder's fault.
fn unusable(error: &io::Error) -> Ended {
    Ended::new(Outcome::NotSent, Phase::Connect).because(FOLDER_UNUSABLE).saying(error.to_string()).as_transport_fault()
}

fn failed(outcome: Outcome, reason: &'static str, error: &io::Error) -> Ended {
    Ended::new(outcome, Phase::Body).because(reason).saying(error.to_string()).as_transport_fault()
}
