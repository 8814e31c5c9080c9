//! Permits as they are shown: one, or a page of those that a filter leaves, ordered by expiry.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use sqlx::{PgConnection, Postgres, QueryBuilder, Row, postgres::PgRow, types::Json};
use uuid::Uuid;

use super::{Conditions, containing};
use crate::{
    domain::{
        permit::PermitStatus,
        phase::{Life, Phase},
        words,
    },
    store::{Result, StoreError},
};

/// A permit as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct PermitRow {
    pub id: Uuid,
    pub permit_number: String,
    /// Code of the type.
    pub permit_type: String,
    /// Its name.
    pub type_name: String,
    pub status: PermitStatus,
    pub holder_name: String,
    pub holder_email: Option<String>,
    pub holder_language: String,
    /// In order.
    pub contacts: Vec<ContactRow>,
    pub site_address: Option<String>,
    pub description: Option<String>,
    pub issued_on: Option<NaiveDate>,
    pub effective_on: Option<NaiveDate>,
    pub notices_from: Option<NaiveDate>,
    pub notices_paused_until: Option<NaiveDate>,
    pub external_id: Option<String>,
    /// An object.
    pub custom: Value,
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub archived_at: Option<DateTime<Utc>>,
    /// Its dates, and what its type says of them.
    pub life: Life,
    /// What the database's clock showed.
    pub read_at: DateTime<Utc>,
}

/// Somebody besides the holder.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct ContactRow {
    pub name: String,
    pub email: Option<String>,
    pub role: String,
    pub language: String,
}

/// Which permits; nothing set means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermitFilter {
    /// Every one of these words is somewhere in number, external id, holder, address or site.
    pub words: Vec<String>,
    /// Code of the type.
    pub permit_type: Option<String>,
    pub status: Option<PermitStatus>,
    pub phase: Option<Phase>,
    /// First day, last day of expiry.
    pub expires_from: Option<NaiveDate>,
    pub expires_to: Option<NaiveDate>,
    /// Changed at or after this instant.
    pub updated_since: Option<DateTime<Utc>>,
    /// Archived ones only, others only, or both.
    pub archived: Option<bool>,
    /// Number in the form in which it is unique.
    pub number_key: Option<String>,
}

/// The place after which a page begins.
pub type After = (NaiveDate, Uuid);

/// The text of a permit by which it is found; the same expression as in the index.
const SEARCHED: &str =
    "permit_search_text(p.permit_number, p.number_key, p.external_id, p.holder_name, p.holder_email, p.site_address)";

/// What is shown of a permit, with [`FROM`] behind it; whoever reads adds which.
pub const COLUMNS: &str = "
    SELECT p.id, p.permit_number, p.permit_type, p.status, p.holder_name, p.holder_email, p.holder_language,
           p.site_address, p.description, p.issued_on, p.effective_on, p.expires_on, p.notices_from,
           p.notices_paused_until, p.external_id, p.custom, p.version, p.created_at, p.updated_at, p.archived_at,
           t.name AS type_name, t.grace_days, clock_timestamp() AS read_at,
           (SELECT min(s.offset_days) FROM schedule_steps s WHERE s.permit_type = p.permit_type AND s.enabled)
               AS first_step,
           (SELECT f.effective_on FROM terms f WHERE f.permit_id = p.id AND f.number = 1) AS first_effective_on,
           (SELECT coalesce(jsonb_agg(to_jsonb(c) ORDER BY c.position), '[]') FROM contacts c WHERE c.permit_id = p.id)
               AS contacts";
/// Where it is read from.
pub const FROM: &str = " FROM permits p JOIN permit_types t ON t.code = p.permit_type";

fn select() -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push(FROM);
    query
}

/// One permit.
pub async fn read_permit(connection: &mut PgConnection, id: Uuid) -> Result<PermitRow> {
    let mut query = select();
    query.push(" WHERE p.id = ").push_bind(id);
    let row = query.build().fetch_optional(connection).await?;
    from_row(&row.ok_or(StoreError::NotFound("permit"))?)
}

