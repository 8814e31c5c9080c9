//! Whether a value fits a schema of the description, by the keywords that the description uses and no others.

use chrono::{DateTime, NaiveDate};
use serde_json::Value;
use uuid::Uuid;

/// Keywords that say nothing of what fits.
const WORDS_ONLY: [&str; 5] = ["description", "example", "default", "readOnly", "title"];

/// Everything that does not fit, each as a sentence. A field that is not described does not fit, unless the schema
/// describes none.
pub fn faults(schemas: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schemas, schema, value, "", &mut found);
    found
}

/// The schema itself, where it is only referred to.
pub fn resolve<'d>(schemas: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            let name = reference.strip_prefix("#/components/schemas/").expect("a schema of the document");
            let schema = &schemas[name];
            assert!(schema.is_object(), "{name} is not described");
            schema
        }
        None => schema,
    }
}

fn check(schemas: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let schema = resolve(schemas, schema);
    for (keyword, wanted) in schema.as_object().expect("a schema") {
        let fits = match keyword.as_str() {
            "oneOf" => {
                let choices = wanted.as_array().unwrap().iter();
                choices.filter(|choice| faults(schemas, choice, value).is_empty()).count() == 1
            }
            "type" => wanted
                .as_array()
                .map_or_else(|| is_type(wanted, value), |types| types.iter().any(|one| is_type(one, value))),
            "enum" => wanted.as_array().unwrap().contains(value),
            "format" => value.is_null() || has_format(wanted.as_str().unwrap(), value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minLength" => length(value).is_none_or(|length| length >= wanted.as_u64().unwrap()),
            "maxLength" => length(value).is_none_or(|length| length <= wanted.as_u64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| matches(wanted.as_str().unwrap(), text)),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(schemas, wanted, item, &format!("{at}/{place}"), found);
                }
                true
            }
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    match wanted.get(name) {
                        Some(schema) => check(schemas, schema, field, &format!("{at}/{name}"), found),
                        None => found.push(format!("{at}/{name} is not described")),
                    }
                }
                true
            }
            "required" => {
                let names = wanted.as_array().unwrap().iter().filter_map(Value::as_str);
                for name in names.filter(|name| value.is_object() && value.get(name).is_none()) {
                    found.push(format!("{at}/{name} is missing"));
                }
                true
            }
            // Fields that are not described are looked for with `properties`.
            "additionalProperties" => wanted == false,
            word => {
                assert!(WORDS_ONLY.contains(&word), "the keyword {word} is not known here: {schema}");
                true
            }
        };
        if !fits {
            found.push(format!("{at}: {value} does not fit {keyword} {wanted}"));
        }
    }
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the type {other} is not known here"),
    }
}

fn has_format(name: &str, value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    match name {
        "uuid" => Uuid::try_parse(text).is_ok(),
        "date" => text.parse::<NaiveDate>().is_ok_and(|date| date.to_string() == text),
        "date-time" => DateTime::parse_from_rfc3339(text).is_ok() && text.ends_with('Z'),
        "int32" => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        "int64" => value.is_i64() || value.is_u64(),
        other => panic!("the format {other} is not known here"),
    }
}

/// The description has few patterns, and this knows them.
fn matches(pattern: &str, text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match pattern {
        "^[a-z0-9-]{1,40}$" => (1..=40).contains(&text.len()) && text.bytes().all(is_plain),
        other => panic!("the pattern {other} is not known here"),
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}
