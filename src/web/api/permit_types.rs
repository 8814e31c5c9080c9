//! `/permit-types`: what each type of permit owes, and when.

use axum::extract::{OriginalUri, State};
use axum::http::HeaderMap;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::access::Caller;
use super::answer::Answer;
use super::body::Json;
use super::conditional::{IfMatch, optional_if_match, unless_known};
use super::fields::{self, Fault, Fields, boolean, integer, line, lines, parsed};
use super::page::{Listed, Page};
use super::permits::Paging;
use super::problem::{Kind, Problem};
use super::query::Query;
use super::session::Db;
use super::shapes::{Code, words, words_or_null};
use super::{Api, ROOT};
use crate::domain::notice::NoticeClass;
use crate::domain::permit::{PermitTypeCode, TYPE_NAME_MAX};
use crate::domain::schedule::{LATE_BY_DAYS, OFFSET_DAYS_MAX, Schedule, Step};
use crate::mail::{URL_MAX, shown_link};
use crate::store::changes::ChangeRules;
use crate::store::lists::permit_types::{Expected, TypeData, TypeRow, Written, list_types, read_type, write_type};
use crate::store::office_log::{Deed, Subject, record};
use crate::store::{PgConnection, Result as StoreResult, StoreError, unit};

const TAG: &str = "permit types";
/// Most steps of a schedule.
pub(in crate::web) const STEPS_MAX: usize = 50;
/// Most days of grace.
const GRACE_MAX: i32 = 3650;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(read, write))
}

/// A permit type and its schedule.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PermitType)]
struct TypeView {
    #[schema(example = "food")]
    code: String,
    #[schema(example = "Food")]
    name: String,
    /// Where a holder renews.
    renewal_url: Option<String>,
    /// Whom a holder asks; may have several lines.
    office_contact: Option<String>,
    /// Days of grace after expiry.
    grace_days: i32,
    /// In the order of the schedule.
    steps: Vec<StepView>,
    version: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

/// One line of a schedule.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Step)]
struct StepView {
    #[schema(example = "expires-30d")]
    notice_type: String,
    /// Days after the last valid day, negative before; null for `renewed` only.
    offset_days: Option<i32>,
    #[schema(schema_with = words::<NoticeClass>)]
    class: NoticeClass,
    /// For a step after expiry: how many days after its due day it may still go.
    late_by_days: i32,
    enabled: bool,
}

impl From<TypeRow> for TypeView {
    fn from(row: TypeRow) -> Self {
        let steps = row.schedule.steps().iter().map(|step| StepView {
            notice_type: step.notice_type.to_string(),
            offset_days: step.offset_days,
            class: step.class,
            late_by_days: step.late_by_days,
            enabled: step.enabled,
        });
        Self {
            steps: steps.collect(),
            code: row.code,
            name: row.name,
            renewal_url: row.renewal_url,
            office_contact: row.office_contact,
            grace_days: row.grace_days,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// What can be written of a permit type.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({
    "name": "Food", "renewal_url": "https://permits.example.org/renew", "office_contact": "Permits office, 1 Main Street",
    "grace_days": 30, "steps": [{ "notice_type": "expires-30d", "offset_days": -30 }, { "notice_type": "expired-1d", "offset_days": 1 }],
}))]
struct TypeWrite {
    #[schema(min_length = 1, max_length = 200, example = "Food")]
    name: String,
    /// http or https, without a password.
    #[schema(max_length = 1000, example = "https://permits.example.org/renew")]
    renewal_url: Option<String>,
    #[schema(max_length = 10000)]
    office_contact: Option<String>,
    #[schema(minimum = 0, maximum = 3650)]
    grace_days: Option<i32>,
    /// The usual schedule for a new type, unless given; the present one stays for another.
    #[schema(max_items = 50)]
    steps: Option<Vec<StepWrite>>,
    /// Passed over, as are the others that only we write: what was read may be sent back.
    #[schema(read_only, required = false, value_type = Value)]
    code: Option<Value>,
    #[schema(read_only, required = false, value_type = Value)]
    version: Option<Value>,
    #[schema(read_only, required = false, value_type = Value)]
    created_at: Option<Value>,
    #[schema(read_only, required = false, value_type = Value)]
    updated_at: Option<Value>,
}

