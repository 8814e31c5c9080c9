//! Errors as RFC 9457 problem details.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::work::request_id;
use crate::store::StoreError;

/// Where the pages are that explain the kinds.
pub(in crate::web) const PAGES: &str = "/problems";

macro_rules! kinds {
    ($($variant:ident = $slug:literal, $status:ident, $title:literal, $explanation:literal;)+) => {
        /// What went wrong, as far as a program can tell things apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $(#[doc = $title] $variant),+ }

        impl Kind {
            /// Every kind, in the order of their pages.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The end of its URI.
            pub fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug),+ }
            }

            /// HTTP status.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),+ }
            }

            /// A few words, the same each time.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }

            /// What it means and what to do.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation),+ }
            }
        }
    };
}

kinds! {
    Malformed = "malformed", BAD_REQUEST, "The request cannot be read",
        "The body is no JSON, a query parameter is unknown or has a value that is not allowed, or a cursor, a limit or an \
         id is not what it should be. The detail says which. Sending the same request again will not help.";
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid token is needed",
        "Send Authorization: Bearer and a token. This one is missing, unknown, expired or revoked. An administrator makes \
         tokens with the command token create, or with POST /api/v1/tokens.";
    Forbidden = "forbidden", FORBIDDEN, "The token may not do this",
        "The scope of the token is too small. Reading needs read; changing permits, imports, notices, scans and \
         suppressions needs write; changing permit types and tokens needs admin.";
    NotFound = "not-found", NOT_FOUND, "There is no such thing",
        "No resource has this address or id. Nothing is ever deleted here but suppressions: permits are archived and \
         can still be read.";
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "This cannot be done here",
        "The resource exists, but not with this HTTP method. The Allow header lists what it takes.";
    PermitNumberTaken = "permit-number-taken", CONFLICT, "The permit number is taken",
        "Another permit has this number, archived ones included; upper and lower case and spaces make no difference. \
         The member permit_id names it.";
    WrongState = "wrong-state", CONFLICT, "Not possible in the present state",
        "The state does not allow this. The member state says what it is, the detail what would be allowed.";
    BeingSent = "being-sent", CONFLICT, "A copy is being sent",
        "A copy of the notice is with the mail server at this moment, so nothing can be decided about it. Its outcome \
         will be known within minutes; try again then.";
    StillRunning = "still-running", CONFLICT, "Still running",
        "The first request with this Idempotency-Key, or the scan, has not ended yet. Try again later.";
    Stale = "stale", PRECONDITION_FAILED, "Somebody else changed it",
        "The version in If-Match is not the present one. Read it again, see what has changed, and repeat your change \
         with the new ETag.";
    TooLarge = "too-large", PAYLOAD_TOO_LARGE, "The body is too large",
        "The detail says how much is taken. For many permits use an import.";
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "This content type is not taken",
        "Send Content-Type: application/json; PATCH also takes application/merge-patch+json.";
    ValidationFailed = "validation-failed", UNPROCESSABLE_ENTITY, "Some fields are not right",
        "Each entry of errors points at one field by JSON pointer, has a code for programs and a sentence for people. All \
         of them are listed at once, and nothing was changed.";
    KeyReused = "key-reused", UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another request",
        "A key belongs to one request for 7 days. Take a new key for a new request.";
    NotLater = "not-later", UNPROCESSABLE_ENTITY, "A renewal must be later",
        "The new date is before the present one. To correct a date use PATCH; a renewal opens a new term.";
    PreconditionRequired = "precondition-required", PRECONDITION_REQUIRED, "If-Match is needed",
        "Send If-Match with the ETag that you read, so that nobody's change is overwritten unseen.";
    RateLimited = "rate-limited", TOO_MANY_REQUESTS, "Too many requests",
        "The token has used up its requests. Retry-After says when to go on, the RateLimit headers how many are left.";
    Internal = "internal-error", INTERNAL_SERVER_ERROR, "Something went wrong here",
        "The fault is ours, and what was written is taken back. The instance is the id of the request; give it to whoever runs the service.";
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "Not available at this moment",
        "The database is away or busy. Nothing was changed, unless it broke off in the very last step. Try again after the \
         seconds in Retry-After, with the same Idempotency-Key or If-Match: then nothing is done twice.";
}

