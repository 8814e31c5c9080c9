//! The term of a row, field by field.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::Checker;
use crate::domain::permit::{PermitNumber, PermitNumberError, PermitStatus, PermitTypeCode, TYPE_NAME_MAX};
use crate::domain::text;
use crate::files::dates::DateFault;
use crate::files::fields::Field;
use crate::files::formula::unguard;
use crate::files::reading::Row;
use crate::files::remarks::Reason;
use crate::files::term::TermRow;
use crate::files::values::{self, some};

impl Checker<'_> {
    pub(super) fn term(&mut self, row: &Row<'_>) -> Option<TermRow> {
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
            holder_unusable: people.holder_unusable,
            contacts: people.contacts,
            contacts_unusable: people.contacts_unusable,
            holder_language,
            site_address: some(text::one_line(&self.mapping.site_address(row))),
            description: some(text::lines(self.mapping.cell(row, Field::Description))),
            issued_on,
            effective_on,
            expires_on: expires_on?,
            external_id: self.external_id(row),
        })
    }

    /// The cell of a needed field; an error when it is empty, or has a word for nothing. A holder may be called so, as far
    /// as anybody knows, and a permit or a type of our own exports is: that is worth a warning.
    fn needed<'r>(&mut self, row: &Row<'r>, field: Field) -> Option<&'r str> {
        let cell = self.mapping.cell(row, field);
        let detail = if cell.chars().all(|c| c.is_whitespace() || c.is_control()) {
            format!("{field} is needed")
        } else if values::is_no_name(cell) && (field == Field::HolderName || self.mapping.is_export()) {
            let detail = match field {
                Field::HolderName => "this says that there is no name, and mails will address the holder so".to_owned(),
                _ => format!("this says that there is no {field}, and is taken for one, as our exports have it"),
            };
            let warning = self.remark(row, field, Reason::Missing, detail);
            self.warnings.push(warning);
            return Some(cell);
        } else if values::is_no_name(cell) {
            format!("{field} is needed, and this says that there is none")
        } else {
            return Some(cell);
        };
        self.fault(row, field, Reason::Missing, detail);
        None
    }

    /// What makes the permit number of a row unique, whatever else is wrong with it.
    pub(super) fn readable_key(&self, row: &Row<'_>) -> Option<String> {
        self.mapping.places_of(Field::PermitNumber).first().and_then(|&at| self.key_of_cell(row, at))
    }

    /// Of a row with a cell too many or too few, the same of every cell that could be the number: which it is, is not
    /// known, and a cell beside it may look like the number of another permit.
    pub(super) fn possible_keys(&self, row: &Row<'_>) -> Vec<String> {
        let keys: BTreeSet<String> = (0..row.len()).filter_map(|at| self.key_of_cell(row, at)).collect();
        keys.into_iter().collect()
    }

    /// The key of a cell, if that can be a permit number and no spreadsheet has made something else of it.
    fn key_of_cell(&self, row: &Row<'_>, at: usize) -> Option<String> {
        let cell = unguard(row.cell(at));
        let is_number = self.mapping.is_export() || !values::is_no_name(cell);
        let readable = is_number && !row.is_day(at) && !values::is_shortened(cell);
        cell.parse().ok().filter(|_| readable).map(|number: PermitNumber| number.key())
    }

    /// What a spreadsheet has made of an identifier, if it took it for something else.
    fn changed(&self, row: &Row<'_>, field: Field) -> Option<&'static str> {
        if self.mapping.is_day(row, field) {
            return Some(
                "the spreadsheet has made a date of it; format the column as text, and write there what it was",
            );
        }
        values::is_shortened(self.mapping.cell(row, field)).then_some(
            "the spreadsheet has shortened the number; format the column as text, and write there what it was",
        )
    }

    fn external_id(&mut self, row: &Row<'_>) -> Option<String> {
        if let Some(detail) = self.changed(row, Field::ExternalId) {
            let warning = self.remark(row, Field::ExternalId, Reason::DigitsLost, detail.to_owned());
            self.warnings.push(warning);
        }
        some(text::one_line(self.mapping.cell(row, Field::ExternalId)))
    }

    fn permit_number(&mut self, row: &Row<'_>) -> Option<PermitNumber> {
        let cell = self.needed(row, Field::PermitNumber)?;
        if let Some(detail) = self.changed(row, Field::PermitNumber) {
            self.fault(row, Field::PermitNumber, Reason::InvalidPermitNumber, detail.to_owned());
            return None;
        }
        match cell.parse() {
            Ok(number) => Some(number),
            Err(error) => {
                let error: PermitNumberError = error;
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
        if name.chars().count() > TYPE_NAME_MAX {
            let detail = format!("the name of a permit type has at most {TYPE_NAME_MAX} characters");
            self.fault(row, Field::PermitType, Reason::InvalidPermitType, detail);
            return None;
        }
        let code = PermitTypeCode::from_name(&name);
        if code.is_none() {
            let detail = "a permit type needs letters or digits, of which its code is made; \
                          or give all rows one type";
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
            let detail = format!("what this status means is not known; say which of ours it is: {known}");
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
            Err(fault @ (DateFault::NoDate | DateFault::ShortYear)) => {
                let (example, format) = (self.dates.example(field), self.dates.format(field));
                let detail = format!(
                    "not understood as a date; the dates of this column are read as {example} ({format}){}",
                    if fault == DateFault::ShortYear {
                        "; write the year with four digits, or say how dates are written"
                    } else {
                        ""
                    }
                );
                (Reason::InvalidDate, detail)
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
            let detail = format!("it expires on {expires_on}, before the first day of the term, {effective_on}");
            self.fault(row, Field::ExpiresOn, Reason::ExpiryBeforeEffective, detail);
        }
        if let Some(issued_on) = issued_on.filter(|day| expires_on < *day) {
            let detail = format!("it expires on {expires_on}, before the day of issue, {issued_on}");
            let warning = self.remark(row, Field::ExpiresOn, Reason::ExpiryBeforeIssue, detail);
            self.warnings.push(warning);
        }
    }
}
