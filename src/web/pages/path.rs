//! What stands in the path of a page. What cannot be an id is no more there than an id that nobody has, and both are
//! answered alike: there is no such page, and here is the way on.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::domain::permit::PermitTypeCode;
use crate::web::api::problem::{Kind, Problem};

/// The parts of the path, as axum's extractor of this name reads them.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        #[expect(clippy::disallowed_types, reason = "its refusals become pages here")]
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|read| Self(read.0)).map_err(|_| missing())
    }
}

/// The code of a permit type in the path.
#[derive(Debug, Clone)]
pub struct Code(pub PermitTypeCode);

impl<S: Send + Sync> FromRequestParts<S> for Code {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(code) = Path::<String>::from_request_parts(parts, state).await?;
        code.parse().map(Self).map_err(|_| missing())
    }
}

/// There is nothing with this address.
pub fn missing() -> Problem {
    Problem::new(Kind::NotFound, "nothing has this address; it may be mistyped, or cut off at its end")
}
