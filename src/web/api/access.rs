//! Who asks: the token of a request, what it may do, and how often.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDate, Utc};
use tokio::time::{Duration, Instant};
use uuid::Uuid;

use super::problem::{Kind, Problem};
use super::{Api, rate::Pace};
use crate::auth::{Token, TokenHash};
use crate::domain::scope::Scope;
use crate::store::tokens::{TokenRecord, find_token, touch_token};

/// How long a token that was found good is taken without asking the database again. One that is revoked at another
/// replica is taken for so long at most.
const TRUSTED: Duration = Duration::from_secs(1);

/// Who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Which token.
    pub token: TokenRecord,
    /// How the caller is named in histories.
    pub by: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| missing("a token is needed"))
    }
}

/// Tokens that were found good a moment ago, and how often each has asked.
#[derive(Debug, Default)]
pub struct Tokens {
    trusted: Mutex<HashMap<TokenHash, (Caller, Instant)>>,
    paces: Mutex<HashMap<Uuid, Arc<Pace>>>,
}

impl Tokens {
    fn trusted(&self, hash: &TokenHash) -> Option<Caller> {
        let trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        trusted.get(hash).filter(|(_, since)| since.elapsed() < TRUSTED).map(|(caller, _)| caller.clone())
    }

    fn trust(&self, hash: TokenHash, caller: Caller) {
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        trusted.retain(|_, (_, since)| since.elapsed() < TRUSTED);
        trusted.insert(hash, (caller, Instant::now()));
    }

    /// Asks the database again about every token.
    pub fn forget(&self) {
        self.trusted.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn pace(&self, token: Uuid, per_minute: NonZeroU32) -> Arc<Pace> {
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(paces.entry(token).or_insert_with(|| Arc::new(Pace::new(per_minute))))
    }
}

/// What a request needs: reading is `read`, changing permit types and tokens `admin`, changing anything else `write`.
pub fn needed(method: &Method, path: &str) -> Scope {
    let first = path.trim_start_matches(super::ROOT).trim_start_matches('/').split('/').next().unwrap_or_default();
    match (method, first) {
        (&Method::GET | &Method::HEAD | &Method::OPTIONS, _) => Scope::Read,
        (_, "permit-types" | "tokens") => Scope::Admin,
        _ => Scope::Write,
    }
}

/// Lets in whoever shows a token that is good, may do this, and has not asked too often.
pub async fn check(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let caller = match find_caller(&api, request.headers()).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    let pace = api.rate_per_minute.map(|rate| api.tokens.pace(caller.token.id, rate));
    let turn = match pace.map(|pace| pace.take()).transpose() {
        Ok(turn) => turn,
        Err(problem) => return problem.into_response(),
    };
    let needed = needed(request.method(), request.uri().path());
    let mut response = if caller.token.scope.includes(needed) {
        request.extensions_mut().insert(caller);
        next.run(request).await
    } else {
        too_small(caller.token.scope, needed).into_response()
    };
    if let Some(turn) = turn {
        response.headers_mut().extend(turn.headers());
    }
    response
}

async fn find_caller(api: &Api, headers: &HeaderMap) -> Result<Caller, Problem> {
    let text = bearer(headers)?;
    let hash = Token::parse(text).ok_or_else(unknown)?.hash();
    if let Some(caller) = api.tokens.trusted(&hash) {
        return Ok(caller);
    }
    // In a task of its own: a caller who hangs up leaves no connection in the middle of a statement.
    let looking = {
        let api = api.clone();
        async move { look_up(&api, hash).await }
    };
    let found = api.requests.spawn(looking).await;
    found.unwrap_or_else(|_panic| Err(Problem::new(Kind::Internal, "the service has a fault, which is in its log")))
}

fn unknown() -> Problem {
    invalid("the token is unknown or was mistyped")
}

async fn look_up(api: &Api, hash: TokenHash) -> Result<Caller, Problem> {
    let mut connection = api.connection().await?;
    let record = find_token(&mut *connection, &hash).await?.ok_or_else(unknown)?;
    let moment = api.moment(&mut connection).await?;
    check_record(&record, moment.today)?;
    if is_touched_long_ago(&record, moment.now) {
        touch_token(&mut *connection, record.id, moment.now).await?;
    }
    let caller = Caller { by: format!("token:{}", record.name), token: record };
    api.tokens.trust(hash, caller.clone());
    Ok(caller)
}

fn is_touched_long_ago(record: &TokenRecord, now: DateTime<Utc>) -> bool {
    record.last_used_at.is_none_or(|at| now - at > chrono::TimeDelta::minutes(1))
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let value = headers.get(header::AUTHORIZATION).ok_or_else(|| missing("send Authorization: Bearer and a token"))?;
    let text = value.to_str().unwrap_or_default();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing("only Authorization: Bearer is taken"));
    }
    Ok(token.trim())
}

fn check_record(record: &TokenRecord, today: NaiveDate) -> Result<(), Problem> {
    if record.revoked_at.is_some() {
        return Err(invalid("the token was revoked"));
    }
    match record.expires_on {
        Some(last) if last < today => Err(invalid("the token has expired")),
        _ => Ok(()),
    }
}

fn challenge(kind: Kind, detail: &str, challenge: &'static str) -> Problem {
    Problem::new(kind, detail).header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

fn missing(detail: &str) -> Problem {
    challenge(Kind::Unauthorized, detail, "Bearer realm=\"permit-notifier\"")
}

fn invalid(detail: &str) -> Problem {
    challenge(Kind::Unauthorized, detail, "Bearer realm=\"permit-notifier\", error=\"invalid_token\"")
}

fn too_small(scope: Scope, needed: Scope) -> Problem {
    challenge(
        Kind::Forbidden,
        &format!("the token has the scope {scope}; this needs {needed}"),
        "Bearer realm=\"permit-notifier\", error=\"insufficient_scope\"",
    )
    .with("needed_scope", needed.as_str())
}
