//! The options of an import, out of the words of a command line or of query parameters.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::dates::DateFormat;
use super::fields::Field;
use super::option_faults::OptionError;
use super::option_names::ImportOption;
use super::values::squash;
use crate::domain::mapping::MappingWords;
use crate::domain::permit::{PermitStatus, PermitTypeCode, TYPE_NAME_MAX};

/// `--map FIELD=COLUMN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnChoice {
    /// The field.
    pub field: Field,
    /// The header of the column it comes from.
    pub column: String,
}

impl FromStr for ColumnChoice {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let (field, column) = halves(ImportOption::Map, "FIELD=COLUMN", text, text.split_once('='))?;
        let field = field.to_lowercase().replace(['-', ' '], "_");
        let field = field.parse().map_err(|word| OptionError::Word { option: ImportOption::Map, word })?;
        Ok(Self { field, column: column.to_owned() })
    }
}

/// `--status FROM=TO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChoice {
    /// The word of the file; case, spaces and punctuation do not matter.
    pub from: String,
    /// What it means.
    pub to: PermitStatus,
}

impl FromStr for StatusChoice {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        // None of our words has an equals sign, and one of the file may.
        let (from, to) = halves(ImportOption::Status, "FROM=TO", text, text.rsplit_once('='))?;
        let to = to.to_lowercase().parse().map_err(|word| OptionError::Word { option: ImportOption::Status, word })?;
        Ok(Self { from: from.to_owned(), to })
    }
}

fn halves<'t>(
    option: ImportOption,
    form: &'static str,
    text: &'t str,
    halves: Option<(&'t str, &'t str)>,
) -> Result<(&'t str, &'t str), OptionError> {
    let halves = halves.map(|(left, right)| (left.trim(), right.trim()));
    halves.filter(|(left, right)| !left.is_empty() && !right.is_empty()).ok_or_else(|| OptionError::Form {
        option,
        form,
        found: text.to_owned(),
    })
}

/// How a file is to be read, checked for contradictions.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    map: Vec<ColumnChoice>,
    /// Fields for which no column is looked for.
    left_out: Vec<Field>,
    /// By squashed word.
    status: BTreeMap<String, StatusChoice>,
    permit_type: Option<String>,
    date_format: Option<DateFormat>,
    keep_good_rows: bool,
    /// The name of a saved mapping that was used, and the columns that it chose.
    saved: Option<(String, Vec<ColumnChoice>)>,
    sheet: Option<String>,
    /// Whether a saved mapping names the sheet; then it is left aside in a file that has none.
    sheet_is_saved: bool,
    /// The row in which the names of the columns stand.
    header_row: Option<u64>,
    /// Whether a saved mapping says so; then it is left aside in a file of errors, which has them in its first row.
    header_row_is_saved: bool,
}

impl ImportOptions {
    /// Options whose parts are parsed already, as clap does.
    pub fn new(
        map: Vec<ColumnChoice>,
        status: Vec<StatusChoice>,
        permit_type: Option<String>,
        date_format: Option<DateFormat>,
        keep_good_rows: bool,
    ) -> Result<Self, OptionError> {
        for (i, choice) in map.iter().enumerate() {
            if map[..i].iter().any(|earlier| earlier.field == choice.field) {
                return Err(OptionError::Twice { option: ImportOption::Map, what: choice.field.to_string() });
            }
        }
        let mut words = BTreeMap::new();
        for choice in status {
            if squash(&choice.from).is_empty() {
                return Err(OptionError::NoWord(choice.from));
            }
            if let Some(StatusChoice { from, .. }) = words.insert(squash(&choice.from), choice) {
                return Err(OptionError::Twice { option: ImportOption::Status, what: from });
            }
        }
        let permit_type = permit_type.map(|name| name.trim().to_owned());
        if let Some(name) = &permit_type {
            if PermitTypeCode::from_name(name).is_none() {
                return Err(OptionError::PermitType(name.clone()));
            }
            if name.chars().count() > TYPE_NAME_MAX {
                return Err(OptionError::PermitTypeTooLong);
            }
            if map.iter().any(|choice| choice.field == Field::PermitType) {
                return Err(OptionError::TwoTypes);
            }
        }
        Ok(Self { map, status: words, permit_type, date_format, keep_good_rows, ..Self::default() })
    }

    /// Options that were saved in these words.
    pub(super) fn of_words(words: &MappingWords) -> Result<Self, OptionError> {
        let MappingWords { map, leave_out, status, permit_type, date_format, sheet, header_row } = words;
        let options = Self::parse(map, status, permit_type.as_deref(), date_format.as_deref(), false)?;
        options.of_sheet(sheet.clone()).of_header_row(*header_row).leaving_out(leave_out)
    }

