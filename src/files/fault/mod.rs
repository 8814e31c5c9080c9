//! Why a file as a whole is refused: one clear sentence each.

use std::path::Path;

use super::fields::Field;
use super::reading::{COLUMNS_MAX, ROW_BYTES_MAX, SheetSeen};
use super::remarks::shorten;
use crate::domain::saying::which;
use crate::domain::text::one_line;

/// A file that is refused as a whole, by name.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct ReadError {
    /// The file as it was named.
    pub file: String,
    /// What is wrong; a sentence of its own, for callers whose people never saw the file's name.
    pub fault: FileFault,
}

impl ReadError {
    pub(super) fn new(path: &Path, fault: FileFault) -> Self {
        Self { file: path.display().to_string(), fault }
    }
}

/// What is wrong with a file as a whole.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// Nothing there.
    #[error("there is no such file")]
    NotFound,
    /// The path is a folder.
    #[error("this is a folder, not a file")]
    Folder,
    /// The system refuses to read it.
    #[error("the file cannot be read ({0})")]
    Io(#[source] std::io::Error),
    /// No bytes, or only blank lines.
    #[error("the file is empty")]
    Empty,
    /// No rows below the header.
    #[error("the file has a header and no rows below it")]
    HeaderOnly,
    /// Bytes of a known other format.
    #[error("this is {0}, not a table; save it as csv, xlsx or ods and import that")]
    OtherFormat(&'static str),
    /// Bytes that no text has.
    #[error("the file contains NUL bytes, so it is no text; save it as csv, xlsx or ods and import that")]
    Binary,
    /// Text that is UTF-8 elsewhere.
    #[error("row {row} is not UTF-8, as the rest of the file is; save the file as csv in UTF-8 and import that")]
    NotUtf8 {
        /// Row of the file, the header being row 1.
        row: u64,
    },
    /// Text that begins as UTF-16 does.
    #[error("the file is UTF-16 at its beginning and not all through; save it as csv in UTF-8 and import that")]
    NotUtf16,
    /// A workbook that is none.
    #[error("the workbook is damaged or protected by a password ({0}); open it, save it anew, and import that")]
    Damaged(String),
    /// A workbook that claims more than anybody's permits need.
    #[error("the workbook {0}; save the sheet with the permits as csv and import that")]
    TooBig(&'static str),
    /// Several sheets or a hidden one, and none was named.
    #[error("{}; the sheets are {}", which_sheet(sheets), list(names))]
    SheetNeeded {
        /// The sheets.
        sheets: Vec<SheetSeen>,
        /// Their names in words.
        names: Vec<String>,
    },
    /// A sheet that the workbook lacks.
    #[error("the file has no sheet {sheet:?}; its sheets are {}", list(sheets))]
    NoSuchSheet {
        /// The sheet as it was named.
        sheet: String,
        /// Those of the file.
        sheets: Vec<String>,
    },
    /// A sheet of a text file.
    #[error("a text file has no sheets; leave out --sheet")]
    NoSheets,
    /// A row that is said to be the header and is none.
    #[error("row {row}, which was to be the header, is blank or below the end of the file")]
    NoHeaderRow {
        /// Row of the file.
        row: u64,
    },
    /// More columns than anybody's permits have.
    #[error("the file has {0} columns; at most {COLUMNS_MAX} are read")]
    TooManyColumns(usize),
    /// A row that does not end.
    #[error("row {row} is longer than {ROW_BYTES_MAX} bytes; is a quotation mark in it never closed?")]
    RowTooLong {
        /// Row of the file.
        row: u64,
    },
    /// The file ends inside a quoted cell.
    #[error("a quotation mark opened in row {row} is never closed, so the rows after it cannot be told apart")]
    UnclosedQuote {
        /// Row of the file.
        row: u64,
    },
    /// A `--map` that names a column the file lacks.
    #[error("the file has no column {column:?}{}; its columns are {}", wanted(*field, saved.as_deref()), quoted(columns))]
    NoSuchColumn {
        /// The field that should come from it.
        field: Field,
        /// The column as it was named.
        column: String,
        /// The columns of the file.
        columns: Vec<String>,
        /// The saved mapping that named it.
        saved: Option<String>,
    },
    /// Headers that are alike, for a field that is used.
    #[error(
        "{} have the same name or nearly so, and which of them is {field} cannot be told; rename one, or choose another with --map {field}=COLUMN",
        placed(places, names)
    )]
    DuplicateColumn {
        /// The field that should come from one of them.
        field: Field,
        /// Positions of the columns, from 1.
        places: Vec<usize>,
        /// Their headers.
        names: Vec<String>,
    },
    /// Needed fields for which no column was recognised.
    #[error(
        "no column was recognised for {}; name it with --map FIELD=COLUMN{}; the file's columns are {}",
        words(fields),
        type_hint(fields),
        quoted(columns)
    )]
    MissingFields {
        /// The fields.
        fields: Vec<Field>,
        /// The columns of the file.
        columns: Vec<String>,
    },
    /// Columns whose dates can all be read in two ways.
    #[error("every date in {} can be read in two ways; say which with --date-format {} or --date-format {}", list(columns), formats[0], formats[1])]
    AmbiguousDates {
        /// Headers, each with an example.
        columns: Vec<String>,
        /// The two formats.
        formats: [&'static str; 2],
    },
    /// A column in which some dates can only be read one way and some only the other.
    #[error("the dates in {column:?} are mixed: {}, {}; make them alike, or say with --date-format which is right", fit_only(counts[0], formats[0]), fit_only(counts[1], formats[1]))]
    MixedDates {
        /// The header.
        column: String,
        /// The two formats.
        formats: [&'static str; 2],
        /// How many dates fit only the one and only the other.
        counts: [u64; 2],
    },
    /// Written to between the two passes.
    #[error("the file was changed while it was read; import it again")]
    Changed,
}

impl FileFault {
    /// A damaged workbook; what its parts or its archive say of it, in one short line.
    pub(super) fn damaged(why: impl std::fmt::Display) -> Self {
        Self::Damaged(shorten(&one_line(&why.to_string())))
    }

    /// What is wrong with the content, for programs; none when it could not be read at all.
    pub fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound | Self::Folder | Self::Io(_) | Self::Changed => return None,
            Self::Empty => "empty",
            Self::HeaderOnly => "header_only",
            Self::OtherFormat(_) => "other_format",
            Self::Binary => "binary",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::NotUtf16 => "not_utf16",
            Self::Damaged(_) => "damaged",
            Self::TooBig(_) => "too_big",
            Self::SheetNeeded { .. } => "sheet_needed",
            Self::NoSuchSheet { .. } => "no_such_sheet",
            Self::NoSheets => "no_sheets",
            Self::NoHeaderRow { .. } => "no_header_row",
            Self::TooManyColumns(_) => "too_many_columns",
            Self::RowTooLong { .. } => "row_too_long",
            Self::UnclosedQuote { .. } => "unclosed_quote",
            Self::NoSuchColumn { .. } => "no_such_column",
            Self::DuplicateColumn { .. } => "duplicate_column",
            Self::MissingFields { .. } => "missing_fields",
            Self::AmbiguousDates { .. } => "ambiguous_dates",
            Self::MixedDates { .. } => "mixed_dates",
        })
    }
}

