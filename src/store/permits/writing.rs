//! Writing a permit's row and its contacts.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Contact, PermitData, find_permit, insert_term, record_period, terms::Term};
use crate::{
    domain::permit::PermitNumber,
    store::{Result, StoreError, connect::violated},
};

/// Inserts the row of a permit with its contacts, first term and expiry period.
pub(in crate::store) async fn insert_permit(
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
    match violated(&error) {
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
pub(in crate::store) async fn name_taken(connection: &mut PgConnection, error: StoreError) -> StoreError {
    let StoreError::NumberTaken { number, .. } = error else { return error };
    let Ok(parsed) = number.parse::<PermitNumber>() else {
        return StoreError::NumberTaken { number, by: Uuid::nil() };
    };
    match find_permit(connection, &parsed.key()).await {
        Ok(found) => StoreError::NumberTaken { number, by: found.unwrap_or_default() },
        Err(error) => error,
    }
}

/// Writes everything people say about a permit over what is there, and raises its version.
pub(in crate::store) async fn update_permit(
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
pub(in crate::store) async fn set_archived(
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

/// Puts these contacts in the place of a permit's present ones. One that stays as it is stays what it was: of an import.
pub(in crate::store) async fn replace_contacts(
    connection: &mut PgConnection,
    permit: Uuid,
    contacts: &[Contact],
) -> Result<()> {
    let before = sqlx::query!(
        "DELETE FROM contacts WHERE permit_id = $1 RETURNING name, email, role, language, from_holder",
        permit
    );
    let before = before.fetch_all(&mut *connection).await?;
    for (position, contact) in contacts.iter().enumerate() {
        let email = contact.email.as_ref().map(ToString::to_string);
        let same = before.iter().find(|old| {
            (&old.name, &old.email, &old.role, &old.language)
                == (&contact.name, &email, &contact.role, &contact.language)
        });
        sqlx::query!(
            "INSERT INTO contacts (id, permit_id, position, name, email, role, language, from_holder)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            Uuid::now_v7(),
            permit,
            position as i32,
            contact.name,
            email,
            contact.role,
            contact.language,
            same.is_some_and(|old| old.from_holder),
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
