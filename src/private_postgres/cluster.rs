//! Making the cluster: complete with its database, or not there at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;

use super::account::Account;
use super::binaries::Binaries;
use super::{Error, NAME, Options, ownership};

/// The cluster inside the private server's folder.
pub(super) const DATA: &str = "data";

/// Start of the name of a cluster that is being made; the rest is random, so that what a killed run may still write
/// never meets what the next one makes.
const UNFINISHED: &str = "data.new-";

/// Finds the programs that fit the cluster in `folder`, and makes the cluster first if there is none.
pub(super) fn prepare(folder: &Path, account: &Account, options: &Options) -> Result<Binaries, Error> {
    remove_unfinished(folder);
    let version_file = folder.join(DATA).join("PG_VERSION");
    match fs::read_to_string(&version_file) {
        Ok(version) => {
            let nonsense = || io::Error::new(io::ErrorKind::InvalidData, "it does not hold a version number");
            let major = version.trim().parse();
            let major = major.map_err(|_| Error::folder(&version_file)(nonsense()))?;
            Binaries::of_major(major, folder, options, account)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let binaries = Binaries::newest(options, account)?;
            make(folder, account, &binaries, options.durable)?;
            Ok(binaries)
        }
        Err(error) => Err(Error::folder(&version_file)(error)),
    }
}

/// Best effort: a leftover costs room and harms nothing.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn make(folder: &Path, account: &Account, binaries: &Binaries, durable: bool) -> Result<(), Error> {
    tracing::info!(folder = %folder.display(), version = binaries.major, "making the private database");
    let unfinished = folder.join(format!("{UNFINISHED}{:016x}", ownership::random()));
    let made = fill(&unfinished, folder, account, binaries, durable).and_then(|()| {
        let put_in_place = || {
            fs::rename(&unfinished, folder.join(DATA))?;
            if durable { File::open(folder)?.sync_all() } else { Ok(()) }
        };
        put_in_place().map_err(Error::folder(folder))
    });
    if made.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    made
}

fn fill(data: &Path, folder: &Path, account: &Account, binaries: &Binaries, durable: bool) -> Result<(), Error> {
    // Nothing runs on when we are killed: a program of PostgreSQL that cleans up after itself would do so while the
    // next owner is at work.
    let command = |program| account.command(program, Signal::SIGKILL);
    let (initdb, postgres) = (binaries.initdb(), binaries.postgres());
    let mut init = command(&initdb);
    init.args(["--username", NAME, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
    init.args(["--no-sync", "--no-instructions", "--pgdata"]).arg(data);
    run(init, "", folder)?;

    let mut create = command(&postgres);
    create.arg("--single").arg("-D").arg(data);
    create.args(["-c", "exit_on_error=on", "-c", "fsync=off", "-c", "log_checkpoints=off", "template1"]);
    run(create, &format!("CREATE DATABASE {NAME}\n"), folder)?;

    if durable {
        // Everything once, instead of each step its own.
        let mut sync = command(&initdb);
        sync.args(["--sync-only", "--pgdata"]).arg(data);
        run(sync, "", folder)?;
    }
    Ok(())
}

fn run(mut command: Command, input: &str, folder: &Path) -> Result<(), Error> {
    let output = output(&mut command, input).map_err(Error::folder(folder))?;
    if output.status.success() { Ok(()) } else { Err(Error::create(folder, &String::from_utf8_lossy(&output.stderr))) }
}

fn output(command: &mut Command, input: &str) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended early says why on its standard error.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}
