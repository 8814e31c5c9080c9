//! Permits as rows: reading one whole, writing one, its contacts, terms and expiry periods.
//!
//! These are the parts; what a change makes of notices is in [`super::changes`], and nothing else calls the
//! functions here that write.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Result, StoreError};
use crate::domain::{permit::PermitStatus, recipient::EmailAddress};

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
    pub permit_number: crate::domain::permit::PermitNumber,
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
    /// Checks what no column can: the order of dates.
    pub fn check(&self) -> Result<()> {
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

/// One validity period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Count within the permit, from 1.
    pub number: i32,
    /// Issue date that came with it.
    pub issued_on: Option<NaiveDate>,
    /// First day.
    pub effective_on: Option<NaiveDate>,
    /// Last valid day.
    pub expires_on: NaiveDate,
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

/// Every term of a permit, the first one first.
pub async fn list_terms(connection: &mut PgConnection, id: Uuid) -> Result<Vec<Term>> {
    let terms = sqlx::query_as!(
        Term,
        "SELECT number, issued_on, effective_on, expires_on FROM terms WHERE permit_id = $1 ORDER BY number",
        id
    );
    Ok(terms.fetch_all(connection).await?)
}

/// Inserts the row of a permit with its contacts, first term and expiry period.
pub(super) async fn insert_permit(
    connection: &mut PgConnection,
    id: Uuid,
    data: &PermitData,
    now: DateTime<Utc>,
    today: NaiveDate,
) -> Result<()> {
    let inserted = sqlx::query!(
        "INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, holder_email,
                              holder_language, site_address, description, issued_on, effective_on, takes_effect_on,
                              expires_on, period_since, notices_from, notices_paused_until, external_id, custom,
                              created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $20)",
        id,
        data.permit_number.as_str(),
        data.permit_number.key(),
        data.permit_type,
        data.status.as_str(),
        data.holder_name,
        data.holder_email.as_ref().map(ToString::to_string),
        data.holder_language,
        data.site_address,
        data.description,
        data.issued_on,
        data.effective_on,
        data.effective_on.or(data.issued_on),
        data.expires_on,
        today,
        data.notices_from,
        data.notices_paused_until,
        data.external_id,
        data.custom,
        now,
    )
    .execute(&mut *connection)
    .await;
    if let Err(error) = inserted {
        return Err(refusal(error, data));
    }
    replace_contacts(connection, id, &data.contacts).await?;
    record_period(connection, id, data.expires_on, today).await?;
    let term =
        Term { number: 1, issued_on: data.issued_on, effective_on: data.effective_on, expires_on: data.expires_on };
    insert_term(connection, id, term, now).await
}

/// The refusal of a row by a constraint, in the words of whoever wrote it. A taken number needs a look-up,
/// which [`name_taken`] does when the transaction is over.
fn refusal(error: sqlx::Error, data: &PermitData) -> StoreError {
    match super::connect::violated(&error) {
        Some("permits_number_key_key") => {
            StoreError::NumberTaken { number: data.permit_number.to_string(), by: Uuid::nil() }
        }
        Some("permits_permit_type_fkey") => {
            StoreError::Invalid { field: "permit_type", why: format!("there is no permit type {:?}", data.permit_type) }
        }
        _ => error.into(),
    }
}

/// Names the permit that has the number, in an error that says that it is taken.
pub(super) async fn name_taken(connection: &mut PgConnection, error: StoreError) -> StoreError {
    let StoreError::NumberTaken { number, .. } = error else { return error };
    let Ok(parsed) = number.parse::<crate::domain::permit::PermitNumber>() else {
        return StoreError::NumberTaken { number, by: Uuid::nil() };
    };
    match find_permit(connection, &parsed.key()).await {
        Ok(found) => StoreError::NumberTaken { number, by: found.unwrap_or_default() },
        Err(error) => error,
    }
}

/// The permit whose number has this key.
pub async fn find_permit(connection: &mut PgConnection, number_key: &str) -> Result<Option<Uuid>> {
    let found = sqlx::query_scalar!("SELECT id FROM permits WHERE number_key = $1", number_key);
    Ok(found.fetch_optional(connection).await?)
}

