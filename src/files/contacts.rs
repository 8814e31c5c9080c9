//! All contacts of a permit in one cell, as our own export writes them and an import reads them: a list in JSON.

use serde::{Deserialize, Serialize};

use super::reading::CELL_CHARS_MAX;
use super::term::{CONTACT, Contact};
use super::values::some;
use crate::domain::text;
use crate::store::lists::permits::ContactRow;

/// Most contacts of a permit, as everywhere.
pub(super) const CONTACTS_MAX: usize = 20;

/// One contact in a cell.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    name: String,
    email: Option<String>,
    #[serde(default)]
    role: String,
    language: Option<String>,
}

/// The cell; empty for nobody.
pub(super) fn write(contacts: &[ContactRow]) -> String {
    if contacts.is_empty() {
        return String::new();
    }
    let listed = contacts.iter().cloned().map(|contact| Listed {
        name: contact.name,
        email: contact.email,
        role: contact.role,
        language: Some(contact.language),
    });
    serde_json::to_string(&listed.collect::<Vec<_>>()).unwrap_or_default()
}

/// The contacts in a cell that is not empty, or what is wrong with it.
pub(super) fn parse(cell: &str) -> Result<Vec<Contact>, String> {
    let form = "a list of contacts is written as an export has it: [{\"name\", \"email\", \"role\", \"language\"}]";
    let listed: Vec<Listed> = serde_json::from_str(cell).map_err(|_| form.to_owned())?;
    if listed.len() > CONTACTS_MAX {
        return Err(format!("a permit has at most {CONTACTS_MAX} contacts"));
    }
    listed.into_iter().map(contact).collect()
}

fn contact(listed: Listed) -> Result<Contact, String> {
    let email = listed.email.map(|email| email.parse().map_err(|error| format!("{email}: {error}")));
    let email = email.transpose()?;
    if [&listed.name, &listed.role].into_iter().any(|text| text.chars().count() > CELL_CHARS_MAX) {
        return Err(format!("the name and the role of a contact have at most {CELL_CHARS_MAX} characters"));
    }
    let name = text::one_line(&listed.name);
    if name.is_empty() && email.is_none() {
        return Err("a contact has a name or an address".to_owned());
    }
    if let Some(tag) = listed.language.as_deref().filter(|tag| !text::is_language(tag)) {
        return Err(format!("{tag:?} is no language tag, such as en or pt-BR"));
    }
    let role = some(text::one_line(&listed.role)).unwrap_or_else(|| CONTACT.to_owned());
    Ok(Contact { name, email, role, language: listed.language, from_holder: false })
}
