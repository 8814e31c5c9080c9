//! Permits as they are shown.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::shapes::words;
use crate::domain::permit::PermitStatus;
use crate::domain::phase::Phase;
use crate::store::history::{PermitAction, PermitChange};
use crate::store::lists::permits::{ContactRow, PermitRow};
use crate::store::permits::Term;

/// A permit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Permit)]
pub struct PermitView {
    pub id: Uuid,
    /// Unique without regard to case and spaces, archived permits included.
    #[schema(example = "FOOD-0042")]
    pub permit_number: String,
    /// Code of the type.
    #[schema(example = "food")]
    pub permit_type: String,
    /// What people decided; only an active permit is sent notices.
    #[schema(schema_with = words::<PermitStatus>)]
    pub status: PermitStatus,
    /// Follows from the dates.
    #[schema(schema_with = words::<Phase>)]
    pub phase: Phase,
    #[schema(example = "Ada Holder")]
    pub holder_name: String,
    #[schema(example = "ada@example.org")]
    pub holder_email: Option<String>,
    /// BCP 47 tag.
    #[schema(example = "en")]
    pub holder_language: String,
    /// Others who get copies.
    pub contacts: Vec<ContactView>,
    pub site_address: Option<String>,
    pub description: Option<String>,
    pub issued_on: Option<NaiveDate>,
    /// First day of the present term.
    pub effective_on: Option<NaiveDate>,
    /// Last valid day.
    #[schema(example = "2030-06-30")]
    pub expires_on: NaiveDate,
    /// Steps due before this day are not owed.
    pub notices_from: Option<NaiveDate>,
    /// Last day of a pause of notices.
    pub notices_paused_until: Option<NaiveDate>,
    /// Id in another system.
    pub external_id: Option<String>,
    /// Whatever else the caller keeps with the permit.
    #[schema(value_type = Object)]
    pub custom: Value,
    /// Raised by every change; the `ETag`.
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Since when it is put away; null if it is not.
    pub archived_at: Option<DateTime<Utc>>,
}

/// Somebody besides the holder who gets copies.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Contact)]
pub struct ContactView {
    pub name: String,
    pub email: Option<String>,
    #[schema(example = "contact")]
    pub role: String,
    #[schema(example = "en")]
    pub language: String,
}

/// Fields that only we write.
pub const READ_ONLY: [&str; 6] = ["id", "phase", "version", "created_at", "updated_at", "archived_at"];

impl PermitView {
    /// The permit as it is on `today`.
    pub fn of(row: PermitRow, today: NaiveDate) -> Self {
        Self {
            id: row.id,
            permit_number: row.permit_number,
            permit_type: row.permit_type,
            status: row.status,
            phase: row.life.phase(today),
            holder_name: row.holder_name,
            holder_email: row.holder_email,
            holder_language: row.holder_language,
            contacts: row.contacts.into_iter().map(ContactView::of).collect(),
            site_address: row.site_address,
            description: row.description,
            issued_on: row.issued_on,
            effective_on: row.effective_on,
            expires_on: row.life.expires_on,
            notices_from: row.notices_from,
            notices_paused_until: row.notices_paused_until,
            external_id: row.external_id,
            custom: row.custom,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
            archived_at: row.archived_at,
        }
    }
}

impl ContactView {
    fn of(row: ContactRow) -> Self {
        Self { name: row.name, email: row.email, role: row.role, language: row.language }
    }
}

/// One validity period.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Term)]
pub struct TermView {
    /// Count within the permit, from 1; the greatest is the present term.
    pub number: i32,
    pub issued_on: Option<NaiveDate>,
    pub effective_on: Option<NaiveDate>,
    pub expires_on: NaiveDate,
}

impl From<Term> for TermView {
    fn from(term: Term) -> Self {
        let Term { number, issued_on, effective_on, expires_on } = term;
        Self { number, issued_on, effective_on, expires_on }
    }
}

/// One change of a permit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PermitChange)]
pub struct ChangeView {
    /// The version that it made.
    pub version: i64,
    #[schema(schema_with = words::<PermitAction>)]
    pub action: PermitAction,
    pub at: DateTime<Utc>,
    /// Who did it, such as `token:portal`.
    pub by: String,
    /// The import that did it, if one did.
    pub import_id: Option<Uuid>,
    /// Each field that changed, with `from` and `to`.
    #[schema(value_type = Object)]
    pub changes: Map<String, Value>,
}

impl From<PermitChange> for ChangeView {
    fn from(change: PermitChange) -> Self {
        let PermitChange { version, action, at, by, import_id, before, after } = change;
        let changes = before.zip(after).map(|(before, after)| differences(&before, &after)).unwrap_or_default();
        Self { version, action, at, by, import_id, changes }
    }
}

/// Each field that differs, with `from` and `to`.
pub fn differences(before: &Value, after: &Value) -> Map<String, Value> {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return Map::new() };
    let names = after.keys().filter(|name| before.get(*name) != after.get(*name));
    names
        .map(|name| {
            let change = serde_json::json!({ "from": before.get(name), "to": after.get(name) });
            (name.clone(), change)
        })
        .collect()
}
