//! How files of one kind are read, under a name.

use serde::{Deserialize, Serialize};

use super::text::one_line;

/// Longest name, in characters.
pub const NAME_CHARS: usize = 100;

/// Not a name of a mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a saved mapping has 1 to {NAME_CHARS} characters")]
pub struct MappingNameError;

/// The name of a saved mapping: in one line, without blanks around, its case of no account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingName(String);

impl MappingName {
    /// As people write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What makes it unique.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl std::str::FromStr for MappingName {
    type Err = MappingNameError;

    fn from_str(text: &str) -> Result<Self, MappingNameError> {
        let name = one_line(text);
        if (1..=NAME_CHARS).contains(&name.chars().count()) { Ok(Self(name)) } else { Err(MappingNameError) }
    }
}

/// What somebody chose about reading a file, in the words of the options of an import; what is not here is guessed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MappingWords {
    /// Each `FIELD=COLUMN`.
    pub map: Vec<String>,
    /// Fields for which no column is looked for.
    pub leave_out: Vec<String>,
    /// Each `FROM=TO`.
    pub status: Vec<String>,
    /// The type of every permit.
    pub permit_type: Option<String>,
    /// In strftime.
    pub date_format: Option<String>,
    /// The sheet of a workbook.
    pub sheet: Option<String>,
    /// The row in which the names of the columns stand.
    pub header_row: Option<u64>,
}
