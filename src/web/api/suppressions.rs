//! `/suppressions`: addresses that must not be mailed.

use axum::extract::{OriginalUri, State};
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::access::Caller;
use super::answer::Answer;
use super::body::Json;
use super::fields::{line, parsed, read_object};
use super::page::{Listed, Page};
use super::permits::Paging;
use super::problem::Problem;
use super::query::Query;
use super::session::Db;
use super::shapes::{Id, words, words_or_null};
use super::{Api, ROOT};
use crate::domain::recipient::{EmailAddress, SuppressionClass};
use crate::store::office_log::{Deed, Subject, record};
use crate::store::suppressions::{SuppressionRow, lift_suppression, list_suppressions, suppress};
use crate::store::{PgConnection, Result as StoreResult, unit};

const TAG: &str = "suppressions";

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(lift))
}

/// An address that must not be mailed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suppression)]
struct SuppressionView {
    id: Uuid,
    /// In lower case.
    #[schema(example = "ada@example.org")]
    address: String,
    #[schema(schema_with = words::<SuppressionClass>)]
    class: String,
    reason: String,
    /// What wrote it: `refused` by a mail server, or who.
    source: String,
    created_at: DateTime<Utc>,
}

impl From<SuppressionRow> for SuppressionView {
    fn from(row: SuppressionRow) -> Self {
        let SuppressionRow { id, address, class, reason, source, created_at } = row;
        Self { id, address, class, reason, source, created_at }
    }
}

/// What can be written of a suppression.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "address": "ada@example.org", "class": "courtesy", "reason": "The holder asked for it." }))]
struct SuppressionWrite {
    #[schema(max_length = 254, example = "ada@example.org")]
    address: String,
    /// `all` unless given.
    #[schema(schema_with = words_or_null::<SuppressionClass>)]
    class: Option<SuppressionClass>,
    #[schema(min_length = 1, max_length = 1000, example = "The holder asked for it.")]
    reason: String,
}

/// Suppressions, newest first.
#[utoipa::path(get, path = "/suppressions", tag = TAG, params(Paging),
    responses((status = 200, description = "A page of suppressions", body = Listed<SuppressionView>)))]
async fn list(mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let page = Page::<Uuid>::read(&uri, &mut query)?;
    query.finish()?;
    let rows = list_suppressions(&mut db, None, page.after, page.fetch()).await?;
    Ok(page.answer(rows, |row| row.id, SuppressionView::from))
}

/// Suppresses an address. One that is suppressed for that class already is answered as it is, with 200.
#[utoipa::path(post, path = "/suppressions", tag = TAG, request_body = SuppressionWrite,
    responses((status = 201, description = "The new suppression", body = SuppressionView),
              (status = 200, description = "It was there", body = SuppressionView)))]
async fn create(State(api): State<Api>, caller: Caller, mut db: Db, Json(body): Json) -> Result<Answer, Problem> {
    let wanted = read_body(body)?;
    let now = api.moment(&mut db).await?.now;
    let (row, is_new) = add(&mut db, &wanted, &caller.by, now).await?;
    let view = SuppressionView::from(row);
    Ok(if is_new { Answer::created(&format!("{ROOT}/suppressions/{}", view.id), &view) } else { Answer::ok(&view) })
}

/// Lets an address be mailed again. What was suppressed meanwhile stays so until it is retried.
#[utoipa::path(delete, path = "/suppressions/{id}", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 204, description = "It is gone")))]
async fn lift(State(api): State<Api>, caller: Caller, Id(id): Id, mut db: Db) -> Result<StatusCode, Problem> {
    let now = api.moment(&mut db).await?.now;
    end(&mut db, id, None, &caller.by, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is wanted of a suppression.
#[derive(Debug)]
pub(in crate::web) struct Wanted {
    address: EmailAddress,
    class: SuppressionClass,
    reason: String,
}

/// Reads it.
pub(in crate::web) fn read_body(body: Value) -> Result<Wanted, Problem> {
    read_object(body, |fields| {
        let address = fields.required("address", parsed::<EmailAddress>("malformed_address"));
        let class = fields.optional("class", parsed("not_allowed")).unwrap_or(SuppressionClass::All);
        let reason = fields.required("reason", line(1000));
        Some(Wanted { address: address?, class, reason: reason? })
    })
}

/// Suppresses an address, and records who did. Says also whether it is new.
pub(in crate::web) async fn add(
    connection: &mut PgConnection,
    wanted: &Wanted,
    by: &str,
    now: DateTime<Utc>,
) -> StoreResult<(SuppressionRow, bool)> {
    let mut work = unit::begin(connection).await?;
    let Wanted { address, class, reason } = wanted;
    let (row, is_new) = suppress(&mut work, &address.key(), *class, reason, by, now).await?;
    if is_new {
        let deed = Deed { after: Some(said(&row)), ..deed(by, "suppressed", &row) };
        record(&mut *work, deed, now).await?;
    }
    work.commit().await?;
    Ok((row, is_new))
}

/// Lifts a suppression, and records who did, and why if they say so.
pub(in crate::web) async fn end(
    connection: &mut PgConnection,
    id: Uuid,
    reason: Option<&str>,
    by: &str,
    now: DateTime<Utc>,
) -> StoreResult<SuppressionRow> {
    let mut work = unit::begin(connection).await?;
    let row = lift_suppression(&mut work, id).await?;
    let after = reason.map(|reason| json!({ "reason to lift": reason }));
    let deed = Deed { before: Some(said(&row)), after, ..deed(by, "lifted", &row) };
    record(&mut *work, deed, now).await?;
    work.commit().await?;
    Ok(row)
}

fn said(row: &SuppressionRow) -> Value {
    json!({ "class": row.class, "reason": row.reason, "source": row.source })
}

fn deed<'d>(by: &'d str, action: &'d str, row: &'d SuppressionRow) -> Deed<'d> {
    Deed {
        by,
        action,
        subject: Subject::Suppression,
        subject_id: Some(row.id),
        label: &row.address,
        before: None,
        after: None,
    }
}
