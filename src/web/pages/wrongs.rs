//! What is wrong with a form, beside its fields: the same that the API says about a body.

use serde_json::Value;

use super::form::Form;
use crate::web::api::problem::{Kind, Problem};

/// Names of fields, and a sentence about each.
pub type Wrongs = Vec<(String, String)>;

/// The sentences about single fields; a problem of another sort is given back. `label` says what people call the field
/// that a pointer names.
pub fn wrongs_of(problem: Problem, label: impl Fn(&str) -> String) -> Result<Wrongs, Problem> {
    if problem.kind() != Kind::ValidationFailed {
        return Err(problem);
    }
    let wrongs = problem.errors().iter().map(|error| {
        let field = error.pointer.trim_start_matches('/');
        (field.to_owned(), about(&label(field), &error.detail))
    });
    Ok(wrongs.collect())
}

/// A sentence about a field: `is needed` goes on after its name, what is whole by itself stands behind a colon.
pub fn about(label: &str, detail: &str) -> String {
    let goes_on = ["is ", "must ", "has ", "cannot "].iter().any(|verb| detail.starts_with(verb));
    let joint = if goes_on { "" } else { ":" };
    format!("{label}{joint} {}.", detail.trim_end_matches('.'))
}

/// The fields of an import whose names nobody would write so.
const INTERNAL: [&str; 13] = [
    "permit_number",
    "permit_type",
    "holder_name",
    "holder_email",
    "holder_language",
    "site_address",
    "issued_on",
    "effective_on",
    "expires_on",
    "external_id",
    "contact_email",
    "contact_name",
    "contact_role",
];

/// A sentence of a command with the names that pages give to fields. What it quotes stays as it is.
pub fn with_labels(sentence: &str) -> String {
    renamed(sentence, &INTERNAL.map(|field| (field, plain(field))))
}

/// A sentence in which each of these fields is called by the name beside it. What it quotes stays as it is.
pub fn renamed<N: AsRef<str>>(sentence: &str, names: &[(&str, N)]) -> String {
    let pieces = sentence.split('"').enumerate().map(|(place, piece)| {
        if place % 2 == 1 {
            return piece.to_owned();
        }
        names.iter().fold(piece.to_owned(), |piece, (field, name)| piece.replace(field, name.as_ref()))
    });
    pieces.collect::<Vec<_>>().join("\"")
}

/// A field's name for people: `expires_on` is "Expires on".
pub fn plain(field: &str) -> String {
    let text = field.replace(['_', '-'], " ");
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// What a field says, as the API takes it: nothing if it was left empty.
pub fn given(form: &Form, name: &str) -> Value {
    match form.text(name) {
        "" => Value::Null,
        text => text.into(),
    }
}

/// A sentence that begins as one and ends as one.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}
