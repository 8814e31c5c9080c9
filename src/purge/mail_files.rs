//! Mail on disk: files that were written so long ago. By the files' own times, so that each machine can look after its
//! own folder; the bytes in the database go by the database's.

use std::{fs, io, path::Path};

use chrono::{DateTime, Utc};

/// Removes files of mail, and what was left half written, older than `before`; says how many. A folder that cannot be
/// read is told in the log, and keeps nothing else from being removed.
pub(super) async fn remove(folder: &Path, before: DateTime<Utc>, dry_run: bool) -> u64 {
    let path = folder.to_owned();
    let removed = tokio::task::spawn_blocking(move || remove_in(&path, before, dry_run)).await;
    match removed.unwrap_or_else(|error| Err(error.into())) {
        Ok(removed) => removed,
        Err(error) => {
            tracing::warn!(folder = %folder.display(), "old files of mail were not removed: {error}");
            0
        }
    }
}

fn remove_in(folder: &Path, before: DateTime<Utc>, dry_run: bool) -> io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.ends_with(".eml") || name.starts_with('.') && name.ends_with(".part")) {
            continue;
        }
        let old =
            entry.metadata().and_then(|about| about.modified()).is_ok_and(|at| DateTime::<Utc>::from(at) < before);
        if old {
            let done = if dry_run { Ok(()) } else { fs::remove_file(entry.path()) };
            match done {
                // Another process that looks after the same folder was first.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => {
                    done?;
                    removed += 1;
                }
            }
        }
    }
    Ok(removed)
}
