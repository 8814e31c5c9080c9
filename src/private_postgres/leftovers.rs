//! What a killed server leaves: processes that are still ending, and files that say it still runs.
//!
//! Called with the lock held, so whatever server of ours is still there has lost its owner.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::account::Account;
use super::cluster::DATA;
use super::folders::SOCKET_FILE;
use super::{Error, LOOK_AGAIN};

/// A fast shutdown writes out what is unwritten, which can take a while on a slow disk.
const GONE_WITHIN: Duration = Duration::from_mins(1);

/// The setting that puts a cluster's tag into the command line of each of its processes.
pub(super) fn cluster_name(tag: &str) -> String {
    format!("permits-{tag}")
}

/// Waits until the processes of a former server have ended, and removes its stale files.
pub(super) fn clear(folder: &Path, socket_folder: &Path, tag: &str, account: &Account) -> Result<(), Error> {
    let name = cluster_name(tag);
    let began = Instant::now();
    while let Some(pid) = processes(account).find(|pid| command_line(*pid).contains(&name)) {
        if began.elapsed() > GONE_WITHIN {
            return Err(Error::StillUsed { folder: folder.to_owned(), pid });
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    let stale = [folder.join(DATA).join("postmaster.pid"), socket_folder.join(format!("{SOCKET_FILE}.lock"))];
    for file in stale {
        // PostgreSQL removes them by itself only when no process has that number. It may be a zombie that nobody has
        // reaped yet, or after a restart of a container any process at all.
        let Some(pid) = pid_in(&file) else { continue };
        if cfg!(target_os = "linux") && !is_a_server(pid, account) {
            tracing::info!(file = %file.display(), pid, "removing what a killed server left");
            fs::remove_file(&file).map_err(Error::folder(&file))?;
        }
    }
    Ok(())
}

/// A server of the same account that is not ours to judge, say one that somebody started by hand on this cluster:
/// PostgreSQL's own check speaks then.
fn is_a_server(pid: i32, account: &Account) -> bool {
    let line = command_line(pid);
    let program = line.split('\0').next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    program.starts_with("postgres") && processes(account).any(|other| other == pid)
}

fn pid_in(file: &Path) -> Option<i32> {
    fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
}

/// The account's processes; none where there is no `/proc`.
fn processes(account: &Account) -> impl Iterator<Item = i32> {
    use std::os::unix::fs::MetadataExt;
    let uid = account.uid;
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(move |entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == uid))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Readable without any privilege, unlike the working folder, which root in a container may not see. Empty for a
/// zombie and for a process that is gone.
fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
