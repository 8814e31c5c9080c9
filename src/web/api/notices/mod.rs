//! `/notices`: what was, is and will be sent, what can be done about it, and the very bytes.

pub(in crate::web) mod action;
mod many;
pub(in crate::web) mod message;
mod preview;
mod view;

use axum::extract::{OriginalUri, State};
use chrono::NaiveDate;
use serde_json::Value;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::Api;
use super::access::Caller;
use super::answer::Answer;
use super::body::{Json, OptionalJson};
use super::page::{Listed, Page};
use super::problem::{Kind, Problem};
use super::query::Query;
use super::session::Db;
use super::shapes::{Id, words};
use crate::domain::notice::NoticeState;
use crate::store::PgConnection;
use crate::store::actions::ActionRules;
use crate::store::lists::notices::{NoticeFilter, list_notices, read_notice};
use crate::store::unit;
pub(super) use action::Nothing;
use action::{Action, CancelBody, CopiesBody, MayHaveReason, PostedBody, ResolveBody, Verb, WithReason};
pub(super) use view::NoticeView;

const TAG: &str = "notices";

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(many::act))
        .routes(routes!(read))
        .routes(routes!(retry))
        .routes(routes!(cancel))
        .routes(routes!(hold))
        .routes(routes!(release))
        .routes(routes!(resolve))
        .routes(routes!(copies))
        .routes(routes!(posted))
        .routes(routes!(preview::preview))
        .routes(routes!(message::of_notice))
        .routes(routes!(message::of_delivery))
}

/// What is asked of the list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "it only describes the parameters")]
struct Filters {
    #[param(schema_with = words::<NoticeState>)]
    state: Option<NoticeState>,
    permit_id: Option<Uuid>,
    /// Such as `expires-30d`.
    notice_type: Option<String>,
    /// First due day.
    due_from: Option<NaiveDate>,
    /// Last due day.
    due_to: Option<NaiveDate>,
    /// Rows of a page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// Where the page begins, as the page before said.
    cursor: Option<String>,
}

pub(in crate::web) fn read_filter(query: &mut Query) -> Result<NoticeFilter, Problem> {
    Ok(NoticeFilter {
        state: query.parsed("state")?,
        permit_id: query.parsed("permit_id")?,
        notice_type: query.text("notice_type"),
        due_from: query.date("due_from")?,
        due_to: query.date("due_to")?,
        ..NoticeFilter::default()
    })
}

/// Notices, newest first, with their deliveries.
#[utoipa::path(get, path = "/notices", tag = TAG, params(Filters),
    responses((status = 200, description = "A page of notices", body = Listed<NoticeView>)))]
async fn list(mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let filter = read_filter(&mut query)?;
    let page = Page::<Uuid>::read(&uri, &mut query)?;
    query.finish()?;
    page_of(&mut db, &filter, &page).await
}

/// A page of the notices that the filter leaves.
pub(super) async fn page_of(
    connection: &mut PgConnection,
    filter: &NoticeFilter,
    page: &Page<Uuid>,
) -> Result<Answer, Problem> {
    let rows = list_notices(connection, filter, page.after, page.fetch()).await?;
    Ok(page.answer(rows, |row| row.id, NoticeView::brief))
}

/// One notice with its deliveries and every attempt.
#[utoipa::path(get, path = "/notices/{id}", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The notice", body = NoticeView)))]
async fn read(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    Query::parse(uri.query())?.finish()?;
    shown(&mut db, id).await
}

/// The notice as it is now.
pub(super) async fn shown(connection: &mut PgConnection, id: Uuid) -> Result<Answer, Problem> {
    Ok(Answer::ok(&NoticeView::whole(read_notice(connection, id).await?)))
}

/// Does what is wanted of one notice, and shows it.
async fn act(api: &Api, caller: &Caller, db: &mut Db, id: Uuid, verb: Verb, body: Value) -> Result<Answer, Problem> {
    let rules = api.action_rules(api.moment(db).await?);
    settle(db, id, verb, body, &caller.by, &rules).await?;
    shown(db, id).await
}

/// Does what is wanted of one notice. The state is looked at before the body.
pub(in crate::web) async fn settle(
    connection: &mut PgConnection,
    id: Uuid,
    verb: Verb,
    body: Value,
    by: &str,
    rules: &ActionRules<'_>,
) -> Result<(), Problem> {
    let action = match Action::of(verb, body) {
        Ok(action) => action,
        Err(fault) => {
            let plain = Action::plain(verb, rules.moment.today);
            let mut trial = unit::begin(connection).await?;
            let tried = plain.perform(&mut trial, id, by, rules).await;
            drop(trial);
            let refused = tried.err().map(Problem::from).filter(|problem| problem.kind() != Kind::ValidationFailed);
            return Err(refused.unwrap_or(fault));
        }
    };
    Ok(action.perform_recorded(connection, id, by, rules).await?)
}

macro_rules! action {
    ($(#[$doc:meta])* $name:ident, $path:literal, $verb:ident, $extractor:ident, $body:ty) => {
        $(#[$doc])*
        #[utoipa::path(post, path = $path, tag = TAG, params(("id" = Uuid, Path)), request_body = $body,
            responses((status = 200, description = "The notice", body = NoticeView),
                      (status = 409, description = "wrong-state, being-sent")))]
        async fn $name(
            State(api): State<Api>,
            caller: Caller,
            Id(id): Id,
            mut db: Db,
            $extractor(body): $extractor,
        ) -> Result<Answer, Problem> {
            act(&api, &caller, &mut db, id, Verb::$verb, body).await
        }
    };
}

action!(
    /// A copy that failed, bounced, or was suppressed and no longer is, goes again with a new budget of attempts.
    retry, "/notices/{id}/retry", Retry, OptionalJson, Option<Nothing>
);
action!(
    /// A pending, held or failed notice is not sent.
    cancel, "/notices/{id}/cancel", Cancel, Json, CancelBody
);
action!(
    /// A pending notice is kept back until it is released or cancelled.
    hold, "/notices/{id}/hold", Hold, Json, WithReason
);
action!(
    /// A held notice goes, if it is still owed and in time.
    release, "/notices/{id}/release", Release, OptionalJson, Option<MayHaveReason>
);
action!(
    /// Says whether an ambiguous copy had arrived. One that had not goes again, through the same checks as any other.
    resolve, "/notices/{id}/resolve", Resolve, Json, ResolveBody
);
action!(
    /// Sends one more copy, to the holder or to another address.
    copies, "/notices/{id}/copies", Copies, Json, CopiesBody
);
action!(
    /// A pending letter was posted.
    posted, "/notices/{id}/posted", Posted, Json, PostedBody
);
