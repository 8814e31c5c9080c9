//! `/scans`: what ran, and one more now.

use axum::extract::{OriginalUri, State};
use axum::http::StatusCode;
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::access::Caller;
use super::answer::Answer;
use super::body::{Json, OptionalJson};
use super::fields::{date, line, read_object};
use super::page::{Listed, Page};
use super::permits::Paging;
use super::problem::{Kind, Problem};
use super::query::Query;
use super::session::Db;
use super::shapes::{Id, words};
use super::{Api, ROOT, ScanRefused};
use crate::store::actions::{HeldBy, Released, release_held};
use crate::store::lists::scans::{ScanRow, list_scans, read_scan};
use crate::store::scans::{ScanOutcome, Trigger};

const TAG: &str = "scans";

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list, begin))
        .routes(routes!(preview))
        .routes(routes!(read))
        .routes(routes!(release))
        .routes(routes!(cancel))
}

/// One pass that finds what is owed; every try is recorded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Scan)]
struct ScanView {
    id: Uuid,
    /// The expected time it is for; null for one that somebody asked for.
    scheduled_for: Option<DateTime<Utc>>,
    #[schema(schema_with = words::<Trigger>)]
    trigger: String,
    /// The day that counted as today.
    as_of: NaiveDate,
    started_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    #[schema(schema_with = words::<ScanOutcome>)]
    outcome: String,
    /// `acquired` or `held_elsewhere`.
    lock: String,
    /// Notices made pending or held.
    claimed: i64,
    already_claimed: i64,
    revived: i64,
    superseded: i64,
    skipped: i64,
    /// The held part of `claimed`.
    held: i64,
    error: Option<String>,
}

impl From<ScanRow> for ScanView {
    fn from(row: ScanRow) -> Self {
        Self {
            id: row.id,
            scheduled_for: row.scheduled_for,
            trigger: row.trigger,
            as_of: row.as_of,
            started_at: row.started_at,
            finished_at: row.finished_at,
            outcome: row.outcome,
            lock: row.lock,
            claimed: row.claimed,
            already_claimed: row.already_claimed,
            revived: row.revived,
            superseded: row.superseded,
            skipped: row.skipped,
            held: row.held,
            error: row.error,
        }
    }
}

/// Scans, newest first.
#[utoipa::path(get, path = "/scans", tag = TAG, params(Paging),
    responses((status = 200, description = "A page of scans", body = Listed<ScanView>)))]
async fn list(mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let page = Page::<Uuid>::read(&uri, &mut query)?;
    query.finish()?;
    let rows = list_scans(&mut db, page.after, page.fetch()).await?;
    Ok(page.answer(rows, |row| row.id, ScanView::from))
}

/// One scan.
#[utoipa::path(get, path = "/scans/{id}", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The scan", body = ScanView)))]
async fn read(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    Query::parse(uri.query())?.finish()?;
    Ok(Answer::ok(&ScanView::from(read_scan(&mut db, id).await?)))
}

/// Body of a scan that is asked for: nothing.
#[derive(Debug, ToSchema)]
#[schema(example = json!({}))]
struct NoScanBody {}

/// Scans now, on the replica that is asked. The scan goes on by itself; read it to see how it ended.
#[utoipa::path(post, path = "/scans", tag = TAG, request_body = Option<NoScanBody>,
    responses((status = 202, description = "The scan, which runs", body = ScanView),
              (status = 409, description = "still-running, wrong-state")))]
async fn begin(
    State(api): State<Api>,
    _caller: Caller,
    mut db: Db,
    OptionalJson(body): OptionalJson,
) -> Result<Answer, Problem> {
    read_object(body, |_| Some(()))?;
    let id = begin_scan(&api).await?;
    let view = ScanView::from(read_scan(&mut db, id).await?);
    Ok(Answer::new(StatusCode::ACCEPTED, &view).header(axum::http::header::LOCATION, &format!("{ROOT}/scans/{id}")))
}

