//! Rejected rows, kept so that people can correct them and send them again; a bounded number.
//!
//! They are kept as they came, but for two things. A date that could be read is kept as `YYYY-MM-DD`: the few rows of the
//! next file could otherwise decide the format of their column in another way. And the column in which an earlier file
//! of errors said what was wrong is left out, for the next one has such a column again.

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

/// The columns of the file, as far as they matter for what is kept.
pub(super) struct Columns<'c> {
    pub mapping: &'c Mapping,
    pub dates: &'c ColumnDates,
    /// Cells of the header.
    pub width: usize,
}

impl Columns<'_> {
    /// Whether the last one is that of an earlier file of errors.
    fn has_old_errors(&self) -> bool {
        self.width > 1 && self.mapping.header(self.width - 1) == ERROR && !self.mapping.reads(self.width - 1)
    }

    /// The names of those that are kept.
    pub fn kept_header(&self, header: &[String]) -> Vec<String> {
        header[..header.len() - usize::from(self.has_old_errors())].to_vec()
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
        } else {
            // Where its dates stand is not known.
            for cell in &mut cells {
                if let Some(written) = self.dates.as_iso_anywhere(self.mapping, unguard(cell)) {
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

    /// The row with its faults in words, and its permit number if it has one; without its cells if there is no room.
    pub fn take(
        &mut self,
        row: &Row<'_>,
        columns: &Columns<'_>,
        number_key: Option<String>,
        faults: &[Remark],
    ) -> RejectedRow {
        let file_row = row.number;
        let words: Vec<String> = faults.iter().map(without_row).collect();
        let errors = words.join("; ");
        let text = errors.len() + row.cells().map(str::len).sum::<usize>();
        if self.rows == REJECTED_KEPT || self.text + text > TEXT_MAX {
            return RejectedRow { file_row, number_key, kept: false, cells: Vec::new(), errors: String::new() };
        }
        self.rows += 1;
        self.text += text;
        RejectedRow { file_row, number_key, kept: true, cells: columns.kept_cells(row), errors }
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
