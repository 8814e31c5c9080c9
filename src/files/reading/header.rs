//! Where the header is: the first row that names all that is needed, or that names the most. Titles, dates of printing
//! and the like may stand above it.

use super::super::fault::FileFault;
use super::super::mapping::Mapping;
use super::super::options::ImportOptions;
use super::super::probe::Delimiter;
use super::super::remarks::{Reason, Remark, shorten};
use super::{Body, COLUMNS_MAX, Row, Source};
use crate::domain::text::one_line;

/// Rows in which the header is looked for.
const LOOKED_AT: usize = 50;
/// Rows above it that are named.
const NAMED: usize = 3;
/// How many more fields than the first row another must name to be taken for the header without naming all that are
/// needed: a cell of a permit may say `no` or `company` by chance.
const MARGIN: usize = 2;

/// A row that may be the header.
struct Candidate {
    names: Vec<String>,
    number: u64,
    /// Whether it names all that is needed.
    is_whole: bool,
    /// How many fields it names.
    known: usize,
    /// The rows above it, how many and the first of them.
    above: usize,
    first: Vec<String>,
}

impl Source {
    /// Finds the header; of a text file, also with another delimiter than its first line has most of.
    pub(super) fn find_header(&mut self, options: &ImportOptions) -> Result<(), FileFault> {
        let mut best = self.candidate(options)?;
        let others: Vec<Delimiter> = match &self.body {
            Body::Text(text) if !best.is_whole && !text.separator_line => {
                Delimiter::ALL.iter().copied().filter(|&other| other != text.delimiter).collect()
            }
            _ => Vec::new(),
        };
        let mut delimiter = self.delimiter();
        for other in others {
            self.set_delimiter(other);
            if let Ok(found) = self.candidate(options)
                && (found.is_whole, found.known) >= (best.is_whole, best.known + MARGIN)
            {
                best = found;
                delimiter = Some(other);
            }
            if best.is_whole {
                break;
            }
        }
        if let Some(delimiter) = delimiter {
            self.set_delimiter(delimiter);
        }
        self.header = best.names;
        self.header_row = best.number;
        if best.above > 0 {
            let first = best.first.join(", ");
            let more = if best.above > best.first.len() { ", …" } else { "" };
            let (rows, are) = match best.above {
                1 => ("one row stands".to_owned(), "is"),
                several => (format!("{several} rows stand"), "are"),
            };
            let detail = format!("{rows} above the header and {are} not read: {first}{more}");
            self.remarks.push(Remark::whole(Reason::RowsAboveHeader, detail));
        }
        Ok(())
    }

    fn set_delimiter(&mut self, delimiter: Delimiter) {
        if let Body::Text(text) = &mut self.body {
            text.delimiter = delimiter;
        }
    }

    fn candidate(&mut self, options: &ImportOptions) -> Result<Candidate, FileFault> {
        let mut rows = self.all_rows()?;
        let Some(row) = rows.next_row()? else { return Err(FileFault::Empty) };
        let mut best = Candidate::of(&row, options)?;
        let mut first = vec![described(&row)];
        let mut margin = MARGIN;
        for passed in 1..LOOKED_AT {
            if best.is_whole {
                break;
            }
            // A row that cannot be read ends the search, and is a matter for who reads all of them.
            let Ok(Some(row)) = rows.next_row() else { break };
            let Ok(mut other) = Candidate::of(&row, options) else { continue };
            if other.is_whole || other.known >= best.known + margin {
                other.above = passed;
                other.first.clone_from(&first);
                best = other;
                margin = 1;
            }
            if first.len() < NAMED {
                first.push(described(&row));
            }
        }
        Ok(best)
    }
}

impl Candidate {
    fn of(row: &Row<'_>, options: &ImportOptions) -> Result<Self, FileFault> {
        if row.len() > COLUMNS_MAX {
            return Err(FileFault::TooManyColumns(row.len()));
        }
        let names: Vec<String> = row.cells().map(one_line).collect();
        let (is_whole, known) = Mapping::understands(&names, options);
        Ok(Self { names, number: row.number, is_whole, known, above: 0, first: Vec::new() })
    }
}

/// A row that is not read, for a sentence.
fn described(row: &Row<'_>) -> String {
    let words: Vec<&str> = row.cells().map(str::trim).filter(|cell| !cell.is_empty()).collect();
    format!("row {} {:?}", row.number, shorten(&one_line(&words.join(" "))))
}
