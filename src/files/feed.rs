//! The file on a thread of its own, handing over its good rows in batches; a slow database slows the reading.

use std::path::Path;

use tokio::sync::mpsc::{self, error::SendError};

use super::term::TermRow;
use super::{ImportOptions, ReadError, Reading, prepare};
use crate::store::imports::staging::StagedRow;

/// Most rows of a batch.
const ROWS: usize = 5_000;
/// Text after which a batch is handed over, however few its rows; in bytes.
const TEXT: usize = 2 << 20;

/// What the thread hands over.
pub(super) enum Part {
    /// How many rows will be looked at; before everything else.
    Total(u64),
    /// Good rows in the order of the file.
    Rows(Vec<StagedRow>),
}

/// Why reading ended early.
pub(super) enum Stopped {
    /// The file is refused.
    File(ReadError),
    /// Nobody takes the rows any more.
    NotWanted,
}

impl From<ReadError> for Stopped {
    fn from(error: ReadError) -> Self {
        Self::File(error)
    }
}

impl From<SendError<Part>> for Stopped {
    fn from(_: SendError<Part>) -> Self {
        Self::NotWanted
    }
}

/// Reads the whole file, blocking; at most two batches wait in `parts`.
pub(super) fn read_into(path: &Path, options: &ImportOptions, parts: &mpsc::Sender<Part>) -> Result<Reading, Stopped> {
    let prepared = prepare(path, options)?;
    parts.blocking_send(Part::Total(prepared.rows()))?;
    let mut batch = Vec::new();
    let mut text = 0;
    let reading = prepared.each::<Stopped>(|term| {
        text += weight(&term);
        batch.push(staged(term));
        if batch.len() == ROWS || text >= TEXT {
            text = 0;
            parts.blocking_send(Part::Rows(std::mem::take(&mut batch)))?;
        }
        Ok(())
    })?;
    if !batch.is_empty() {
        parts.blocking_send(Part::Rows(batch))?;
    }
    Ok(reading)
}

fn weight(term: &TermRow) -> usize {
    let optional = [&term.site_address, &term.description, &term.external_id];
    let optional: usize = optional.into_iter().flatten().map(String::len).sum();
    term.holder_name.len() + term.permit_type_name.len() + optional + term.contacts.len() * 100
}

fn staged(term: TermRow) -> StagedRow {
    StagedRow {
        file_row: term.row,
        permit_number: term.permit_number,
        permit_type: term.permit_type,
        permit_type_name: term.permit_type_name,
        status: term.status_given.then_some(term.status),
        holder_name: term.holder_name,
        holder_email: term.holder_email,
        holder_language: term.holder_language,
        contacts: term.contacts.into_iter().map(|contact| (contact.name, contact.email, contact.role)).collect(),
        site_address: term.site_address,
        description: term.description,
        issued_on: term.issued_on,
        effective_on: term.effective_on,
        expires_on: term.expires_on,
        external_id: term.external_id,
    }
}
