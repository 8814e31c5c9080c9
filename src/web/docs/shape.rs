//! Schemas of the description in words.

use serde_json::Value;

use super::super::api::description::component;
use super::prose::Prose;

/// What a value is: `list of Contact or null`.
pub struct Shape {
    pub before: &'static str,
    /// A word for it, or the name of the schema that describes it.
    pub name: String,
    /// `name` is that of a schema.
    pub is_schema: bool,
    pub after: &'static str,
}

/// One field of an object.
pub struct Field<'d> {
    pub name: &'d str,
    pub shape: Shape,
    pub is_required: bool,
    pub is_read_only: bool,
    pub text: Prose<'d>,
    pub limits: Vec<Limit>,
}

/// What is allowed besides.
pub struct Limit {
    pub word: &'static str,
    pub value: String,
}

impl Shape {
    /// Name of the schema that describes it.
    pub fn schema(&self) -> Option<&str> {
        self.is_schema.then_some(self.name.as_str())
    }

    pub fn of(schema: &Value) -> Self {
        if let Some(name) = component(schema) {
            return Self { before: "", name, is_schema: true, after: "" };
        }
        let choices = schema["oneOf"].as_array().into_iter().flatten();
        let is_nullable = choices.clone().any(|choice| choice["type"] == "null")
            || schema["type"].as_array().is_some_and(|types| types.contains(&"null".into()));
        let after = if is_nullable { " or null" } else { "" };
        if let Some(choice) = choices.into_iter().find(|choice| choice["type"] != "null") {
            return Self { after, ..Self::of(choice) };
        }
        let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
        let name = types.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("anything");
        if name == "array" {
            let items = Self::of(&schema["items"]);
            return Self { before: "list of ", after, ..items };
        }
        let name = match (name, schema["format"].as_str()) {
            ("string", Some("date-time")) => "instant",
            ("string", Some("uuid")) => "UUID",
            ("string", Some(format)) => format,
            (name, _) => name,
        };
        Self { before: "", name: name.to_owned(), is_schema: false, after }
    }
}

/// The fields of an object, those that are needed first.
pub fn fields(schema: &Value) -> Vec<Field<'_>> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut fields: Vec<Field<'_>> = properties
        .map(|(name, schema)| Field {
            name,
            shape: Shape::of(schema),
            is_required: required.contains(&name.as_str()),
            is_read_only: schema["readOnly"] == true,
            text: Prose::of(schema["description"].as_str().unwrap_or_default()),
            limits: limits(schema),
        })
        .collect();
    fields.sort_by_key(|field| (!field.is_required, field.is_read_only));
    fields
}

/// What is said of a value besides its type.
pub fn limits(schema: &Value) -> Vec<Limit> {
    let words: Vec<String> = schema["enum"].as_array().into_iter().flatten().filter_map(plain).collect();
    let list = (!words.is_empty()).then(|| Limit { word: "one of", value: words.join(", ") });
    let words = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("maxItems", "entries at most"),
        ("pattern", "matches"),
        ("default", "unless given"),
        ("example", "such as"),
    ];
    let limits = words.into_iter().filter_map(|(key, word)| Some(Limit { word, value: plain(schema.get(key)?)? }));
    list.into_iter().chain(limits).collect()
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
