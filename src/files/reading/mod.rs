//! Rows of text out of a file, one at a time, numbered as a spreadsheet shows them: of a text file (`text`), or of one
//! sheet of a workbook (`workbook`, and by their formats `xlsx` and `ods`). Whatever wrote it, the rest sees [`Row`]s.
//!
//! Blank rows are no rows of the table but count as rows of the file. What stands above the header (`header`) is
//! reported and not read. Workbooks are read as streams, and everything about them has a limit (`archive`, `xml`), so
//! that memory does not grow with what a file claims.

mod archive;
mod cells;
pub(super) mod encoding;
mod header;
mod notes;
mod numbers;
mod ods;
mod strings;
mod styles;
mod text;
mod workbook;
mod xlsx;
mod xml;

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::fault::FileFault;
use super::options::ImportOptions;
use super::probe::{self, Delimiter};
use super::rejected::NO_CELL;
use super::remarks::Remark;
use crate::domain::words;
use encoding::Encoding;
use notes::Notes;
use text::{TextFile, TextRows};
use workbook::{SheetRows, Workbook};

pub use workbook::SheetSeen;

/// Longest row, in bytes.
pub const ROW_BYTES_MAX: usize = 1 << 20;
/// Longest cell, in characters.
pub const CELL_CHARS_MAX: usize = 10_000;
/// Most columns of a header.
pub const COLUMNS_MAX: usize = 1_000;

words! {
    /// What kind of file it is.
    "format" FileFormat {
        /// Text, its cells apart by a delimiter.
        Csv = "csv",
        /// A workbook of Excel.
        Xlsx = "xlsx",
        /// A workbook of OpenDocument.
        Ods = "ods",
    }
}

/// One row of a file.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r> {
    /// Which row of the file, counted from 1 and with the blank ones.
    pub number: u64,
    text: &'r str,
    ends: &'r [usize],
    /// Positions of the cells that hold a day by their format, and so need no guess.
    days: &'r [usize],
}

impl<'r> Row<'r> {
    /// How many cells it has; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a row without cells is blank and never seen")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The cell at `index` from 0, as it stands; empty beyond the last.
    pub fn cell(&self, index: usize) -> &'r str {
        let Some(&end) = self.ends.get(index) else { return "" };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..end]
    }

    /// All cells in order.
    pub fn cells(&self) -> impl Iterator<Item = &'r str> + use<'r> {
        let row = *self;
        (0..row.len()).map(move |index| row.cell(index))
    }

    /// Whether it has the cells of a header of `width` columns, and nothing but blanks after them.
    pub fn fits(&self, width: usize) -> bool {
        self.lacks() == 0
            && (self.len() == width
                || (self.len() > width && self.cells().skip(width).all(|cell| cell.trim().is_empty())))
    }

    /// How many of its cells say that it does not have them, as a file of errors does.
    pub fn lacks(&self) -> usize {
        self.cells().filter(|cell| *cell == NO_CELL).count()
    }

    /// Whether the cell holds a day by its format; then its text is the day as `YYYY-MM-DD`.
    pub fn is_day(&self, index: usize) -> bool {
        self.days.contains(&index)
    }
}

/// A file that can be read from the top any number of times.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    /// The same file as the one that is read; for what the system says about it.
    handle: File,
    opened: Metadata,
    body: Body,
    header: Vec<String>,
    header_row: u64,
    /// Remarks about the file as a whole that its beginning gives rise to.
    remarks: Vec<Remark>,
}

#[derive(Debug)]
enum Body {
    Text(TextFile),
    Workbook(Box<Workbook>),
}

impl Source {
    /// Opens `path`, guesses what it is and how it is laid out, and finds the header.
    pub fn open(path: &Path, options: &ImportOptions) -> Result<Self, FileFault> {
        Self::of(File::open(path).map_err(io_fault)?, path, options)
    }

    /// The same of a file that is open; `path` is what it is called.
    pub fn of(mut file: File, path: &Path, options: &ImportOptions) -> Result<Self, FileFault> {
        let mut opened = file.metadata().map_err(io_fault)?;
        if opened.is_dir() {
            return Err(FileFault::Folder);
        }
        if !opened.is_file() {
            file = spooled(file).map_err(FileFault::Io)?;
            opened = file.metadata().map_err(FileFault::Io)?;
        }
        let handle = file.try_clone().map_err(FileFault::Io)?;
        let head = head_of(&file).map_err(io_fault)?;
        probe::refuse_other_formats(&head)?;
        let body = if probe::is_zip(&head) {
            Body::Workbook(Box::new(Workbook::open(file, options.sheet())?))
        } else if options.sheet_of_text().is_some() {
            return Err(FileFault::NoSheets);
        } else {
            Body::Text(TextFile::open(file, &head)?)
        };
        let remarks = match &body {
            Body::Text(_) => Vec::new(),
            Body::Workbook(workbook) => workbook.remark().into_iter().collect(),
        };
        let (path, header) = (path.to_owned(), Vec::new());
        let mut source = Self { path, handle, opened, body, header, header_row: 0, remarks };
        source.find_header(options)?;
        Ok(source)
    }