/// Why no sheet is taken unasked. Those that stand open are several; or all in which something stands are hidden.
fn which_sheet(sheets: &[SheetSeen]) -> &'static str {
    match sheets.iter().filter(|sheet| !sheet.empty).collect::<Vec<_>>()[..] {
        [only] if only.hidden => {
            "the only sheet with something in it is hidden; say with --sheet NAME that it is to be read"
        }
        _ => "several sheets have something in them; say with --sheet NAME which is to be read",
    }
}

fn wanted(field: Field, saved: Option<&str>) -> String {
    match saved {
        None => format!(" for {field}"),
        Some(name) => {
            format!(", from which the saved mapping {name:?} reads {field}; choose another with --map {field}=COLUMN")
        }
    }
}

/// Columns by place and name.
fn placed(places: &[usize], names: &[String]) -> String {
    let one = |(place, name): (&usize, &String)| format!("column {place} {:?}", shorten(name));
    list(&places.iter().zip(names).map(one).collect::<Vec<_>>())
}

fn fit_only(count: u64, format: &str) -> String {
    format!("{count} {} only {format}", which(count, "fits", "fit"))
}

fn words(fields: &[Field]) -> String {
    fields.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(", ")
}

fn type_hint(fields: &[Field]) -> &'static str {
    if fields.contains(&Field::PermitType) { ", or give all rows one type with --permit-type TYPE" } else { "" }
}

/// Column names for a sentence, each in quotes.
pub(super) fn quoted(columns: &[impl AsRef<str>]) -> String {
    some_of(columns, |column| format!("{:?}", shorten(column)))
}

/// Names for a sentence.
pub(super) fn list(names: &[impl AsRef<str>]) -> String {
    some_of(names, shorten)
}

/// A file may have a thousand columns, a sentence may not.
fn some_of(names: &[impl AsRef<str>], show: impl Fn(&str) -> String) -> String {
    const NAMED: usize = 60;
    let said = names.iter().take(NAMED).map(|name| show(name.as_ref())).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => said,
        more => format!("{said} and {more} more"),
    }
}
