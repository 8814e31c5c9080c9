//! How a file is read, as it is chosen on the page.

use super::looked::Looked;
use crate::web::api::files::ImportWords;
use crate::web::pages::form::Form;
use crate::web::pages::wrongs::plain;

/// A field is read from where it is guessed to be.
const GUESS: &str = "";
/// It is not read.
const LEAVE_OUT: &str = "-";

/// A field with the columns from which it may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldView {
    pub name: String,
    /// For people.
    pub label: String,
    pub needed: bool,
    /// Names of the columns from which it is read now.
    pub from: String,
    pub samples: Vec<String>,
    /// Value of the select.
    pub choice: String,
}

impl FieldView {
    /// Needed, and read from nowhere.
    pub fn is_missing(&self) -> bool {
        self.needed && self.from.is_empty()
    }

    pub fn is_guessed(&self) -> bool {
        self.choice == GUESS
    }

    pub fn is_left_out(&self) -> bool {
        self.choice == LEAVE_OUT
    }

    pub fn is_from(&self, column: &str) -> bool {
        self.choice.strip_prefix('=') == Some(column)
    }

    /// A column that was chosen, by a saved mapping, and that the file does not have.
    pub fn absent<'f>(&'f self, looked: &Looked) -> Option<&'f str> {
        let chosen = self.choice.strip_prefix('=')?;
        (!looked.columns.iter().any(|column| column.name == chosen)).then_some(chosen)
    }
}

/// A status word with what it is taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusView {
    pub word: String,
    pub rows: u64,
    /// What it is taken for; empty when nobody knows.
    pub means: String,
    /// What somebody chose; empty for the guess.
    pub chosen: String,
}

/// The fields as the page shows them.
pub fn fields(looked: &Looked, words: &ImportWords) -> Vec<FieldView> {
    let view = |seen: &super::looked::FieldSeen| {
        let columns = seen.columns.iter().filter_map(|at| looked.columns.get(*at));
        let chosen = words.map.iter().filter_map(|entry| entry.split_once('='));
        let chosen = chosen.filter(|(field, _)| *field == seen.field).map(|(_, column)| format!("={column}")).next();
        let left_out = words.leave_out.contains(&seen.field).then(|| LEAVE_OUT.to_owned());
        FieldView {
            name: seen.field.clone(),
            label: plain(&seen.field),
            needed: seen.needed,
            from: columns.clone().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", "),
            samples: columns.flat_map(|column| column.samples.iter().take(3).cloned()).collect(),
            choice: chosen.or(left_out).unwrap_or_default(),
        }
    };
    looked.fields.iter().map(view).collect()
}

/// The status words as the page shows them.
pub fn statuses(looked: &Looked, words: &ImportWords) -> Vec<StatusView> {
    let view = |seen: &super::looked::StatusSeen| {
        let chosen = words.status.iter().filter_map(|entry| entry.rsplit_once('='));
        let chosen = chosen.filter(|(word, _)| are_alike(word, &seen.word)).map(|(_, to)| to.to_owned()).next();
        StatusView {
            word: seen.word.clone(),
            rows: seen.rows,
            means: seen.means.clone().unwrap_or_default(),
            chosen: chosen.unwrap_or_default(),
        }
    };
    looked.statuses.iter().map(view).collect()
}

/// Whether two words are one to an import, for which case and punctuation make no difference.
fn are_alike(one: &str, other: &str) -> bool {
    let plain =
        |word: &str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    plain(one) == plain(other)
}

/// What is chosen in the form; about what the file has.
pub fn of_form(form: &Form, looked: &Looked) -> ImportWords {
    let mut words = ImportWords { dry_run: true, ..ImportWords::default() };
    for seen in &looked.fields {
        match form.text(&format!("field/{}", seen.field)) {
            GUESS => {}
            LEAVE_OUT => words.leave_out.push(seen.field.clone()),
            chosen => words.map.extend(chosen.strip_prefix('=').map(|column| format!("{}={column}", seen.field))),
        }
    }
    let statuses = form.all("status-word").zip(form.all("status-means")).filter(|(_, means)| !means.is_empty());
    words.status = statuses.map(|(word, means)| format!("{word}={means}")).collect();
    let text = |name: &str| Some(form.text(name).to_owned()).filter(|text| !text.is_empty());
    words.permit_type = text("permit_type");
    words.date_format = text("date_format");
    words.complete = form.get("complete").is_some();
    words.sheet = text("sheet");
    words.header_row = text("header_row").and_then(|row| row.parse().ok());
    words.catch_up = form.get("catch_up").is_some();
    words.keep_good_rows = form.get("keep_good_rows").is_some();
    words
}
