//! The fields of a permit, by the names of the API, as every export but the public one has them.

use chrono::NaiveDate;
use serde_json::{Map, Value, json};

use super::xlsx::Cell;
use crate::files::contacts;
use crate::files::formula::guard;
use crate::store::lists::permits::PermitRow;

/// The names, in order.
pub(super) const HEADER: [&str; 22] = [
    "id",
    "permit_number",
    "permit_type",
    "status",
    "phase",
    "holder_name",
    "holder_email",
    "holder_language",
    "contacts",
    "site_address",
    "description",
    "issued_on",
    "effective_on",
    "expires_on",
    "notices_from",
    "notices_paused_until",
    "external_id",
    "custom",
    "version",
    "created_at",
    "updated_at",
    "archived_at",
];

/// Those that are days.
const DAYS: [&str; 5] = ["issued_on", "effective_on", "expires_on", "notices_from", "notices_paused_until"];

/// The values on `today`, in the order of [`HEADER`].
fn values(row: &PermitRow, today: NaiveDate) -> [Value; 22] {
    let contacts = row.contacts.iter();
    let contacts =
        contacts.map(|one| json!({ "name": one.name, "email": one.email, "role": one.role, "language": one.language }));
    [
        json!(row.id),
        json!(row.permit_number),
        json!(row.permit_type),
        json!(row.status),
        json!(row.life.phase(today)),
        json!(row.holder_name),
        json!(row.holder_email),
        json!(row.holder_language),
        contacts.collect(),
        json!(row.site_address),
        json!(row.description),
        json!(row.issued_on),
        json!(row.effective_on),
        json!(row.life.expires_on),
        json!(row.notices_from),
        json!(row.notices_paused_until),
        json!(row.external_id),
        row.custom.clone(),
        json!(row.version),
        json!(row.created_at),
        json!(row.updated_at),
        json!(row.archived_at),
    ]
}

/// The values, each with its name.
fn named(row: &PermitRow, today: NaiveDate) -> impl Iterator<Item = (&'static str, Value)> {
    HEADER.into_iter().zip(values(row, today))
}

/// An object of JSON.
pub(super) fn object(row: &PermitRow, today: NaiveDate) -> Value {
    let fields = named(row, today).map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// A row of csv.
pub(super) fn texts(row: &PermitRow, today: NaiveDate) -> Vec<String> {
    named(row, today).map(|(name, value)| text(row, name, value)).collect()
}

/// A row of a workbook: days are days, and what looks like a number without being one is text.
pub(super) fn cells(row: &PermitRow, today: NaiveDate) -> Vec<Cell> {
    let cell = |(name, value): (&'static str, Value)| match value {
        Value::Null => Cell::Empty,
        Value::Number(number) if number.is_i64() => Cell::Number(number.as_i64().unwrap_or_default()),
        Value::String(day) if DAYS.contains(&name) => day.parse().map_or(Cell::Text(day), Cell::Day),
        other => match text(row, name, other) {
            text if text.is_empty() => Cell::Empty,
            text => Cell::Text(text),
        },
    };
    named(row, today).map(cell).collect()
}

fn text(row: &PermitRow, name: &str, value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => guard(&text).into_owned(),
        Value::Array(_) if name == "contacts" => contacts::write(&row.contacts),
        other => other.to_string(),
    }
}
