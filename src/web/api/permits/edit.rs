//! Permits written over and changed: what can be written, and what only we write, which may be sent back as it was
//! read.

use std::borrow::Cow;

use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::super::Api;
use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::body::Json;
use super::super::conditional::if_match;
use super::super::problem::{Kind, Problem};
use super::super::session::Db;
use super::super::shapes::Id;
use super::view::{PermitView, READ_ONLY};
use super::write::{self, PermitWrite};
use super::{TAG, show, shown};
use crate::store::{StoreError, changes, unit};

/// Describes the body of a PUT.
pub struct PermitReplacement;

/// Describes the body of a PATCH: every field may be missing.
pub struct PermitPatch;

impl PartialSchema for PermitReplacement {
    fn schema() -> RefOr<Schema> {
        let mut whole = object(PermitWrite::schema());
        whole.description =
            Some("A permit as it is to be. What only we write may be sent back as it was read.".to_owned());
        let mut shown = object(PermitView::schema());
        for name in READ_ONLY {
            if let Some(RefOr::T(Schema::Object(mut field))) = shown.properties.remove(name) {
                field.read_only = Some(true);
                whole.properties.insert(name.to_owned(), field.into());
            }
        }
        whole.into()
    }
}

impl PartialSchema for PermitPatch {
    fn schema() -> RefOr<Schema> {
        let mut some = object(PermitReplacement::schema());
        some.description = Some("What is to change of a permit; null empties a field.".to_owned());
        some.required.clear();
        some.example = Some(json!({ "holder_email": "ada.holder@example.org", "notices_paused_until": null }));
        some.into()
    }
}

impl ToSchema for PermitReplacement {
    fn name() -> Cow<'static, str> {
        "PermitReplacement".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        PermitWrite::schemas(schemas);
    }
}

impl ToSchema for PermitPatch {
    fn name() -> Cow<'static, str> {
        "PermitPatch".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        PermitWrite::schemas(schemas);
    }
}

fn object(schema: RefOr<Schema>) -> Object {
    match schema {
        RefOr::T(Schema::Object(object)) => object,
        _ => Object::new(),
    }
}

/// Writes a permit over; fields that are missing are emptied.
#[utoipa::path(put, path = "/permits/{id}", tag = TAG, request_body = PermitReplacement,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was read")),
    responses((status = 200, description = "The permit", body = PermitView),
              (status = 409, description = "permit-number-taken")))]
pub(super) async fn replace(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Answer, Problem> {
    change(&api, &caller, id, &mut db, &headers, |_| body.clone()).await
}

/// Changes some fields of a permit, as RFC 7396 says; null empties a field.
#[utoipa::path(patch, path = "/permits/{id}", tag = TAG,
    request_body(content((PermitPatch = "application/merge-patch+json"), (PermitPatch = "application/json"))),
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was read")),
    responses((status = 200, description = "The permit", body = PermitView),
              (status = 409, description = "permit-number-taken")))]
pub(super) async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    headers: HeaderMap,
    Json(body): Json,
) -> Result<Answer, Problem> {
    change(&api, &caller, id, &mut db, &headers, |present| write::merge(present, body.clone())).await
}

/// How often a change that takes any version is made anew because somebody else's came between; each time that happens
/// another one was made.
const TRIES: usize = 50;

/// Reads the permit, lets `edit` make the new body of the present one, and writes it if the version is still the same.
async fn change(
    api: &Api,
    caller: &Caller,
    id: Uuid,
    db: &mut Db,
    headers: &HeaderMap,
    edit: impl Fn(Value) -> Value,
) -> Result<Answer, Problem> {
    let expected = if_match(headers)?;
    for _ in 1..TRIES {
        match change_once(api, caller, id, db, expected, &edit).await {
            // The caller takes any version, so this one's is merged with the next.
            Err(problem) if expected.is_none() && problem.kind() == Kind::Stale => {}
            done => return done,
        }
    }
    change_once(api, caller, id, db, expected, &edit).await
}

async fn change_once(
    api: &Api,
    caller: &Caller,
    id: Uuid,
    db: &mut Db,
    expected: Option<i64>,
    edit: &impl Fn(Value) -> Value,
) -> Result<Answer, Problem> {
    let moment = api.moment(db).await?;
    let present = show(db, id, moment).await?;
    if expected.is_some_and(|expected| expected != present.version) {
        return Err(StoreError::Stale { present: present.version }.into());
    }
    let known = serde_json::to_value(&present).unwrap_or_default();
    let data = write::read(db, edit(known.clone()), Some(&known)).await?;
    // Whatever `If-Match` said, what is written over is what was merged with.
    let rules = api.change_rules(moment, &caller.by);
    let mut work = unit::begin(db).await?;
    changes::correct(&mut work, id, Some(present.version), |permit| *permit = data, &rules).await?;
    let answer = shown(&mut work, id, moment).await?;
    work.commit().await?;
    Ok(answer)
}
