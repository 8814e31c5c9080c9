//! What an import reports: `import --json`, the answer of the API, and the text for a person.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::Serialize;
use uuid::Uuid;

use super::fault::quoted;
use super::probe::Delimiter;
use super::reading::FileFormat;
use super::remarks::{Reason, Remark};
use super::{MappedColumn, Reading};
use crate::domain::saying::{counted, noun, which};
use crate::store::imports::{Applied, DAYS_AHEAD, Foreseen, MISSING_LISTED, Missing};

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

/// What a file changes about the mail of the next [`DAYS_AHEAD`] days, today included, if nothing else changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WouldMail {
    /// Messages that go because of it: one for each address and notice.
    pub messages: u64,
    /// By the day from which they go; days without mail are left out.
    pub by_day: BTreeMap<NaiveDate, u64>,
    /// Messages that would have gone without it, and do not.
    pub no_longer: u64,
}

impl WouldMail {
    fn of(foreseen: Foreseen) -> Self {
        let Foreseen { by_day, no_longer } = foreseen;
        Self { messages: by_day.values().sum(), by_day, no_longer }
    }
}

/// Permits that a file which calls itself complete does not name: of the types that it has, active and not archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingPermits {
    /// How many.
    pub count: u64,
    /// Those of them whose last valid day has passed.
    pub expired: u64,
    /// Numbers of the first [`MISSING_LISTED`], those in force before those that are not.
    pub numbers: Vec<String>,
}

impl MissingPermits {
    fn of(missing: Missing) -> Self {
        let Missing { count, expired, numbers } = missing;
        Self { count, expired, numbers }
    }
}

/// Why a permit was left alone although the file says something else.
pub const SKIPPED_EARLIER: &str = "earlier_date";
/// The same.
pub const SKIPPED_ARCHIVED: &str = "archived";

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
    /// The part of them that was left alone whatever the file says.
    pub skipped: u64,
    /// The same by reason: [`SKIPPED_EARLIER`], [`SKIPPED_ARCHIVED`].
    pub skipped_by_reason: BTreeMap<&'static str, u64>,
    /// Terms recorded that are not the current ones of their permits.
    pub history_terms: u64,
    /// Rows that made nothing: what they say of a term is known, or another row of the file says it. Of a file that was
    /// applied, `rows` are these, `rejected`, `history_terms`, and one for each permit.
    pub repeated: u64,
    /// Permit numbers whose rows contradict each other; a warning names them.
    pub contradictory_numbers: u64,
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
    /// Which column each field came from.
    pub mapped: Vec<MappedColumn>,
    /// Permit types recorded for the first time.
    pub types_created: u64,
    /// Notices made pending or held because of this file.
    pub notices_claimed: u64,
    /// The part of them that is held until somebody releases or cancels it.
    pub notices_held: u64,
    /// Only of a dry run that got as far: the mail of the next 30 days because of this file, without what is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_mail: Option<WouldMail>,
    /// Only of a file that calls itself complete and got as far: what it does not name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingPermits>,
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
            skipped: 0,
            skipped_by_reason: BTreeMap::new(),
            history_terms: 0,
            repeated: 0,
            contradictory_numbers: 0,
            rejected: reading.rejected,
            rejected_by_reason: reading.rejected_by_reason,
            addresses_cleaned: reading.addresses_cleaned,
            addresses_missing: reading.addresses_missing,
            guessed: reading.guessed,
            mapped: reading.mapped,
            types_created: 0,
            notices_claimed: 0,
            notices_held: 0,
            would_mail: None,
            missing: None,
            errors: reading.errors,
            warnings: reading.warnings,
        }
    }

    /// Whether the rows that are right were applied, or in a dry run would be.
    pub fn was_applied(&self) -> bool {
        self.committed || self.would_mail.is_some()
    }

    /// Adds what was done in the database.
    pub(super) fn applied(&mut self, applied: &Applied) {
        self.permits_created = applied.permits.created;
        self.permits_renewed = applied.permits.renewed;
        self.permits_updated = applied.permits.updated;
        self.unchanged = applied.permits.unchanged;
        let skipped = [(SKIPPED_EARLIER, applied.permits.earlier), (SKIPPED_ARCHIVED, applied.permits.archived)];
        self.skipped_by_reason = skipped.into_iter().filter(|(_, permits)| *permits > 0).collect();
        self.skipped = self.skipped_by_reason.values().sum();
        self.history_terms = applied.history_terms;
        self.repeated = applied.repeated;
        self.contradictory_numbers = applied.contradictions.count;
        self.types_created = applied.types_created;
        self.notices_claimed = applied.notices_claimed;
        self.notices_held = applied.held;
        self.would_mail = applied.would_mail.clone().map(WouldMail::of);
        self.missing = applied.missing.clone().map(MissingPermits::of);
    }
}

