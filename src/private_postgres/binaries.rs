//! Finding the server's programs.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use super::account::Account;
use super::{Error, Options};

/// The oldest release whose options we use.
pub(super) const OLDEST_MAJOR: u32 = 14;

/// Where packages put versions side by side: parent, start of the version's folder, rest of the path.
const SIDE_BY_SIDE: [(&str, &str, &str); 6] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/usr/libexec", "postgresql", ""),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/usr/local", "pgsql", "bin"),
];

/// A folder with `initdb` and `postgres` of one version.
#[derive(Clone, Debug)]
pub(super) struct Binaries {
    pub folder: PathBuf,
    pub major: u32,
}

impl Binaries {
    /// The newest ones.
    pub(super) fn newest(options: &Options, account: &Account) -> Result<Self, Error> {
        all(options, account).into_iter().next().ok_or(Error::NoBinaries)
    }

    /// Those that open the cluster of version `major` in `folder`.
    pub(super) fn of_major(major: u32, folder: &Path, options: &Options, account: &Account) -> Result<Self, Error> {
        let found = all(options, account);
        if found.is_empty() {
            return Err(Error::NoBinaries);
        }
        let names: Vec<String> = found.iter().map(|binaries| binaries.major.to_string()).collect();
        found.into_iter().find(|binaries| binaries.major == major).ok_or_else(|| Error::OtherVersion {
            folder: folder.to_owned(),
            cluster: major,
            found: names.join(", "),
        })
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.folder.join("initdb")
    }

    pub(super) fn postgres(&self) -> PathBuf {
        self.folder.join("postgres")
    }
}

/// Everything usable, newest first.
fn all(options: &Options, account: &Account) -> Vec<Binaries> {
    let folders = options.binary_folders.clone().unwrap_or_else(usual_folders);
    let mut seen = HashSet::new();
    let mut found: Vec<Binaries> = folders
        .into_iter()
        .filter(|folder| folder.is_absolute() && folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .filter(|folder| fs::canonicalize(folder).is_ok_and(|real| seen.insert(real)))
        .filter_map(|folder| {
            let major = major_of(&folder.join("postgres"), account)?;
            (major >= OLDEST_MAJOR).then_some(Binaries { folder, major })
        })
        .collect();
    found.sort_by_key(|binaries| std::cmp::Reverse(binaries.major));
    found
}

fn usual_folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    for (parent, start, rest) in SIDE_BY_SIDE {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let versions = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
        folders.extend(versions.map(|entry| entry.path().join(rest)));
    }
    folders
}

/// Asked as the server's account, which also shows that it can run the program.
fn major_of(postgres: &Path, account: &Account) -> Option<u32> {
    let output = account.command(postgres, Signal::SIGKILL).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`, `… 18beta1`
    let version = text.split_once("(PostgreSQL) ")?.1;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}
