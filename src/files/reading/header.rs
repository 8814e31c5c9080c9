//! Where the header is: where somebody says, else the first row that names all that is needed, or that names the most.
//! Titles, dates of printing and the like may stand above it. When no row has names that are known, it is the first that
//! looks like the head of a table.

use std::collections::HashSet;

use super::super::fault::FileFault;
use super::super::formula::unguard;
use super::super::mapping::Mapping;
use super::super::options::ImportOptions;
use super::super::probe::Delimiter;
use super::super::rejected::is_errors_header;
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
/// Fewest columns of a table of permits: their numbers, holders and dates.
const COLUMNS_MIN: usize = 3;

/// A row that may be the header.
struct Candidate {
    names: Vec<String>,
    number: u64,
    /// Whether it names all that is needed.
    is_whole: bool,
    /// How many fields it names.
    known: usize,
    /// How many columns it names, if it looks like the head of the rows below it.
    heads: usize,
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
                && found.is_better_than(&best)
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

    /// Whether it is a file of errors of an earlier import, which has its header in the first row.
    pub(in crate::files) fn is_errors_file(&mut self) -> bool {
        let Ok(mut rows) = self.all_rows() else { return false };
        matches!(rows.next_row(), Ok(Some(row)) if row.number == 1 && is_errors_header(row.cells()))
    }

    fn set_delimiter(&mut self, delimiter: Delimiter) {
        if let Body::Text(text) = &mut self.body {
            text.delimiter = delimiter;
        }
    }

    /// The row that somebody says is the header.
    fn said(&mut self, number: u64, options: &ImportOptions) -> Result<Candidate, FileFault> {
        let mut rows = self.all_rows()?;
        let (mut above, mut first) = (0, Vec::new());
        while let Some(row) = rows.next_row()? {
            if row.number == number {
                let heads = row.cells().filter(|cell| !cell.trim().is_empty()).count();
                return Ok(Candidate { heads, above, first, ..Candidate::of(&row, options)? });
            }
            if row.number > number {
                break;
            }
            above += 1;
            if first.len() < NAMED {
                first.push(described(&row));
            }
        }
        Err(FileFault::NoHeaderRow { row: number })
    }

    fn candidate(&mut self, options: &ImportOptions) -> Result<Candidate, FileFault> {
        if let Some(row) = options.header_row()
            && (options.header_row_of_errors().is_some() || !self.is_errors_file())
        {
            return self.said(row, options);
        }
        let best = self.best_named(options)?;
        if best.is_whole || best.known >= MARGIN {
            return Ok(best);
        }
        let Some((number, heads)) = self.first_head()? else { return Ok(best) };
        Ok(Candidate { heads, ..self.said(number, options)? })
    }

    /// The first row that has as many different names as most of the rows below it have cells, and how many.
    fn first_head(&mut self) -> Result<Option<(u64, usize)>, FileFault> {
        let mut rows = self.all_rows()?;
        let mut seen: Vec<RowShape> = Vec::new();
        while seen.len() < LOOKED_AT
            && let Ok(Some(row)) = rows.next_row()
        {
            seen.push(RowShape::of(&row));
        }
        let mut rest = seen.as_slice();
        while let [row, below @ ..] = rest {
            let mut filled: Vec<usize> = below.iter().map(|row| row.filled).collect();
            filled.sort_unstable();
            let usual = filled.get(filled.len() / 2).copied();
            if row.names >= COLUMNS_MIN && usual.is_some_and(|usual| usual <= row.names) {
                return Ok(Some((row.number, row.names)));
            }
            rest = below;
        }
        Ok(None)
    }

    fn best_named(&mut self, options: &ImportOptions) -> Result<Candidate, FileFault> {
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

/// What a row is made of.
struct RowShape {
    number: u64,
    /// Cells that are not empty.
    filled: usize,
    /// The same, if each is a text of its own that can be a name; else 0.
    names: usize,
}

impl RowShape {
    fn of(row: &Row<'_>) -> Self {
        let cells: Vec<String> = row.cells().map(one_line).filter(|cell| !cell.is_empty()).collect();
        let is_name = |cell: &String| cell.chars().any(char::is_alphabetic) && !cell.contains('@');
        let differ = cells.iter().collect::<HashSet<_>>().len() == cells.len();
        let names = if differ && cells.iter().all(is_name) { cells.len() } else { 0 };
        Self { number: row.number, filled: cells.len(), names }
    }
}

impl Candidate {
    /// Whether it is to be taken instead of one that was found with another delimiter before.
    fn is_better_than(&self, best: &Self) -> bool {
        if (self.is_whole, self.known) >= (best.is_whole, best.known + MARGIN) {
            return true;
        }
        !best.is_whole && best.known < MARGIN && self.heads > best.heads
    }

    fn of(row: &Row<'_>, options: &ImportOptions) -> Result<Self, FileFault> {
        if row.len() > COLUMNS_MAX {
            return Err(FileFault::TooManyColumns(row.len()));
        }
        let names: Vec<String> = row.cells().map(|cell| one_line(unguard(cell))).collect();
        let (is_whole, known) = Mapping::understands(&names, options);
        Ok(Self { names, number: row.number, is_whole, known, heads: 0, above: 0, first: Vec::new() })
    }
}

/// A row that is not read, for a sentence.
fn described(row: &Row<'_>) -> String {
    let words: Vec<&str> = row.cells().map(str::trim).filter(|cell| !cell.is_empty()).collect();
    format!("row {} {:?}", row.number, shorten(&one_line(&words.join(" "))))
}
