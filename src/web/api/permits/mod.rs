//! `/permits`: create, read, change, renew, archive, and what became of each.

pub(in crate::web) mod ahead;
mod edit;
mod export;
pub(in crate::web) mod view;
pub(in crate::web) mod write;

use axum::extract::{OriginalUri, State};
use axum::http::HeaderMap;
use axum::response::Response;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::access::Caller;
use super::answer::Answer;
use super::body::{Json, OptionalJson};
use super::conditional::{IfMatch, if_match, optional_if_match, unless_known};
use super::fields::read_object;
use super::notices::Nothing;
use super::page::{Listed, Page};
use super::problem::Problem;
use super::query::Query;
use super::session::Db;
use super::shapes::{Id, words};
use super::{Api, ROOT};
use crate::domain::calendar::day_in;
use crate::domain::permit::PermitStatus;
use crate::domain::phase::Phase;
use crate::store::changes;
use crate::store::history::list_changes;
use crate::store::lists::permits::{After, PermitFilter, list_permits, read_permit};
use crate::store::permit_types::find_permit_type;
use crate::store::permits::list_terms;
use crate::store::unit;
use crate::store::{Moment, PgConnection, StoreError};
use view::{ChangeView, PermitView, TermView};
use write::{PermitWrite, Renewal};

const TAG: &str = "permits";

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(export::export))
        .routes(routes!(read, edit::replace, edit::patch, archive))
        .routes(routes!(restore))
        .routes(routes!(renew))
        .routes(routes!(terms))
        .routes(routes!(history))
        .routes(routes!(ahead::notices, ahead::decide))
        .routes(routes!(ahead::read_outlook))
}

/// What is asked of the list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "it only describes the parameters")]
struct Filters {
    /// Words, each of which is somewhere in number, external id, holder, address or site.
    q: Option<String>,
    /// Code or name of a permit type.
    permit_type: Option<String>,
    #[param(schema_with = words::<PermitStatus>)]
    status: Option<PermitStatus>,
    #[param(schema_with = words::<Phase>)]
    phase: Option<Phase>,
    /// First last-valid day.
    expires_from: Option<chrono::NaiveDate>,
    /// Last last-valid day.
    expires_to: Option<chrono::NaiveDate>,
    /// Changed at or after this instant. A change is seen a moment after the instant that it bears, and what a large
    /// import changed up to minutes after: ask again from some minutes before the last time, and compare `version`.
    updated_since: Option<chrono::DateTime<chrono::Utc>>,
    /// true: archived ones only; false: others only.
    archived: Option<bool>,
}

/// Permits, by last valid day.
#[utoipa::path(get, path = "/permits", tag = TAG, params(Filters, Paging),
    responses((status = 200, description = "A page of permits", body = Listed<PermitView>)))]
async fn list(State(api): State<Api>, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let filter = read_filter(&mut db, &mut query).await?;
    let page = Page::<After>::read(&uri, &mut query)?;
    query.finish()?;
    let today = api.moment(&mut db).await?.today;
    let rows = list_permits(&mut db, &filter, today, page.after, page.fetch()).await?;
    Ok(page.answer(rows, |row| (row.life.expires_on, row.id), |row| PermitView::of(row, today)))
}

/// Most words of a search, so that nobody makes the database look for hundreds.
const WORDS_MAX: usize = 10;

pub(in crate::web) async fn read_filter(
    connection: &mut PgConnection,
    query: &mut Query,
) -> Result<PermitFilter, Problem> {
    let q = query.text("q").unwrap_or_default();
    let words: Vec<String> = q.split_whitespace().map(str::to_owned).collect();
    if words.len() > WORDS_MAX || q.len() > 500 {
        return Err(super::query::wrong("q", &format!("has at most {WORDS_MAX} words and 500 bytes")));
    }
    let permit_type =
        match query.text("permit_type") {
            None => None,
            Some(text) => {
                let found = find_permit_type(connection, &text).await?;
                Some(found.ok_or_else(|| {
                    super::query::wrong("permit_type", "there is no permit type with this code or name")
                })?)
            }
        };
    Ok(PermitFilter {
        words,
        permit_type,
        status: query.parsed("status")?,
        phase: query.parsed("phase")?,
        expires_from: query.date("expires_from")?,
        expires_to: query.date("expires_to")?,
        updated_since: query.instant("updated_since")?,
        archived: query.boolean("archived")?,
        number_key: None,
    })
}

/// Records a permit, and what is owed of it at once.
#[utoipa::path(post, path = "/permits", tag = TAG, request_body = PermitWrite,
    responses((status = 201, description = "The new permit", body = PermitView),
              (status = 409, description = "permit-number-taken")))]
async fn create(State(api): State<Api>, caller: Caller, mut db: Db, Json(body): Json) -> Result<Answer, Problem> {
    let data = write::read(&mut db, body, None).await?;
    let moment = api.moment(&mut db).await?;
    // In one transaction with its answer: nobody else's change comes between.
    let mut work = unit::begin(&mut db).await?;
    let permit = changes::create(&mut work, &data, &api.change_rules(moment, &caller.by)).await?;
    let view = show(&mut work, permit.id, moment).await?;
    work.commit().await?;
    Ok(Answer::created(&format!("{ROOT}/permits/{}", view.id), &view).version(view.version))
}

