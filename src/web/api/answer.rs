//! Answers that are no problems.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

/// Status, headers and a JSON body.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    /// 200 with `body`.
    pub fn ok(body: &impl Serialize) -> Self {
        Self::new(StatusCode::OK, body)
    }

    /// 201 with `body`, which is found at `location` from now on.
    pub fn created(location: &str, body: &impl Serialize) -> Self {
        Self::new(StatusCode::CREATED, body).header(header::LOCATION, location)
    }

    /// Any status with `body`.
    pub fn new(status: StatusCode, body: &impl Serialize) -> Self {
        let body = serde_json::to_value(body).unwrap_or_default();
        Self { status, headers: HeaderMap::new(), body }
    }

    /// One header more; a value that cannot stand in a header is left out.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).map(|value| (name, value)));
        self
    }

    /// More headers.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// The version, by which the next change may be made conditional.
    pub fn version(self, version: i64) -> Self {
        self.header(header::ETAG, &format!("\"{version}\""))
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.status, self.headers, Json(self.body)).into_response()
    }
}