/// Writes everything people say about a permit over what is there, and raises its version.
pub(super) async fn update_permit(
    connection: &mut PgConnection,
    id: Uuid,
    data: &PermitData,
    takes_effect_on: Option<NaiveDate>,
    period_since: NaiveDate,
    now: DateTime<Utc>,
) -> Result<()> {
    let updated = sqlx::query!(
        "UPDATE permits
         SET permit_number = $2, number_key = $3, permit_type = $4, status = $5, holder_name = $6, holder_email = $7,
             holder_language = $8, site_address = $9, description = $10, issued_on = $11, effective_on = $12,
             takes_effect_on = $13, expires_on = $14, period_since = $15, notices_from = $16,
             notices_paused_until = $17, external_id = $18, custom = $19, version = version + 1, updated_at = $20
         WHERE id = $1",
        id,
        data.permit_number.as_str(),
        data.permit_number.key(),
        data.permit_type,
        data.status.as_str(),
        data.holder_name,
        data.holder_email.as_ref().map(ToString::to_string),
        data.holder_language,
        data.site_address,
        data.description,
        data.issued_on,
        data.effective_on,
        takes_effect_on,
        data.expires_on,
        period_since,
        data.notices_from,
        data.notices_paused_until,
        data.external_id,
        data.custom,
        now,
    )
    .execute(connection)
    .await;
    updated.map(|_| ()).map_err(|error| refusal(error, data))
}

/// Archives a permit, or brings it back with `None`.
pub(super) async fn set_archived(
    connection: &mut PgConnection,
    id: Uuid,
    archived_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE permits SET archived_at = $2, version = version + 1, updated_at = $3 WHERE id = $1",
        id,
        archived_at,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Puts these contacts in the place of a permit's present ones.
pub(super) async fn replace_contacts(connection: &mut PgConnection, permit: Uuid, contacts: &[Contact]) -> Result<()> {
    sqlx::query!("DELETE FROM contacts WHERE permit_id = $1", permit).execute(&mut *connection).await?;
    for (position, contact) in contacts.iter().enumerate() {
        sqlx::query!(
            "INSERT INTO contacts (id, permit_id, position, name, email, role, language)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            Uuid::now_v7(),
            permit,
            position as i32,
            contact.name,
            contact.email.as_ref().map(ToString::to_string),
            contact.role,
            contact.language,
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Opens a term.
pub(super) async fn insert_term(
    connection: &mut PgConnection,
    permit: Uuid,
    term: Term,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO terms (permit_id, number, issued_on, effective_on, expires_on, recorded_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
        permit,
        term.number,
        term.issued_on,
        term.effective_on,
        term.expires_on,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Corrects a term in place.
pub(super) async fn update_term(connection: &mut PgConnection, permit: Uuid, term: Term) -> Result<()> {
    sqlx::query!(
        "UPDATE terms SET issued_on = $3, effective_on = $4, expires_on = $5 WHERE permit_id = $1 AND number = $2",
        permit,
        term.number,
        term.issued_on,
        term.effective_on,
        term.expires_on,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The present term of a permit.
pub(super) async fn present_term(connection: &mut PgConnection, permit: Uuid) -> Result<Term> {
    let term = sqlx::query_as!(
        Term,
        "SELECT number, issued_on, effective_on, expires_on FROM terms
         WHERE permit_id = $1 ORDER BY number DESC LIMIT 1",
        permit
    );
    Ok(term.fetch_one(connection).await?)
}

/// Notes that a permit has this expiry date; says since when it first had it.
pub(super) async fn record_period(
    connection: &mut PgConnection,
    permit: Uuid,
    expires_on: NaiveDate,
    today: NaiveDate,
) -> Result<NaiveDate> {
    let since = sqlx::query_scalar!(
        "INSERT INTO expiry_periods (permit_id, expires_on, since) VALUES ($1, $2, $3)
         ON CONFLICT (permit_id, expires_on) DO UPDATE SET since = expiry_periods.since
         RETURNING since",
        permit,
        expires_on,
        today,
    );
    Ok(since.fetch_one(connection).await?)
}
