//! The cells of one row of a sheet, put together from those that are not empty.

use super::super::fault::FileFault;
use super::{COLUMNS_MAX, ROW_BYTES_MAX, Row};

/// A row on its way.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub number: u64,
    text: String,
    ends: Vec<usize>,
    days: Vec<usize>,
    /// Cells of the header, once it is known.
    width: Option<usize>,
    /// Something stands right of the header's last column.
    pub beyond: bool,
    pub hidden: bool,
    pub formulas: u32,
    /// Formulas whose value the file does not have.
    pub valueless: u32,
    /// Numbers with more digits than a spreadsheet keeps.
    pub overlong: u32,
}

impl Cells {
    pub fn set_width(&mut self, width: usize) {
        self.width = Some(width);
    }

    /// Forgets the row before.
    pub fn begin(&mut self, number: u64) {
        self.number = number;
        self.text.clear();
        self.ends.clear();
        self.days.clear();
        (self.beyond, self.hidden) = (false, false);
        (self.formulas, self.valueless, self.overlong) = (0, 0, 0);
    }

    /// Puts a cell where it belongs, from left to right.
    pub fn put(&mut self, column: usize, cell: &str, is_day: bool) -> Result<(), FileFault> {
        if cell.is_empty() {
            return Ok(());
        }
        if column < self.ends.len() {
            return Err(FileFault::damaged("the cells of a row are out of order"));
        }
        if column >= self.width.unwrap_or(COLUMNS_MAX + 1) {
            self.beyond |= !cell.trim().is_empty();
            return Ok(());
        }
        self.ends.resize(column, self.text.len());
        self.text.push_str(cell);
        self.ends.push(self.text.len());
        if is_day {
            self.days.push(column);
        }
        if self.text.len() > ROW_BYTES_MAX {
            return Err(FileFault::RowTooLong { row: self.number });
        }
        Ok(())
    }

    /// Fills the row up to the width of the header; false when it is blank.
    pub fn finish(&mut self) -> bool {
        if self.text.trim().is_empty() {
            return false;
        }
        if let Some(width) = self.width {
            self.ends.resize(width, self.text.len());
        }
        true
    }

    pub fn row(&self) -> Row<'_> {
        Row { number: self.number, text: &self.text, ends: &self.ends, days: &self.days }
    }
}
