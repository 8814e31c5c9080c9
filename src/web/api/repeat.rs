//! `Idempotency-Key`: a POST that is sent again does its work once and gets the same answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Duration, timeout};

use super::access::Caller;
use super::body::{self, BODY_MAX};
use super::problem::{Kind, Problem};
use super::{Api, ROOT};
use crate::store::idempotency::{KeptAnswer, Known, RequestKey, keep_answer, take_key};
use crate::store::unit::Unit;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Longest key, in characters.
pub const KEY_MAX: usize = 255;
/// How long a request waits for the first one with its key.
const WAITS: Duration = Duration::from_secs(30);
/// Headers that belong to an answer.
const KEPT_HEADERS: [HeaderName; 4] = [header::CONTENT_TYPE, header::ETAG, header::LOCATION, header::WWW_AUTHENTICATE];

/// What is kept of an answer that shows a secret; goes with the answer as an extension.
#[derive(Debug, Clone)]
pub struct KeptBody(Vec<u8>);

impl KeptBody {
    /// `body` as JSON.
    pub fn of(body: &impl serde::Serialize) -> Self {
        Self(serde_json::to_vec(body).unwrap_or_default())
    }
}

/// The transaction around a request, for whoever works on it.
pub type SharedUnit = Arc<AsyncMutex<Unit>>;

/// Requests with a key that run in this process; the next with the same key waits without a database connection.
#[derive(Debug, Default)]
pub struct Running(Mutex<HashMap<String, Weak<AsyncMutex<()>>>>);

impl Running {
    async fn wait(&self, key: &RequestKey) -> Option<OwnedMutexGuard<()>> {
        let name = format!("{} {} {} {}", key.token_id, key.method, key.path, key.key);
        let lock = {
            let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            running.retain(|_, lock| lock.strong_count() > 0);
            let present = running.get(&name).and_then(Weak::upgrade);
            let lock = present.unwrap_or_default();
            running.insert(name, Arc::downgrade(&lock));
            lock
        };
        timeout(WAITS, lock.lock_owned()).await.ok()
    }
}

/// Does the work of a POST with a key once; without a key, or for other methods, each time.
pub async fn once(State(api): State<Api>, caller: Caller, request: Request, next: Next) -> Response {
    if !is_for_once(&request) {
        return next.run(request).await;
    }
    match key_of(&caller, &request) {
        Ok(None) => next.run(request).await,
        Ok(Some(key)) => do_once(&api, key, request, next).await.unwrap_or_else(IntoResponse::into_response),
        Err(problem) => problem.into_response(),
    }
}

/// Whether a key means something here. An import streams its body and looks after its key itself.
fn is_for_once(request: &Request) -> bool {
    request.method() == Method::POST && path(request) != format!("{ROOT}/imports")
}

/// The path as the caller wrote it.
fn path(request: &Request) -> String {
    let original = request.extensions().get::<OriginalUri>();
    original.map_or_else(|| request.uri(), |original| &original.0).path().to_owned()
}

/// The key, quoted or bare.
fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(KEY).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let is_plain = bare.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if given.next().is_some() || !is_plain || bare.is_empty() || bare.len() > KEY_MAX {
        let detail = format!("Idempotency-Key must be 1 to {KEY_MAX} printable ASCII characters, quoted or bare");
        return Err(Problem::new(Kind::Malformed, detail));
    }
    Ok(Some(bare.to_owned()))
}

/// Which request it is, if it has a key.
pub fn key_of(caller: &Caller, request: &Request) -> Result<Option<RequestKey>, Problem> {
    let key = key(request.headers())?;
    let (token_id, method, path) = (caller.token.id, request.method().to_string(), path(request));
    Ok(key.map(|key| RequestKey { token_id, method, path, key }))
}

/// What is known of a request with a key.
pub enum Taken {
    /// It is ours to do.
    Ours(Held),
    /// It was done; this is its answer.
    Known(Response),
}

/// A key that is held while its request runs, in a transaction.
pub struct Held {
    unit: Unit,
    key: RequestKey,
    now: chrono::DateTime<chrono::Utc>,
    /// Where nobody else keeps it.
    turn: Option<Turn>,
}

/// Its turn among the requests with one key of this process.
pub type Turn = OwnedMutexGuard<()>;

fn still_running() -> Problem {
    Problem::new(Kind::StillRunning, "the first request with this key still runs")
}

