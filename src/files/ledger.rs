//! Ledgers of what a mail server accepted: JSON lines with `message_id`, or lines of a Postfix log.
//!
//! In a log the message's name and its fate stand on different lines, tied by the queue id: `message-id=<…>`, then
//! `status=sent (…)`. A message that the log shows deferred or bounced was queued, so it is known there, and counts
//! as accepted by nobody. Everything else in a log is passed over.

use std::io::{self, BufRead, Read};

use crate::store::audits::LedgerLine;

/// Longest line that is read, in bytes.
const LINE_MAX: u64 = 1 << 20;

/// Why a ledger cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
    /// A line of JSON is none, or has no `message_id`.
    #[error("line {line} begins like JSON, but is no object with a text `message_id`")]
    Json {
        /// Number of the line, from 1.
        line: i64,
    },
    /// A line without an end.
    #[error("line {line} is longer than {LINE_MAX} bytes")]
    TooLong {
        /// Number of the line, from 1.
        line: i64,
    },
}

/// Reads a ledger line by line.
#[derive(Debug)]
pub struct Ledger<R> {
    input: R,
    line: i64,
}

impl<R: BufRead> Ledger<R> {
    /// A ledger that comes from `input`.
    pub fn new(input: R) -> Self {
        Self { input, line: 0 }
    }

    /// How many lines were read, of whatever kind.
    pub fn lines(&self) -> i64 {
        self.line
    }

    /// Up to `limit` lines that say something; empty at the end.
    pub fn next_batch(&mut self, limit: usize) -> Result<Vec<LedgerLine>, LedgerError> {
        let mut batch = Vec::new();
        let mut bytes = Vec::new();
        while batch.len() < limit {
            bytes.clear();
            let read = (&mut self.input).take(LINE_MAX + 1).read_until(b'\n', &mut bytes)? as u64;
            if read == 0 {
                break;
            }
            self.line += 1;
            if read > LINE_MAX {
                return Err(LedgerError::TooLong { line: self.line });
            }
            batch.extend(parse(&String::from_utf8_lossy(&bytes), self.line)?);
        }
        Ok(batch)
    }
}

fn parse(text: &str, line: i64) -> Result<Option<LedgerLine>, LedgerError> {
    let text = text.trim();
    if !text.starts_with('{') {
        return Ok(postfix(text, line));
    }
    let value: serde_json::Value = serde_json::from_str(text).map_err(|_| LedgerError::Json { line })?;
    let id = value.get("message_id").and_then(serde_json::Value::as_str).and_then(bracketed);
    let message_id = id.ok_or(LedgerError::Json { line })?;
    Ok(Some(LedgerLine { line, queue_id: None, message_id: Some(message_id), accepted: true }))
}

/// A line of a log: `… postfix/cleanup[1]: 4F2A01: message-id=<a@b>` or `… postfix/smtp[2]: 4F2A01: to=<…>, …,
/// status=sent (250 …)`.
fn postfix(text: &str, line: i64) -> Option<LedgerLine> {
    let (head, rest) = text.split_once("]: ")?;
    if !head.contains("postfix") {
        return None;
    }
    let (queue_id, said) = rest.split_once(": ")?;
    if queue_id.is_empty() || !queue_id.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let queue_id = Some(queue_id.to_owned());
    if let Some(id) = said.strip_prefix("message-id=") {
        return Some(LedgerLine { line, queue_id, message_id: Some(bracketed(id)?), accepted: false });
    }
    // The last one: an address or a reply before it may contain anything, but not this after a comma and a blank.
    let (_, status) = said.split_once(", status=")?;
    let accepted = status.starts_with("sent (");
    Some(LedgerLine { line, queue_id, message_id: None, accepted })
}

/// The Message-ID with exactly one pair of brackets; nothing for an empty one.
fn bracketed(id: &str) -> Option<String> {
    let bare = id.trim().trim_start_matches('<').trim_end_matches('>');
    let sound = !bare.is_empty() && !bare.contains('\0');
    sound.then(|| format!("<{bare}>"))
}
