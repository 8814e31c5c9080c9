//! A table as a workbook, written row by row: what was written goes to a temporary file without a name, so memory does
//! not grow with it. A sheet that is full is followed by another with the same header.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};

use chrono::{Datelike, NaiveDate};
use rust_xlsxwriter::{Format, Workbook, Worksheet, XlsxError};

/// Most rows of a sheet, with its header.
pub const SHEET_ROWS: u32 = 1_048_576;
/// Longest text of a cell, in units of UTF-16.
const CELL_UNITS: usize = 32_767;

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Text, also where it looks like a number, and never a formula.
    Text(String),
    /// A number.
    Number(i64),
    /// A day, as a real date.
    Day(NaiveDate),
}

/// A workbook on its way.
pub struct Book {
    workbook: Workbook,
    header: Vec<&'static str>,
    /// Most rows of a sheet.
    most: u32,
    sheets: usize,
    /// The next row of the present sheet.
    row: u32,
    formats: Formats,
}

struct Formats {
    head: Format,
    /// Keeps leading zeros when somebody writes into the cell.
    text: Format,
    day: Format,
}

impl Book {
    /// A workbook with this header, and `most` rows in each sheet.
    pub fn new(header: &[&'static str], most: u32) -> Result<Self, XlsxError> {
        let formats = Formats {
            head: Format::new().set_bold(),
            text: Format::new().set_num_format("@"),
            day: Format::new().set_num_format("yyyy-mm-dd"),
        };
        let mut book =
            Self { workbook: Workbook::new(), header: header.to_vec(), most: most.max(2), sheets: 0, row: 0, formats };
        book.begin_sheet()?;
        Ok(book)
    }

    fn begin_sheet(&mut self) -> Result<(), XlsxError> {
        self.sheets += 1;
        let sheet = self.workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(if self.sheets == 1 { "Permits".to_owned() } else { format!("Permits {}", self.sheets) })?;
        sheet.set_freeze_panes(1, 0)?;
        for (column, name) in (0..).zip(&self.header) {
            sheet.set_column_width(column, 18)?;
            sheet.write_string_with_format(0, column, *name, &self.formats.head)?;
        }
        self.row = 1;
        Ok(())
    }

    /// Writes a row.
    pub fn add(&mut self, cells: Vec<Cell>) -> Result<(), XlsxError> {
        if self.row == self.most {
            self.begin_sheet()?;
        }
        let sheet = self.workbook.worksheet_from_index(self.sheets - 1)?;
        for (column, cell) in (0..).zip(cells) {
            write(sheet, self.row, column, cell, &self.formats)?;
        }
        self.row += 1;
        Ok(())
    }

    /// The whole file, from its beginning.
    pub fn finish(mut self) -> Result<File, XlsxError> {
        let mut file = BufWriter::new(tempfile::tempfile()?);
        self.workbook.save_to_writer(&mut file)?;
        file.flush()?;
        let mut file = file.into_inner().map_err(|error| XlsxError::IoError(error.into_error()))?;
        file.rewind()?;
        Ok(file)
    }
}

fn write(sheet: &mut Worksheet, row: u32, column: u16, cell: Cell, formats: &Formats) -> Result<(), XlsxError> {
    match cell {
        Cell::Empty => return Ok(()),
        // A sheet knows no days before 1900; they stay as they are written.
        Cell::Day(day) if (1900..=9999).contains(&day.year()) => {
            sheet.write_date_with_format(row, column, day, &formats.day)?
        }
        Cell::Day(day) => sheet.write_string_with_format(row, column, day.to_string(), &formats.text)?,
        Cell::Number(number) => sheet.write_number(row, column, number as f64)?,
        Cell::Text(text) => sheet.write_string_with_format(row, column, fitting(text), &formats.text)?,
    };
    Ok(())
}

/// The text as far as a cell takes it.
fn fitting(text: String) -> String {
    // No text has more units than bytes.
    if text.len() <= CELL_UNITS || text.encode_utf16().count() <= CELL_UNITS {
        return text;
    }
    let mut units = 1;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= CELL_UNITS
    };
    text.chars().take_while(fits).chain(['…']).collect()
}