/// The key that a request waits for before it takes anything that others wait for, too. None for imports, which wait when
/// their file is there.
pub fn key_to_wait_for(request: &Request) -> Result<Option<RequestKey>, Problem> {
    let caller = request.extensions().get::<Caller>().filter(|_| is_for_once(request));
    caller.map_or(Ok(None), |caller| key_of(caller, request))
}

/// Waits for the turn of a request: however often it is sent again, only one of them is worked on.
pub async fn wait_for_turn(api: &Api, key: &RequestKey) -> Result<Turn, Problem> {
    api.running.wait(key).await.ok_or_else(still_running)
}

/// Takes a key; waits while another request with it runs.
pub async fn take(api: &Api, key: RequestKey, sha256: &[u8; 32]) -> Result<Taken, Problem> {
    let turn = wait_for_turn(api, &key).await?;
    take_in_turn(api, key, sha256, Some(turn)).await
}

async fn take_in_turn(api: &Api, key: RequestKey, sha256: &[u8; 32], turn: Option<Turn>) -> Result<Taken, Problem> {
    let mut unit = Unit::begin(&api.pool).await?;
    let now = api.moment(unit.connection()).await?.now;
    match take_key(unit.connection(), &key, sha256, now).await? {
        Known::New => {}
        Known::Answered(answer) => return Ok(Taken::Known(replay(answer))),
        Known::Reused => {
            let detail = "the key was used for a request with another body, query or content type";
            return Err(Problem::new(Kind::KeyReused, detail));
        }
        Known::StillRunning => return Err(still_running()),
    }
    unit.mark().await?;
    Ok(Taken::Ours(Held { unit, key, now, turn }))
}

async fn do_once(api: &Api, key: RequestKey, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = body::read(whole, BODY_MAX).await?;
    let sha256 = hash(&parts.uri, &parts.headers, &bytes);
    let Held { unit, key, now, turn } = match take_in_turn(api, key, &sha256, None).await? {
        Taken::Ours(held) => held,
        Taken::Known(answer) => return Ok(answer),
    };
    let unit: SharedUnit = Arc::new(AsyncMutex::new(unit));
    parts.extensions.insert(Arc::clone(&unit));
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    let Some(unit) = Arc::into_inner(unit) else {
        tracing::error!("a request still works on its transaction after its answer");
        return Err(Problem::new(Kind::Internal, "the service has a fault, which is in its log"));
    };
    Held { unit: unit.into_inner(), key, now, turn }.finish(response).await
}

impl Held {
    /// The request does its work elsewhere, and that may take long.
    pub async fn for_long(&mut self) -> Result<(), Problem> {
        Ok(self.unit.may_idle().await?)
    }

    /// Keeps the answer with what was written; a fault of ours is not kept, and takes everything back.
    pub async fn finish(self, response: Response) -> Result<Response, Problem> {
        let Self { mut unit, key, now, turn: _turn } = self;
        if response.status().is_server_error() {
            unit.rollback().await?;
            return Ok(response);
        }
        if !response.status().is_success() {
            unit.take_back().await?;
        }
        let (parts, body) = response.into_parts();
        let read = to_bytes(body, usize::MAX).await;
        let bytes = read.map_err(|_| Problem::new(Kind::Internal, "the answer is broken"))?;
        let kept = parts.extensions.get::<KeptBody>().map_or_else(|| bytes.to_vec(), |kept| kept.0.clone());
        let answer = KeptAnswer { status: parts.status.as_u16(), headers: kept_headers(&parts.headers), body: kept };
        keep_answer(unit.connection(), &key, &answer, now).await?;
        unit.commit().await?;
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }
}

fn hash(uri: &axum::http::Uri, headers: &HeaderMap, body: &[u8]) -> [u8; 32] {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [uri.query().unwrap_or_default().as_bytes(), content_type, body] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn kept_headers(headers: &HeaderMap) -> Value {
    let kept = KEPT_HEADERS.iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.as_str().to_owned(), Value::from(value)))
    });
    Value::Object(kept.collect::<Map<_, _>>())
}

fn replay(answer: KeptAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, answer.body).into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    for (name, value) in answer.headers.as_object().into_iter().flatten() {
        let pair = HeaderName::try_from(name).ok().zip(value.as_str().and_then(|value| value.parse().ok()));
        response.headers_mut().extend(pair);
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
