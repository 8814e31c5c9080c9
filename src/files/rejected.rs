//! Rejected rows, kept so that people can correct them and send them again; a bounded number.
//!
//! They are kept as they came, but for three things. A date that could be read is kept as `YYYY-MM-DD`: the few rows of the
//! next file could otherwise decide the format of their column in another way. A permit number of which a spreadsheet has
//! made a date is left out, for as text nobody would know it from a number. And the column in which an earlier file of
//! errors said what was wrong is left out, for the next one has such a column again.

use super::dates::ColumnDates;
use super::fields::Field;
use super::formula::unguard;
use super::mapping::Mapping;
use super::reading::Row;
use super::remarks::Remark;
use crate::domain::saying::{noun, which};
use crate::store::imports::staging::RejectedRow;

/// How many rejected rows of a file are kept.
pub const REJECTED_KEPT: u64 = 10_000;
/// How much text of them is kept, in bytes.
const TEXT_MAX: usize = 20 << 20;

/// The column of a file of errors that says what is wrong.
pub(super) const ERROR: &str = "error";

/// What stands there for a cell that a row does not have, so that the row is wrong until somebody has mended it.
pub(super) const NO_CELL: &str = "(no cell)";

/// Whether a row may be the header of a file of errors.
pub(super) fn is_errors_header<'c>(cells: impl Iterator<Item = &'c str>) -> bool {
    cells.last().is_some_and(|last| last.trim() == ERROR)
}

/// The columns of the file, as far as they matter for what is kept.
pub(super) struct Columns<'c> {
    pub mapping: &'c Mapping,
    pub dates: &'c ColumnDates,
    /// Cells of the header.
    pub width: usize,
}

impl Columns<'_> {
    /// Whether the last one is that of an earlier file of errors.
    pub fn has_old_errors(&self) -> bool {
        self.width > 1 && self.mapping.header(self.width - 1) == ERROR && !self.mapping.reads(self.width - 1)
    }

    /// The names of those that are kept.
    pub fn kept_header(&self, header: &[String]) -> Vec<String> {
        header[..header.len() - usize::from(self.has_old_errors())].to_vec()
    }

    /// Whether the cell at `at` of a row of `len` cells, which is too many or too few, can belong to a column of dates, and
    /// to none of identifiers: those look like dates at times, and must stay what they are.
    fn may_be_date(&self, at: usize, len: usize) -> bool {
        let columns = at.saturating_sub(len.saturating_sub(self.width))..=(at + self.width.saturating_sub(len));
        let may_be = |field: Field| self.mapping.places_of(field).iter().any(|place| columns.contains(place));
        let identifiers = [Field::PermitNumber, Field::ExternalId];
        !identifiers.into_iter().any(may_be) && Field::DATES.into_iter().any(may_be)
    }

    /// The cells of a row that are kept.
    fn kept_cells(&self, row: &Row<'_>) -> Vec<String> {
        let mut cells: Vec<String> = row.cells().map(str::to_owned).collect();
        if row.fits(self.width) {
            cells.truncate(self.width);
            for field in Field::DATES {
                let written = self.dates.as_iso(field, self.mapping.cell(row, field), self.mapping.is_day(row, field));
                if let (Some(&at), Some(written)) = (self.mapping.places_of(field).first(), written) {
                    cells[at] = written;
                }
            }
            if let Some(&at) = self.mapping.places_of(Field::PermitNumber).first()
                && row.is_day(at)
            {
                cells[at].clear();
            }
        } else {
            let len = row.len() - row.lacks();
            for (at, cell) in cells.iter_mut().enumerate() {
                let written = self.dates.as_iso_anywhere(self.mapping, unguard(cell));
                if let Some(written) = written.filter(|_| self.may_be_date(at, len)) {
                    *cell = written;
                }
            }
        }
        if cells.len() >= self.width && self.has_old_errors() {
            cells.pop();
        }
        cells
    }
}

/// How much is kept of a file.
#[derive(Debug, Default)]
pub(super) struct Kept {
    rows: u64,
    text: usize,
}

impl Kept {
    /// How many rows were kept.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The row with its faults in words; without its cells if there is no room.
    pub fn take(&mut self, row: &Row<'_>, columns: &Columns<'_>, faults: &[Remark]) -> RejectedRow {
        let file_row = row.number;
        let words: Vec<String> = faults.iter().map(without_row).collect();
        let errors = words.join("; ");
        let text = errors.len() + row.cells().map(str::len).sum::<usize>();
        if self.rows == REJECTED_KEPT || self.text + text > TEXT_MAX {
            return RejectedRow { file_row, ..RejectedRow::default() };
        }
        self.rows += 1;
        self.text += text;
        RejectedRow { file_row, kept: true, cells: columns.kept_cells(row), errors, ..RejectedRow::default() }
    }
}

/// Of rejected rows that are not kept. Without them the file of errors may not have all rows of a permit.
pub(super) fn not_kept_words(rows: u64) -> String {
    format!(
        "{rows} further rejected {} {} counted and not kept for the file of errors; correct them in the file itself, and \
         import that",
        noun(rows, "row"),
        which(rows, "is", "are")
    )
}

/// The fault stands beside its row.
fn without_row(fault: &Remark) -> String {
    Remark { row: None, ..fault.clone() }.to_string()
}
