//! Permits as rows: reading one whole; writing one with its contacts (`writing`), its terms and expiry periods (`terms`).
//!
//! These are the parts; what a change makes of notices is in [`super::changes`], and nothing else calls the
//! functions here that write.

mod terms;
mod writing;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

pub use terms::{Term, list_terms};
pub(super) use terms::{insert_term, present_term, record_period, update_term};
pub(super) use writing::{insert_permit, name_taken, replace_contacts, set_archived, update_permit};

use super::{Result, StoreError, purge::REMOVED};
use crate::domain::{
    permit::{PermitNumber, PermitStatus},
    recipient::EmailAddress,
};

/// Somebody besides the holder who gets copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// Name; may be empty.
    pub name: String,
    /// Address, if known.
    pub email: Option<EmailAddress>,
    /// What the person is to the permit.
    pub role: String,
    /// BCP 47 tag.
    pub language: String,
}

/// What people say about a permit: everything that can be written.
#[derive(Debug, Clone, PartialEq)]
pub struct PermitData {
    /// The number people use.
    pub permit_number: PermitNumber,
    /// Code of its type.
    pub permit_type: String,
    /// What people decided.
    pub status: PermitStatus,
    /// Who holds it.
    pub holder_name: String,
    /// Where the holder is written to.
    pub holder_email: Option<EmailAddress>,
    /// BCP 47 tag.
    pub holder_language: String,
    /// Others who get copies, in order.
    pub contacts: Vec<Contact>,
    /// Where it applies.
    pub site_address: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Day of issue.
    pub issued_on: Option<NaiveDate>,
    /// First day of the present term.
    pub effective_on: Option<NaiveDate>,
    /// Last valid day.
    pub expires_on: NaiveDate,
    /// Steps due before this day are not owed.
    pub notices_from: Option<NaiveDate>,
    /// Last day of a pause.
    pub notices_paused_until: Option<NaiveDate>,
    /// Identifier in another system.
    pub external_id: Option<String>,
    /// Further fields.
    pub custom: Value,
}

impl PermitData {
    /// Checks what no column can: the order of dates, and that somebody can be written to by name.
    pub fn check(&self) -> Result<()> {
        if self.holder_name == REMOVED && self.status == PermitStatus::Active {
            let why = format!("must be given anew: {REMOVED} stands where the name was, which is not kept for ever");
            return Err(StoreError::Invalid { field: "holder_name", why });
        }
        let later = |field, day: Option<NaiveDate>| match day {
            Some(day) if day > self.expires_on => {
                Err(StoreError::Invalid { field, why: format!("must not be after expires_on ({})", self.expires_on) })
            }
            _ => Ok(()),
        };
        later("effective_on", self.effective_on)?;
        later("issued_on", self.issued_on)
    }
}

/// A permit as it is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Permit {
    /// UUID version 7.
    pub id: Uuid,
    /// What people say about it.
    pub data: PermitData,
    /// Raised by every change.
    pub version: i64,
    /// Business day on which it first had its present date.
    pub period_since: NaiveDate,
    /// Business time of creation.
    pub created_at: DateTime<Utc>,
    /// Business time of the last change.
    pub updated_at: DateTime<Utc>,
    /// Business time of archiving.
    pub archived_at: Option<DateTime<Utc>>,
}

/// Reads a permit whole.
pub async fn get_permit(connection: &mut PgConnection, id: Uuid) -> Result<Permit> {
    let row = sqlx::query!(
        "SELECT id, permit_number, permit_type, status, holder_name, holder_email, holder_language, site_address,
                description, issued_on, effective_on, expires_on, period_since, notices_from, notices_paused_until,
                external_id, custom, version, created_at, updated_at, archived_at
         FROM permits WHERE id = $1",
        id
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(StoreError::NotFound("permit"))?;
    let contacts = list_contacts(connection, id).await?;
    let data = PermitData {
        permit_number: row
            .permit_number
            .parse()
            .map_err(|error| StoreError::Invalid { field: "permit_number", why: format!("{error}") })?,
        permit_type: row.permit_type,
        status: row.status.parse()?,
        holder_name: row.holder_name,
        holder_email: row.holder_email.and_then(|text| text.parse().ok()),
        holder_language: row.holder_language,
        contacts,
        site_address: row.site_address,
        description: row.description,
        issued_on: row.issued_on,
        effective_on: row.effective_on,
        expires_on: row.expires_on,
        notices_from: row.notices_from,
        notices_paused_until: row.notices_paused_until,
        external_id: row.external_id,
        custom: row.custom,
    };
    Ok(Permit {
        id: row.id,
        data,
        version: row.version,
        period_since: row.period_since,
        created_at: row.created_at,
        updated_at: row.updated_at,
        archived_at: row.archived_at,
    })
}

async fn list_contacts(connection: &mut PgConnection, id: Uuid) -> Result<Vec<Contact>> {
    let rows =
        sqlx::query!("SELECT name, email, role, language FROM contacts WHERE permit_id = $1 ORDER BY position", id)
            .fetch_all(connection)
            .await?;
    let contacts = rows.into_iter().map(|row| Contact {
        name: row.name,
        email: row.email.and_then(|text| text.parse().ok()),
        role: row.role,
        language: row.language,
    });
    Ok(contacts.collect())
}

/// The permit whose number has this key.
pub async fn find_permit(connection: &mut PgConnection, number_key: &str) -> Result<Option<Uuid>> {
    let found = sqlx::query_scalar!("SELECT id FROM permits WHERE number_key = $1", number_key);
    Ok(found.fetch_optional(connection).await?)
}
