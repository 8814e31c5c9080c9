//! Reading the fields of a JSON object: everything that is wrong is found at once, and nothing unknown is passed over.

use std::fmt::Display;
use std::str::FromStr;

use chrono::NaiveDate;
use serde_json::{Map, Value};

use super::problem::{FieldError, Problem};
use crate::domain::calendar::is_in_use;
use crate::domain::text;

/// Longest text of a field, in characters; what an import takes too.
pub const TEXT_MAX: usize = 10_000;
/// Largest `custom`, in bytes of JSON.
const CUSTOM_MAX: usize = 16 * 1024;

/// Why a value is not taken: a code for programs, a sentence for people.
pub type Fault = (&'static str, String);

/// An object that is being read.
#[derive(Debug)]
pub struct Fields<'e> {
    /// Pointer to the object.
    at: String,
    object: Map<String, Value>,
    errors: &'e mut Vec<FieldError>,
}

/// Reads `value`, which must be an object, with `read`; says everything that is wrong with it.
pub fn read_object<T>(value: Value, read: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Result<T, Problem> {
    let mut errors = Vec::new();
    let Value::Object(object) = value else {
        return Err(Problem::field("", "type", "must be a JSON object"));
    };
    let mut fields = Fields { at: String::new(), object, errors: &mut errors };
    let found = read(&mut fields);
    fields.refuse_unknown();
    match found {
        Some(found) if errors.is_empty() => Ok(found),
        _ => Err(Problem::fields(errors)),
    }
}

impl Fields<'_> {
    fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, name.replace('~', "~0").replace('/', "~1"))
    }

    /// Says that a field is not right.
    pub fn refuse(&mut self, name: &str, (code, detail): Fault) {
        let error = FieldError::new(self.pointer(name), code, detail);
        self.errors.push(error);
    }

    /// Whether everything was right so far.
    pub fn are_right(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether a field is there and says something.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// A field that may be missing or null.
    pub fn optional<T>(&mut self, name: &str, read: impl FnOnce(&Value) -> Result<T, Fault>) -> Option<T> {
        let value = self.object.remove(name).filter(|value| !value.is_null())?;
        match read(&value) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.refuse(name, fault);
                None
            }
        }
    }

    /// A field that must be there.
    pub fn required<T>(&mut self, name: &str, read: impl FnOnce(&Value) -> Result<T, Fault>) -> Option<T> {
        if self.object.get(name).is_none_or(Value::is_null) {
            self.object.remove(name);
            self.refuse(name, ("required", "is needed".to_owned()));
            return None;
        }
        self.optional(name, read)
    }

    /// A list of objects, at most `max`, each read by `read`. Missing or null is an empty one.
    pub fn list<T>(&mut self, name: &str, max: usize, mut read: impl FnMut(&mut Fields<'_>) -> Option<T>) -> Vec<T> {
        let items = match self.object.remove(name) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) if items.len() <= max => items,
            Some(Value::Array(_)) => {
                self.refuse(name, ("too_many", format!("has at most {max} entries")));
                return Vec::new();
            }
            Some(_) => {
                self.refuse(name, ("type", "must be a list".to_owned()));
                return Vec::new();
            }
        };
        let list = self.pointer(name);
        let mut found = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            let Value::Object(object) = item else {
                self.errors.push(FieldError::new(format!("{list}/{place}"), "type", "must be an object"));
                continue;
            };
            let mut fields = Fields { at: format!("{list}/{place}"), object, errors: self.errors };
            found.extend(read(&mut fields));
            fields.refuse_unknown();
        }
        found
    }

    /// An object of fields, read by `read`, if it is there.
    pub fn object<T>(&mut self, name: &str, read: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Option<T> {
        match self.object.remove(name)? {
            Value::Null => None,
            Value::Object(object) => {
                let mut fields = Fields { at: self.pointer(name), object, errors: self.errors };
                let found = read(&mut fields);
                fields.refuse_unknown();
                found
            }
            _ => {
                self.refuse(name, ("type", "must be an object".to_owned()));
                None
            }
        }
    }

    /// A field that only we write: taken if it says what is so, for a caller may send back what it was given.
    pub fn read_only(&mut self, name: &str, present: Option<&Value>) {
        if let Some(value) = self.object.remove(name)
            && present != Some(&value)
        {
            self.refuse(name, ("read_only", "cannot be written".to_owned()));
        }
    }

    /// Leaves out a field whatever it says.
    pub fn ignore(&mut self, name: &str) {
        self.object.remove(name);
    }

    fn refuse_unknown(&mut self) {
        for name in std::mem::take(&mut self.object).into_iter().map(|(name, _)| name) {
            self.refuse(&name, ("unknown_field", "there is no such field".to_owned()));
        }
    }
}

