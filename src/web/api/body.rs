//! Reading a JSON body.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde_json::Value;
use tokio::time::{Duration, timeout};

use super::problem::{Kind, Problem};

/// Largest JSON body, in bytes.
pub const BODY_MAX: usize = 256 * 1024;

/// How long a body may take to come.
const TIME_MAX: Duration = Duration::from_secs(30);

/// The body of a request that must be JSON.
#[derive(Debug)]
pub struct Json(pub Value);

/// The same where the body may be missing; then it is an empty object.
#[derive(Debug)]
pub struct OptionalJson(pub Value);

impl<S: Send + Sync> FromRequest<S> for Json {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        check_content_type(&request)?;
        let bytes = read(request, BODY_MAX).await?;
        parse(&bytes).map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for OptionalJson {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let checked = check_content_type(&request);
        let bytes = read(request, BODY_MAX).await?;
        if bytes.is_empty() {
            return Ok(Self(Value::Object(serde_json::Map::new())));
        }
        checked?;
        parse(&bytes).map(Self)
    }
}

fn check_content_type(request: &Request) -> Result<(), Problem> {
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    let is_patch = request.method() == axum::http::Method::PATCH;
    let is_taken = essence.eq_ignore_ascii_case("application/json")
        || (is_patch && essence.eq_ignore_ascii_case("application/merge-patch+json"));
    if is_taken {
        return Ok(());
    }
    Err(Problem::new(Kind::UnsupportedMediaType, "Content-Type must be application/json"))
}

/// The whole body, if it has at most `max` bytes.
pub async fn read(request: Request, max: usize) -> Result<Bytes, Problem> {
    let too_large = || Problem::new(Kind::TooLarge, format!("the body has at most {max} bytes"));
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced.and_then(|text| text.parse::<u64>().ok()).is_some_and(|length| length > max as u64) {
        return Err(too_large());
    }
    let whole = timeout(TIME_MAX, axum::body::to_bytes(request.into_body(), max)).await;
    let late = |_| Problem::new(Kind::Malformed, format!("the body did not come within {} s", TIME_MAX.as_secs()));
    whole.map_err(late)?.map_err(|error| {
        if is_limit(&error) {
            too_large()
        } else {
            Problem::new(Kind::Malformed, "the body could not be read to its end")
        }
    })
}

fn is_limit(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn parse(bytes: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(Kind::Malformed, format!("the body is no JSON: {error}")))
}
