//! What a file looks like, as the part that reads files says it.

use serde::Deserialize;

/// See `files::look`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Looked {
    pub sheet: Option<String>,
    pub sheets: Vec<SheetSeen>,
    pub encoding: String,
    /// None in workbooks.
    pub delimiter: Option<String>,
    pub header_row: u64,
    pub is_errors_file: bool,
    /// In one of them the names of the columns may stand.
    pub first_rows: Vec<RowSeen>,
    pub columns: Vec<Column>,
    pub fields: Vec<FieldSeen>,
    pub statuses: Vec<StatusSeen>,
    pub date_formats: Vec<FormatSeen>,
}

/// One sheet of a workbook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SheetSeen {
    pub name: String,
    pub hidden: bool,
    pub empty: bool,
}

impl SheetSeen {
    /// What is to be known before it is chosen.
    pub fn note(&self) -> &'static str {
        match (self.empty, self.hidden) {
            (true, _) => " (empty)",
            (false, true) => " (hidden)",
            (false, false) => "",
        }
    }
}

/// One of the first rows of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RowSeen {
    pub row: u64,
    /// What stands in it, cut.
    pub text: String,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Column {
    pub name: String,
    pub samples: Vec<String>,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FieldSeen {
    pub field: String,
    pub needed: bool,
    pub columns: Vec<usize>,
}

/// One status word.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StatusSeen {
    pub word: String,
    pub rows: u64,
    pub means: Option<String>,
}

/// One format of dates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FormatSeen {
    pub format: String,
    pub example: String,
}

impl Looked {
    /// What a saved mapping says about the place of the table, as far as it fits this file: text has no sheets, and the
    /// errors of an earlier import begin with their header.
    pub fn place(&self, sheet: Option<String>, header_row: Option<u64>) -> (Option<String>, Option<u64>) {
        (sheet.filter(|_| !self.is_text()), header_row.filter(|_| !self.is_errors_file))
    }

    fn is_text(&self) -> bool {
        self.delimiter.is_some()
    }

    /// Whether there is a choice of sheets.
    pub fn has_sheets(&self) -> bool {
        self.sheets.len() > 1
    }

    /// Names and samples of the columns from which nothing is read.
    pub fn unread(&self) -> impl Iterator<Item = &Column> {
        let is_read = |at: &usize| self.fields.iter().any(|field| field.columns.contains(at));
        self.columns.iter().enumerate().filter(move |(at, _)| !is_read(at)).map(|(_, column)| column)
    }
}
