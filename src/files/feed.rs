//! The file on a thread of its own, handing over its good rows in batches; a slow database slows the reading.

use tokio::sync::mpsc::{self, error::SendError};

use super::checks::Checked;
use super::held::Again;
use super::term::{Contact, TermRow};
use super::{ImportOptions, Input, ReadError, Reading};
use crate::store::imports::FileLayout;
use crate::store::imports::staging::{RejectedRow, StagedContact, StagedRow};

/// Most rows of a batch.
const ROWS: usize = 5_000;
/// Text after which a batch is handed over, however few its rows; in bytes.
const TEXT: usize = 2 << 20;

/// What the thread hands over.
pub(super) enum Part {
    /// How far the first look through it is, in bytes.
    Looked { done: u64, total: u64 },
    /// How many rows will be looked at, and how the file is laid out; before everything else.
    Opened { total: u64, layout: FileLayout },
    /// Good rows in the order of the file.
    Rows(Vec<StagedRow>),
    /// Rejected rows in the order of the file.
    Rejected(Vec<RejectedRow>),
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

/// Rows on their way.
struct Batches<'b> {
    parts: &'b mpsc::Sender<Part>,
    good: Vec<StagedRow>,
    rejected: Vec<RejectedRow>,
    text: usize,
}

/// Reads the whole file, blocking; at most two batches wait in `parts`. Gives the file back, so that rows can be looked
/// up in it.
pub(super) fn read_into(
    file: Input,
    options: &ImportOptions,
    parts: &mpsc::Sender<Part>,
) -> Result<(Reading, Again), Stopped> {
    // Somebody who does not listen any more is met below.
    let told = &mut |done, total| drop(parts.blocking_send(Part::Looked { done, total }));
    let mut prepared = file.prepare(options, told)?;
    parts.blocking_send(Part::Opened { total: prepared.rows(), layout: prepared.layout() })?;
    let mut batches = Batches { parts, good: Vec::new(), rejected: Vec::new(), text: 0 };
    let reading = prepared.each_checked::<Stopped>(|row| batches.take(row))?;
    batches.hand_over()?;
    Ok((reading, prepared.again()))
}

impl Batches<'_> {
    fn take(&mut self, row: Checked) -> Result<(), Stopped> {
        match row {
            Checked::Good(term) => {
                self.text += weight(&term);
                self.good.push(staged(*term));
            }
            Checked::Rejected(row) => {
                let texts = row.cells.iter().chain(&row.cell_keys);
                self.text += row.errors.len() + texts.map(String::len).sum::<usize>();
                if row.kept || row.number_key.is_some() || !row.cell_keys.is_empty() {
                    self.rejected.push(row);
                }
            }
        }
        if self.good.len() + self.rejected.len() >= ROWS || self.text >= TEXT {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), Stopped> {
        self.text = 0;
        if !self.good.is_empty() {
            self.parts.blocking_send(Part::Rows(std::mem::take(&mut self.good)))?;
        }
        if !self.rejected.is_empty() {
            self.parts.blocking_send(Part::Rejected(std::mem::take(&mut self.rejected)))?;
        }
        Ok(())
    }
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
        holder_unusable: term.holder_unusable,
        holder_language: term.holder_language,
        contacts: term.contacts.into_iter().map(contact).collect(),
        contacts_unusable: term.contacts_unusable,
        site_address: term.site_address,
        description: term.description,
        issued_on: term.issued_on,
        effective_on: term.effective_on,
        expires_on: term.expires_on,
        external_id: term.external_id,
    }
}

fn contact(contact: Contact) -> StagedContact {
    let Contact { name, email, role, language, from_holder } = contact;
    StagedContact { name, email, role, language, from_holder }
}
