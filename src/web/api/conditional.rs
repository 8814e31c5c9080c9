//! `If-Match` and `If-None-Match`: nobody overwrites what they have not seen.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::answer::Answer;
use super::problem::{Kind, Problem};

/// What `If-Match` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: whatever the version is.
    Any,
    /// This version.
    Version(i64),
}

impl IfMatch {
    /// The version, if it says one.
    pub fn version(self) -> Option<i64> {
        match self {
            Self::Any => None,
            Self::Version(version) => Some(version),
        }
    }
}

/// The version in `If-Match`, which must be there: `None` for `*`, which any version matches.
pub fn if_match(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let needed = || Problem::new(Kind::PreconditionRequired, "send If-Match with the ETag that you have read");
    Ok(optional_if_match(headers)?.ok_or_else(needed)?.version())
}

/// The same where the header may be missing: `None` without it.
pub fn optional_if_match(headers: &HeaderMap) -> Result<Option<IfMatch>, Problem> {
    let mut given = headers.get_all(header::IF_MATCH).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" && given.next().is_none() {
        return Ok(Some(IfMatch::Any));
    }
    let wrong = || {
        Problem::new(
            Kind::Malformed,
            "If-Match must be one ETag as it was given, such as \"3\" with its quotation marks",
        )
    };
    // A weak tag never matches here, and no version of ours has two tags.
    match (version_of(text), given.next()) {
        (Some(version), None) => Ok(Some(IfMatch::Version(version))),
        _ => Err(wrong()),
    }
}

/// Whether the caller has this version already.
pub fn none_match(headers: &HeaderMap, version: i64) -> bool {
    let tags = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = tags.flat_map(|text| text.split(','));
    tags.any(|tag| {
        let tag = tag.trim();
        tag == "*" || version_of(tag.strip_prefix("W/").unwrap_or(tag)) == Some(version)
    })
}

fn version_of(tag: &str) -> Option<i64> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

/// The resource, or 304 when the caller has this version.
pub fn unless_known(headers: &HeaderMap, version: i64, answer: Answer) -> Response {
    let mut response = answer.version(version).into_response();
    if none_match(headers, version) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = axum::body::Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response
}
