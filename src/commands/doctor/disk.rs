//! The data folder: whether it can be written, and whether there is room.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use super::{Check, fault, ok, warning};
use crate::{app::Database, config::Config};

const MEBIBYTE: u64 = 1024 * 1024;
/// Below this a database stops.
const TOO_LITTLE: u64 = 200 * MEBIBYTE;
/// Below this somebody should look.
const LITTLE: u64 = 2048 * MEBIBYTE;

/// The folder and its room. Where database and mail are elsewhere nothing is kept in it.
pub(super) fn check(config: &Config, database: &Database) -> Vec<Check> {
    let folder = &database.data_dir;
    if database.private.is_none() && config.smtp_url.is_some() {
        return vec![ok("data folder", "database and mail are elsewhere, so none is needed")];
    }
    let mut checks = vec![check_folder(folder)];
    if database.private.is_some() {
        checks.push(check_room("room for the database", &folder.join("postgres")));
    }
    if config.smtp_url.is_none() {
        checks.push(check_room("room for mail", folder));
    }
    checks
}

fn check_folder(folder: &Path) -> Check {
    let trial = folder.join(format!(".doctor.{}", std::process::id()));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&trial, b"x"));
    let _ = std::fs::remove_file(&trial);
    match written {
        Ok(()) => ok("data folder", format!("{} can be written", folder.display())),
        Err(error) => fault(
            "data folder",
            format!("{} cannot be written: {error}", folder.display()),
            "give this account the right to write there, or set DATA_DIR to another folder",
        ),
    }
}

fn check_room(name: &'static str, folder: &Path) -> Check {
    let about = match statvfs(folder) {
        Ok(about) => about,
        Err(error) => {
            let found = format!("{} cannot be looked at: {error}", folder.display());
            return warning(name, found, "see that the folder is there and that this account may enter it");
        }
    };
    judge_room(name, folder, about.blocks_available().saturating_mul(about.fragment_size()))
}

/// Whether so many free bytes are enough.
pub fn judge_room(name: &str, folder: &Path, free: u64) -> Check {
    let found = format!("{} MiB are free at {}", free / MEBIBYTE, folder.display());
    let advice = "make room, or move DATA_DIR to a larger disk";
    match free {
        free if free < TOO_LITTLE => fault(name, found, advice),
        free if free < LITTLE => warning(name, found, advice),
        _ => ok(name, found),
    }
}
