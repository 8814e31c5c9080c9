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
    /// Those of them whose permit number is known.
    named: u64,
    text: usize,
}

impl Kept {
    /// How many rows were kept.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows were kept whose permit number is known.
    pub fn named(&self) -> u64 {
        self.named
    }

    /// The row with its faults in words, and its permit number if it has one, if there is room for it.
    pub fn take(&mut self, row: &Row<'_>, number_key: Option<String>, faults: &[Remark]) -> Option<RejectedRow> {
        if self.rows == REJECTED_KEPT {
            return None;
        }
        let words: Vec<String> = faults.iter().map(without_row).collect();
        let errors = words.join("; ");
        let text = errors.len() + row.cells().map(str::len).sum::<usize>();
        if self.text + text > TEXT_MAX {
            return None;
        }
        self.rows += 1;
        self.named += u64::from(number_key.is_some());
        self.text += text;
        Some(RejectedRow { file_row: row.number, number_key, cells: row.cells().map(str::to_owned).collect(), errors })
    }
}

/// The fault stands beside its row.
fn without_row(fault: &Remark) -> String {
    Remark { row: None, ..fault.clone() }.to_string()
}
