//! Errors and warnings about rows: every one counted, a bounded number kept.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::words;

/// How many errors, and how many warnings, are kept in full; beyond that they are only counted.
pub const REMARKS_KEPT: usize = 10_000;

/// Longest value repeated in a remark, in characters.
pub const SHOWN_CHARS: usize = 100;

words! {
    /// Why a row is rejected, or what is worth a warning.
    "reason" Reason {
        /// A needed cell is empty.
        Missing = "missing",
        /// The row has fewer cells than the header.
        TooFewCells = "too_few_cells",
        /// The row has more cells than the header.
        TooManyCells = "too_many_cells",
        /// A cell is longer than is read.
        CellTooLong = "cell_too_long",
        /// Not a permit number.
        InvalidPermitNumber = "invalid_permit_number",
        /// Not a name that a permit type can have.
        InvalidPermitType = "invalid_permit_type",
        /// Nothing is wrong with the row, but with another one of the same permit.
        AnotherRowWrong = "another_row_wrong",
        /// A status word that is not mapped.
        UnknownStatus = "unknown_status",
        /// Not a date, or a day that does not exist.
        InvalidDate = "invalid_date",
        /// A time of day other than midnight.
        TimeInDate = "time_in_date",
        /// The last valid day lies before the first.
        ExpiryBeforeEffective = "expiry_before_effective",
        /// The last valid day lies before the issue date: a warning.
        ExpiryBeforeIssue = "expiry_before_issue",
        /// Not an address; an error, or a warning when good rows are kept.
        MalformedAddress = "malformed_address",
        /// Not a language tag.
        InvalidLanguage = "invalid_language",
        /// Not a list of contacts as our own export writes it, or more than a permit can have.
        InvalidContacts = "invalid_contacts",
        /// A cell of a spreadsheet that failed to calculate, such as `#N/A`.
        ErrorValue = "error_value",
        /// A character that the encoding of the file does not have.
        UndefinedCharacter = "undefined_character",
        /// Rows above the header: a warning.
        RowsAboveHeader = "rows_above_header",
        /// Sheets that are not read: a warning.
        OtherSheets = "other_sheets",
        /// Rows that are hidden in their sheet: a warning.
        HiddenRows = "hidden_rows",
        /// Columns that are hidden in their sheet: a warning.
        HiddenColumns = "hidden_columns",
        /// Cells that are calculated: a warning.
        Formulas = "formulas",
        /// Calculated cells whose value the file does not have: a warning.
        FormulasWithoutValue = "formulas_without_value",
        /// Numbers that a spreadsheet changed when they were typed in: a warning.
        DigitsLost = "digits_lost",
        /// Cells in columns that have no name: a warning.
        BesideTable = "beside_table",
        /// Cells that are one: a warning.
        MergedCells = "merged_cells",
        /// Dates of which a spreadsheet took some for dates and left others as text: a warning.
        DatesSwapped = "dates_swapped",
        /// Names of types that differ in signs alone, and so are one type: a warning.
        TypesAlike = "types_alike",
        /// Columns that nothing is read from: a warning.
        UnusedColumns = "unused_columns",
        /// Rows whose status cell is empty: a warning.
        StatusTakenAsActive = "status_taken_as_active",
        /// The permit is archived, so nothing was changed: a warning.
        ArchivedPermit = "archived_permit",
        /// Rows of one permit number that contradict each other: a warning.
        ContradictoryRows = "contradictory_rows",
        /// Rejected rows without a permit number, of which good rows were applied: a warning.
        RowsWithoutNumber = "rows_without_number",
        /// Rejected rows without a number, in a file that calls itself complete: a warning.
        MissingUnsure = "missing_unsure",
        /// More remarks than are listed: a warning.
        ListShortened = "list_shortened",
    }
}

/// One error or warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Row of the file, the header being row 1 unless blank lines stand above it; none for the file as a whole.
    pub row: Option<u64>,
    /// Header of the column; none for the row as a whole.
    pub column: Option<String>,
    /// The cell as it stands, at most [`SHOWN_CHARS`] characters.
    pub value: Option<String>,
    /// The reason, for programs.
    pub code: Reason,
    /// The reason, for people.
    pub detail: String,
}

impl Remark {
    /// One about the file as a whole.
    pub(super) fn whole(code: Reason, detail: String) -> Self {
        Self { row: None, column: None, value: None, code, detail }
    }
}

impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(row) = self.row {
            write!(f, "row {row}, ")?;
        }
        if let Some(column) = &self.column {
            write!(f, "{column}")?;
            if let Some(value) = &self.value {
                write!(f, " {value:?}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.detail)
    }
}

/// A list of remarks that does not outgrow memory.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    kept: Vec<Remark>,
    left_out: u64,
}

impl Remarks {
    pub fn push(&mut self, remark: Remark) {
        if self.kept.len() < REMARKS_KEPT {
            self.kept.push(remark);
        } else {
            self.left_out += 1;
        }
    }

    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub fn into_kept(self) -> Vec<Remark> {
        self.kept
    }
}

/// Rows rejected, by reason.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    pub rows: u64,
    pub by_reason: BTreeMap<Reason, u64>,
}

impl Rejections {
    /// Counts one row under each of its reasons once.
    pub fn count(&mut self, faults: &[Remark]) {
        self.rows += 1;
        for (i, fault) in faults.iter().enumerate() {
            if faults[..i].iter().all(|earlier| earlier.code != fault.code) {
                *self.by_reason.entry(fault.code).or_default() += 1;
            }
        }
    }
}

/// `text` cut to [`SHOWN_CHARS`] characters, with an ellipsis as the last of them where it was longer.
pub(super) fn shorten(text: &str) -> String {
    if text.len() <= SHOWN_CHARS || text.chars().count() <= SHOWN_CHARS {
        return text.to_owned();
    }
    text.chars().take(SHOWN_CHARS - 1).chain(['…']).collect()
}
