//! Permits as callers write them.

use chrono::NaiveDate;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::super::fields::{
    self, Fault, Fields, TEXT_MAX, custom, date, language, line, line_or_nothing, lines, parsed,
};
use super::super::problem::Problem;
use super::super::shapes::words_or_null;
use super::view::READ_ONLY;
use crate::domain::permit::PermitStatus;
use crate::store::PgConnection;
use crate::store::permit_types::find_permit_type;
use crate::store::permits::{Contact, PermitData};

/// Most contacts of a permit.
const CONTACTS_MAX: usize = 20;
/// The role of a contact of which nothing else is said.
const CONTACT: &str = "contact";
/// The language of whoever none is known.
const ENGLISH: &str = "en";

// Only described here: `read` reads it.
/// What can be written of a permit.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({
    "permit_number": "FOOD-0042", "permit_type": "food", "holder_name": "Ada Holder", "holder_email": "ada@example.org",
    "contacts": [{ "name": "Bo Agent", "email": "bo@example.org", "role": "agent" }], "expires_on": "2030-06-30",
}))]
pub struct PermitWrite {
    /// 1 to 100 characters; unique without regard to case and spaces.
    #[schema(min_length = 1, max_length = 100, example = "FOOD-0042")]
    permit_number: String,
    /// Code or name of the type.
    #[schema(min_length = 1, example = "food")]
    permit_type: String,
    /// Active unless given.
    #[schema(schema_with = words_or_null::<PermitStatus>)]
    status: Option<PermitStatus>,
    #[schema(min_length = 1, max_length = 10000, example = "Ada Holder")]
    holder_name: String,
    #[schema(max_length = 254, example = "ada@example.org")]
    holder_email: Option<String>,
    /// BCP 47 tag; `en` unless given.
    #[schema(max_length = 35, example = "en")]
    holder_language: Option<String>,
    /// At most 20.
    #[schema(max_items = 20)]
    contacts: Option<Vec<ContactWrite>>,
    #[schema(max_length = 10000)]
    site_address: Option<String>,
    #[schema(max_length = 10000)]
    description: Option<String>,
    /// Not after `expires_on`.
    issued_on: Option<NaiveDate>,
    /// First day of the term; not after `expires_on`.
    effective_on: Option<NaiveDate>,
    /// Last valid day.
    #[schema(example = "2030-06-30")]
    expires_on: NaiveDate,
    /// Steps due before this day are not owed.
    notices_from: Option<NaiveDate>,
    /// Last day of a pause of notices.
    notices_paused_until: Option<NaiveDate>,
    /// Id in another system.
    #[schema(max_length = 10000)]
    external_id: Option<String>,
    /// At most 16 KiB.
    #[schema(value_type = Option<Object>)]
    custom: Option<Value>,
}

/// Somebody besides the holder; a name or an address is needed.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
pub struct ContactWrite {
    #[schema(max_length = 10000, example = "Bo Agent")]
    name: Option<String>,
    #[schema(max_length = 254, example = "bo@example.org")]
    email: Option<String>,
    /// `contact` unless given.
    #[schema(max_length = 10000)]
    role: Option<String>,
    /// BCP 47 tag; `en` unless given.
    #[schema(max_length = 35)]
    language: Option<String>,
}

/// Reads a whole permit. `present`: what it is now, if it exists; a caller may send back what only we write.
pub async fn read(connection: &mut PgConnection, body: Value, present: Option<&Value>) -> Result<PermitData, Problem> {
    // Looked up before the rest is read, so that a type that nobody knows is named with everything else.
    let named = body.get("permit_type").and_then(|name| line(TEXT_MAX)(name).ok());
    let known = match named {
        Some(name) => find_permit_type(connection, &name).await?,
        None => None,
    };
    fields::read_object(body, |fields| permit(fields, known.as_deref(), present))
}

/// The code of the type that was looked up.
fn permit_type(known: Option<&str>) -> impl Fn(&Value) -> Result<String, Fault> {
    move |value| {
        let name = line(TEXT_MAX)(value)?;
        let unknown = || ("unknown_permit_type", format!("there is no permit type with the code or name {name:?}"));
        known.map(str::to_owned).ok_or_else(unknown)
    }
}