/// One line of a schedule.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
struct StepWrite {
    /// 1 to 40 lower-case letters, digits and dashes; each stands once.
    #[schema(pattern = "^[a-z0-9-]{1,40}$", example = "expires-30d")]
    notice_type: String,
    /// Needed for every step but `renewed`, which has none.
    #[schema(minimum = -3650, maximum = 3650, example = -30)]
    offset_days: Option<i32>,
    /// Statutory unless given.
    #[schema(schema_with = words_or_null::<NoticeClass>)]
    class: Option<NoticeClass>,
    /// 7 unless given.
    #[schema(minimum = 0, maximum = 3650)]
    late_by_days: Option<i32>,
    /// true unless given.
    enabled: Option<bool>,
}

/// Permit types, by code.
#[utoipa::path(get, path = "/permit-types", tag = TAG, params(Paging),
    responses((status = 200, description = "A page of permit types", body = Listed<TypeView>)))]
async fn list(mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let page = Page::<String>::read(&uri, &mut query)?;
    query.finish()?;
    let rows = list_types(&mut db, page.after.as_deref(), page.fetch()).await?;
    Ok(page.answer(rows, |row| row.code.clone(), TypeView::from))
}

/// One permit type.
#[utoipa::path(get, path = "/permit-types/{code}", tag = TAG, params(("code" = String, Path)),
    responses((status = 200, description = "The permit type", body = TypeView), (status = 304, description = "Not changed")))]
async fn read(
    Code(code): Code,
    mut db: Db,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Query::parse(uri.query())?.finish()?;
    let view = TypeView::from(read_type(&mut db, code.as_str()).await?);
    Ok(unless_known(&headers, view.version, Answer::ok(&view)))
}

/// Writes a permit type over, with If-Match; without it, makes a new one. What the new schedule makes of open notices
/// is written in the same transaction; what is newly due waits for the next scan.
#[utoipa::path(put, path = "/permit-types/{code}", tag = TAG, request_body = TypeWrite,
    params(("code" = String, Path, description = "1 to 64 lower-case letters, digits and dashes"),
           ("If-Match" = Option<String>, Header, description = "The ETag that was read; without it, a new one is made")),
    responses((status = 200, description = "The permit type", body = TypeView),
              (status = 201, description = "The new permit type", body = TypeView),
              (status = 428, description = "precondition-required")))]
