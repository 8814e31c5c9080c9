//! A check: the file is looked at and imported as a dry run, and what came out is noted.

use serde_json::{Value, json};

use super::keep::disk_fault;
use super::sentence;
use crate::store::kept_files::{FileCheck, KeptFile, note_check};
use crate::web::api::files::{ImportRefused, ImportWords, Uploaded, joined};
use crate::web::api::problem::Problem;
use crate::web::pages::Pages;
use crate::web::pages::access::User;
use crate::web::pages::wrongs::with_labels;

/// Checks a file that waits. The caller has a place for it; only what is not about the file is an error.
pub(super) async fn check(
    pages: &Pages,
    user: &User,
    file: &KeptFile,
    upload: Uploaded,
    words: ImportWords,
) -> Result<(), Problem> {
    let words = ImportWords { dry_run: true, ..words };
    let again = upload.file.try_clone().map_err(|error| disk_fault(&error))?;
    let again = Uploaded { file: again, name: upload.name.clone() };
    let look = match pages.api.files.look(again, &words).await {
        Ok(look) => Some(look),
        Err(ImportRefused::File { .. }) => None,
        Err(refused) => return Err(refused.into()),
    };
    let done = pages.api.files.import(upload, &words, &user.by).await;
    let (import_id, refusal) = match done {
        Ok(report) => (id_of(&report), None),
        Err(ImportRefused::File { code, fact, advice }) => (None, Some(for_people(code, fact, advice))),
        Err(refused) => return Err(refused.into()),
    };
    let checked = FileCheck { words: json!(words), look, import_id, refusal };
    let mut connection = pages.api.connection().await?;
    Ok(note_check(&mut connection, file.id, &checked).await?)
}

/// The id in a report.
pub(super) fn id_of(report: &Value) -> Option<uuid::Uuid> {
    report["id"].as_str().and_then(|id| id.parse().ok())
}

/// Why a file is refused, with what can be done about it on this page.
fn for_people(code: &str, fact: String, advice: Option<String>) -> String {
    let here = match code {
        "missing_fields" if fact.contains("permit_type") => "Choose the columns below, or give all permits one type.",
        "missing_fields" => "Choose the columns below.",
        "ambiguous_dates" | "mixed_dates" => "Choose below how the dates are written.",
        "duplicate_column" => "Rename one of them in the file, or choose another column below.",
        "sheet_needed" | "no_such_sheet" => "Choose below which sheet is meant.",
        "no_sheets" => "Check it again without the saved mapping.",
        "no_header_row" => "Choose another row below.",
        "no_such_column" => "Choose another column below.",
        _ => return sentence(&joined(fact, advice)),
    };
    format!("{} {here}", sentence(&with_labels(&fact)))
}
