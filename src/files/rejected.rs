//! Rejected rows, kept as they came so that people can correct them; a bounded number.

use super::reading::Row;
use super::remarks::Remark;
use crate::store::imports::staging::RejectedRow;

/// How many rejected rows of a file are kept.
pub const REJECTED_KEPT: u64 = 10_000;
/// How much text of them is kept, in bytes.
const TEXT_MAX: usize = 20 << 20;

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
    pub fn take(&mut self, row: &Row<'_>, number_key: Option<String>, faults: &[Remark]) -> RejectedRow {
        let file_row = row.number;
        let words: Vec<String> = faults.iter().map(without_row).collect();
        let errors = words.join("; ");
        let text = errors.len() + row.cells().map(str::len).sum::<usize>();
        if self.rows == REJECTED_KEPT || self.text + text > TEXT_MAX {
            return RejectedRow { file_row, number_key, kept: false, cells: Vec::new(), errors: String::new() };
        }
        self.rows += 1;
        self.text += text;
        let cells = row.cells().map(str::to_owned).collect();
        RejectedRow { file_row, number_key, kept: true, cells, errors }
    }
}

/// Of rejected rows that are not kept. Without them the file of errors may not have all rows of a permit.
pub(super) fn not_kept_words(rows: u64) -> String {
    format!(
        "{rows} further rejected rows are counted and not kept for the file of errors; correct them in the file itself, \
         and import that"
    )
}

/// The fault stands beside its row.
fn without_row(fault: &Remark) -> String {
    Remark { row: None, ..fault.clone() }.to_string()
}
