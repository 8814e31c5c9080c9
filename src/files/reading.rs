//! Rows of text out of a csv file in UTF-8, one at a time, numbered as a spreadsheet shows them.
//!
//! Blank lines, and lines of nothing but delimiters, are no rows of the table but count as rows of the file. The
//! `csv` crate drops blank lines without a trace, so its core is driven here by hand; that also bounds a row.
//! Another kind of file joins by giving the same [`Row`]s.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use csv_core::ReadRecordResult;

use super::fault::FileFault;
use super::probe::{self, BOM, Delimiter};
use crate::domain::text::one_line;

/// Longest row, in bytes.
pub const ROW_BYTES_MAX: usize = 1 << 20;
/// Longest cell, in characters.
pub const CELL_CHARS_MAX: usize = 10_000;
/// Most columns of a header.
pub const COLUMNS_MAX: usize = 1_000;

const BUFFER: usize = 128 << 10;

/// One row of a file.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r> {
    /// Which row of the file, counted from 1 and with the blank ones.
    pub number: u64,
    text: &'r str,
    ends: &'r [usize],
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
}

/// A csv file that can be read from the top any number of times.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    file: File,
    opened: Metadata,
    delimiter: Delimiter,
    separator_line: bool,
    header: Vec<String>,
    header_row: u64,
}

impl Source {
    /// Opens `path`, refuses what is not csv, guesses the delimiter and reads the header.
    pub fn open(path: &Path) -> Result<Self, FileFault> {
        Self::of(File::open(path).map_err(io_fault)?, path)
    }

    /// The same of a file that is open; `path` is what it is called.
    pub fn of(mut file: File, path: &Path) -> Result<Self, FileFault> {
        let mut opened = file.metadata().map_err(io_fault)?;
        if opened.is_dir() {
            return Err(FileFault::Folder);
        }
        if !opened.is_file() {
            file = spooled(file).map_err(FileFault::Io)?;
            opened = file.metadata().map_err(FileFault::Io)?;
        }
        file.seek(SeekFrom::Start(0)).map_err(io_fault)?;
        let mut head = Vec::with_capacity(BUFFER);
        (&file).take(BUFFER as u64).read_to_end(&mut head).map_err(io_fault)?;
        probe::refuse_other_formats(&head)?;
        let text = head.strip_prefix(BOM).unwrap_or(&head);
        let (delimiter, separator_line) = probe::guess_delimiter(text);
        let mut source =
            Self { path: path.to_owned(), file, opened, delimiter, separator_line, header: Vec::new(), header_row: 0 };
        source.read_header()?;
        Ok(source)
    }

    fn read_header(&mut self) -> Result<(), FileFault> {
        let mut rows = self.all_rows()?;
        let header = rows.next_row()?.ok_or(FileFault::Empty)?;
        if header.len() > COLUMNS_MAX {
            return Err(FileFault::TooManyColumns(header.len()));
        }
        let names = header.cells().map(one_line).collect();
        let number = header.number;
        self.header = names;
        self.header_row = number;
        Ok(())
    }

    /// The rows below the header, from the first.
    pub fn rows(&mut self) -> Result<Rows<'_>, FileFault> {
        let mut rows = self.all_rows()?;
        rows.next_row()?;
        Ok(rows)
    }

    /// All rows with the header, from the first.
    fn all_rows(&mut self) -> Result<Rows<'_>, FileFault> {
        self.file.seek(SeekFrom::Start(0)).map_err(FileFault::Io)?;
        let mut rows = Rows::new(&self.file, self.delimiter)?;
        if self.separator_line {
            rows.next_row()?;
        }
        Ok(rows)
    }

    /// Whether somebody wrote to the file since it was opened.
    pub fn changed(&self) -> Result<bool, FileFault> {
        let now = self.file.metadata().map_err(FileFault::Io)?;
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

    /// What stands between two cells.
    pub fn delimiter(&self) -> Delimiter {
        self.delimiter
    }

    /// The encoding of the text.
    pub fn encoding(&self) -> &'static str {
        "UTF-8"
    }

    /// The file as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn io_fault(error: std::io::Error) -> FileFault {
    match error.kind() {
        ErrorKind::NotFound => FileFault::NotFound,
        ErrorKind::IsADirectory => FileFault::Folder,
        _ => FileFault::Io(error),
    }
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
#[derive(Debug)]
pub struct Rows<'f> {
    file: &'f File,
    core: csv_core::Reader,
    input: Vec<u8>,
    /// What of `input` is read from the file and not yet taken.
    pending: std::ops::Range<usize>,
    output: Vec<u8>,
    ends: Vec<usize>,
    number: u64,
    /// The last byte taken was a CR, to which a following LF belongs.
    after_cr: bool,
}

