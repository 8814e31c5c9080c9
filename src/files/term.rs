//! One good row of a file: one term of one permit, and what the row says about the permit.

use chrono::NaiveDate;

use crate::domain::permit::{PermitNumber, PermitStatus, PermitTypeCode};
use crate::domain::recipient::EmailAddress;

/// One term of one permit, as a row of a file gives it.
///
/// Rows with the same [`PermitNumber::key`] are terms of one permit and need not agree on anything else. The one
/// that is last by [`TermRow::order`] is the current term: its row alone gives type, status, holder, addresses and
/// contacts. Earlier ones are history. Rows that repeat a term exactly are fine and change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermRow {
    /// Row of the file.
    pub row: u64,
    /// Number of the permit.
    pub permit_number: PermitNumber,
    /// Code of the permit type; made from `permit_type_name`, so a file that names a code gets that code.
    pub permit_type: PermitTypeCode,
    /// The type as the file (or `--permit-type`) names it.
    pub permit_type_name: String,
    /// Active when the row says nothing.
    pub status: PermitStatus,
    /// Whether the row says so itself; only then it overwrites what is known.
    pub status_given: bool,
    /// Name of the holder, without control characters.
    pub holder_name: String,
    /// Where to write to the holder.
    pub holder_email: Option<EmailAddress>,
    /// Whether its cell has an address that is none; good rows alone that were asked for have such.
    pub holder_unusable: bool,
    /// Further addresses of the holder's cell, then the contact of the contact columns; no address twice.
    pub contacts: Vec<Contact>,
    /// Whether the contact columns have an address that is none.
    pub contacts_unusable: bool,
    /// BCP 47 tag.
    pub holder_language: Option<String>,
    /// In one line.
    pub site_address: Option<String>,
    /// May have several lines.
    pub description: Option<String>,
    /// Day of issue.
    pub issued_on: Option<NaiveDate>,
    /// First day of the term; never after `expires_on`.
    pub effective_on: Option<NaiveDate>,
    /// Last valid day.
    pub expires_on: NaiveDate,
    /// Id of the permit in another system.
    pub external_id: Option<String>,
}

impl TermRow {
    /// What orders the terms of one permit: expiry, then start, then place in the file; the greatest is current.
    ///
    /// A term without a start comes before one with a start. In SQL: `ORDER BY expires_on, effective_on NULLS FIRST,
    /// row`, or `ORDER BY expires_on DESC, effective_on DESC NULLS LAST, row DESC` with the current one first.
    pub fn order(&self) -> (NaiveDate, Option<NaiveDate>, u64) {
        (self.expires_on, self.effective_on, self.row)
    }
}

/// A further person of a permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// May be empty.
    pub name: String,
    /// None when the file gives a name alone.
    pub email: Option<EmailAddress>,
    /// `contact` when the file says nothing.
    pub role: String,
    /// BCP 47 tag; only our own export gives one.
    pub language: Option<String>,
    /// Whether it is a further address of the holder's cell.
    pub from_holder: bool,
}

/// The role of a contact for whom the file names none.
pub(super) const CONTACT: &str = "contact";
