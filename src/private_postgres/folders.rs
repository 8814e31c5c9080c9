//! The folders of the private server: making them, checking whose they are, the one for the socket.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::Error;
use super::account::Account;

/// The port is only a part of the socket's file name.
pub(super) const SOCKET_FILE: &str = ".s.PGSQL.5432";

/// Longest path of a socket, in bytes: 107 on Linux, 103 on macOS; the smaller serves both.
const SOCKET_PATH_LIMIT: usize = 103;

pub(super) fn absolute(folder: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(folder).map_err(Error::folder(folder))
}

/// Makes the data folder and what is missing above it: ours, closed to others, but when the server runs as another
/// account that account can pass through. What exists stays as it is.
pub(super) fn create(folder: &Path, account: &Account) -> Result<(), Error> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|path| !path.exists()).collect();
    let mode = if account.step_down { 0o711 } else { 0o700 };
    for path in missing.into_iter().rev() {
        match fs::create_dir(path) {
            // Not with the call that makes it: the process may have a stricter umask.
            Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Error::folder(path))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::folder(path)(error)),
        }
    }
    if folder.is_dir() { Ok(()) } else { Err(Error::folder(folder)(io::ErrorKind::NotADirectory.into())) }
}

/// Makes `folder` if it is missing, and sees to it that it is the account's and closed to everybody else.
pub(super) fn claim(folder: &Path, account: &Account) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::folder(folder)(error));
        }
        _ => {}
    }
    secure(folder, account)
        .map_err(Error::folder(folder))?
        .map_or(Ok(()), |owner| Err(Error::Foreign { folder: folder.to_owned(), owner }))
}

/// `Some(owner)` when the folder is somebody else's. Works on one open file, so that nobody can swap it in between.
fn secure(folder: &Path, account: &Account) -> io::Result<Option<u32>> {
    let opened =
        OpenOptions::new().read(true).custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits()).open(folder)?;
    let metadata = opened.metadata()?;
    if metadata.uid() != account.uid {
        // Root's own is new, or left by a run that died before this line.
        if !account.step_down || metadata.uid() != 0 {
            return Ok(Some(metadata.uid()));
        }
        fchown(&opened, Some(account.uid), Some(account.gid))?;
    }
    if metadata.mode() & 0o7777 != 0o700 {
        opened.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(None)
}

/// Opens a file of ours in the server's folder for reading and writing. Follows no link: root must not be led
/// elsewhere by the server's account.
pub(super) fn open_file(path: &Path, account: &Account) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)?;
    if account.step_down && file.metadata()?.uid() != account.uid {
        fchown(&file, Some(account.uid), Some(account.gid))?;
    }
    Ok(file)
}

/// Where the socket goes: beside the cluster, or, when that path is too long or has characters that PostgreSQL or a
/// URL would take apart, into a short private folder whose name comes from the cluster's.
pub(super) fn socket_folder(folder: &Path, tag: &str, account: &Account) -> Result<PathBuf, Error> {
    if fits(folder) {
        return Ok(folder.to_owned());
    }
    let name = format!("permit-notifier-{tag}");
    let below = [env::temp_dir(), PathBuf::from("/tmp")];
    let short = below
        .iter()
        .filter(|base| account.can_enter(base))
        .map(|base| base.join(&name))
        .find(|path| fits(path))
        .unwrap_or_else(|| below[1].join(&name));
    match claim(&short, account) {
        Err(Error::Foreign { folder, owner }) => Err(Error::ForeignSocketFolder { folder, owner }),
        other => other.map(|()| short),
    }
}

fn fits(folder: &Path) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let bytes = folder.as_os_str().as_bytes();
    bytes.iter().all(plain) && bytes.len() + 1 + SOCKET_FILE.len() <= SOCKET_PATH_LIMIT
}

/// A short name for a cluster, the same for every spelling of its path (FNV-1a, because it must stay the same from one
/// build to the next).
pub(super) fn tag(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let hash =
        real.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{hash:016x}")
}

pub(super) fn percent_encoded(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"._-".contains(byte) {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}