impl<'f> Rows<'f> {
    fn new(file: &'f File, delimiter: Delimiter) -> Result<Self, FileFault> {
        let mut rows = Self {
            file,
            core: csv_core::ReaderBuilder::new().delimiter(delimiter.byte()).build(),
            input: vec![0; BUFFER],
            pending: 0..0,
            output: vec![0; 4096],
            ends: vec![0; 64],
            number: 0,
            after_cr: false,
        };
        // A regular file gives all of its first bytes in one read.
        if rows.fill()? && rows.input[rows.pending.clone()].starts_with(BOM) {
            rows.pending.start += BOM.len();
        }
        Ok(rows)
    }

    /// The next row that is not blank; none at the end of the file.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, FileFault> {
        let cells = loop {
            if !self.skip_line_ends()? {
                return Ok(None);
            }
            self.number += 1;
            let (length, cells) = self.read_record()?;
            if self.output[..length].iter().any(|byte| !byte.is_ascii_whitespace()) {
                break cells;
            }
        };
        let number = self.number;
        let ends = &self.ends[..cells];
        let bytes = &self.output[..ends.last().copied().unwrap_or(0)];
        let text = str::from_utf8(bytes).map_err(|_| FileFault::NotUtf8 { row: number })?;
        // Two broken cells side by side can make a whole character.
        if ends.iter().any(|&end| !text.is_char_boundary(end)) {
            return Err(FileFault::NotUtf8 { row: number });
        }
        Ok(Some(Row { number, text, ends }))
    }

    /// Takes line ends, counting a row for each that ends a blank line; false at the end of the file.
    fn skip_line_ends(&mut self) -> Result<bool, FileFault> {
        while !self.pending.is_empty() || self.fill()? {
            let byte = self.input[self.pending.start];
            let completes_crlf = self.after_cr && byte == b'\n';
            self.after_cr = byte == b'\r';
            match byte {
                b'\n' if completes_crlf => {}
                b'\r' | b'\n' => self.number += 1,
                _ => return Ok(true),
            }
            self.pending.start += 1;
        }
        Ok(false)
    }

    /// Reads one record; how many bytes of `output` and how many `ends` it has.
    fn read_record(&mut self) -> Result<(usize, usize), FileFault> {
        let (mut taken, mut written, mut cells) = (0, 0, 0);
        loop {
            let at_end = self.pending.is_empty() && !self.fill()?;
            // A last line without a line end is given one. Inside quotes alone that does not end the record, which
            // the core would pass over in silence.
            let input = if at_end { b"\n" } else { &self.input[self.pending.clone()] };
            let (result, read, wrote, ended) =
                self.core.read_record(input, &mut self.output[written..], &mut self.ends[cells..]);
            if read > 0 {
                self.after_cr = input[read - 1] == b'\r';
            }
            if !at_end {
                self.pending.start += read;
            }
            taken += read;
            written += wrote;
            cells += ended;
            if taken > ROW_BYTES_MAX {
                return Err(FileFault::RowTooLong { row: self.number });
            }
            match result {
                ReadRecordResult::InputEmpty if at_end => {
                    return Err(FileFault::UnclosedQuote { row: self.number });
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.output.resize(self.output.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record | ReadRecordResult::End => return Ok((written, cells)),
            }
        }
    }

    /// Reads more of the file; false at its end.
    fn fill(&mut self) -> Result<bool, FileFault> {
        let length = loop {
            match self.file.read(&mut self.input) {
                Ok(length) => break length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(FileFault::Io(error)),
            }
        };
        self.pending = 0..length;
        if self.input[..length].contains(&0) {
            return Err(FileFault::Binary);
        }
        Ok(length > 0)
    }
}
