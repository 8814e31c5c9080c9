//! What differs between what something was and what it became, field by field.

use std::collections::BTreeMap;

use serde_json::Value;

/// Longest value that is shown, in characters.
const SHOWN: usize = 500;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name, for people.
    pub field: String,
    /// What it was.
    pub before: Option<String>,
    /// What it is.
    pub after: Option<String>,
}

/// The fields that differ, by name; all of them where there was nothing before or is nothing after.
pub fn differences(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    let (mut before, mut after) = (fields(before), fields(after));
    let mut names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    names.sort();
    names.dedup();
    let differ = names.into_iter().map(|field| {
        let (before, after) = (before.remove(&field), after.remove(&field));
        Difference { field: field.replace('_', " "), before, after }
    });
    differ.filter(|one| one.before != one.after).collect()
}

fn fields(value: Option<&Value>) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    if let Some(value) = value {
        flatten("", value, &mut fields);
    }
    fields
}

/// Fields of objects inside are named after both. What is null or empty is not there.
fn flatten(name: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    if let Value::Object(object) = value {
        for (inner, value) in object {
            let name = if name.is_empty() { inner.clone() } else { format!("{name}: {inner}") };
            flatten(&name, value, fields);
        }
        return;
    }
    let text = in_words(value);
    if !text.is_empty() {
        let text =
            if text.chars().count() > SHOWN { text.chars().take(SHOWN - 1).chain(['…']).collect() } else { text };
        fields.insert(name.to_owned(), text);
    }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => joined(items.iter(), "; "),
        Value::Object(object) => joined(object.values(), ", "),
    }
}

fn joined<'v>(values: impl Iterator<Item = &'v Value>, between: &str) -> String {
    values.map(in_words).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(between)
}