/// Up to `limit` permits of the filter after `after`, by last valid day and id.
pub async fn list_permits(
    connection: &mut PgConnection,
    filter: &PermitFilter,
    today: NaiveDate,
    after: Option<After>,
    limit: i64,
) -> Result<Vec<PermitRow>> {
    let mut query = select();
    let mut conditions = restrict(&mut query, filter, today);
    if let Some((expires_on, id)) = after {
        conditions.and(&mut query).push("(p.expires_on, p.id) > (").push_bind(expires_on).push(", ");
        query.push_bind(id).push(")");
    }
    query.push(" ORDER BY p.expires_on, p.id LIMIT ").push_bind(limit);
    query.build().fetch_all(connection).await?.iter().map(from_row).collect()
}

words! {
    /// What a list of permits is ordered by.
    "sort" PermitSort {
        /// Last valid day.
        ExpiresOn = "expires_on",
        /// Number.
        Number = "permit_number",
        /// Name of the holder.
        Holder = "holder_name",
        /// Last change.
        Updated = "updated_at",
    }
}

impl PermitSort {
    /// What is compared, and its type.
    const fn expression(self) -> (&'static str, &'static str) {
        match self {
            Self::ExpiresOn => ("p.expires_on", "date"),
            Self::Number => ("p.number_key", "text"),
            Self::Holder => ("lower(p.holder_name)", "text"),
            Self::Updated => ("p.updated_at", "timestamptz"),
        }
    }

    /// The same as text that says all of it.
    const fn as_text(self) -> &'static str {
        match self {
            Self::ExpiresOn => "p.expires_on::text",
            Self::Number => "p.number_key",
            Self::Holder => "lower(p.holder_name)",
            Self::Updated => r#"to_char(p.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"#,
        }
    }

    /// Whether a permit can have this text there; whoever names a place may have made it up.
    pub fn is_possible(self, text: &str) -> bool {
        match self {
            Self::ExpiresOn => text.parse::<NaiveDate>().is_ok(),
            Self::Number | Self::Holder => true,
            Self::Updated => DateTime::parse_from_rfc3339(text).is_ok(),
        }
    }
}

/// An order, and the place after which a page begins: what is compared, as text, and the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sorted {
    pub by: PermitSort,
    pub descending: bool,
    pub after: Option<(String, Uuid)>,
}

/// Up to `limit` permits of the filter in this order, each with what it is compared by.
pub async fn list_sorted_permits(
    connection: &mut PgConnection,
    filter: &PermitFilter,
    today: NaiveDate,
    sorted: &Sorted,
    limit: i64,
) -> Result<Vec<(String, PermitRow)>> {
    let (expression, kind) = sorted.by.expression();
    let mut query = QueryBuilder::new(COLUMNS);
    query.push(", ").push(sorted.by.as_text()).push(" AS sort_key").push(FROM);
    let mut conditions = restrict(&mut query, filter, today);
    if let Some((key, id)) = &sorted.after {
        let beyond = if sorted.descending { " < (" } else { " > (" };
        conditions.and(&mut query).push("(").push(expression).push(", p.id)").push(beyond);
        query.push_bind(key.clone()).push("::").push(kind).push(", ").push_bind(*id).push(")");
    }
    let direction = if sorted.descending { " DESC" } else { "" };
    query.push(" ORDER BY ").push(expression).push(direction).push(", p.id").push(direction);
    query.push(" LIMIT ").push_bind(limit);
    let rows = query.build().fetch_all(connection).await?;
    rows.iter().map(|row| Ok((row.try_get("sort_key")?, from_row(row)?))).collect()
}

/// How many permits the filter leaves, counted up to `most`.
pub async fn count_permits(
    connection: &mut PgConnection,
    filter: &PermitFilter,
    today: NaiveDate,
    most: i64,
) -> Result<i64> {
    let mut query = QueryBuilder::new("SELECT count(*) FROM (SELECT 1");
    query.push(FROM);
    restrict(&mut query, filter, today);
    query.push(" LIMIT ").push_bind(most).push(") counted");
    Ok(query.build_query_scalar().fetch_one(connection).await?)
}