    /// The rows below the header, from the first.
    pub fn rows(&mut self) -> Result<Rows<'_>, FileFault> {
        let (header_row, width) = (self.header_row, self.header.len());
        let mut rows = self.all_rows()?;
        rows.below = header_row;
        if let RowsOf::Sheet(sheet) = &mut rows.source {
            sheet.set_width(width);
        }
        Ok(rows)
    }

    /// All rows with the header, from the first.
    pub(super) fn all_rows(&mut self) -> Result<Rows<'_>, FileFault> {
        let rows = match &mut self.body {
            Body::Text(text) => RowsOf::Text(text.rows()?),
            Body::Workbook(workbook) => RowsOf::Sheet(workbook.rows()?),
        };
        Ok(Rows { source: rows, below: 0, notes: Notes::default() })
    }

    /// Whether somebody wrote to the file since it was opened.
    pub fn changed(&self) -> Result<bool, FileFault> {
        let now = self.handle.metadata().map_err(FileFault::Io)?;
        Ok(now.len() != self.opened.len() || now.modified().ok() != self.opened.modified().ok())
    }

    /// The names of the columns, each in one line, because sentences repeat them; at least one.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Which row of the file the header is.
    pub fn header_row(&self) -> u64 {
        self.header_row
    }

    /// What kind of file it is.
    pub fn format(&self) -> FileFormat {
        match &self.body {
            Body::Text(_) => FileFormat::Csv,
            Body::Workbook(workbook) => workbook.format(),
        }
    }

    /// The sheet that is read.
    pub fn sheet(&self) -> Option<&str> {
        match &self.body {
            Body::Text(_) => None,
            Body::Workbook(workbook) => Some(workbook.sheet()),
        }
    }

    /// The sheets of the file.
    pub fn sheets(&self) -> &[SheetSeen] {
        match &self.body {
            Body::Text(_) => &[],
            Body::Workbook(workbook) => workbook.sheets(),
        }
    }

    /// What stands between two cells of a text file.
    pub fn delimiter(&self) -> Option<Delimiter> {
        match &self.body {
            Body::Text(text) => Some(text.delimiter),
            Body::Workbook(_) => None,
        }
    }

    /// The encoding of the text; inside workbooks always UTF-8.
    pub fn encoding(&self) -> Encoding {
        match &self.body {
            Body::Text(text) => text.encoding,
            Body::Workbook(_) => Encoding::Utf8,
        }
    }

    /// What is to be said about the file before its rows are read.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The file as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

pub(super) fn io_fault(error: std::io::Error) -> FileFault {
    match error.kind() {
        ErrorKind::NotFound => FileFault::NotFound,
        ErrorKind::IsADirectory => FileFault::Folder,
        _ => FileFault::Io(error),
    }
}

/// The first bytes of a file.
fn head_of(mut file: &File) -> std::io::Result<Vec<u8>> {
    const HEAD: u64 = 64 << 10;
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// A copy of what comes out of a pipe, in a file that has no name and goes with its handle.
fn spooled(mut pipe: File) -> std::io::Result<File> {
    let mut spool = tempfile::tempfile()?;
    std::io::copy(&mut pipe, &mut spool)?;
    spool.flush()?;
    spool.seek(SeekFrom::Start(0))?;
    Ok(spool)
}

/// The rows of a file from some place on; see [`Source::rows`].
pub struct Rows<'f> {
    source: RowsOf<'f>,
    /// Rows up to this one are passed over.
    below: u64,
    notes: Notes,
}

enum RowsOf<'f> {
    Text(TextRows<'f>),
    Sheet(SheetRows<'f>),
}

impl Rows<'_> {
    /// The next row that is not blank; none at the end of the file.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, FileFault> {
        while self.source.advance()? {
            if self.source.number() > self.below {
                if let RowsOf::Sheet(sheet) = &self.source {
                    self.notes.take(sheet);
                }
                return Ok(Some(self.source.row()));
            }
        }
        Ok(None)
    }

    /// How many bytes were taken, and out of how many.
    pub fn progress(&self) -> (u64, u64) {
        match &self.source {
            RowsOf::Text(rows) => rows.progress(),
            RowsOf::Sheet(rows) => rows.progress(),
        }
    }

    /// What was met on the way that somebody should look at.
    pub fn remarks(&self) -> Vec<Remark> {
        match &self.source {
            RowsOf::Text(_) => Vec::new(),
            RowsOf::Sheet(sheet) => self.notes.remarks(sheet, self.below),
        }
    }
}

impl RowsOf<'_> {
    fn advance(&mut self) -> Result<bool, FileFault> {
        match self {
            Self::Text(rows) => rows.advance(),
            Self::Sheet(rows) => rows.advance(),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Text(rows) => rows.number(),
            Self::Sheet(rows) => rows.cells().number,
        }
    }

    fn row(&self) -> Row<'_> {
        match self {
            Self::Text(rows) => rows.row(),
            Self::Sheet(rows) => rows.cells().row(),
        }
    }
}