    /// What they say about reading a file, in words.
    pub fn words(&self) -> MappingWords {
        MappingWords {
            map: self.map.iter().map(|choice| format!("{}={}", choice.field, choice.column)).collect(),
            leave_out: self.left_out.iter().map(Field::to_string).collect(),
            status: self.status.values().map(|choice| format!("{}={}", choice.from, choice.to)).collect(),
            permit_type: self.permit_type.clone(),
            date_format: self.date_format.as_ref().map(DateFormat::to_string),
            sheet: self.sheet.clone(),
            header_row: self.header_row,
        }
    }

    /// These options, and where they say nothing those of the saved mapping `name`.
    pub(super) fn over(mut self, saved: Self, name: &str) -> Self {
        self.saved = Some((name.to_owned(), saved.map.clone()));
        let decided = |options: &Self, field: Field| {
            options.map.iter().any(|choice| choice.field == field)
                || options.left_out.contains(&field)
                || (field == Field::PermitType && options.permit_type.is_some())
        };
        let map: Vec<ColumnChoice> = saved.map.into_iter().filter(|choice| !decided(&self, choice.field)).collect();
        let left_out: Vec<Field> = saved.left_out.into_iter().filter(|&field| !decided(&self, field)).collect();
        if !decided(&self, Field::PermitType) {
            self.permit_type = saved.permit_type;
        }
        self.map.extend(map);
        self.left_out.extend(left_out);
        for (word, choice) in saved.status {
            self.status.entry(word).or_insert(choice);
        }
        self.date_format = self.date_format.or(saved.date_format);
        (self.sheet_is_saved, self.header_row_is_saved) = (self.sheet.is_none(), self.header_row.is_none());
        self.sheet = self.sheet.or(saved.sheet);
        self.header_row = self.header_row.or(saved.header_row);
        self
    }

    /// The saved mapping that chose this column, if one did.
    pub(super) fn saved_as(&self, choice: &ColumnChoice) -> Option<&str> {
        self.saved.as_ref().filter(|(_, map)| map.contains(choice)).map(|(name, _)| name.as_str())
    }

    /// Options out of their words: each of `map` as `FIELD=COLUMN`, each of `status` as `FROM=TO`, `date_format` in
    /// strftime.
    pub fn parse(
        map: &[impl AsRef<str>],
        status: &[impl AsRef<str>],
        permit_type: Option<&str>,
        date_format: Option<&str>,
        keep_good_rows: bool,
    ) -> Result<Self, OptionError> {
        Self::new(
            map.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>()?,
            status.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>()?,
            permit_type.map(str::to_owned),
            date_format.map(str::parse).transpose()?,
            keep_good_rows,
        )
    }

    /// The same, with no column looked for these fields.
    pub fn leaving_out(mut self, fields: &[impl AsRef<str>]) -> Result<Self, OptionError> {
        for field in fields {
            self.left_out
                .push(field.as_ref().parse().map_err(|word| OptionError::Word { option: ImportOption::Map, word })?);
        }
        Ok(self)
    }

    /// The same of this sheet of a workbook.
    #[must_use]
    pub fn of_sheet(mut self, name: Option<String>) -> Self {
        self.sheet = name;
        self
    }

    /// The sheet that is to be read.
    pub(super) fn sheet(&self) -> Option<&str> {
        self.sheet.as_deref()
    }

    /// The sheet that somebody says a file has that has none.
    pub(super) fn sheet_of_text(&self) -> Option<&str> {
        self.sheet().filter(|_| !self.sheet_is_saved)
    }

    /// The same with the names of the columns in this row of the file.
    #[must_use]
    pub fn of_header_row(mut self, row: Option<u64>) -> Self {
        self.header_row = row;
        self
    }

    /// The row in which the names of the columns stand.
    pub(super) fn header_row(&self) -> Option<u64> {
        self.header_row
    }

    /// The same for a file of errors.
    pub(super) fn header_row_of_errors(&self) -> Option<u64> {
        self.header_row.filter(|_| !self.header_row_is_saved)
    }

    /// Whether no column is looked for.
    pub(super) fn leaves_out(&self, field: Field) -> bool {
        self.left_out.contains(&field)
    }

    /// The columns that were chosen.
    pub fn map(&self) -> &[ColumnChoice] {
        &self.map
    }

    /// What `--status` says about a squashed word.
    pub(super) fn status(&self, squashed: &str) -> Option<PermitStatus> {
        self.status.get(squashed).map(|choice| choice.to)
    }

    /// Whether somebody says what a status word means.
    pub(super) fn explains_status(&self) -> bool {
        !self.status.is_empty()
    }

    /// The type of every row.
    pub fn permit_type(&self) -> Option<&str> {
        self.permit_type.as_deref()
    }

    /// The format of every date.
    pub fn date_format(&self) -> Option<&DateFormat> {
        self.date_format.as_ref()
    }

    /// Whether rows without errors are wanted even when others have some; a malformed address is then a warning.
    pub fn keep_good_rows(&self) -> bool {
        self.keep_good_rows
    }
}