impl std::fmt::Display for ImportReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Guessed { date_format, header_row, .. } = &self.guessed;
        let from = self.guessed.place();
        let rows = counted(self.rows, "row");
        writeln!(f, "{rows} read {from}, dates as {date_format}, header in row {header_row}.")?;
        for MappedColumn { field, columns } in &self.mapped {
            writeln!(f, "{field} is read from {}.", quoted(columns))?;
        }
        let end = match (self.committed, self.dry_run) {
            (true, _) => "Committed.",
            (false, true) => "Nothing was changed: this was a dry run.",
            (false, false) => "Nothing was changed.",
        };
        writeln!(f, "{end}")?;
        let counts = [
            ("permit", "created", self.permits_created),
            ("permit", "renewed", self.permits_renewed),
            ("permit", "updated", self.permits_updated),
            ("permit", "left unchanged", self.unchanged),
            ("term", "kept as history", self.history_terms),
            ("row", "that repeated what is known", self.repeated),
            ("permit number", "with rows that contradict each other", self.contradictory_numbers),
            ("permit type", "created", self.types_created),
            ("notice", "claimed", self.notices_claimed),
            ("notice", "held until somebody has looked", self.notices_held),
            ("address", "cleaned", self.addresses_cleaned),
            ("row", "without an address", self.addresses_missing),
            ("row", "rejected", self.rejected),
        ];
        for (one, what, count) in counts {
            writeln!(f, "{count:>9} {} {what}", noun(count, one))?;
            if one == "permit" && what == "left unchanged" {
                for (reason, permits) in &self.skipped_by_reason {
                    writeln!(f, "{permits:>11} although the file says something else: {reason}")?;
                }
            }
        }
        for (reason, rows) in &self.rejected_by_reason {
            writeln!(f, "{rows:>11} {reason}")?;
        }
        if self.types_created > 0 {
            let kinds = counted(self.types_created, "new permit type");
            writeln!(f, "{kinds} without renewal link and contact: say them on the page Permit types.")?;
        }
        if let Some(mail) = &self.would_mail {
            let messages = noun(mail.messages, "message");
            writeln!(f, "{:>9} {messages} in the next {DAYS_AHEAD} days because of this file", mail.messages)?;
            if self.notices_held > 0 {
                writeln!(f, "{:>11} without those of the notices held", "")?;
            }
            for (day, messages) in &mail.by_day {
                writeln!(f, "{messages:>11} on {day}")?;
            }
            let (messages, go) = (noun(mail.no_longer, "message"), which(mail.no_longer, "does", "do"));
            writeln!(f, "{:>9} {messages} that would go without it and {go} not", mail.no_longer)?;
        }
        if let Some(missing) = &self.missing {
            tell_missing(f, missing)?;
        }
        list(f, "Errors", &self.errors)?;
        list(f, "Warnings", &self.warnings)
    }
}

fn tell_missing(f: &mut std::fmt::Formatter<'_>, missing: &MissingPermits) -> std::fmt::Result {
    let MissingPermits { count, expired, numbers } = missing;
    let (permits, are) = (noun(count, "permit"), which(count, "is", "are"));
    let have = which(expired, "has", "have");
    let complete = "missing from this file, which calls itself complete";
    writeln!(f, "{count:>9} {permits} {are} {complete}; {expired} {have} expired")?;
    for number in numbers.iter().take(LISTED) {
        writeln!(f, "  {number}")?;
    }
    match count.saturating_sub(LISTED as u64) {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more; --json lists the first {MISSING_LISTED}"),
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