fn permit(fields: &mut Fields<'_>, known_type: Option<&str>, present: Option<&Value>) -> Option<PermitData> {
    for name in READ_ONLY {
        // The phase follows from the day on which it was read.
        if name == "phase" && present.is_some() {
            fields.ignore(name);
        } else {
            fields.read_only(name, present.and_then(|present| present.get(name)));
        }
    }
    let permit_number = fields.required("permit_number", parsed("malformed_number"));
    let permit_type = fields.required("permit_type", permit_type(known_type));
    let status = fields.optional("status", parsed("not_allowed"));
    let holder_name = fields.required("holder_name", line(TEXT_MAX));
    let holder_email = fields.optional("holder_email", parsed("malformed_address"));
    let holder_language = fields.optional("holder_language", language);
    let contacts = fields.list("contacts", CONTACTS_MAX, contact);
    let site_address = fields.optional("site_address", line_or_nothing(TEXT_MAX)).flatten();
    let description = fields.optional("description", lines(TEXT_MAX)).flatten();
    let issued_on = fields.optional("issued_on", date);
    let effective_on = fields.optional("effective_on", date);
    let expires_on = fields.required("expires_on", date);
    let notices_from = fields.optional("notices_from", date);
    let notices_paused_until = fields.optional("notices_paused_until", date);
    let external_id = fields.optional("external_id", line_or_nothing(TEXT_MAX)).flatten();
    let custom = fields.optional("custom", custom).unwrap_or_else(|| json!({}));
    for (name, day) in [("effective_on", effective_on), ("issued_on", issued_on)] {
        if let (Some(day), Some(last)) = (day, expires_on)
            && day > last
        {
            fields.refuse(name, ("after_expiry", format!("must not be after expires_on ({last})")));
        }
    }
    Some(PermitData {
        permit_number: permit_number?,
        permit_type: permit_type?,
        status: status.unwrap_or(PermitStatus::Active),
        holder_name: holder_name?,
        holder_email,
        holder_language: holder_language.unwrap_or_else(|| ENGLISH.to_owned()),
        contacts,
        site_address,
        description,
        issued_on,
        effective_on,
        expires_on: expires_on?,
        notices_from,
        notices_paused_until,
        external_id,
        custom,
    })
}

#[expect(clippy::unnecessary_wraps, reason = "what reads an entry of a list says whether it could")]
fn contact(fields: &mut Fields<'_>) -> Option<Contact> {
    let name = fields.optional("name", line_or_nothing(TEXT_MAX)).flatten();
    let email = fields.optional("email", parsed("malformed_address"));
    let role = fields.optional("role", line_or_nothing(TEXT_MAX)).flatten();
    let language = fields.optional("language", language);
    if name.is_none() && email.is_none() {
        fields.refuse("name", ("required", "a name or an email is needed".to_owned()));
    }
    Some(Contact {
        name: name.unwrap_or_default(),
        email,
        role: role.unwrap_or_else(|| CONTACT.to_owned()),
        language: language.unwrap_or_else(|| ENGLISH.to_owned()),
    })
}

/// `patch` merged into `present` as RFC 7396 says.
pub fn merge(present: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut merged = match present {
        Value::Object(present) => present,
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            merged.remove(&name);
        } else {
            let before = merged.remove(&name).unwrap_or_default();
            merged.insert(name, merge(before, value));
        }
    }
    Value::Object(merged)
}

// Only described here: `read_renewal` reads it.
/// The new term.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "expires_on": "2031-06-30", "effective_on": "2030-07-01" }))]
pub struct Renewal {
    /// Last valid day of the new term; today or later, and later than the present one.
    #[schema(example = "2031-06-30")]
    expires_on: NaiveDate,
    /// First day of the new term.
    effective_on: Option<NaiveDate>,
}

/// The dates of a renewal: last day, first day.
pub fn read_renewal(body: Value) -> Result<(NaiveDate, Option<NaiveDate>), Problem> {
    fields::read_object(body, |fields| {
        let expires_on = fields.required("expires_on", date);
        let effective_on = fields.optional("effective_on", date);
        if let (Some(first), Some(last)) = (effective_on, expires_on)
            && first > last
        {
            fields.refuse("effective_on", ("after_expiry", format!("must not be after expires_on ({last})")));
        }
        Some((expires_on?, effective_on))
    })
}
