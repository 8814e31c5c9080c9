//! What became of a file: the report of any import, its rejected rows, and what it held.

use std::collections::{BTreeMap, HashMap};

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::NaiveDate;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::PATH;
use crate::domain::role::Role;
use crate::domain::saying::{counted, which};
use crate::store::PgConnection;
use crate::store::actions::{HeldBy, count_held, release_held};
use crate::store::imports::count_rejections;
use crate::store::lists::imports::{ImportSeen, read_import};
use crate::web::api::fields::{line, read_object};
use crate::web::api::files::{attachment, take_place};
use crate::web::api::problem::Problem;
use crate::web::pages::Pages;
use crate::web::pages::access::User;
use crate::web::pages::form::Form;
use crate::web::pages::frame::{Frame, show_as, shown};
use crate::web::pages::path::Path;
use crate::web::pages::when::{When, when};
use crate::web::pages::words::{Done, Said};
use crate::web::pages::wrongs::{Wrongs, given, plain, with_labels, wrongs_of};

/// Errors, and warnings, that are shown; the file of the rejected rows has more.
const SHOWN: usize = 200;

/// See `files::ImportReport`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Report {
    pub committed: bool,
    pub dry_run: bool,
    pub rows: u64,
    pub permits_created: u64,
    pub permits_renewed: u64,
    pub permits_updated: u64,
    pub unchanged: u64,
    pub skipped: u64,
    pub skipped_by_reason: BTreeMap<String, u64>,
    pub history_terms: u64,
    pub repeated: u64,
    pub contradictory_numbers: u64,
    pub rejected: u64,
    pub rejected_by_reason: BTreeMap<String, u64>,
    pub addresses_cleaned: u64,
    pub addresses_missing: u64,
    pub guessed: Guessed,
    pub types_created: u64,
    pub notices_claimed: u64,
    pub notices_held: u64,
    pub would_mail: Option<WouldMail>,
    pub missing: Option<Missing>,
    pub errors: Vec<Remark>,
    pub warnings: Vec<Remark>,
}

/// What was guessed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Guessed {
    /// Of a workbook.
    pub sheet: Option<String>,
    pub encoding: String,
    /// None in workbooks.
    pub delimiter: Option<String>,
    pub date_format: String,
    pub header_row: u64,
}

