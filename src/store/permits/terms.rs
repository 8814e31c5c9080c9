//! Terms, and the expiry periods that a permit has had.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::Result;

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

/// Every term of a permit, the first one first.
pub async fn list_terms(connection: &mut PgConnection, id: Uuid) -> Result<Vec<Term>> {
    let terms = sqlx::query_as!(
        Term,
        "SELECT number, issued_on, effective_on, expires_on FROM terms WHERE permit_id = $1 ORDER BY number",
        id
    );
    Ok(terms.fetch_all(connection).await?)
}

/// Opens a term.
pub(in crate::store) async fn insert_term(
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
pub(in crate::store) async fn update_term(connection: &mut PgConnection, permit: Uuid, term: Term) -> Result<()> {
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
pub(in crate::store) async fn present_term(connection: &mut PgConnection, permit: Uuid) -> Result<Term> {
    let term = sqlx::query_as!(
        Term,
        "SELECT number, issued_on, effective_on, expires_on FROM terms
         WHERE permit_id = $1 ORDER BY number DESC LIMIT 1",
        permit
    );
    Ok(term.fetch_one(connection).await?)
}

/// Notes that a permit has this expiry date; says since when it first had it.
pub(in crate::store) async fn record_period(
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
