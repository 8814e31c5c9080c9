//! A look into a file that somebody is about to import: its columns with samples, what is read from which, and what
//! its status words mean. It says as much as can be told, also of a file that will be refused.

use std::collections::HashMap;
use std::fs::File;

use serde::Serialize;

use super::Input;
use super::dates;
use super::fault::{FileFault, ReadError};
use super::fields::Field;
use super::formula::unguard;
use super::mapping::Mapping;
use super::options::ImportOptions;
use super::probe::Delimiter;
use super::reading::encoding::Encoding;
use super::reading::{FileFormat, Row, SheetSeen, Source, io_fault};
use super::remarks::shorten;
use super::values::{self, squash};
use crate::domain::permit::PermitStatus;
use crate::domain::text::one_line;

/// Different values shown of a column.
const SAMPLES: usize = 3;
/// Rows in which they are looked for.
const SAMPLED: usize = 1000;
/// Rows listed in which the names of the columns may stand.
const FIRST_ROWS: usize = 20;
/// Status words listed.
const WORDS: usize = 100;

/// What a file looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Look {
    /// What kind of file it is; none while it is not known which sheet is to be read.
    pub format: Option<FileFormat>,
    /// The sheet that is read.
    pub sheet: Option<String>,
    /// The sheets of the file.
    pub sheets: Vec<SheetSeen>,
    /// Encoding of the text.
    pub encoding: &'static str,
    /// What stands between two cells of a text file.
    pub delimiter: Option<Delimiter>,
    /// Which row of the file the header is.
    pub header_row: u64,
    /// Whether it is a file of errors of an earlier import, which has its header in the first row.
    pub is_errors_file: bool,
    /// The first rows of the file, in which the names of the columns may stand.
    pub first_rows: Vec<RowSeen>,
    /// In the order of the file.
    pub columns: Vec<Column>,
    /// Every field, in the order of the contract.
    pub fields: Vec<FieldSeen>,
    /// Words of the status column, the unexplained first.
    pub statuses: Vec<StatusSeen>,
    /// Formats of dates that may be chosen.
    pub date_formats: Vec<FormatSeen>,
}

/// One of the first rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowSeen {
    /// Which row of the file.
    pub row: u64,
    /// What stands in it, cut.
    pub text: String,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its header.
    pub name: String,
    /// Its first different values.
    pub samples: Vec<String>,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldSeen {
    /// Which.
    pub field: Field,
    /// Whether there is no permit without it.
    pub needed: bool,
    /// Positions of the columns from which it is read.
    pub columns: Vec<usize>,
}

/// One status word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusSeen {
    /// As it stands first.
    pub word: String,
    /// How many rows have it, however it is spelt.
    pub rows: u64,
    /// What it is taken for.
    pub means: Option<PermitStatus>,
}

/// One format of dates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FormatSeen {
    /// In strftime.
    pub format: &'static str,
    /// A date in it.
    pub example: String,
}

/// Looks into a file. Only one of which no header can be read is refused.
pub fn look(file: Input, options: &ImportOptions) -> Result<Look, ReadError> {
    let path = file.path().to_owned();
    look_into(file, options).map_err(|fault| ReadError::new(&path, fault))
}

