//! What an import reports: `import --json`, the answer of the API, and the text for a person.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::Serialize;
use uuid::Uuid;

use super::Reading;
use super::probe::Delimiter;
use super::reading::FileFormat;
use super::remarks::{Reason, Remark};
use crate::store::imports::{Applied, DAYS_AHEAD};

/// How many errors, and how many warnings, the text lists; the JSON lists all that were kept.
const LISTED: usize = 200;

/// What was guessed about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guessed {
    /// `csv` for text in cells, `xlsx` or `ods`.
    pub format: FileFormat,
    /// The sheet of a workbook.
    pub sheet: Option<String>,
    /// `UTF-8`, `UTF-16LE`, `UTF-16BE` or `Windows-1252`; inside workbooks always the first.
    pub encoding: String,
    /// By name: `comma`, `semicolon`, `tab`, `pipe`; none in workbooks.
    pub delimiter: Option<Delimiter>,
    /// In strftime; where date columns differ, each as `field format`, apart by commas.
    pub date_format: String,
    /// Row of the file.
    pub header_row: u64,
}

impl Guessed {
    /// Where the rows stand, for a sentence.
    fn place(&self) -> String {
        match (&self.sheet, self.delimiter) {
            (Some(sheet), _) => format!("from the sheet {sheet:?} ({})", self.format),
            (None, Some(delimiter)) => format!("as {}, cells apart by {delimiter}", self.encoding),
            (None, None) => format!("as {}", self.encoding),
        }
    }
}

/// The mail of the next [`DAYS_AHEAD`] days, today included, because of a file, if nothing else changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WouldMail {
    /// Messages: one for each address and notice.
    pub messages: u64,
    /// By the day from which they go; days without mail are left out.
    pub by_day: BTreeMap<NaiveDate, u64>,
}

impl WouldMail {
    fn of(by_day: BTreeMap<NaiveDate, u64>) -> Self {
        Self { messages: by_day.values().sum(), by_day }
    }
}

/// One import, in the shape of `import --json`. What reading knows is filled in by [`ImportReport::of`]; the rest
/// is of what was done in the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// None while the file is read; from then on what the import is recorded by, even if it commits nothing.
    pub id: Option<Uuid>,
    /// Whether the good rows were applied and that was recorded, even if they changed nothing.
    pub committed: bool,
    /// Whether nothing was meant to be changed.
    pub dry_run: bool,
    /// Rows below the header that are not blank.
    pub rows: u64,
    /// Permits recorded for the first time.
    pub permits_created: u64,
    /// Known permits with a later date.
    pub permits_renewed: u64,
    /// Known permits with something else changed.
    pub permits_updated: u64,
    /// Known permits left alone: nothing differs, the file's date is an earlier one, or the permit is archived.
    pub unchanged: u64,
    /// Terms recorded that are not the current ones of their permits.
    pub history_terms: u64,
    /// Rows with at least one error.
    pub rejected: u64,
    /// For each reason, how many rows it rejected; a row with two reasons counts under both.
    pub rejected_by_reason: BTreeMap<Reason, u64>,
    /// Cells with addresses that were usable after cleaning.
    pub addresses_cleaned: u64,
    /// Rows whose holder has no address.
    pub addresses_missing: u64,
    /// What was guessed about the file.
    pub guessed: Guessed,
    /// Permit types recorded for the first time.
    pub types_created: u64,
    /// Notices made pending or held because of this file.
    pub notices_claimed: u64,
    /// Only of a dry run that got as far: the mail of the next 30 days because of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_mail: Option<WouldMail>,
    /// By row; at most [`super::REMARKS_KEPT`].
    pub errors: Vec<Remark>,
    /// Those about the whole file first, then by row.
    pub warnings: Vec<Remark>,
}

impl ImportReport {
    /// The report of a file that was read and not applied.
    pub fn of(reading: Reading, dry_run: bool) -> Self {
        Self {
            id: None,
            committed: false,
            dry_run,
            rows: reading.rows,
            permits_created: 0,
            permits_renewed: 0,
            permits_updated: 0,
            unchanged: 0,
            history_terms: 0,
            rejected: reading.rejected,
            rejected_by_reason: reading.rejected_by_reason,
            addresses_cleaned: reading.addresses_cleaned,
            addresses_missing: reading.addresses_missing,
            guessed: reading.guessed,
            types_created: 0,
            notices_claimed: 0,
            would_mail: None,
            errors: reading.errors,
            warnings: reading.warnings,
        }
    }

    /// Adds what was done in the database.
    pub(super) fn applied(&mut self, applied: &Applied) {
        self.permits_created = applied.permits.created;
        self.permits_renewed = applied.permits.renewed;
        self.permits_updated = applied.permits.updated;
        self.unchanged = applied.permits.unchanged;
        self.history_terms = applied.history_terms;
        self.types_created = applied.types_created;
        self.notices_claimed = applied.notices_claimed;
        self.would_mail = applied.would_mail.clone().map(WouldMail::of);
    }
}

impl std::fmt::Display for ImportReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Guessed { date_format, header_row, .. } = &self.guessed;
        let from = self.guessed.place();
        writeln!(f, "{} rows read {from}, dates as {date_format}, header in row {header_row}.", self.rows)?;
        let end = match (self.committed, self.dry_run) {
            (true, _) => "Committed.",
            (false, true) => "Nothing was changed: this was a dry run.",
            (false, false) => "Nothing was changed.",
        };
        writeln!(f, "{end}")?;
        let counts = [
            ("permits created", self.permits_created),
            ("permits renewed", self.permits_renewed),
            ("permits updated", self.permits_updated),
            ("permits unchanged", self.unchanged),
            ("terms kept as history", self.history_terms),
            ("permit types created", self.types_created),
            ("notices claimed", self.notices_claimed),
            ("addresses cleaned", self.addresses_cleaned),
            ("rows without an address", self.addresses_missing),
            ("rows rejected", self.rejected),
        ];
        for (what, count) in counts {
            writeln!(f, "{count:>9} {what}")?;
        }
        if let Some(mail) = &self.would_mail {
            writeln!(f, "{:>9} messages in the next {DAYS_AHEAD} days because of this file", mail.messages)?;
            for (day, messages) in &mail.by_day {
                writeln!(f, "{messages:>11} from {day}")?;
            }
        }
        for (reason, rows) in &self.rejected_by_reason {
            writeln!(f, "{rows:>11} {reason}")?;
        }
        list(f, "Errors", &self.errors)?;
        list(f, "Warnings", &self.warnings)
    }
}

fn list(f: &mut std::fmt::Formatter<'_>, title: &str, remarks: &[Remark]) -> std::fmt::Result {
    if remarks.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}:")?;
    for remark in remarks.iter().take(LISTED) {
        writeln!(f, "  {remark}")?;
    }
    if remarks.len() > LISTED {
        writeln!(f, "  and {} more, which --json lists", remarks.len() - LISTED)?;
    }
    Ok(())
}
