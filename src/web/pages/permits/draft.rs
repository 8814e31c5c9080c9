//! A permit as it stands in the fields of a form, and how it is read from there.

use chrono::NaiveDate;
use serde_json::{Map, Value, json};

use super::super::form::Form;
use super::super::wrongs::{about, renamed};
use crate::store::lists::permits::{ContactRow, PermitRow};
use crate::web::api::problem::Problem;

/// Fields of one line, as the form and the API name them, and as people do.
const FIELDS: [(&str, &str); 16] = [
    ("permit_number", "Permit number"),
    ("permit_type", "Permit type"),
    ("status", "Status"),
    ("holder_name", "Holder"),
    ("holder_email", "Email address of the holder"),
    ("holder_language", "Language of the holder"),
    ("site_address", "Site"),
    ("description", "Description"),
    ("issued_on", "Issued on"),
    ("effective_on", "Effective on"),
    ("expires_on", "Last valid day"),
    ("notices_from", "Notices from"),
    ("notices_paused_until", "Notices paused until"),
    ("external_id", "Id in another system"),
    ("contacts", "Contacts"),
    ("reason", "Reason"),
];

/// What people call a field.
pub fn name_of(field: &str) -> &str {
    FIELDS.iter().find(|(known, _)| *known == field).map_or(field, |(_, name)| name)
}

/// What stands in the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    pub permit_number: String,
    pub permit_type: String,
    pub status: String,
    pub holder_name: String,
    pub holder_email: String,
    pub holder_language: String,
    pub site_address: String,
    pub description: String,
    pub issued_on: String,
    pub effective_on: String,
    pub expires_on: String,
    pub notices_from: String,
    pub notices_paused_until: String,
    pub external_id: String,
    pub contacts: Vec<ContactDraft>,
}

/// What stands in the fields of a contact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContactDraft {
    pub name: String,
    pub email: String,
    pub role: String,
    pub language: String,
}

impl ContactDraft {
    fn is_empty(&self) -> bool {
        [&self.name, &self.email, &self.role, &self.language].iter().all(|field| field.is_empty())
    }

    fn of(row: &ContactRow) -> Self {
        Self {
            name: row.name.clone(),
            email: row.email.clone().unwrap_or_default(),
            role: row.role.clone(),
            language: row.language.clone(),
        }
    }
}

fn day(day: Option<NaiveDate>) -> String {
    day.map(|day| day.to_string()).unwrap_or_default()
}

impl Draft {
    /// What the form sent.
    pub fn of_form(form: &Form) -> Self {
        let text = |name: &str| form.text(name).to_owned();
        let column = |name: &str| form.all(name).map(|value| value.trim().to_owned()).collect::<Vec<_>>();
        let (names, emails) = (column("contact_name"), column("contact_email"));
        let (roles, languages) = (column("contact_role"), column("contact_language"));
        let at = |column: &Vec<String>, place: usize| column.get(place).cloned().unwrap_or_default();
        let contacts = (0..names.len().max(emails.len())).map(|place| ContactDraft {
            name: at(&names, place),
            email: at(&emails, place),
            role: at(&roles, place),
            language: at(&languages, place),
        });
        Self {
            permit_number: text("permit_number"),
            permit_type: text("permit_type"),
            status: text("status"),
            holder_name: text("holder_name"),
            holder_email: text("holder_email"),
            holder_language: text("holder_language"),
            site_address: text("site_address"),
            description: text("description"),
            issued_on: text("issued_on"),
            effective_on: text("effective_on"),
            expires_on: text("expires_on"),
            notices_from: text("notices_from"),
            notices_paused_until: text("notices_paused_until"),
            external_id: text("external_id"),
            contacts: contacts.filter(|contact| !contact.is_empty()).collect(),
        }
    }

    /// What is there now.
    pub fn of_row(row: &PermitRow) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            permit_number: row.permit_number.clone(),
            permit_type: row.permit_type.clone(),
            status: row.status.to_string(),
            holder_name: row.holder_name.clone(),
            holder_email: text(&row.holder_email),
            holder_language: row.holder_language.clone(),
            site_address: text(&row.site_address),
            description: text(&row.description),
            issued_on: day(row.issued_on),
            effective_on: day(row.effective_on),
            expires_on: row.life.expires_on.to_string(),
            notices_from: day(row.notices_from),
            notices_paused_until: day(row.notices_paused_until),
            external_id: text(&row.external_id),
            contacts: row.contacts.iter().map(ContactDraft::of).collect(),
        }
    }

    /// Fields of one line with what stands in them, in the order of the form.
    fn lines(&self) -> [(&'static str, &str); 14] {
        [
            ("permit_number", &self.permit_number),
            ("permit_type", &self.permit_type),
            ("status", &self.status),
            ("holder_name", &self.holder_name),
            ("holder_email", &self.holder_email),
            ("holder_language", &self.holder_language),
            ("site_address", &self.site_address),
            ("description", &self.description),
            ("issued_on", &self.issued_on),
            ("effective_on", &self.effective_on),
            ("expires_on", &self.expires_on),
            ("notices_from", &self.notices_from),
            ("notices_paused_until", &self.notices_paused_until),
            ("external_id", &self.external_id),
        ]
    }

    /// The same as a body of the API; a field that is empty is not there. `custom` is kept as it is.
    pub fn body(&self, custom: Option<Value>) -> Value {
        let line = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        let mut body: Map<String, Value> =
            self.lines().into_iter().map(|(name, text)| (name.to_owned(), line(text))).collect();
        let contacts = self.contacts.iter().map(|contact| {
            json!({
                "name": line(&contact.name), "email": line(&contact.email),
                "role": line(&contact.role), "language": line(&contact.language),
            })
        });
        body.insert("contacts".to_owned(), contacts.collect());
        body.extend(custom.map(|custom| ("custom".to_owned(), custom)));
        Value::Object(body)
    }

    /// Where this draft and another one differ: name of the field, here, there.
    pub fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let lines = self.lines().into_iter().zip(other.lines());
        let mut found: Vec<_> = lines
            .filter(|((_, here), (_, there))| here != there)
            .map(|((name, here), (_, there))| (name_of(name), here.to_owned(), there.to_owned()))
            .collect();
        if self.contacts != other.contacts {
            found.push((name_of("contacts"), in_words(&self.contacts), in_words(&other.contacts)));
        }
        found
    }
}

fn in_words(contacts: &[ContactDraft]) -> String {
    let one = |contact: &ContactDraft| format!("{} {} ({})", contact.name, contact.email, contact.role);
    contacts.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A sentence of the API in the words of the page. A name of one word is a word of any sentence.
fn in_names_of_the_page(detail: &str) -> String {
    renamed(detail, &FIELDS.into_iter().filter(|(field, _)| field.contains('_')).collect::<Vec<_>>())
}

/// What is wrong with single fields: name of the field in the form, and a sentence.
pub fn errors_of(problem: &Problem) -> Vec<(String, String)> {
    let errors = problem.errors().iter().map(|error| {
        let pointer = error.pointer.trim_start_matches('/');
        let detail = in_names_of_the_page(&error.detail);
        match pointer.strip_prefix("contacts/").and_then(|rest| rest.split_once('/')) {
            Some((place, field)) => {
                let number = place.parse::<usize>().map_or(1, |place| place + 1);
                (format!("contact-{number}-{field}"), about(&format!("Contact {number}, {field}"), &detail))
            }
            None => (pointer.to_owned(), about(name_of(pointer), &detail)),
        }
    });
    errors.collect()
}
