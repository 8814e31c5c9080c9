//! `POST /notices/actions`: one action for many notices, each in a transaction of its own.

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::Api;
use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::body::Json;
use super::super::fields::{self, Fault, Fields, date, line, parsed};
use super::super::problem::{Kind, Problem};
use super::super::session::Db;
use super::super::shapes::{words, words_or_null};
use super::TAG;
use super::action::{Action, REASON_MAX, Verb};
use crate::domain::attempt::Resolution;
use crate::domain::notice::NoticeState;
use crate::store::lists::notices::{NoticeFilter, find_notices, in_order_of_permits};

/// Most notices of one request.
const MANY: usize = 200;

/// What is to be done, and with which notices: `ids` or `filter`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "action": "release", "filter": { "state": "held" }, "reason": "Looked through; all are right." }))]
pub(super) struct ManyBody {
    #[schema(schema_with = words::<Verb>)]
    action: Verb,
    /// At most 200.
    #[schema(max_items = 200)]
    ids: Option<Vec<Uuid>>,
    filter: Option<ManyFilter>,
    /// As the action takes it.
    #[schema(min_length = 1, max_length = 1000)]
    reason: Option<String>,
    /// For `resolve`.
    #[schema(schema_with = words_or_null::<Resolution>)]
    outcome: Option<Resolution>,
}

/// The first 200 notices that this leaves.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
pub(super) struct ManyFilter {
    #[schema(schema_with = words::<NoticeState>)]
    state: NoticeState,
    permit_id: Option<Uuid>,
    #[schema(example = "expires-30d")]
    notice_type: Option<String>,
    due_from: Option<chrono::NaiveDate>,
    due_to: Option<chrono::NaiveDate>,
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ManyDone {
    /// Notices with which it was done.
    done: Vec<Uuid>,
    /// Notices that did not allow it, and why.
    failed: Vec<Failed>,
    /// Whether the filter leaves more than were looked at; ask again.
    more: bool,
}

/// A notice that did not allow it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Failed {
    id: Uuid,
    #[schema(value_type = super::super::openapi::ProblemBody)]
    problem: Value,
}

/// Which notices.
enum Which {
    Ids(Vec<Uuid>),
    Filter(NoticeFilter),
}

/// Does the same with many notices. Each is done or not by itself; the answer says which.
#[utoipa::path(post, path = "/notices/actions", tag = TAG, request_body = ManyBody,
    responses((status = 200, description = "What was done", body = ManyDone)))]
pub(super) async fn act(
    State(api): State<Api>,
    caller: Caller,
    mut db: Db,
    Json(body): Json,
) -> Result<Answer, Problem> {
    let (action, which) = fields::read_object(body, read)?;
    let rules = api.action_rules(api.moment(&mut db).await?);
    let (ids, more) = match which {
        // In the order in which everybody locks.
        Which::Ids(ids) => (in_order_of_permits(&mut db, &ids).await?, false),
        Which::Filter(filter) => {
            let mut ids = find_notices(&mut db, &filter, MANY as i64 + 1).await?;
            let more = ids.len() > MANY;
            ids.truncate(MANY);
            (ids, more)
        }
    };
    let mut outcome = ManyDone { done: Vec::new(), failed: Vec::new(), more };
    for id in ids {
        match action.perform_recorded(&mut db, id, &caller.by, &rules).await {
            Ok(()) => outcome.done.push(id),
            Err(error) => {
                let problem = Problem::from(error);
                let is_fault = matches!(problem.kind(), Kind::Internal | Kind::Unavailable);
                // What was done before stays done, and so it is told.
                if is_fault && (db.is_one_transaction() || outcome.done.is_empty()) {
                    return Err(problem);
                }
                outcome.failed.push(Failed { id, problem: problem.to_json() });
            }
        }
    }
    Ok(Answer::ok(&outcome))
}

fn read(fields: &mut Fields<'_>) -> Option<(Action, Which)> {
    let verb = fields.required("action", parsed("not_allowed"));
    let is_said = fields.has("ids") || fields.has("filter");
    let ids = fields.optional("ids", ids);
    let filter = fields.object("filter", filter);
    if matches!(verb, None | Some(Verb::Copies | Verb::Posted)) {
        // What belongs to an action that is not to be had here is not wrong by itself.
        fields.ignore("reason");
        fields.ignore("outcome");
    }
    let action = verb.and_then(|verb| match verb {
        // What these take belongs to one notice alone.
        Verb::Copies | Verb::Posted => {
            fields.refuse("action", ("not_allowed", "cannot be done with many notices at once".to_owned()));
            None
        }
        Verb::Retry => {
            // It may be given for each of them, and this one needs none.
            fields.optional("reason", line(REASON_MAX));
            Some(Action::Retry)
        }
        verb => Action::read(verb, fields),
    });
    let which = match (ids, filter) {
        (Some(ids), None) => Some(Which::Ids(ids)),
        (None, Some(filter)) => Some(Which::Filter(filter)),
        // What is wrong with them has been told.
        (None, None) if is_said => None,
        (None, None) => {
            fields.refuse("ids", ("required", "ids or filter is needed".to_owned()));
            None
        }
        (Some(_), Some(_)) => {
            fields.refuse("filter", ("not_allowed", "only one of ids and filter can be given".to_owned()));
            None
        }
    };
    Some((action?, which?))
}

fn ids(value: &Value) -> Result<Vec<Uuid>, Fault> {
    let wrong = || ("malformed_id", format!("must be a list of 1 to {MANY} UUIDs"));
    let items = value.as_array().filter(|items| (1..=MANY).contains(&items.len())).ok_or_else(wrong)?;
    items.iter().map(|item| item.as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)).collect()
}

fn filter(fields: &mut Fields<'_>) -> Option<NoticeFilter> {
    let state = fields.required("state", parsed("not_allowed"));
    let permit_id = fields.optional("permit_id", parsed("malformed_id"));
    let notice_type = fields.optional("notice_type", line(40));
    let due_from = fields.optional("due_from", date);
    let due_to = fields.optional("due_to", date);
    Some(NoticeFilter { state: Some(state?), permit_id, notice_type, due_from, due_to, ..NoticeFilter::default() })
}
