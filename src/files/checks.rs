//! One row at a time: all of its errors at once, or a term.

use std::collections::HashSet;

use chrono::NaiveDate;

use super::Reading;
use super::addresses;
use super::contacts;
use super::dates::{ColumnDates, DateFault};
use super::fields::Field;
use super::mapping::Mapping;
use super::options::ImportOptions;
use super::reading::{CELL_CHARS_MAX, Row};
use super::rejected::Kept;
use super::remarks::{Reason, Rejections, Remark, Remarks, shorten};
use super::report::Guessed;
use super::term::{CONTACT, Contact, TermRow};
use super::values::{self, some};
use crate::domain::permit::{PermitNumber, PermitStatus, PermitTypeCode};
use crate::domain::recipient::EmailAddress;
use crate::domain::text;
use crate::store::imports::staging::RejectedRow;

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checked {
    /// It has no error.
    Good(Box<TermRow>),
    /// It has some.
    Rejected(RejectedRow),
    /// The same, and as many as are kept are kept already.
    LeftOut,
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
    errors: Remarks,
    warnings: Remarks,
    addresses_cleaned: u64,
    addresses_missing: u64,
    without_status: u64,
    /// Errors of the row that is being checked.
    faults: Vec<Remark>,
    /// Addresses of that row that are left out if the row is good, and are errors like others if it is not.
    unusable: Vec<Remark>,
}

