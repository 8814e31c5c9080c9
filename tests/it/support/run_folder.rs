//! The folder of this run of the tests, under the system's temporary folder.
//!
//! A run that was killed cannot clean up, so the next one does: a run's folder is alive while its lock is held.

use std::env;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

struct RunFolder {
    path: PathBuf,
    /// Locked until the process ends, however it ends.
    _alive: File,
}

/// A folder that accounts other than ours can pass through, which root's server needs; removed when dropped.
pub struct TestDir(TempDir);

impl TestDir {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("t").tempdir_in(run_folder()).expect("a test folder");
        let_others_through(dir.path()).expect("its mode");
        Self(dir)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// This run's folder, made at the first call.
pub fn run_folder() -> &'static Path {
    static FOLDER: OnceLock<RunFolder> = OnceLock::new();
    &FOLDER.get_or_init(|| make().expect("a folder for this run of the tests")).path
}

fn make() -> io::Result<RunFolder> {
    let all = env::temp_dir().join(format!("permit-notifier-tests-{}", nix::unistd::geteuid()));
    fs::create_dir_all(&all)?;
    let_others_through(&all)?;
    // Held while a folder exists whose own lock is not taken yet.
    let entrance = File::create(all.join("lock"))?;
    entrance.lock()?;
    remove_dead_runs(&all);
    let path = tempfile::Builder::new().prefix("run-").tempdir_in(&all)?.keep();
    let_others_through(&path)?;
    let alive = File::create(path.join("lock"))?;
    alive.lock()?;
    Ok(RunFolder { path, _alive: alive })
}

fn let_others_through(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o711))
}

fn remove_dead_runs(all: &Path) {
    for run in fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let alive = File::open(run.join("lock")).is_ok_and(|lock| lock.try_lock().is_err());
        if run.is_dir() && !alive {
            // A server that is just ending may still write; the run after this one gets the rest.
            let _ = fs::remove_dir_all(&run);
        }
    }
}
