//! What a permit was sent, and what will become of each step of its schedule.

use axum::extract::{OriginalUri, State};
use chrono::NaiveDate;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::Api;
use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::body::Json;
use super::super::fields::{line, parsed, read_object};
use super::super::notices::{NoticeView, page_of, shown};
use super::super::page::{Listed, Page};
use super::super::problem::Problem;
use super::super::query::Query;
use super::super::session::Db;
use super::super::shapes::{Id, words, words_or_null};
use super::{Paging, TAG};
use crate::domain::notice::NoticeState;
use crate::domain::words;
use crate::store::actions::{ActionRules, Beforehand, write_in_advance};
use crate::store::lists::notices::{NoticeFilter, name_notice};
use crate::store::lists::permits::read_permit;
use crate::store::office_log::{Deed, Subject, record};
use crate::store::{PgConnection, Result as StoreResult, unit};
use crate::web::prospects::{StepAhead, read_ahead};

/// Notices of all its periods, newest first.
#[utoipa::path(get, path = "/permits/{id}/notices", tag = TAG, params(("id" = Uuid, Path), Paging),
    responses((status = 200, description = "A page of notices", body = Listed<NoticeView>)))]
pub(super) async fn notices(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let page = Page::<Uuid>::read(&uri, &mut query)?;
    query.finish()?;
    read_permit(&mut db, id).await?;
    let filter = NoticeFilter { permit_id: Some(id), ..NoticeFilter::default() };
    page_of(&mut db, &filter, &page).await
}

words! {
    /// What is decided about a step before it is due.
    "action" Decision {
        /// Its notice is held.
        Hold = "hold",
        /// Its notice is not sent.
        Cancel = "cancel",
    }
}

/// What is decided about a step before it is due.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "notice_type": "expires-30d", "action": "hold", "reason": "The office is closed then." }))]
pub(super) struct InAdvance {
    /// A dated step of the permit's schedule.
    #[schema(min_length = 1, max_length = 40, example = "expires-30d")]
    notice_type: String,
    #[schema(schema_with = words::<Decision>)]
    action: Decision,
    #[schema(min_length = 1, max_length = 1000)]
    reason: String,
}

/// Holds or cancels the notice of a step that is not yet due, is owed, and has no notice. One that is released before
/// its day waits for that day.
#[utoipa::path(post, path = "/permits/{id}/notices", tag = TAG, params(("id" = Uuid, Path)), request_body = InAdvance,
    responses((status = 200, description = "The notice", body = NoticeView),
              (status = 409, description = "wrong-state")))]
pub(super) async fn decide(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    Json(body): Json,
) -> Result<Answer, Problem> {
    let (notice_type, decision, reason) = read_object(body, |fields| {
        let notice_type = fields.required("notice_type", line(40));
        let decision = fields.required("action", parsed("not_allowed"));
        let reason = fields.required("reason", line(1000));
        Some((notice_type?, decision?, reason?))
    })?;
    let beforehand = match decision {
        Decision::Hold => Beforehand::Hold,
        Decision::Cancel => Beforehand::Cancel,
    };
    let rules = api.action_rules(api.moment(&mut db).await?);
    let notice = decide_recorded(&mut db, id, &notice_type, (beforehand, &reason), &caller.by, &rules).await?;
    shown(&mut db, notice).await
}

/// Writes the notice, and records who decided.
pub(in crate::web) async fn decide_recorded(
    connection: &mut PgConnection,
    permit: Uuid,
    notice_type: &str,
    (beforehand, reason): (Beforehand, &str),
    by: &str,
    rules: &ActionRules<'_>,
) -> StoreResult<Uuid> {
    let mut work = unit::begin(connection).await?;
    let notice = write_in_advance(&mut work, permit, notice_type, beforehand, reason, rules).await?;
    let (label, state) = name_notice(&mut *work, notice).await?;
    let deed = Deed {
        by,
        action: "decided-in-advance",
        subject: Subject::Notice,
        subject_id: Some(notice),
        label: &label,
        before: None,
        after: Some(json!({ "state": state, "reason": reason })),
    };
    record(&mut *work, deed, rules.moment.now).await?;
    work.commit().await?;
    Ok(notice)
}

words! {
    /// What will become of a step.
    "prospect" Will {
        /// It will be sent, if nothing changes.
        Send = "send",
        /// It will not.
        Nothing = "nothing",
    }
}

/// What will become of each step, as things are now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Outlook {
    /// The day on which it looks so.
    as_of: NaiveDate,
    /// In the order of the schedule.
    steps: Vec<StepOutlook>,
}

/// What will become of one step of the present period.
#[derive(Debug, Serialize, ToSchema)]
struct StepOutlook {
    notice_type: String,
    due_on: Option<NaiveDate>,
    /// Last day on which it may go.
    send_by: Option<NaiveDate>,
    /// State of its notice; null if it has none.
    #[schema(schema_with = words_or_null::<NoticeState>)]
    state: Option<NoticeState>,
    #[schema(schema_with = words::<Will>)]
    will: Will,
    /// In a plain sentence.
    why: String,
}

impl From<StepAhead> for StepOutlook {
    fn from(step: StepAhead) -> Self {
        let StepAhead { notice_type, due_on, send_by, notice, goes_on, is_letter: _, why } = step;
        let will = if goes_on.is_some() { Will::Send } else { Will::Nothing };
        let state = notice.map(|(_, state)| state);
        Self { notice_type: notice_type.to_string(), due_on, send_by, state, will, why }
    }
}

/// For each step of the schedule when it is due, and why it was, will be, or will not be sent.
#[utoipa::path(get, path = "/permits/{id}/outlook", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The outlook", body = Outlook)))]
pub(super) async fn read_outlook(
    State(api): State<Api>,
    Id(id): Id,
    mut db: Db,
    OriginalUri(uri): OriginalUri,
) -> Result<Answer, Problem> {
    Query::parse(uri.query())?.finish()?;
    let moment = api.moment(&mut db).await?;
    let steps = read_ahead(&mut db, id, moment.today, api.window.as_ref()).await?;
    let steps = steps.into_iter().map(StepOutlook::from).collect();
    Ok(Answer::ok(&Outlook { as_of: moment.today, steps }))
}
