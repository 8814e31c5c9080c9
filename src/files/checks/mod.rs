//! One row at a time: all of its errors at once, or a term.

mod people;
mod term;
mod whole;

use super::Reading;
use super::dates::ColumnDates;
use super::fields::Field;
use super::formula::unguard;
use super::mapping::Mapping;
use super::options::ImportOptions;
use super::reading::{CELL_CHARS_MAX, ROW_BYTES_MAX, Row};
use super::rejected::{Columns, Kept, not_kept_words};
use super::remarks::{Reason, Rejections, Remark, Remarks, shorten};
use super::report::Guessed;
use super::term::TermRow;
use super::values;
use crate::domain::saying::{counted, noun, which};
use crate::store::imports::staging::RejectedRow;
use whole::Whole;

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checked {
    /// It has no error.
    Good(Box<TermRow>),
    /// It has some.
    Rejected(RejectedRow),
}

/// Checks rows and keeps the account of them.
pub(super) struct Checker<'c> {
    mapping: &'c Mapping,
    dates: &'c ColumnDates,
    options: &'c ImportOptions,
    /// Cells of the header.
    width: usize,
    /// Characters that the encoding of the file does not have.
    undefined: Option<&'static [char]>,
    rejections: Rejections,
    /// Rejected rows that are kept.
    kept: Kept,
    /// Rejected rows without a cell that could be a permit number.
    nameless: u64,
    errors: Remarks,
    warnings: Remarks,
    addresses_cleaned: u64,
    addresses_missing: u64,
    without_status: u64,
    /// What is to be said of the file as a whole.
    whole: Whole,
    /// Errors of the row that is being checked.
    faults: Vec<Remark>,
    /// Addresses of that row that are left out if the row is good, and are errors like others if it is not.
    unusable: Vec<Remark>,
}

impl<'c> Checker<'c> {
    pub fn new(
        mapping: &'c Mapping,
        dates: &'c ColumnDates,
        options: &'c ImportOptions,
        width: usize,
        undefined: Option<&'static [char]>,
    ) -> Self {
        Self {
            mapping,
            dates,
            options,
            width,
            undefined,
            rejections: Rejections::default(),
            kept: Kept::default(),
            nameless: 0,
            errors: Remarks::default(),
            warnings: Remarks::default(),
            addresses_cleaned: 0,
            addresses_missing: 0,
            without_status: 0,
            whole: Whole::new(mapping),
            faults: Vec::new(),
            unusable: Vec::new(),
        }
    }

    /// The term of a row without errors, or the row.
    pub fn check(&mut self, row: &Row<'_>) -> Checked {
        let term = if self.shape(row) { self.term(row) } else { None };
        self.error_values(row);
        self.whole.row(row);
        if let Some(term) = term.filter(|_| self.faults.is_empty()) {
            for mut remark in self.unusable.drain(..) {
                remark.detail.push_str("; the row is taken without it, and what is known of these addresses stays");
                self.warnings.push(remark);
            }
            self.whole.term(&term);
            return Checked::Good(Box::new(term));
        }
        self.faults.append(&mut self.unusable);
        self.rejections.count(&self.faults);
        let number_key = if row.fits(self.width) { self.readable_key(row) } else { None };
        // A cell too many is not seen at once where the last one is empty.
        let is_doubtful = row.len() != self.width || row.lacks() > 0;
        let cell_keys = if is_doubtful { self.possible_keys(row) } else { Vec::new() };
        self.nameless += u64::from(number_key.is_none() && cell_keys.is_empty());
        let columns = Columns { mapping: self.mapping, dates: self.dates, width: self.width };
        let rejected = RejectedRow { number_key, cell_keys, ..self.kept.take(row, &columns, &self.faults) };
        for fault in self.faults.drain(..) {
            self.errors.push(fault);
        }
        Checked::Rejected(rejected)
    }