async fn write(
    State(api): State<Api>,
    caller: Caller,
    Code(code): Code,
    mut db: Db,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Answer, Problem> {
    let expected = match optional_if_match(&headers)? {
        None => Expected::None,
        Some(IfMatch::Any) => Expected::Any,
        Some(IfMatch::Version(version)) => Expected::Version(version),
    };
    let moment = api.moment(&mut db).await?;
    let (mut data, steps) = read_body(body)?;
    data.schedule = match steps {
        Some(schedule) => schedule,
        None if expected != Expected::None => read_type(&mut db, code.as_str()).await?.schedule,
        None => Schedule::usual(),
    };
    let rules = api.change_rules(moment, &caller.by);
    let (written, row) = save(&mut db, &code, expected, &data, &rules).await?;
    let view = TypeView::from(row);
    match written {
        Written::Made => Ok(Answer::created(&format!("{ROOT}/permit-types/{code}"), &view).version(view.version)),
        Written::Changed => Ok(Answer::ok(&view).version(view.version)),
        Written::NeedsVersion => {
            let detail = "there is a permit type with this code; send If-Match with the ETag that you have read";
            Err(Problem::new(Kind::PreconditionRequired, detail))
        }
    }
}

/// Writes it, and records who did. What is written and what is answered are one transaction: nobody else's change comes
/// between.
pub(in crate::web) async fn save(
    connection: &mut PgConnection,
    code: &PermitTypeCode,
    expected: Expected,
    data: &TypeData,
    rules: &ChangeRules<'_>,
) -> StoreResult<(Written, TypeRow)> {
    let mut work = unit::begin(connection).await?;
    let before = match read_type(&mut work, code.as_str()).await {
        Err(StoreError::NotFound(_)) => None,
        found => Some(found?),
    };
    let (written, _) = write_type(&mut work, code, expected, data, rules).await?;
    let row = read_type(&mut work, code.as_str()).await?;
    let is_new = written == Written::Made;
    let before = before.filter(|_| !is_new);
    if is_new || before.as_ref().is_some_and(|before| before.version != row.version) {
        let deed = Deed {
            by: rules.by,
            action: if is_new { "made" } else { "changed" },
            subject: Subject::PermitType,
            subject_id: None,
            label: &row.code,
            before: before.as_ref().map(said),
            after: Some(said(&row)),
        };
        record(&mut *work, deed, rules.moment.now).await?;
    }
    work.commit().await?;
    Ok((written, row))
}

/// A permit type as the audit shows it: each step in one line.
pub(in crate::web) fn said(row: &TypeRow) -> Value {
    let steps = row.schedule.steps().iter().map(|step| {
        let day = step.offset_days.map_or_else(|| "at a renewal".to_owned(), |days| format!("day {days:+}"));
        let off = if step.enabled { "" } else { ", switched off" };
        let line = format!("{day}, {}, late by {}{off}", step.class, step.late_by_days);
        (step.notice_type.to_string(), Value::from(line))
    });
    json!({
        "name": row.name,
        "renewal_url": row.renewal_url,
        "office_contact": row.office_contact,
        "grace_days": row.grace_days,
        "steps": steps.collect::<serde_json::Map<_, _>>(),
    })
}

/// What is written, and the schedule if it is.
pub(in crate::web) fn read_body(body: Value) -> Result<(TypeData, Option<Schedule>), Problem> {
    fields::read_object(body, |fields| {
        let name = fields.required("name", line(TYPE_NAME_MAX));
        let renewal_url = fields.optional("renewal_url", link);
        let office_contact = fields.optional("office_contact", lines(fields::TEXT_MAX)).flatten();
        let grace_days = fields.optional("grace_days", integer(0..=GRACE_MAX)).unwrap_or(0);
        let has_steps = fields.has("steps");
        let steps = fields.list("steps", STEPS_MAX, step);
        let schedule = match Schedule::new(steps) {
            Ok(schedule) => schedule,
            // Steps that are wrong one by one say nothing about the whole.
            Err(error) => {
                if fields.are_right() {
                    fields.refuse("steps", ("not_allowed", error.to_string()));
                }
                Schedule::default()
            }
        };
        for name in ["code", "version", "created_at", "updated_at"] {
            // Whoever writes back what was read says nothing with these.
            fields.ignore(name);
        }
        let data = TypeData { name: name?, renewal_url, office_contact, grace_days, schedule: Schedule::default() };
        Some((data, has_steps.then_some(schedule)))
    })
}

fn step(fields: &mut Fields<'_>) -> Option<Step> {
    let notice_type = fields.required("notice_type", parsed("malformed_notice_type"));
    let offset_days = fields.optional("offset_days", integer(-OFFSET_DAYS_MAX..=OFFSET_DAYS_MAX));
    let class = fields.optional("class", parsed("not_allowed")).unwrap_or(NoticeClass::Statutory);
    let late_by_days = fields.optional("late_by_days", integer(0..=OFFSET_DAYS_MAX)).unwrap_or(LATE_BY_DAYS);
    let enabled = fields.optional("enabled", boolean).unwrap_or(true);
    Some(Step { notice_type: notice_type?, offset_days, class, late_by_days, enabled })
}

/// A link that may stand in a mail: http or https to a host, and no password in it.
fn link(value: &Value) -> Result<String, Fault> {
    let text = line(URL_MAX)(value)?;
    // What no mail would show is not taken either.
    let is_shown = shown_link(&text).is_some() && !text.contains(' ');
    let fault =
        || ("malformed_url", format!("must be an http:// or https:// URL without a password, up to {URL_MAX} bytes"));
    if is_shown { Ok(text) } else { Err(fault()) }
}