impl Guessed {
    /// How dates are written, by an example for each column that differs.
    pub fn dates(&self) -> String {
        let formats = self.date_format.split_inclusive(", ").fold(Vec::<String>::new(), |mut formats, piece| {
            // A comma may stand within a format, too.
            match formats.last_mut() {
                Some(last) if !DATES.iter().any(|field| piece.starts_with(field)) => last.push_str(piece),
                _ => formats.push(piece.to_owned()),
            }
            formats
        });
        let shown = formats.iter().map(|one| {
            let one = one.strip_suffix(", ").unwrap_or(one);
            match DATES.iter().find_map(|field| Some((field, one.strip_prefix(field)?.strip_prefix(' ')?))) {
                Some((field, format)) => format!("{} {}", plain(field), example(format)),
                None => example(one),
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// Fields that are dates.
const DATES: [&str; 3] = ["issued_on", "effective_on", "expires_on"];

/// 25 March 2027 in this format; the format itself if an old report has one that says no day.
fn example(format: &str) -> String {
    use std::fmt::Write;
    let day = NaiveDate::from_ymd_opt(2027, 3, 25).unwrap_or_default();
    let mut text = String::new();
    match write!(text, "{}", day.format(format)) {
        Ok(()) => text,
        Err(_) => format.to_owned(),
    }
}

/// The mail that a file would cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WouldMail {
    pub messages: u64,
    pub by_day: BTreeMap<NaiveDate, u64>,
    pub no_longer: u64,
}

/// Permits that a file which calls itself complete does not name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Missing {
    pub count: u64,
    pub expired: u64,
    pub numbers: Vec<String>,
}

impl Missing {
    pub fn shown(&self) -> &[String] {
        &self.numbers[..self.numbers.len().min(SHOWN)]
    }

    /// How many more there are than are shown.
    pub fn more(&self) -> u64 {
        self.count.saturating_sub(self.shown().len() as u64)
    }
}

/// One error or warning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Remark {
    pub row: Option<u64>,
    pub column: Option<String>,
    pub value: Option<String>,
    pub code: String,
    pub detail: String,
}

/// Of a status word that nobody explained.
const UNKNOWN_STATUS: &str = "unknown_status";

impl Remark {
    /// What it says, in the words of the pages.
    fn on_page(mut self) -> Self {
        if self.code == UNKNOWN_STATUS {
            "nobody has said what this status word means".clone_into(&mut self.detail);
            return self;
        }
        // A format stands behind the date that is written in it.
        let text = match self.detail.split_once(" (%") {
            Some((before, rest)) => format!("{before}{}", rest.split_once(')').map_or("", |(_, after)| after)),
            None => self.detail.clone(),
        };
        self.detail = with_labels(&text);
        self
    }
}

/// As pages list them: a status word that nobody explained stands once, with how often it stands in the file.
fn on_page(remarks: &[Remark], total_unknown: u64) -> Vec<Remark> {
    let mut shown: Vec<Remark> = Vec::new();
    let mut words: Vec<(usize, u64)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for remark in remarks {
        if remark.code == UNKNOWN_STATUS {
            let word = remark.value.as_deref().unwrap_or_default();
            if let Some(place) = places.get(word) {
                words[*place].1 += 1;
                continue;
            }
            places.insert(word, words.len());
            words.push((shown.len(), 1));
        }
        shown.push(remark.clone().on_page());
    }
    // Of very many errors not all are kept.
    let is_short = words.iter().map(|(_, rows)| rows).sum::<u64>() < total_unknown;
    for (at, rows) in words.into_iter().filter(|(_, rows)| is_short || *rows > 1) {
        let least = if is_short { "at least " } else { "" };
        let have = which(rows, "has", "have");
        let detail = &mut shown[at].detail;
        *detail = format!("{detail}; {least}{} {have} it", counted(rows, "row"));
    }
    shown
}

impl Report {
    /// Out of what is kept, in the words of the pages; a report of an old program may say less.
    pub fn of(kept: &Value) -> Self {
        let mut report = Self::deserialize(kept).unwrap_or_default();
        let unknown = report.rejected_by_reason.get(UNKNOWN_STATUS).copied().unwrap_or_default();
        report.errors = on_page(&report.errors, unknown);
        report.warnings = on_page(&report.warnings, 0);
        report
    }

    /// Whether it says what became, or would become, of permits: rows with errors may have kept all from it.
    pub fn was_applied(&self) -> bool {
        self.committed || self.would_mail.is_some()
    }

    /// Rows without errors.
    pub fn good(&self) -> u64 {
        self.rows - self.rejected.min(self.rows)
    }

    pub fn shown_errors(&self) -> &[Remark] {
        &self.errors[..self.errors.len().min(SHOWN)]
    }

    pub fn shown_warnings(&self) -> &[Remark] {
        &self.warnings[..self.warnings.len().min(SHOWN)]
    }

    /// How many more errors there are than are shown.
    pub fn more_errors(&self) -> usize {
        self.errors.len().saturating_sub(SHOWN)
    }

    pub fn more_warnings(&self) -> usize {
        self.warnings.len().saturating_sub(SHOWN)
    }

    /// Why permits were left alone, in words.
    pub fn skips(&self) -> Vec<(String, u64)> {
        self.skipped_by_reason.iter().map(|(reason, permits)| (plain(reason).to_lowercase(), *permits)).collect()
    }

    /// What rejected rows, in words.
    pub fn reasons(&self) -> Vec<(String, u64)> {
        self.rejected_by_reason.iter().map(|(reason, rows)| (plain(reason), *rows)).collect()
    }
}

#[derive(Template)]
#[template(path = "pages/import_report.html")]
struct ReportPage {
    frame: Frame,
    may_act: bool,
    id: Uuid,
    file_name: String,
    by: Option<String>,
    at: When,
    report: Report,
    /// Rejected rows that are kept.
    kept: u64,
    /// Notices that this import holds still.
    held: u64,
    reason: String,
    errors: Wrongs,
}

impl ReportPage {
    async fn read(pages: &Pages, user: &User, connection: &mut PgConnection, id: Uuid) -> Result<Self, Problem> {
        let ImportSeen { id, file_name, started_at, by, report } = read_import(connection, id).await?;
        Ok(Self {
            frame: Frame::of(pages, user, PATH, format!("Import of {file_name}")),
            may_act: user.may(Role::Clerk),
            id,
            file_name,
            by,
            at: when(started_at, pages.api.zone),
            report: Report::of(&report),
            kept: count_rejections(connection, id).await?,
            held: count_held(connection, HeldBy::Import(id)).await?,
            reason: String::new(),
            errors: Vec::new(),
        })
    }
}

pub(super) async fn read(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    Done(done): Done,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = ReportPage::read(&pages, &user, &mut connection, id).await?;
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

/// The rejected rows as a file.
pub(super) async fn errors(State(pages): State<Pages>, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let place = take_place(&pages.api.exports, "files")?;
    let chunks = pages.api.files.rejected(id).await?;
    let kind = "text/csv; charset=utf-8; header=present";
    Ok(attachment(&pages.api, place, chunks, &format!("errors-{id}.csv"), kind))
}

pub(super) async fn release(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    settle(&pages, &user, id, &form, false).await
}

pub(super) async fn cancel(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    settle(&pages, &user, id, &form, true).await
}

/// Releases or cancels what the import held.
async fn settle(pages: &Pages, user: &User, id: Uuid, form: &Form, cancel: bool) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let body = json!({ "reason": given(form, "reason") });
    let reason = match read_object(body, |fields| fields.required("reason", line(1000))) {
        Ok(reason) => reason,
        Err(problem) => {
            let errors = wrongs_of(problem, plain)?;
            let mut page = ReportPage::read(pages, user, &mut connection, id).await?;
            (page.reason, page.errors) = (form.text("reason").to_owned(), errors);
            if page.held == 0 {
                // The field went with what was held.
                page.errors.iter_mut().for_each(|(place, _)| "main".clone_into(place));
            }
            page.frame = page.frame.with_errors(true);
            return Ok(show_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
    };
    let rules = pages.api.action_rules(pages.api.moment(&mut connection).await?);
    release_held(&mut connection, HeldBy::Import(id), cancel, &reason, &user.by, &rules, |_| {}).await?;
    let said = if cancel { Said::HeldCancelled } else { Said::HeldReleased };
    Ok(said.at(&format!("{PATH}/{id}")))
}
