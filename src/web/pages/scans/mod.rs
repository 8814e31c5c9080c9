//! Scans: those that were expected against those that ran, one of them, and one more now.

mod expected;

use askama::Template;
use axum::Router;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use axum::routing::get;
use chrono::{NaiveDate, TimeDelta};
use serde_json::Value;
use uuid::Uuid;

use super::Pages;
use super::access::User;
use super::frame::{self, Frame};
use super::listing::{Asked, Listing};
use super::path::Path;
use super::shown::Tag;
use super::when::{When, when};
use super::words::{Done, Said};
use crate::domain::{fingerprint::differences, role::Role};
use crate::store::actions::HeldBy;
use crate::store::lists::problems::{HeldRow, sample_held};
use crate::store::lists::scans::{ScanRow, list_scans, list_tries, read_scan};
use crate::store::office_log::{Deed, Subject, record};
use crate::store::watched::{LivingProcess, living_processes};
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;
use crate::web::api::scans::begin_scan;
use expected::{Expectation, expectations};
pub use expected::{Standing, standing};

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/scans", get(list).post(begin))
        .route("/scans/preview", get(preview))
        .route("/scans/{id}", get(show))
}

/// Notices of a preview that are shown.
const ITEMS: usize = 200;

#[derive(Template)]
#[template(path = "pages/watch/scans.html")]
struct ScansPage {
    frame: Frame,
    today: NaiveDate,
    standing: Standing,
    expected: Vec<Expectation>,
    list: Listing<ScanView>,
    processes: Vec<Process>,
    /// In what they differ.
    differences: Vec<&'static str>,
    may_act: bool,
}

/// A process that is alive.
struct Process {
    row: LivingProcess,
    since: When,
}

#[derive(Template)]
#[template(path = "pages/watch/scan.html")]
struct ScanPage {
    frame: Frame,
    scan: ScanView,
    /// All tries for its expected time.
    tries: Vec<ScanView>,
    /// Whether some of what it found is still held.
    holds: bool,
}

#[derive(Template)]
#[template(path = "pages/watch/scan_preview.html")]
struct PreviewPage {
    frame: Frame,
    /// Name and number.
    counts: Vec<(&'static str, u64)>,
    items: Vec<Item>,
    more: usize,
}

/// A scan as it is shown.
pub struct ScanView {
    pub row: ScanRow,
    pub tag: Tag,
    pub started: When,
    pub finished: Option<When>,
    pub scheduled: Option<When>,
}

impl ScanView {
    pub fn of(row: ScanRow, pages: &Pages) -> Self {
        let at = |instant| when(instant, pages.api.zone);
        Self {
            tag: Tag::of(&row.outcome),
            started: at(row.started_at),
            finished: row.finished_at.map(at),
            scheduled: row.scheduled_for.map(at),
            row,
        }
    }

    /// What started it, for people.
    pub fn cause(&self) -> &'static str {
        match self.row.trigger.as_str() {
            "schedule" => "schedule",
            "manual" => "a person",
            _ => "a command",
        }
    }
}

/// What would become of one notice.
#[derive(serde::Deserialize)]
struct Item {
    permit_number: String,
    notice_type: String,
    due_on: NaiveDate,
    would: String,
    why: String,
}

async fn list(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut asked = Asked::of(&uri)?;
    let page = Page::<Uuid>::read(&asked.uri, &mut asked.query)?;
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    let rows = list_scans(&mut connection, page.after, page.fetch()).await?;
    let rows = rows.into_iter().map(|row| ScanView::of(row, &pages)).collect();
    let list = Listing::of(&asked, &page, rows, |scan| scan.row.id);
    asked.query.finish()?;
    let processes = living_processes(&mut connection).await?;
    let differences = differences(processes.iter().map(|process| process.fingerprint.as_str()));
    // They start by the database's clock, and everything else on the page is business time.
    let since = |row: &LivingProcess| when(moment.now - TimeDelta::seconds(row.seconds), pages.api.zone);
    let page = ScansPage {
        differences,
        processes: processes.into_iter().map(|row| Process { since: since(&row), row }).collect(),
        frame: Frame::of(&pages, &user, "/scans", "Scans").said(done),
        today: moment.today,
        standing: standing(&pages, &mut connection, moment.now).await?,
        expected: expectations(&pages, &mut connection, moment.now).await?,
        list,
        may_act: user.may(Role::Clerk),
    };
    Ok(frame::shown(&page))
}

async fn show(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let scan = read_scan(&mut connection, id).await?;
    let tries = match scan.scheduled_for {
        Some(scheduled_for) => list_tries(&mut connection, scheduled_for).await?,
        None => Vec::new(),
    };
    let held: Vec<HeldRow> = sample_held(&mut connection, HeldBy::Scan(id), 1).await?;
    let page = ScanPage {
        frame: Frame::of(&pages, &user, "/scans", format!("Scan of {}", scan.as_of)).said(done),
        scan: ScanView::of(scan, &pages),
        tries: tries.into_iter().map(|row| ScanView::of(row, &pages)).collect(),
        holds: !held.is_empty(),
    };
    Ok(frame::shown(&page))
}

/// Scans now, on the replica that is asked.
async fn begin(State(pages): State<Pages>, user: User) -> Result<Response, Problem> {
    let id = begin_scan(&pages.api).await?;
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    let label = format!("scan of {}", moment.today);
    let deed = Deed {
        by: &user.by,
        action: "started",
        subject: Subject::Scan,
        subject_id: Some(id),
        label: &label,
        before: None,
        after: None,
    };
    record(&mut *connection, deed, moment.now).await?;
    Ok(Said::ScanBegun.at(&format!("/scans/{id}")))
}

/// What a scan would do on a day; nothing is written.
async fn preview(State(pages): State<Pages>, user: User, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let mut asked = Asked::of(&uri)?;
    let as_of = asked.query.date("as_of")?;
    asked.query.finish()?;
    let report = pages.api.scans.preview(as_of).await?;
    let number = |name: &str| report[name].as_u64().unwrap_or_default();
    let counts = [
        ("Recorded to be sent", "claimed"),
        ("Owed again", "revived"),
        ("No longer owed", "superseded"),
        ("Too late, or nobody may be mailed", "skipped"),
        ("Held of these", "held"),
        ("Recorded already", "already_claimed"),
    ];
    let (items, more) = items_of(&report);
    let as_of = report["as_of"].as_str().unwrap_or_default().to_owned();
    let page = PreviewPage {
        frame: Frame::of(&pages, &user, "/scans", format!("What a scan would do on {as_of}")),
        counts: counts.map(|(name, field)| (name, number(field))).to_vec(),

        items,
        more,
    };
    Ok(frame::shown(&page))
}

/// The first items, and how many more there are.
fn items_of(report: &Value) -> (Vec<Item>, usize) {
    let items = report["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = items.iter().take(ITEMS).filter_map(|item| serde_json::from_value(item.clone()).ok());
    (shown.collect(), items.len().saturating_sub(ITEMS))
}