async fn show(connection: &mut PgConnection, id: Uuid, moment: Moment) -> Result<PermitView, Problem> {
    Ok(PermitView::of(read_permit(connection, id).await?, moment.today))
}

async fn shown(connection: &mut PgConnection, id: Uuid, moment: Moment) -> Result<Answer, Problem> {
    let view = show(connection, id, moment).await?;
    Ok(Answer::ok(&view).version(view.version))
}

/// One permit, archived or not.
#[utoipa::path(get, path = "/permits/{id}", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The permit", body = PermitView), (status = 304, description = "Not changed")))]
async fn read(
    State(api): State<Api>,
    Id(id): Id,
    mut db: Db,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Query::parse(uri.query())?.finish()?;
    let row = read_permit(&mut db, id).await?;
    let today = day_in(api.clock.business(row.read_at), api.zone);
    let view = PermitView::of(row, today);
    Ok(unless_known(&headers, view.version, Answer::ok(&view)))
}

/// Puts a permit away: nothing more is sent, and its number stays taken.
#[utoipa::path(delete, path = "/permits/{id}", tag = TAG,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was read")),
    responses((status = 200, description = "The archived permit", body = PermitView)))]
async fn archive(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    headers: HeaderMap,
) -> Result<Answer, Problem> {
    let expected = if_match(&headers)?;
    let moment = api.moment(&mut db).await?;
    let mut work = unit::begin(&mut db).await?;
    changes::archive(&mut work, id, expected, &api.change_rules(moment, &caller.by)).await?;
    let answer = shown(&mut work, id, moment).await?;
    work.commit().await?;
    Ok(answer)
}

/// Brings an archived permit back, and with it what is owed of it.
#[utoipa::path(post, path = "/permits/{id}/restore", tag = TAG, request_body = Option<Nothing>,
    params(("id" = Uuid, Path), ("If-Match" = Option<String>, Header, description = "The ETag that was read")),
    responses((status = 200, description = "The permit", body = PermitView)))]
async fn restore(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    headers: HeaderMap,
    OptionalJson(body): OptionalJson,
) -> Result<Answer, Problem> {
    read_object(body, |_| Some(()))?;
    let expected = optional_if_match(&headers)?.and_then(IfMatch::version);
    let moment = api.moment(&mut db).await?;
    let mut work = unit::begin(&mut db).await?;
    changes::restore(&mut work, id, expected, &api.change_rules(moment, &caller.by)).await?;
    let answer = shown(&mut work, id, moment).await?;
    work.commit().await?;
    Ok(answer)
}

/// Opens a new term and confirms it to the holder. Renewing to the date it already has changes nothing.
#[utoipa::path(post, path = "/permits/{id}/renew", tag = TAG, request_body = Renewal,
    params(("id" = Uuid, Path), ("If-Match" = Option<String>, Header, description = "The ETag that was read")),
    responses((status = 200, description = "The permit", body = PermitView),
              (status = 409, description = "wrong-state"), (status = 422, description = "not-later")))]
async fn renew(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Answer, Problem> {
    let expected = optional_if_match(&headers)?.and_then(IfMatch::version);
    let moment = api.moment(&mut db).await?;
    // The state is looked at before the body.
    if show(&mut db, id, moment).await?.archived_at.is_some() {
        return Err(StoreError::wrong_state("archived", "the permit is archived").into());
    }
    let (expires_on, effective_on) = write::read_renewal(body)?;
    let rules = api.change_rules(moment, &caller.by);
    let mut work = unit::begin(&mut db).await?;
    changes::renew(&mut work, id, expected, expires_on, effective_on, &rules).await?;
    let answer = shown(&mut work, id, moment).await?;
    work.commit().await?;
    Ok(answer)
}

/// How a page of what belongs to one permit is asked for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "it only describes the parameters")]
pub(super) struct Paging {
    /// Rows of a page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// Where the page begins, as the page before said.
    cursor: Option<String>,
}

/// Validity periods, newest first.
#[utoipa::path(get, path = "/permits/{id}/terms", tag = TAG, params(("id" = Uuid, Path), Paging),
    responses((status = 200, description = "A page of terms", body = Listed<TermView>)))]
async fn terms(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let page = Page::<i32>::read(&uri, &mut query)?;
    query.finish()?;
    read_permit(&mut db, id).await?;
    let mut terms = list_terms(&mut db, id).await?;
    terms.reverse();
    terms.retain(|term| page.after.is_none_or(|after| term.number < after));
    Ok(page.answer(terms, |term| term.number, TermView::from))
}

/// Who changed what, newest first.
#[utoipa::path(get, path = "/permits/{id}/history", tag = TAG, params(("id" = Uuid, Path), Paging),
    responses((status = 200, description = "A page of changes", body = Listed<ChangeView>)))]
async fn history(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let page = Page::<i64>::read(&uri, &mut query)?;
    query.finish()?;
    read_permit(&mut db, id).await?;
    let changes = list_changes(&mut *db, id, page.after, page.fetch()).await?;
    Ok(page.answer(changes, |change| change.version, ChangeView::from))
}