/// The addresses of a row.
#[derive(Default)]
struct People {
    holder: Option<EmailAddress>,
    contacts: Vec<Contact>,
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
            errors: Remarks::default(),
            warnings: Remarks::default(),
            addresses_cleaned: 0,
            addresses_missing: 0,
            without_status: 0,
            faults: Vec::new(),
            unusable: Vec::new(),
        }
    }

    /// The term of a row without errors, or the row.
    pub fn check(&mut self, row: &Row<'_>) -> Checked {
        let term = if self.shape(row) { self.term(row) } else { None };
        self.error_values(row);
        if let Some(term) = term.filter(|_| self.faults.is_empty()) {
            for mut remark in self.unusable.drain(..) {
                remark.detail.push_str("; the permit is kept without it");
                self.warnings.push(remark);
            }
            return Checked::Good(Box::new(term));
        }
        self.faults.append(&mut self.unusable);
        self.rejections.count(&self.faults);
        let number = self.mapping.cell(row, Field::PermitNumber).parse::<PermitNumber>();
        let kept = self.kept.take(row, number.ok().map(|number| number.key()), &self.faults);
        for fault in self.faults.drain(..) {
            self.errors.push(fault);
        }
        kept.map_or(Checked::LeftOut, Checked::Rejected)
    }

    /// Whether the row has the cells of the header, none of them endless; otherwise no other error of the row would
    /// make sense, or be worth the work.
    fn shape(&mut self, row: &Row<'_>) -> bool {
        let (found, wanted) = (row.len(), self.width);
        if found != wanted {
            let code = if found < wanted { Reason::TooFewCells } else { Reason::TooManyCells };
            let detail = format!("the row has {found} cells and the header {wanted}");
            self.faults.push(Remark { row: Some(row.number), column: None, value: None, code, detail });
            return false;
        }
        for (at, cell) in row.cells().enumerate() {
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
            if cell.len() > CELL_CHARS_MAX && cell.chars().count() > CELL_CHARS_MAX {
                let detail = format!("a cell has at most {CELL_CHARS_MAX} characters");
                let column = Some(shorten(self.mapping.header(at)));
                let value = Some(shorten(cell));
                self.faults.push(Remark { row: Some(row.number), column, value, code: Reason::CellTooLong, detail });
            }
        }
        self.faults.is_empty()
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

    fn term(&mut self, row: &Row<'_>) -> Option<TermRow> {
        let permit_number = self.permit_number(row);
        let permit_type = self.permit_type(row);
        let status = self.status(row);
        let holder_name = self.needed(row, Field::HolderName).map(text::one_line);
        let people = self.people(row);
        let holder_language = self.language(row);
        let issued_on = self.date(row, Field::IssuedOn);
        let effective_on = self.date(row, Field::EffectiveOn);
        let expires_on = self.expires_on(row);
        self.order_of_dates(row, issued_on, effective_on, expires_on);
        let (permit_type, permit_type_name) = permit_type?;
        Some(TermRow {
            row: row.number,
            permit_number: permit_number?,
            permit_type,
            permit_type_name,
            status: status?,
            status_given: !values::squash(self.mapping.cell(row, Field::Status)).is_empty(),
            holder_name: holder_name?,
            holder_email: people.holder,
            contacts: people.contacts,
            holder_language,
            site_address: some(text::one_line(&self.mapping.site_address(row))),
            description: some(text::lines(self.mapping.cell(row, Field::Description))),
            issued_on,
            effective_on,
            expires_on: expires_on?,
            external_id: some(text::one_line(self.mapping.cell(row, Field::ExternalId))),
        })
    }

    /// The cell of a needed field; an error when it is empty.
    fn needed<'r>(&mut self, row: &Row<'r>, field: Field) -> Option<&'r str> {
        let cell = self.mapping.cell(row, field);
        if cell.chars().all(|c| c.is_whitespace() || c.is_control()) {
            self.fault(row, field, Reason::Missing, format!("{field} is needed"));
            return None;
        }
        Some(cell)
    }

    fn permit_number(&mut self, row: &Row<'_>) -> Option<PermitNumber> {
        let cell = self.needed(row, Field::PermitNumber)?;
        match cell.parse() {
            Ok(number) => Some(number),
            Err(error) => {
                let error: crate::domain::permit::PermitNumberError = error;
                self.fault(row, Field::PermitNumber, Reason::InvalidPermitNumber, error.to_string());
                None
            }
        }
    }

    fn permit_type(&mut self, row: &Row<'_>) -> Option<(PermitTypeCode, String)> {
        let name = match self.options.permit_type() {
            Some(name) => name.to_owned(),
            None => text::one_line(self.needed(row, Field::PermitType)?),
        };
        let code = PermitTypeCode::from_name(&name);
        if code.is_none() {
            let detail = "a permit type needs letters or digits, of which its code is made; \
                          or give all rows one type with --permit-type";
            self.fault(row, Field::PermitType, Reason::InvalidPermitType, detail.to_owned());
        }
        Some((code?, name))
    }

    fn status(&mut self, row: &Row<'_>) -> Option<PermitStatus> {
        let word = self.mapping.cell(row, Field::Status);
        if values::squash(word).is_empty() {
            self.without_status += u64::from(self.mapping.has(Field::Status));
            return Some(PermitStatus::Active);
        }
        let status = values::status(word, self.options);
        if status.is_none() {
            let known = PermitStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
            let detail = format!("what this status means is not known; say it with --status FROM=TO, TO being {known}");
            self.fault(row, Field::Status, Reason::UnknownStatus, detail);
        }
        status
    }

    fn language(&mut self, row: &Row<'_>) -> Option<String> {
        let tag = self.mapping.cell(row, Field::HolderLanguage).trim();
        if !tag.is_empty() && !text::is_language(tag) {
            let detail = "not a language tag, such as en or pt-BR".to_owned();
            self.fault(row, Field::HolderLanguage, Reason::InvalidLanguage, detail);
        }
        some(tag.to_owned())
    }

    fn date(&mut self, row: &Row<'_>, field: Field) -> Option<NaiveDate> {
        let is_day = self.mapping.is_day(row, field);
        let (code, detail) = match self.dates.parse(field, self.mapping.cell(row, field), is_day) {
            Ok(date) => return date,
            Err(DateFault::NoDate) => {
                let format = self.dates.format(field);
                (Reason::InvalidDate, format!("no such date; this column is read as {format}"))
            }
            Err(DateFault::DayNumber) => (
                Reason::InvalidDate,
                "a bare number is no date; format the column as dates in the spreadsheet".to_owned(),
            ),
            Err(DateFault::Time) => (
                Reason::TimeInDate,
                "a permit date is a day and has no time other than midnight, nor a zone".to_owned(),
            ),
        };
        self.fault(row, field, code, detail);
        None
    }

    fn expires_on(&mut self, row: &Row<'_>) -> Option<NaiveDate> {
        let before = self.faults.len();
        let date = self.date(row, Field::ExpiresOn);
        if date.is_none() && self.faults.len() == before {
            self.fault(row, Field::ExpiresOn, Reason::Missing, "expires_on is needed".to_owned());
        }
        date
    }

    fn order_of_dates(
        &mut self,
        row: &Row<'_>,
        issued_on: Option<NaiveDate>,
        effective_on: Option<NaiveDate>,
        expires_on: Option<NaiveDate>,
    ) {
        let Some(expires_on) = expires_on else { return };
        if let Some(effective_on) = effective_on.filter(|day| expires_on < *day) {
            let detail = format!("expires_on is {expires_on}, before the first day of the term, {effective_on}");
            self.fault(row, Field::ExpiresOn, Reason::ExpiryBeforeEffective, detail);
        }
        if let Some(issued_on) = issued_on.filter(|day| expires_on < *day) {
            let detail = format!("expires_on is {expires_on}, before the day of issue, {issued_on}");
            let warning = self.remark(row, Field::ExpiresOn, Reason::ExpiryBeforeIssue, detail);
            self.warnings.push(warning);
        }
    }

    /// The holder's address is the first of its cell; the others, and those of the contact columns, are contacts.
    fn people(&mut self, row: &Row<'_>) -> People {
        let mut people = People::default();
        let holder = self.addresses(row, Field::HolderEmail);
        self.addresses_missing += u64::from(holder.good.is_empty() && holder.bad.is_empty());
        for (name, address) in holder.good {
            if people.holder.is_none() {
                people.holder = Some(address);
            } else {
                people.contacts.push(Contact { name, email: Some(address), role: CONTACT.to_owned(), language: None });
            }
        }
        people.contacts.extend(self.listed_contacts(row));
        let cell = |field| text::one_line(self.mapping.cell(row, field));
        let (name, role) = (cell(Field::ContactName), cell(Field::ContactRole));
        let role = some(role).unwrap_or_else(|| CONTACT.to_owned());
        let contact = self.addresses(row, Field::ContactEmail);
        if contact.good.is_empty() && !values::is_no_value(&name) {
            people.contacts.push(Contact { name: name.clone(), email: None, role: role.clone(), language: None });
        }
        let mut seen = people.keys();
        for (own, address) in contact.good {
            if seen.insert(address.key()) {
                let name = some(own).unwrap_or_else(|| name.clone());
                people.contacts.push(Contact { name, email: Some(address), role: role.clone(), language: None });
            }
        }
        people
    }

    /// Those of the column in which our own export writes all of them.
    fn listed_contacts(&mut self, row: &Row<'_>) -> Vec<Contact> {
        let cell = self.mapping.cell(row, Field::Contacts);
        if cell.trim().is_empty() {
            return Vec::new();
        }
        contacts::parse(cell).unwrap_or_else(|fault| {
            self.fault(row, Field::Contacts, Reason::InvalidContacts, fault);
            Vec::new()
        })
    }

    fn addresses(&mut self, row: &Row<'_>, field: Field) -> addresses::Addresses {
        let found = addresses::parse(self.mapping.cell(row, field));
        self.addresses_cleaned += u64::from(found.cleaned);
        for (written, error) in &found.bad {
            let column = self.mapping.column(field).map(shorten);
            let value = Some(shorten(written));
            let (row, detail) = (Some(row.number), error.to_string());
            let remark = Remark { row, column, value, code: Reason::MalformedAddress, detail };
            if self.options.keep_good_rows() {
                self.unusable.push(remark);
            } else {
                self.faults.push(remark);
            }
        }
        found
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
        let mut warnings: Vec<Remark> = remarks.into_iter().chain(self.mapping.unused()).collect();
        if self.without_status > 0 {
            let detail =
                format!("{} rows have no status; new permits among them are taken as active", self.without_status);
            warnings.push(whole(Reason::StatusTakenAsActive, detail));
        }
        for (left_out, what) in [(self.errors.left_out(), "errors"), (self.warnings.left_out(), "warnings")] {
            if left_out > 0 {
                let detail = format!("{left_out} further {what} are counted and not listed");
                warnings.push(whole(Reason::ListShortened, detail));
            }
        }
        let not_kept = self.rejections.rows - self.kept.rows();
        if not_kept > 0 {
            let detail = format!("{not_kept} further rejected rows are counted and not kept for the file of errors");
            warnings.push(whole(Reason::ListShortened, detail));
        }
        warnings.extend(self.warnings.into_kept());
        Reading {
            rows,
            rejected: self.rejections.rows,
            rejected_by_reason: self.rejections.by_reason,
            guessed,
            nameless: self.rejections.rows - self.kept.named(),
            mapped: self.mapping.mapped(),
            addresses_cleaned: self.addresses_cleaned,
            addresses_missing: self.addresses_missing,
            errors: self.errors.into_kept(),
            warnings,
        }
    }
}

impl People {
    fn keys(&self) -> HashSet<String> {
        let emails = self.contacts.iter().filter_map(|contact| contact.email.as_ref());
        self.holder.iter().chain(emails).map(EmailAddress::key).collect()
    }
}
