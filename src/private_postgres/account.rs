//! The account the server runs as, and commands that run as it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};

use super::Error;

/// Where root steps down to; PostgreSQL refuses to run as root.
const STEP_DOWN_TO: [&str; 2] = ["postgres", "nobody"];

#[derive(Clone, Debug)]
pub(super) struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// We are root, and become this account for everything of PostgreSQL.
    pub step_down: bool,
}

impl Account {
    /// The account for the server in `folder`, which need not exist: ourselves, or for root the folder's owner (so that
    /// root can use what a user made, and the user after root), else `postgres`, else `nobody`.
    pub(super) fn for_folder(folder: &Path) -> Result<Self, Error> {
        let ours = geteuid().as_raw();
        let owner = match fs::symlink_metadata(folder) {
            Ok(metadata) => Some(metadata.uid()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::folder(folder)(error)),
        };
        match owner {
            Some(owner) if ours != 0 && owner != ours => Err(Error::Foreign { folder: folder.to_owned(), owner }),
            Some(owner) if owner != 0 => Self::by_id(owner),
            _ if ours != 0 => Self::by_id(ours),
            _ => STEP_DOWN_TO
                .iter()
                .find_map(|name| User::from_name(name).ok().flatten())
                .map(Self::from)
                .ok_or(Error::NoAccount),
        }
    }

    fn by_id(uid: u32) -> Result<Self, Error> {
        match User::from_uid(uid.into()) {
            Ok(Some(user)) => Ok(user.into()),
            _ => Err(Error::NamelessAccount(uid)),
        }
    }

    /// A command that runs as this account with an environment that holds no `PG…` variable and no foreign language,
    /// and that the kernel ends with `at_our_end` when the calling *thread* ends.
    pub(super) fn command(&self, program: &Path, at_our_end: Signal) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        if self.step_down {
            // The standard library drops the supplementary groups of root by itself.
            command.gid(self.gid).uid(self.uid);
        }
        end_with_us(&mut command, at_our_end);
        command
    }

    /// Whether the server may enter `folder`. Asked of the kernel, because modes alone do not tell (access lists,
    /// mounts).
    pub(super) fn can_enter(&self, folder: &Path) -> bool {
        if !self.step_down {
            return true;
        }
        // The working folder is changed after the account, so that a closed door is an error of the spawn.
        let mut probe = self.command(Path::new("/bin/sh"), Signal::SIGKILL);
        let entered = probe.args(["-c", ":"]).current_dir(folder).status();
        !entered.is_err_and(|error| error.raw_os_error() == Some(Errno::EACCES as i32))
    }
}

impl From<User> for Account {
    fn from(user: User) -> Self {
        Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw(), step_down: geteuid().is_root() }
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only a hook between fork and exec can ask for a signal at the parent's end")]
fn end_with_us(command: &mut Command, signal: Signal) {
    let us = nix::unistd::getpid();
    let hook = move || {
        nix::sys::prctl::set_pdeathsig(signal)?;
        // We may have ended before the line above.
        if nix::unistd::getppid() == us { Ok(()) } else { Err(io::Error::from(Errno::ESRCH)) }
    };
    // SAFETY: the hook makes two system calls and neither allocates nor locks. It runs after the change of account,
    // which would clear the setting.
    unsafe { command.pre_exec(hook) };
}

/// Elsewhere a killed owner leaves its server behind, and the next start says so.
#[cfg(not(target_os = "linux"))]
fn end_with_us(_: &mut Command, _: Signal) {}
