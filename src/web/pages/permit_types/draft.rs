//! A permit type as it stands in the form, right or not.

use serde_json::{Value, json};

use crate::domain::schedule::LATE_BY_DAYS;
use crate::store::lists::permit_types::TypeRow;
use crate::web::api::permit_types::STEPS_MAX;
use crate::web::pages::form::Form;
use crate::web::pages::wrongs::plain;

/// What was filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    pub name: String,
    pub renewal_url: String,
    pub office_contact: String,
    pub grace_days: String,
    /// The version that was seen.
    pub version: String,
    pub steps: Vec<StepDraft>,
}

/// One line of the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDraft {
    pub notice_type: String,
    pub offset_days: String,
    pub class: String,
    pub late_by_days: String,
    pub enabled: bool,
}

impl Default for StepDraft {
    fn default() -> Self {
        Self {
            notice_type: String::new(),
            offset_days: String::new(),
            class: String::new(),
            late_by_days: LATE_BY_DAYS.to_string(),
            enabled: true,
        }
    }
}

impl StepDraft {
    fn is_blank(&self) -> bool {
        self.notice_type.is_empty() && self.offset_days.is_empty()
    }

    fn body(&self) -> Value {
        json!({
            "notice_type": text(&self.notice_type),
            "offset_days": number(&self.offset_days),
            "class": text(&self.class),
            "late_by_days": number(&self.late_by_days),
            "enabled": self.enabled,
        })
    }
}

impl Draft {
    /// What is there.
    pub fn of_row(row: &TypeRow) -> Self {
        let steps = row.schedule.steps().iter().map(|step| StepDraft {
            notice_type: step.notice_type.to_string(),
            offset_days: step.offset_days.map(|days| days.to_string()).unwrap_or_default(),
            class: step.class.to_string(),
            late_by_days: step.late_by_days.to_string(),
            enabled: step.enabled,
        });
        Self {
            name: row.name.clone(),
            renewal_url: row.renewal_url.clone().unwrap_or_default(),
            office_contact: row.office_contact.clone().unwrap_or_default(),
            grace_days: row.grace_days.to_string(),
            version: row.version.to_string(),
            steps: steps.collect(),
        }
    }

    /// What was filled in.
    pub fn of_form(form: &Form) -> Self {
        let field = |name: &str| form.text(name).to_owned();
        let step = |at: usize| {
            form.get(&named(at, "notice_type"))?;
            Some(StepDraft {
                notice_type: field(&named(at, "notice_type")),
                offset_days: field(&named(at, "offset_days")),
                class: field(&named(at, "class")),
                late_by_days: field(&named(at, "late_by_days")),
                enabled: form.get(&named(at, "enabled")).is_some(),
            })
        };
        Self {
            name: field("name"),
            renewal_url: field("renewal_url"),
            office_contact: field("office_contact"),
            grace_days: field("grace_days"),
            version: field("version"),
            // One more than allowed, so that somebody learns what is allowed.
            steps: (0..=STEPS_MAX).map_while(step).collect(),
        }
    }

    /// Without lines in which nothing was filled in.
    #[must_use]
    pub fn without_blanks(mut self) -> Self {
        self.steps.retain(|step| !step.is_blank());
        self
    }

    /// As the API takes it.
    pub fn body(&self) -> Value {
        json!({
            "name": text(&self.name),
            "renewal_url": text(&self.renewal_url),
            "office_contact": text(&self.office_contact),
            "grace_days": number(&self.grace_days),
            "steps": self.steps.iter().map(StepDraft::body).collect::<Vec<_>>(),
        })
    }

    /// The fields of the form, so that a page between can carry them.
    pub fn fields(&self) -> Vec<(String, String)> {
        let whole = [
            ("name", &self.name),
            ("renewal_url", &self.renewal_url),
            ("office_contact", &self.office_contact),
            ("grace_days", &self.grace_days),
            ("version", &self.version),
        ];
        let mut fields: Vec<_> = whole.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        for (at, step) in self.steps.iter().enumerate() {
            let parts = [
                ("notice_type", &step.notice_type),
                ("offset_days", &step.offset_days),
                ("class", &step.class),
                ("late_by_days", &step.late_by_days),
            ];
            fields.extend(parts.into_iter().map(|(name, value)| (named(at, name), value.clone())));
            fields.extend(step.enabled.then(|| (named(at, "enabled"), "on".to_owned())));
        }
        fields
    }
}

/// Name of a field of a line; also where the API points to it.
fn named(at: usize, field: &str) -> String {
    format!("steps/{at}/{field}")
}

/// What people call the field with this name.
pub fn label(name: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        ["steps", at, field] => {
            let line = at.parse::<usize>().map_or(0, |at| at + 1);
            format!("Line {line} of the schedule, {}", plain(field).to_lowercase())
        }
        ["steps"] => "The schedule".to_owned(),
        _ => plain(name),
    }
}

fn text(given: &str) -> Value {
    if given.is_empty() { Value::Null } else { given.into() }
}

/// A whole number, or what stands in its place and will be refused.
fn number(given: &str) -> Value {
    given.parse::<i64>().map_or_else(|_| text(given), Value::from)
}