fn restrict(query: &mut QueryBuilder<Postgres>, filter: &PermitFilter, today: NaiveDate) -> Conditions {
    let mut conditions = Conditions::default();
    for word in &filter.words {
        conditions.and(query).push(SEARCHED);
        // In small letters as the database sees them, as the text was written.
        query.push(" LIKE lower(").push_bind(containing(word)).push(")");
    }
    if let Some(key) = &filter.number_key {
        conditions.and(query).push("p.number_key = ").push_bind(key.clone());
    }
    if let Some(code) = &filter.permit_type {
        conditions.and(query).push("p.permit_type = ").push_bind(code.clone());
    }
    if let Some(status) = filter.status {
        conditions.and(query).push("p.status = ").push_bind(status.as_str());
        if status != PermitStatus::Active {
            // Says of any plan, even one for all values, that the small index of these serves.
            conditions.and(query).push("p.status <> 'active'");
        }
    }
    if let Some(from) = filter.expires_from {
        conditions.and(query).push("p.expires_on >= ").push_bind(from);
    }
    if let Some(to) = filter.expires_to {
        conditions.and(query).push("p.expires_on <= ").push_bind(to);
    }
    if let Some(since) = filter.updated_since {
        conditions.and(query).push("p.updated_at >= ").push_bind(since);
    }
    if let Some(archived) = filter.archived {
        conditions.and(query).push(if archived { "p.archived_at IS NOT NULL" } else { "p.archived_at IS NULL" });
    }
    if let Some(phase) = filter.phase {
        restrict_phase(&mut conditions, query, phase, today);
    }
    conditions
}

/// The same as [`Life::phase`], in SQL.
fn restrict_phase(conditions: &mut Conditions, query: &mut QueryBuilder<Postgres>, phase: Phase, today: NaiveDate) {
    let begun = "EXISTS (SELECT FROM terms f WHERE f.permit_id = p.id AND f.number = 1 AND f.effective_on > ";
    conditions.and(query);
    if phase != Phase::NotYetEffective {
        query.push("NOT ");
    }
    query.push(begun).push_bind(today).push(")");
    let due = "EXISTS (SELECT FROM schedule_steps s WHERE s.permit_type = p.permit_type AND s.enabled
                         AND p.expires_on + s.offset_days <= ";
    match phase {
        Phase::NotYetEffective => {}
        Phase::Active | Phase::Expiring => {
            conditions.and(query).push("p.expires_on >= ").push_bind(today);
            conditions.and(query).push(if phase == Phase::Active { "NOT " } else { "" });
            query.push(due).push_bind(today).push(")");
        }
        Phase::Grace => {
            conditions.and(query).push("p.expires_on < ").push_bind(today);
            conditions.and(query).push("p.expires_on + t.grace_days >= ").push_bind(today);
        }
        Phase::Expired => {
            conditions.and(query).push("p.expires_on < ").push_bind(today);
            conditions.and(query).push("p.expires_on + t.grace_days < ").push_bind(today);
        }
    }
}

fn from_row(row: &PgRow) -> Result<PermitRow> {
    let Json(contacts): Json<Vec<ContactRow>> = row.try_get("contacts")?;
    let status: String = row.try_get("status")?;
    Ok(PermitRow {
        id: row.try_get("id")?,
        permit_number: row.try_get("permit_number")?,
        permit_type: row.try_get("permit_type")?,
        type_name: row.try_get("type_name")?,
        status: status.parse()?,
        holder_name: row.try_get("holder_name")?,
        holder_email: row.try_get("holder_email")?,
        holder_language: row.try_get("holder_language")?,
        contacts,
        site_address: row.try_get("site_address")?,
        description: row.try_get("description")?,
        issued_on: row.try_get("issued_on")?,
        effective_on: row.try_get("effective_on")?,
        notices_from: row.try_get("notices_from")?,
        notices_paused_until: row.try_get("notices_paused_until")?,
        external_id: row.try_get("external_id")?,
        custom: row.try_get("custom")?,
        version: row.try_get("version")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
        archived_at: row.try_get("archived_at")?,
        life: Life {
            first_effective_on: row.try_get("first_effective_on")?,
            expires_on: row.try_get("expires_on")?,
            first_step: row.try_get("first_step")?,
            grace_days: row.try_get("grace_days")?,
        },
        read_at: row.try_get("read_at")?,
    })
}
