//! Rows of a text file whose cells stand apart by a delimiter.
//!
//! The `csv` crate drops blank lines without a trace, so its core is driven here by hand; that also bounds a row.

use std::fs::File;
use std::ops::Range;

use csv_core::ReadRecordResult;

use super::super::fault::FileFault;
use super::super::probe::{self, Delimiter};
use super::encoding::{self, Encoding, Text};
use super::{ROW_BYTES_MAX, Row};

/// A text file, and how it is taken apart.
#[derive(Debug)]
pub(super) struct TextFile {
    pub file: File,
    pub encoding: Encoding,
    /// Length of its mark.
    mark: u64,
    pub delimiter: Delimiter,
    /// Whether a line says what the delimiter is.
    pub separator_line: bool,
}

impl TextFile {
    /// Guesses the encoding and the delimiter of a file that begins with `head`.
    pub fn open(file: File, head: &[u8]) -> Result<Self, FileFault> {
        let (encoding, mark) = encoding::guess(&file, head)?;
        let mut start = Vec::new();
        Text::new(&file, encoding, mark)?.read(&mut start)?;
        let (delimiter, separator_line) = probe::guess_delimiter(&start);
        Ok(Self { file, encoding, mark, delimiter, separator_line })
    }

    /// All rows.
    pub fn rows(&self) -> Result<TextRows<'_>, FileFault> {
        let mut rows = TextRows::new(Text::new(&self.file, self.encoding, self.mark)?, self.delimiter);
        if self.separator_line {
            rows.advance()?;
        }
        Ok(rows)
    }
}

/// The rows of a text file from its beginning on.
pub(super) struct TextRows<'f> {
    text: Text<'f>,
    core: csv_core::Reader,
    input: Vec<u8>,
    /// What of `input` is not yet taken.
    pending: Range<usize>,
    output: Vec<u8>,
    ends: Vec<usize>,
    /// How many of `ends` are of the row.
    cells: usize,
    number: u64,
    /// The last byte taken was a CR, to which a following LF belongs.
    after_cr: bool,
}

impl<'f> TextRows<'f> {
    fn new(text: Text<'f>, delimiter: Delimiter) -> Self {
        Self {
            text,
            core: csv_core::ReaderBuilder::new().delimiter(delimiter.byte()).build(),
            input: Vec::new(),
            pending: 0..0,
            output: vec![0; 4096],
            ends: vec![0; 64],
            cells: 0,
            number: 0,
            after_cr: false,
        }
    }

    /// Goes to the next row that is not blank; false at the end of the file.
    pub fn advance(&mut self) -> Result<bool, FileFault> {
        loop {
            if !self.skip_line_ends()? {
                return Ok(false);
            }
            self.number += 1;
            let (length, cells) = self.read_record()?;
            if self.output[..length].iter().any(|byte| !byte.is_ascii_whitespace()) {
                self.cells = cells;
                break;
            }
        }
        let Row { text, ends, .. } = self.row();
        let not_utf8 = || FileFault::NotUtf8 { row: self.number };
        let bytes = &self.output[..ends.last().copied().unwrap_or(0)];
        // Two broken cells side by side can make a whole character.
        let whole = text.len() == bytes.len() && ends.iter().all(|&end| text.is_char_boundary(end));
        if whole { Ok(true) } else { Err(not_utf8()) }
    }

    /// How many bytes of the file were taken, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.text.done, self.text.size)
    }

    /// Which row of the file it is at.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The row where it is; without text when that is no UTF-8.
    pub fn row(&self) -> Row<'_> {
        let ends = &self.ends[..self.cells];
        let bytes = &self.output[..ends.last().copied().unwrap_or(0)];
        Row { number: self.number, text: str::from_utf8(bytes).unwrap_or_default(), ends, days: &[] }
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
        self.text.read(&mut self.input)?;
        self.pending = 0..self.input.len();
        if self.input.contains(&0) {
            return Err(FileFault::Binary);
        }
        Ok(!self.input.is_empty())
    }
}