/// Begins a scan; says its id.
pub(in crate::web) async fn begin_scan(api: &Api) -> Result<Uuid, Problem> {
    api.scans.begin().await.map_err(|refused| match refused {
        ScanRefused::Running => Problem::new(Kind::StillRunning, "a scan runs already; wait for its end"),
        ScanRefused::NotHere => {
            Problem::new(Kind::WrongState, "this process does not scan; ask one with the scan role")
                .with("state", "no_scan_role")
        }
        ScanRefused::Store(error) => error.into(),
    })
}

/// Body of a preview.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "as_of": "2030-06-01" }))]
struct PreviewBody {
    /// The day that counts as today; today unless given.
    as_of: Option<NaiveDate>,
}

/// What a scan would do.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the answer")]
struct PreviewView {
    /// Null: nothing is written.
    id: Option<Uuid>,
    #[schema(schema_with = words::<ScanOutcome>)]
    outcome: String,
    as_of: NaiveDate,
    claimed: i64,
    already_claimed: i64,
    revived: i64,
    superseded: i64,
    skipped: i64,
    held: i64,
    dry_run: bool,
    items: Vec<PreviewItem>,
}

/// What would become of one notice.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the answer")]
struct PreviewItem {
    notice_key: String,
    permit_number: String,
    notice_type: String,
    due_on: NaiveDate,
    /// claim, revive, supersede or skip.
    would: String,
    /// In a plain sentence.
    why: String,
}

/// What a scan would do on a day, and why; nothing is written.
#[utoipa::path(post, path = "/scans/preview", tag = TAG, request_body = Option<PreviewBody>,
    responses((status = 200, description = "What it would do", body = PreviewView)))]
async fn preview(
    State(api): State<Api>,
    _caller: Caller,
    OptionalJson(body): OptionalJson,
) -> Result<axum::Json<Value>, Problem> {
    let as_of = read_object(body, |fields| Some(fields.optional("as_of", date)))?;
    Ok(axum::Json(api.scans.preview(as_of).await?))
}

/// Body of a release or a cancellation of many.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "reason": "Looked through; all are right." }))]
pub(super) struct ManyReason {
    /// Kept with each notice.
    #[schema(min_length = 1, max_length = 1000, example = "Looked through; all are right.")]
    reason: String,
}

/// What became of what was held.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Released)]
pub(super) struct ReleasedView {
    released: u64,
    /// No longer owed meanwhile.
    superseded: u64,
    /// Past their last day meanwhile.
    skipped: u64,
    cancelled: u64,
}

impl From<Released> for ReleasedView {
    fn from(done: Released) -> Self {
        Self { released: done.released, superseded: done.superseded, skipped: done.skipped, cancelled: done.cancelled }
    }
}

/// Releases or cancels everything that a scan or an import held.
pub(super) async fn settle_held(
    api: &Api,
    db: &mut Db,
    held_by: HeldBy,
    cancel: bool,
    by: &str,
    body: Value,
) -> Result<Answer, Problem> {
    let reason = read_object(body, |fields| fields.required("reason", line(1000)))?;
    let rules = api.action_rules(api.moment(db).await?);
    let done = release_held(db, held_by, cancel, &reason, by, &rules, |_| {}).await?;
    Ok(Answer::ok(&ReleasedView::from(done)))
}

/// Releases what the scan held, as far as it is still owed and in time.
#[utoipa::path(post, path = "/scans/{id}/release", tag = TAG, params(("id" = Uuid, Path)), request_body = ManyReason,
    responses((status = 200, description = "What became of it", body = ReleasedView),
              (status = 409, description = "wrong-state")))]
async fn release(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    Json(body): Json,
) -> Result<Answer, Problem> {
    settle_held(&api, &mut db, HeldBy::Scan(id), false, &caller.by, body).await
}

/// Cancels what the scan held.
#[utoipa::path(post, path = "/scans/{id}/cancel", tag = TAG, params(("id" = Uuid, Path)), request_body = ManyReason,
    responses((status = 200, description = "What became of it", body = ReleasedView),
              (status = 409, description = "wrong-state")))]
async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    Json(body): Json,
) -> Result<Answer, Problem> {
    settle_held(&api, &mut db, HeldBy::Scan(id), true, &caller.by, body).await
}
