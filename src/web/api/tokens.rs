//! `/tokens` and `/whoami`: who may use the API.

use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::access::Caller;
use super::answer::Answer;
use super::body::Json;
use super::fields::{date, line, parsed, read_object};
use super::page::{Listed, Page};
use super::permits::Paging;
use super::problem::{Kind, Problem};
use super::query::Query;
use super::repeat::KeptBody;
use super::session::Db;
use super::shapes::{Id, words};
use super::{Api, ROOT};
use crate::auth::Token;
use crate::domain::scope::Scope;
use crate::store::office_log::{Deed, Subject, record};
use crate::store::tokens::{NewToken, TokenRecord, get_token, insert_token, list_tokens, revoke_token};
use crate::store::{PgConnection, unit};

const TAG: &str = "tokens";

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke)).routes(routes!(whoami))
}

/// A token as it is recorded.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Token)]
struct TokenView {
    id: Uuid,
    name: String,
    #[schema(schema_with = words::<Scope>)]
    scope: Scope,
    /// Its last four characters.
    hint: String,
    /// Last day on which it is taken.
    expires_on: Option<NaiveDate>,
    created_by: String,
    created_at: DateTime<Utc>,
    /// Within a minute.
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    /// The token itself; only in the answer that makes it, and null when that answer is replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<TokenRecord> for TokenView {
    fn from(record: TokenRecord) -> Self {
        let TokenRecord { id, name, scope, hint, expires_on, created_by, created_at, last_used_at, revoked_at } =
            record;
        Self { id, name, scope, hint, expires_on, created_by, created_at, last_used_at, revoked_at, token: None }
    }
}

/// What is wanted of a token.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
#[schema(example = json!({ "name": "permit portal", "scope": "write", "expires_on": "2030-12-31" }))]
struct TokenWrite {
    /// What uses it.
    #[schema(min_length = 1, max_length = 100, example = "permit portal")]
    name: String,
    #[schema(schema_with = words::<Scope>)]
    scope: Scope,
    /// Last day on which it is taken; today or later.
    expires_on: Option<NaiveDate>,
}

/// Tokens, newest first; the tokens themselves are nowhere.
#[utoipa::path(get, path = "/tokens", tag = TAG, params(Paging),
    responses((status = 200, description = "A page of tokens", body = Listed<TokenView>)))]
async fn list(mut db: Db, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    let mut query = Query::parse(uri.query())?;
    let page = Page::<Uuid>::read(&uri, &mut query)?;
    query.finish()?;
    let rows = list_tokens(&mut *db, page.after, page.fetch()).await?;
    Ok(page.answer(rows, |row| row.id, TokenView::from))
}

/// Makes a token. It is shown in this answer and never again.
#[utoipa::path(post, path = "/tokens", tag = TAG, request_body = TokenWrite,
    responses((status = 201, description = "The new token", body = TokenView)))]
async fn create(State(api): State<Api>, caller: Caller, mut db: Db, Json(body): Json) -> Result<Response, Problem> {
    let moment = api.moment(&mut db).await?;
    let wanted = read_body(body, moment.today)?;
    let (token, kept) = make(&mut db, &wanted, &caller.by, moment.now).await?;
    let kept = TokenView::from(kept);
    let shown = TokenView { token: Some(token.reveal().to_owned()), ..kept.clone() };
    let mut response = Answer::created(&format!("{ROOT}/tokens/{}", kept.id), &shown).into_response();
    // A secret is not kept for a repeated request.
    response.extensions_mut().insert(KeptBody::of(&kept));
    Ok(response)
}

/// Ends a token; it is not taken from now on.
#[utoipa::path(delete, path = "/tokens/{id}", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The revoked token", body = TokenView)))]
async fn revoke(State(api): State<Api>, caller: Caller, Id(id): Id, mut db: Db) -> Result<Answer, Problem> {
    Ok(Answer::ok(&TokenView::from(end(&api, &mut db, id, &caller.by).await?)))
}

/// What is wanted of a token.
#[derive(Debug)]
pub(in crate::web) struct Wanted {
    name: String,
    scope: Scope,
    expires_on: Option<NaiveDate>,
}

/// Reads it.
pub(in crate::web) fn read_body(body: Value, today: NaiveDate) -> Result<Wanted, Problem> {
    read_object(body, |fields| {
        let name = fields.required("name", line(100));
        let scope = fields.required("scope", parsed("not_allowed"));
        let expires_on = fields.optional("expires_on", date);
        if expires_on.is_some_and(|last| last < today) {
            fields.refuse("expires_on", ("not_allowed", format!("must be today ({today}) or later")));
        }
        Some(Wanted { name: name?, scope: scope?, expires_on })
    })
}

/// Makes a token, and records who did.
pub(in crate::web) async fn make(
    connection: &mut PgConnection,
    wanted: &Wanted,
    by: &str,
    now: DateTime<Utc>,
) -> Result<(Token, TokenRecord), Problem> {
    let token = Token::generate().map_err(|error| {
        tracing::error!("no token was made: {error}");
        Problem::new(Kind::Internal, "the service has a fault, which is in its log")
    })?;
    let Wanted { name, scope, expires_on } = wanted;
    let (scope, expires_on) = (*scope, *expires_on);
    let mut work = unit::begin(connection).await?;
    let new = NewToken { name, scope, hash: token.hash(), hint: token.hint(), expires_on, by };
    let id = insert_token(&mut *work, &new, now).await?;
    let kept = get_token(&mut *work, id).await?;
    let said = json!({ "scope": scope, "expires_on": expires_on, "ends with": kept.hint });
    record(&mut *work, Deed { after: Some(said), ..deed(by, "made", &kept) }, now).await?;
    work.commit().await?;
    Ok((token, kept))
}

/// Revokes a token, and records who did. One that is revoked already stays as it is.
pub(in crate::web) async fn end(
    api: &Api,
    connection: &mut PgConnection,
    id: Uuid,
    by: &str,
) -> Result<TokenRecord, Problem> {
    let now = api.moment(connection).await?.now;
    let mut work = unit::begin(connection).await?;
    let before = get_token(&mut *work, id).await?;
    let kept = revoke_token(&mut work, id, now).await?;
    if before.revoked_at.is_none() {
        record(&mut *work, deed(by, "revoked", &kept), now).await?;
    }
    work.commit().await?;
    api.tokens.forget();
    Ok(kept)
}

fn deed<'d>(by: &'d str, action: &'d str, token: &'d TokenRecord) -> Deed<'d> {
    Deed {
        by,
        action,
        subject: Subject::Token,
        subject_id: Some(token.id),
        label: &token.name,
        before: None,
        after: None,
    }
}

/// The token that asks.
#[utoipa::path(get, path = "/whoami", tag = TAG,
    responses((status = 200, description = "The token", body = TokenView)))]
async fn whoami(caller: Caller, OriginalUri(uri): OriginalUri) -> Result<Answer, Problem> {
    Query::parse(uri.query())?.finish()?;
    Ok(Answer::ok(&TokenView::from(caller.token)))
}