    /// Whether the row has the cells of the header, none of them endless; otherwise no other error of the row would
    /// make sense, or be worth the work.
    fn shape(&mut self, row: &Row<'_>) -> bool {
        let (lacks, wanted) = (row.lacks(), self.width);
        let found = row.len() - lacks;
        if !row.fits(wanted) {
            let code = if found < wanted { Reason::TooFewCells } else { Reason::TooManyCells };
            let mut detail = format!("the row has {} and the header {wanted}", counted(found, "cell"));
            if lacks > 0 {
                detail += "; put each cell into its column and leave none that says it is not there";
            }
            self.faults.push(Remark { row: Some(row.number), column: None, value: None, code, detail });
            return false;
        }
        for (at, cell) in row.cells().enumerate().take(wanted) {
            if let Some(sign) = self.undefined.and_then(|undefined| cell.chars().find(|c| undefined.contains(c))) {
                let detail = format!(
                    "the byte {:02X} stands for no character in Windows-1252, so the file is written in something \
                     else; save it as csv in UTF-8",
                    u32::from(sign)
                );
                let column = Some(shorten(self.mapping.header(at)));
                let (row, value) = (Some(row.number), Some(shorten(cell)));
                self.faults.push(Remark { row, column, value, code: Reason::UndefinedCharacter, detail });
            }
            // An apostrophe that only guards the cell is none of its characters.
            let (most, meant) = (self.longest(at), unguard(cell));
            if meant.len() > most && meant.chars().count() > most {
                let detail = format!("a cell has at most {most} characters");
                let column = Some(shorten(self.mapping.header(at)));
                let value = Some(shorten(cell));
                self.faults.push(Remark { row: Some(row.number), column, value, code: Reason::CellTooLong, detail });
            }
        }
        self.faults.is_empty()
    }

    /// Most characters of a cell in the column at `at`. What is not read has no limit of its own, nor has the cell in
    /// which our export writes twenty contacts: a row has one.
    fn longest(&self, at: usize) -> usize {
        let is_limited = self.mapping.reads(at) && !self.mapping.places_of(Field::Contacts).contains(&at);
        if is_limited { CELL_CHARS_MAX } else { ROW_BYTES_MAX }
    }

    /// A cell that failed to calculate has that one error: whatever else is said of it follows from that.
    fn error_values(&mut self, row: &Row<'_>) {
        for (at, cell) in row.cells().enumerate() {
            if !cell.starts_with(['#', 'E']) || !values::is_error_value(cell) || !self.mapping.reads(at) {
                continue;
            }
            let column = Some(shorten(self.mapping.header(at)));
            self.faults.retain(|fault| fault.column != column);
            let detail = "the cell failed to calculate in the spreadsheet; put the value there".to_owned();
            let (row, value) = (Some(row.number), Some(shorten(cell)));
            self.faults.push(Remark { row, column, value, code: Reason::ErrorValue, detail });
        }
    }

    fn fault(&mut self, row: &Row<'_>, field: Field, code: Reason, detail: String) {
        let remark = self.remark(row, field, code, detail);
        self.faults.push(remark);
    }

    fn remark(&self, row: &Row<'_>, field: Field, code: Reason, detail: String) -> Remark {
        let column = self.mapping.column(field).map(shorten);
        let value = column.is_some().then(|| shorten(self.mapping.cell(row, field)));
        Remark { row: Some(row.number), column, value, code, detail }
    }

    /// The account of a file of `rows` rows, about which as a whole `remarks` are to be made.
    pub fn finish(self, rows: u64, guessed: Guessed, remarks: Vec<Remark>) -> Reading {
        let whole = Remark::whole;
        let mut warnings: Vec<Remark> =
            remarks.into_iter().chain(self.mapping.unused()).chain(self.whole.remarks()).collect();
        if self.without_status > 0 {
            let rows = self.without_status;
            let detail = format!(
                "{} {} no status; new permits among them are taken as active",
                counted(rows, "row"),
                which(rows, "has", "have")
            );
            warnings.push(whole(Reason::StatusTakenAsActive, detail));
        }
        for (left_out, what) in [(self.errors.left_out(), "error"), (self.warnings.left_out(), "warning")] {
            if left_out > 0 {
                let detail = format!(
                    "{left_out} further {} {} counted and not listed",
                    noun(left_out, what),
                    which(left_out, "is", "are")
                );
                warnings.push(whole(Reason::ListShortened, detail));
            }
        }
        let not_kept = self.rejections.rows - self.kept.rows();
        if not_kept > 0 {
            let detail = not_kept_words(not_kept);
            warnings.push(whole(Reason::ListShortened, detail));
        }
        warnings.extend(self.warnings.into_kept());
        Reading {
            rows,
            rejected: self.rejections.rows,
            rejected_by_reason: self.rejections.by_reason,
            guessed,
            nameless: self.nameless,
            mapped: self.mapping.mapped(),
            addresses_cleaned: self.addresses_cleaned,
            addresses_missing: self.addresses_missing,
            errors: self.errors.into_kept(),
            warnings,
        }
    }
}
