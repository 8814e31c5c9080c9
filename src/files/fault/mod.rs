//! Why a file as a whole is refused. What is said of it stands in `sentences`.

mod sentences;

use std::path::Path;

use super::fields::Field;
use super::option_names::Surface;
use super::options::ColumnChoice;
use super::reading::SheetSeen;
use super::remarks::shorten;
use crate::domain::text::one_line;

pub(super) use sentences::{list, quoted};

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
#[derive(Debug)]
pub enum FileFault {
    /// Nothing there.
    NotFound,
    /// The path is a folder.
    Folder,
    /// The system refuses to read it.
    Io(std::io::Error),
    /// No bytes, or only blank lines.
    Empty,
    /// No rows below the header.
    HeaderOnly,
    /// Bytes of a known other format.
    OtherFormat(&'static str),
    /// Bytes that no text has.
    Binary,
    /// Text that is UTF-8 elsewhere.
    NotUtf8 {
        /// Row of the file, the header being row 1.
        row: u64,
    },
    /// Text that begins as UTF-16 does.
    NotUtf16,
    /// A workbook that is none.
    Damaged(String),
    /// A workbook that claims more than anybody's permits need.
    TooBig(&'static str),
    /// Several sheets or a hidden one, and none was named.
    SheetNeeded {
        /// The sheets.
        sheets: Vec<SheetSeen>,
        /// Their names in words.
        names: Vec<String>,
    },
    /// A sheet that the workbook lacks.
    NoSuchSheet {
        /// The sheet as it was named.
        sheet: String,
        /// Those of the file.
        sheets: Vec<String>,
    },
    /// A sheet of a text file.
    NoSheets,
    /// A row that is said to be the header and is none.
    NoHeaderRow {
        /// Row of the file.
        row: u64,
    },
    /// More columns than anybody's permits have.
    TooManyColumns(usize),
    /// A row that does not end.
    RowTooLong {
        /// Row of the file.
        row: u64,
    },
    /// The file ends inside a quoted cell.
    UnclosedQuote {
        /// Row of the file.
        row: u64,
    },
    /// A field that should come from a column the file lacks.
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
    DuplicateColumn {
        /// The field that should come from one of them.
        field: Field,
        /// Positions of the columns, from 1.
        places: Vec<usize>,
        /// Their headers.
        names: Vec<String>,
    },
    /// Needed fields for which no column was recognised.
    MissingFields {
        /// The fields.
        fields: Vec<Field>,
        /// The columns of the file.
        columns: Vec<String>,
        /// Choices that took columns of their names for other fields.
        taken: Vec<ColumnChoice>,
    },
    /// Columns whose dates can all be read in two ways.
    AmbiguousDates {
        /// Headers, each with an example.
        columns: Vec<String>,
        /// The two formats.
        formats: [&'static str; 2],
    },
    /// A column in which some dates can only be read one way and some only the other.
    MixedDates {
        /// The header.
        column: String,
        /// The two formats.
        formats: [&'static str; 2],
        /// How many dates fit only the one and only the other.
        counts: [u64; 2],
    },
    /// Written to between the two passes.
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

impl std::fmt::Display for FileFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.fact())?;
        self.advice(Surface::CommandLine).map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

impl std::error::Error for FileFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
