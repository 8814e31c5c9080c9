//! Imports and exports. A file becomes checked terms, or a complete list of what is wrong; and the terms become
//! permits. `export` is the way back.
//!
//! 1. `reading` turns the file into rows of text, whatever wrote it, and says what it guessed.
//! 2. `mapping` decides which column carries which field.
//! 3. A first pass over all rows counts them and decides the date format of each column (`dates`).
//! 4. A second pass checks each row (`checks`, by `values`, `dates`, `addresses`) and hands over a [`TermRow`].
//! 5. `apply` stages the terms in the database as they come, and applies them in one transaction when all are there.
//!
//! Two passes, because `04/05/2026` cannot be read before the rest of its column is known; and because a file
//! that turns out not to be text, or too long in a row, must be refused before its first row is handed over.
//! Memory does not grow with the file: one row, and at most [`REMARKS_KEPT`] errors and warnings each.

mod addresses;
mod apply;
mod checks;
mod contacts;
mod contradictions;
mod dates;
pub mod export;
mod fault;
mod feed;
mod fields;
mod formula;
mod held;
pub mod ledger;
pub mod look;
mod mapping;
mod option_faults;
mod option_names;
mod options;
mod probe;
pub mod reading;
mod rejected;
mod remarks;
mod report;
pub mod saved;
mod term;
mod values;

use std::fs::File;
use std::path::{Path, PathBuf};

pub use apply::{ImportError, ImportRules, Phase, Progress, import};
pub use dates::DateFormat;
pub use fault::{FileFault, ReadError};
pub use fields::Field;
pub use mapping::MappedColumn;
pub use option_faults::OptionError;
pub use option_names::{ImportOption, Surface};
pub use options::{ColumnChoice, ImportOptions, StatusChoice};
pub use probe::Delimiter;
pub use reading::{FileFormat, SheetSeen};
pub use rejected::REJECTED_KEPT;
pub use remarks::{REMARKS_KEPT, Reason, Remark, SHOWN_CHARS};
pub use report::{Guessed, ImportReport, MissingPermits, SKIPPED_ARCHIVED, SKIPPED_EARLIER, WouldMail};
pub use term::{Contact, TermRow};

use checks::{Checked, Checker};
use dates::ColumnDates;
use mapping::Mapping;
use reading::Source;
use reading::encoding::{Encoding, UNDEFINED};
use rejected::Columns;

use crate::store::imports::FileLayout;

/// What reading a file came to; the caller's next step decides whether anything is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Rows below the header that are not blank; `rows - rejected` were handed over.
    pub rows: u64,
    /// Rows with at least one error. Without `keep_good_rows` a single one means: commit nothing.
    pub rejected: u64,
    /// For each reason, how many rows it rejected; a row with two reasons counts under both.
    pub rejected_by_reason: std::collections::BTreeMap<Reason, u64>,
    /// Rejected rows without a permit number that can be read, so that nobody knows which permits they are about. Those that
    /// do not fit the header are counted when all rows are known.
    pub nameless: u64,
    /// What was guessed about the file.
    pub guessed: Guessed,
    /// Which column each field came from. A field that is not here says nothing about what is already known:
    /// a file without a status column must not make a revoked permit active.
    pub mapped: Vec<MappedColumn>,
    /// Cells with addresses that were usable after cleaning (`mailto:`, outer spaces, a trailing dot or comma).
    pub addresses_cleaned: u64,
    /// Rows whose holder has no address: no such column, an empty cell, a word such as `N/A`, or a malformed address that
    /// was left out.
    pub addresses_missing: u64,
    /// The first [`REMARKS_KEPT`] errors, by row.
    pub errors: Vec<Remark>,
    /// The first [`REMARKS_KEPT`] warnings: those about the whole file first, then by row.
    pub warnings: Vec<Remark>,
}

impl Reading {
    /// The header of the first column from which the field came.
    fn column_of(&self, field: Field) -> Option<String> {
        self.mapped.iter().find(|mapped| mapped.field == field).and_then(|mapped| mapped.columns.first().cloned())
    }
}

/// A file that was read once in full: it is text, its columns are known, and so are its date formats.
#[derive(Debug)]
pub struct Prepared<'o> {
    source: Source,
    mapping: Mapping,
    dates: ColumnDates,
    options: &'o ImportOptions,
    rows: u64,
}

/// Who hears how far reading is.
type Told<'t> = &'t mut dyn FnMut(u64, u64);

/// What is to be read.
#[derive(Debug)]
pub enum Input {
    /// The file at this path.
    Path(PathBuf),
    /// A file that is open and may have no name of its own, and what it is called.
    Open(File, PathBuf),
}

impl Input {
    /// What the file is called.
    pub fn path(&self) -> &Path {
        match self {
            Self::Path(path) | Self::Open(_, path) => path,
        }
    }

    /// Hears `told` how much of the file it has looked through, in bytes, and out of how many.
    fn prepare<'o>(self, options: &'o ImportOptions, told: Told<'_>) -> Result<Prepared<'o>, ReadError> {
        match self {
            Self::Path(path) => prepare_source(Source::open(&path, options), &path, options, told),
            Self::Open(file, path) => prepare_source(Source::of(file, &path, options), &path, options, told),
        }
    }
}

