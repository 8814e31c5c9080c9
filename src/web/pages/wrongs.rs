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
        (field.to_owned(), format!("{}: {}.", label(field), error.detail))
    });
    Ok(wrongs.collect())
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