fn look_into(file: Input, options: &ImportOptions) -> Result<Look, FileFault> {
    let (file, path) = match file {
        Input::Path(path) => (File::open(&path).map_err(io_fault)?, path),
        Input::Open(file, path) => (file, path),
    };
    let again = file.try_clone().map_err(FileFault::Io)?;
    let source = match Source::of(file, &path, options) {
        // So that somebody can choose another.
        Err(FileFault::NoSuchSheet { .. }) => Source::of(again, &path, &options.clone().of_sheet(None)),
        Err(FileFault::NoHeaderRow { .. }) => Source::of(again, &path, &options.clone().of_header_row(None)),
        source => source,
    };
    let mut source = match source {
        Err(FileFault::SheetNeeded { sheets, .. }) => return Ok(Look::without_sheet(sheets)),
        source => source?,
    };
    let first_rows = first_rows(&mut source)?;
    let is_errors_file = source.is_errors_file();
    let (mapping, _) = Mapping::find(source.header(), options);
    let header = source.header().iter();
    let mut columns: Vec<Column> = header.map(|name| Column { name: name.clone(), samples: Vec::new() }).collect();
    let mut words = Words::default();
    let mut seen = 0;
    let mut rows = source.rows()?;
    // A row that cannot be read ends the look, and is a matter for who reads all of them.
    while let Ok(Some(row)) = rows.next_row() {
        seen += 1;
        if seen > SAMPLED && !mapping.has(Field::Status) {
            break;
        }
        if seen <= SAMPLED {
            take_samples(&mut columns, &row);
        }
        if row.fits(columns.len()) {
            words.count(mapping.cell(&row, Field::Status));
        }
    }
    let needed: Vec<Field> = Mapping::needed(options).collect();
    let of = |&field: &Field| FieldSeen { field, needed: needed.contains(&field), columns: mapping.places_of(field) };
    drop(rows);
    Ok(Look {
        format: Some(source.format()),
        sheet: source.sheet().map(str::to_owned),
        sheets: source.sheets().to_vec(),
        encoding: source.encoding().as_str(),
        delimiter: source.delimiter(),
        header_row: source.header_row(),
        is_errors_file,
        first_rows,
        columns,
        fields: Field::ALL.iter().map(of).collect(),
        statuses: words.list(options),
        date_formats: dates::usual().map(|(format, example)| FormatSeen { format, example }).collect(),
    })
}

impl Look {
    /// What can be told of a workbook before somebody says which of its sheets is meant.
    fn without_sheet(sheets: Vec<SheetSeen>) -> Self {
        Self {
            format: None,
            sheet: None,
            sheets,
            encoding: Encoding::Utf8.as_str(),
            delimiter: None,
            header_row: 0,
            is_errors_file: false,
            first_rows: Vec::new(),
            columns: Vec::new(),
            fields: Vec::new(),
            statuses: Vec::new(),
            date_formats: Vec::new(),
        }
    }
}

/// What the rows are in which the names of the columns may stand.
fn first_rows(source: &mut Source) -> Result<Vec<RowSeen>, FileFault> {
    let mut rows = source.all_rows()?;
    let mut seen = Vec::new();
    while seen.len() < FIRST_ROWS
        && let Ok(Some(row)) = rows.next_row()
    {
        let cells: Vec<String> = row.cells().map(one_line).filter(|cell| !cell.is_empty()).collect();
        seen.push(RowSeen { row: row.number, text: shorten(&cells.join(" · ")) });
    }
    Ok(seen)
}

fn take_samples(columns: &mut [Column], row: &Row<'_>) {
    for (column, cell) in columns.iter_mut().zip(row.cells()) {
        let cell = unguard(cell).trim();
        if column.samples.len() == SAMPLES || cell.is_empty() {
            continue;
        }
        let cell = shorten(cell);
        if !column.samples.contains(&cell) {
            column.samples.push(cell);
        }
    }
}

/// Status words and how often each stands, by squashed word.
#[derive(Default)]
struct Words(HashMap<String, (String, u64)>);

impl Words {
    fn count(&mut self, cell: &str) {
        // A column with so many different words holds no statuses.
        const COUNTED: usize = 10_000;
        let word = squash(cell);
        // What is no word for the checks either: it is no status, or a fault of its own.
        if word.is_empty() || values::is_error_value(cell) {
            return;
        }
        if let Some((_, rows)) = self.0.get_mut(&word) {
            *rows += 1;
        } else if self.0.len() < COUNTED {
            self.0.insert(word, (shorten(cell.trim()), 1));
        }
    }

    fn list(self, options: &ImportOptions) -> Vec<StatusSeen> {
        let words = self.0.into_values();
        let mut words: Vec<_> =
            words.map(|(word, rows)| StatusSeen { means: values::status(&word, options), word, rows }).collect();
        words.sort_by(|a, b| (a.means.is_some(), b.rows, &a.word).cmp(&(b.means.is_some(), a.rows, &b.word)));
        words.truncate(WORDS);
        words
    }
}
