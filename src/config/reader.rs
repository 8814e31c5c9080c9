//! Reads single values and collects what is wrong with them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::error::{ConfigErrors, Fault};

/// A text without the user and the password of the URL that it may be; one that is wrong cannot be read as one.
fn without_user(text: &str) -> String {
    let Some((before, host)) = text.rsplit_once('@') else { return text.to_owned() };
    match before.split_once(':') {
        Some((scheme, user)) => format!("{scheme}:{}…@{host}", if user.starts_with("//") { "//" } else { "" }),
        None => text.to_owned(),
    }
}

pub(super) struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    faults: Vec<Fault>,
    warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, faults: Vec::new(), warnings: Vec::new() }
    }

    /// The value without blanks around it; an empty one counts as unset. No setting has a use for
    /// line breaks, and in a sender's name they would be a way into the mail's header.
    pub fn text(&mut self, variable: &str) -> Option<String> {
        let value = (self.lookup)(variable)?;
        let value = value.trim();
        if value.is_empty() {
            return None;
        }
        if value.contains(char::is_control) {
            self.fault(variable, "must not contain line breaks or other control characters");
            return None;
        }
        Some(value.to_owned())
    }

    /// `allowed` finishes the sentence "VARIABLE must be …". The value is repeated, but for what stands before the host of
    /// a URL: not for other secrets.
    pub fn parsed<T>(&mut self, variable: &str, allowed: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let text = self.text(variable)?;
        let value = parse(&text);
        if value.is_none() {
            self.fault(variable, format!("must be {allowed}, not `{}`", without_user(&text)));
        }
        value
    }

    pub fn number<T>(&mut self, variable: &str, default: T, range: RangeInclusive<T>) -> T
    where
        T: Display + FromStr + PartialOrd,
    {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.parsed(variable, &allowed, |text| text.parse().ok().filter(|number| range.contains(number)))
            .unwrap_or(default)
    }

    pub fn fault(&mut self, variable: &str, message: impl Into<String>) {
        self.faults.push(Fault { variable: variable.to_owned(), message: message.into() });
    }

    pub fn warn(&mut self, sentence: impl Into<String>) {
        self.warnings.push(sentence.into());
    }

    pub fn has_fault_in(&self, variables: &[&str]) -> bool {
        self.faults.iter().any(|fault| variables.contains(&fault.variable.as_str()))
    }

    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    pub fn finish<T>(self, value: T) -> Result<T, ConfigErrors> {
        if self.faults.is_empty() { Ok(value) } else { Err(ConfigErrors(self.faults)) }
    }
}