impl Kind {
    /// The kind with this end of its URI.
    pub fn of_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
    }

    /// The URI that names the kind.
    pub fn uri(self) -> String {
        format!("{PAGES}/{}", self.slug())
    }
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct FieldError {
    /// JSON pointer into the body.
    #[schema(example = "/expires_on")]
    pub pointer: String,
    /// For programs.
    #[schema(example = "required")]
    pub code: String,
    /// For people: what is allowed.
    pub detail: String,
}

impl FieldError {
    pub fn new(pointer: impl Into<String>, code: &str, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code: code.to_owned(), detail: detail.into() }
    }
}

/// An answer that says what went wrong.
#[derive(Debug, Clone)]
pub struct Problem(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    kind: Kind,
    detail: String,
    errors: Vec<FieldError>,
    members: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of this kind; `detail` is a sentence about this very case.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self(Box::new(Parts { kind, detail, errors: Vec::new(), members: Map::new(), headers: Vec::new() }))
    }

    /// Fields that are not right; all of them.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let tell = |error: &FieldError| match error.pointer.as_str() {
            "" => error.detail.clone(),
            pointer => format!("{pointer}: {}", error.detail),
        };
        let first = errors.first().map(tell).unwrap_or_default();
        let detail = match errors.len() {
            1 => first,
            count => format!("{count} fields are not right; the first is {first}"),
        };
        let mut problem = Self::new(Kind::ValidationFailed, detail);
        problem.0.errors = errors;
        problem
    }

    /// One field that is not right.
    pub fn field(pointer: impl Into<String>, code: &str, detail: impl Into<String>) -> Self {
        Self::fields(vec![FieldError::new(pointer, code, detail)])
    }

    /// A member beside the usual ones.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.members.insert(name.to_owned(), value.into());
        self
    }

    /// A header of the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The sentence about this very case.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The state that does not allow it.
    pub fn state(&self) -> Option<&str> {
        self.0.members.get("state")?.as_str()
    }

    /// The permit that has the number, if it is still there.
    pub fn permit(&self) -> Option<Uuid> {
        let id: Uuid = self.0.members.get("permit_id")?.as_str()?.parse().ok()?;
        (!id.is_nil()).then_some(id)
    }

    /// Fields that are not right.
    pub fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// As JSON, for lists of outcomes and for the answer itself.
    pub fn to_json(&self) -> Value {
        let parts = &self.0;
        let mut body = json!({
            "type": parts.kind.uri(),
            "title": parts.kind.title(),
            "status": parts.kind.status().as_u16(),
            "detail": parts.detail,
        });
        if let Some(id) = request_id() {
            body["instance"] = id.into();
        }
        if !parts.errors.is_empty() {
            body["errors"] = json!(parts.errors);
        }
        if let Value::Object(body) = &mut body {
            body.extend(parts.members.clone());
        }
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.0.kind.status(), Json(self.to_json())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(self.0.headers.clone());
        // Pages say the same in words for people.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let words = error.to_string();
        match error {
            StoreError::NotFound(_) => Self::new(Kind::NotFound, words),
            StoreError::NumberTaken { by, .. } => {
                Self::new(Kind::PermitNumberTaken, words).with("permit_id", by.to_string())
            }
            StoreError::Stale { present } => Self::new(Kind::Stale, words).with("version", present),
            StoreError::WrongState { state, .. } => Self::new(Kind::WrongState, words).with("state", state),
            StoreError::BeingSent => Self::new(Kind::BeingSent, words),
            StoreError::NotLater { .. } => {
                let mut problem = Self::new(Kind::NotLater, words.clone());
                problem.0.errors = vec![FieldError::new("/expires_on", "not_later", words)];
                problem
            }
            StoreError::Invalid { field, why } => Self::field(format!("/{field}"), "not_allowed", why),
            error if error.is_transient() => {
                tracing::warn!("the database could not serve a request: {error}");
                Self::new(Kind::Unavailable, "the database is away or busy")
                    .header(header::RETRY_AFTER, HeaderValue::from_static("2"))
            }
            error => {
                tracing::error!("a request failed: {error}");
                Self::new(Kind::Internal, "the service has a fault, which is in its log")
            }
        }
    }
}

impl From<crate::store::DatabaseError> for Problem {
    fn from(error: crate::store::DatabaseError) -> Self {
        StoreError::from(error).into()
    }
}
