//! The server's log: two files of bounded size, written by us from the server's standard error.
//!
//! PostgreSQL's own collector has no bound on size within a day, and root would have to trust files of another account.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::account::Account;
use super::folders;

/// Bytes after which `log` becomes `log.1` and starts anew.
const LIMIT: u64 = 8 << 20;

/// Bytes of the newest output that are kept for an error message.
const TAIL: usize = 8 << 10;

/// The newest output, to explain a failed start.
pub(super) type Tail = Arc<Mutex<String>>;

pub(super) struct Log {
    path: PathBuf,
    account: Account,
    /// None when the file cannot be written: a full disk must not stop the server, so the output is dropped.
    file: Option<File>,
    size: u64,
    tail: Tail,
}

impl Log {
    pub(super) fn new(path: PathBuf, account: Account) -> Self {
        let mut log = Self { path, account, file: None, size: 0, tail: Tail::default() };
        log.open();
        log
    }

    pub(super) fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// Copies until the last process of the server has closed its end.
    pub(super) fn copy(mut self, from: impl Read) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            self.write(&line);
            line.clear();
        }
    }

    fn write(&mut self, line: &[u8]) {
        if self.size > LIMIT {
            let _ = fs::rename(&self.path, self.path.with_extension("1"));
            self.open();
        } else if self.file.is_none() {
            self.open();
        }
        if let Some(file) = &mut self.file {
            self.size += line.len() as u64;
            if file.write_all(line).is_err() {
                self.file = None;
            }
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.push_str(&String::from_utf8_lossy(line));
        let excess = tail.len().saturating_sub(TAIL);
        let cut = (excess..=tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(0);
        tail.drain(..cut);
    }

    fn open(&mut self) {
        let opened = folders::open_file(&self.path, &self.account).and_then(|mut file| {
            self.size = file.seek(SeekFrom::End(0))?;
            Ok(file)
        });
        self.file = opened.ok();
    }
}