/// Reads `path` once and decides columns and date formats; nothing is handed over yet.
///
/// A path that cannot be read twice (a pipe) is first copied to an unnamed temporary file.
pub fn prepare<'o>(path: &Path, options: &'o ImportOptions) -> Result<Prepared<'o>, ReadError> {
    prepare_source(Source::open(path, options), path, options, &mut |_, _| {})
}

fn prepare_source<'o>(
    source: Result<Source, FileFault>,
    path: &Path,
    options: &'o ImportOptions,
    told: Told<'_>,
) -> Result<Prepared<'o>, ReadError> {
    let named = |fault| ReadError::new(path, fault);
    let mut source = source.map_err(named)?;
    let mapping = Mapping::resolve(source.header(), options).map_err(named)?;
    let (rows, dates) = first_pass(&mut source, &mapping, options, told).map_err(named)?;
    Ok(Prepared { source, mapping, dates, options, rows })
}

fn first_pass(
    source: &mut Source,
    mapping: &Mapping,
    options: &ImportOptions,
    told: Told<'_>,
) -> Result<(u64, ColumnDates), FileFault> {
    const LEAST: u64 = 1 << 20;
    let mut next = LEAST;
    let width = source.header().len();
    let mut votes = dates::Votes::new(mapping, options.date_format());
    let mut count = 0;
    let mut rows = source.rows()?;
    let (_, total) = rows.progress();
    if total > LEAST {
        told(0, total);
    }
    while let Some(row) = rows.next_row()? {
        count += 1;
        // A row with a cell too few or too many has its dates in other columns.
        if row.fits(width) {
            votes.count(&row);
        }
        let (done, total) = rows.progress();
        if done >= next {
            told(done, total.max(done));
            next = done + LEAST.max(total / 100);
        }
    }
    if count == 0 {
        return Err(FileFault::HeaderOnly);
    }
    Ok((count, votes.decide()?))
}

impl Prepared<'_> {
    /// How many rows [`Prepared::each`] will look at; for a progress line.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The file, to look rows up in it.
    fn again(self) -> held::Again {
        let Self { source, mapping, dates, .. } = self;
        held::Again { source, mapping, dates }
    }

    /// How the file is laid out, and its rejected rows are written: those of sheets with commas.
    fn layout(&self) -> FileLayout {
        let delimiter = self.source.delimiter().unwrap_or(Delimiter::Comma);
        let header = self.source.header();
        let columns = Columns { mapping: &self.mapping, dates: &self.dates, width: header.len() };
        FileLayout { delimiter: delimiter.byte().into(), header: columns.kept_header(header) }
    }

    /// Checks every row and hands the good ones to `each`, in the order of the file. An error of `each` ends the
    /// reading; so does a file that was changed since it was prepared.
    pub fn each<E: From<ReadError>>(mut self, mut each: impl FnMut(TermRow) -> Result<(), E>) -> Result<Reading, E> {
        self.each_checked(|row| if let Checked::Good(term) = row { each(*term) } else { Ok(()) })
    }

    /// The same with the rejected rows among them.
    fn each_checked<E: From<ReadError>>(
        &mut self,
        mut each: impl FnMut(Checked) -> Result<(), E>,
    ) -> Result<Reading, E> {
        let file = self.source.path().to_owned();
        let named = |fault| E::from(ReadError::new(&file, fault));
        let guessed = Guessed {
            format: self.source.format(),
            sheet: self.source.sheet().map(str::to_owned),
            encoding: self.source.encoding().as_str().to_owned(),
            delimiter: self.source.delimiter(),
            date_format: self.dates.summary(&self.mapping),
            header_row: self.source.header_row(),
        };
        let width = self.source.header().len();
        let columns = Columns { mapping: &self.mapping, dates: &self.dates, width };
        // A file of errors is UTF-8, and repeats what was wrong in another encoding.
        let doubtful = self.source.encoding() == Encoding::Windows1252 || columns.has_old_errors();
        let undefined = doubtful.then_some(UNDEFINED);
        let mut remarks = self.source.remarks().to_vec();
        let mut checker = Checker::new(&self.mapping, &self.dates, self.options, width, undefined);
        let mut count = 0;
        let mut rows = self.source.rows().map_err(named)?;
        while let Some(row) = rows.next_row().map_err(named)? {
            count += 1;
            each(checker.check(&row))?;
        }
        remarks.extend(rows.remarks());
        remarks.extend(self.dates.doubts(&self.mapping));
        drop(rows);
        if count != self.rows || self.source.changed().map_err(named)? {
            return Err(named(FileFault::Changed));
        }
        Ok(checker.finish(count, guessed, remarks))
    }
}

/// Reads `path`, checks every row, and hands each good one to `each`: [`prepare`] and [`Prepared::each`] in one.
///
/// Good rows are handed over even when others are wrong; a caller that wants all or nothing discards them when
/// [`Reading::rejected`] is not 0. A fault of the file as a whole is a [`ReadError`], and then `each` was called for
/// nothing that may be kept.
pub fn read<E: From<ReadError>>(
    path: &Path,
    options: &ImportOptions,
    each: impl FnMut(TermRow) -> Result<(), E>,
) -> Result<Reading, E> {
    prepare(path, options)?.each(each)
}