fn string(value: &Value) -> Result<&str, Fault> {
    value.as_str().ok_or_else(|| ("type", "must be a string".to_owned()))
}

fn not_too_long(text: String, max: usize) -> Result<String, Fault> {
    if text.chars().count() > max {
        return Err(("too_long", format!("has at most {max} characters")));
    }
    Ok(text)
}

/// Text in one line, of at most `max` characters and not empty.
pub fn line(max: usize) -> impl Fn(&Value) -> Result<String, Fault> {
    move |value| {
        let given = string(value)?;
        if given.chars().any(char::is_control) {
            return Err(("control_character", "must not contain control characters".to_owned()));
        }
        let text = text::one_line(given);
        if text.is_empty() {
            return Err(("empty", "must not be empty".to_owned()));
        }
        not_too_long(text, max)
    }
}

/// The same, where an empty text says nothing.
pub fn line_or_nothing(max: usize) -> impl Fn(&Value) -> Result<Option<String>, Fault> {
    move |value| if string(value)?.trim().is_empty() { Ok(None) } else { line(max)(value).map(Some) }
}

/// Text of any number of lines, of at most `max` characters; an empty one says nothing.
pub fn lines(max: usize) -> impl Fn(&Value) -> Result<Option<String>, Fault> {
    move |value| {
        let given = string(value)?;
        if given.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err(("control_character", "must not contain control characters except line ends".to_owned()));
        }
        let text = text::lines(given);
        if text.is_empty() { Ok(None) } else { not_too_long(text, max).map(Some) }
    }
}

/// A value that is written as text and says itself what is wrong with it.
pub fn parsed<T: FromStr<Err: Display>>(code: &'static str) -> impl Fn(&Value) -> Result<T, Fault> {
    move |value| string(value)?.parse().map_err(|error: T::Err| (code, error.to_string()))
}

/// A calendar date that is in use, exactly `YYYY-MM-DD`.
pub fn date(value: &Value) -> Result<NaiveDate, Fault> {
    let wrong = || ("malformed_date", "must be a date that exists, from 1900 on, written YYYY-MM-DD".to_owned());
    parse_date(string(value)?).filter(|date| is_in_use(*date)).ok_or_else(wrong)
}

/// The date of a text that is exactly `YYYY-MM-DD`.
pub fn parse_date(text: &str) -> Option<NaiveDate> {
    // Read alone, the format takes blanks, signs and missing zeros too.
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|date| text.len() == 10 && date.to_string() == text)
}

/// A language tag.
pub fn language(value: &Value) -> Result<String, Fault> {
    let tag = string(value)?;
    if tag.len() <= 35 && text::is_language(tag) {
        return Ok(tag.to_owned());
    }
    Err(("malformed_language", "must be a language tag such as en or pt-BR".to_owned()))
}

/// True or false.
pub fn boolean(value: &Value) -> Result<bool, Fault> {
    value.as_bool().ok_or_else(|| ("type", "must be true or false".to_owned()))
}

/// A whole number within `range`.
pub fn integer(range: std::ops::RangeInclusive<i32>) -> impl Fn(&Value) -> Result<i32, Fault> {
    move |value| {
        let wrong = || ("out_of_range", format!("must be a whole number from {} to {}", range.start(), range.end()));
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        number.filter(|number| range.contains(number)).ok_or_else(wrong)
    }
}

/// An object of the caller's own, kept as it is.
pub fn custom(value: &Value) -> Result<Value, Fault> {
    if !value.is_object() {
        return Err(("type", "must be an object".to_owned()));
    }
    if value.to_string().len() > CUSTOM_MAX {
        return Err(("too_long", format!("has at most {CUSTOM_MAX} bytes")));
    }
    if has_nul(value) {
        return Err(("control_character", "must not contain the NUL character".to_owned()));
    }
    Ok(value.clone())
}

/// The database cannot keep this character.
fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(object) => object.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}
