//! What bodies have in common.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use uuid::Uuid;

use super::problem::{Kind, Problem};
use crate::domain::Words;
use crate::domain::permit::PermitTypeCode;

/// The schema of an enumeration, whose words are those of the code.
pub fn words<W: Words>() -> Schema {
    let words = W::ALL.iter().map(|word| word.word());
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).enum_values(Some(words)).into()
}

/// The id in the path.
#[derive(Debug, Clone, Copy)]
pub struct Id(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = in_path(parts, state, "id").await.and_then(|text| Uuid::from_str(&text).ok());
        id.map(Self).ok_or_else(|| Problem::new(Kind::Malformed, "the id in the path must be a UUID"))
    }
}

/// The code of a permit type in the path.
#[derive(Debug, Clone)]
pub struct Code(pub PermitTypeCode);

impl<S: Send + Sync> FromRequestParts<S> for Code {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let code = in_path(parts, state, "code").await.unwrap_or_default().parse();
        code.map(Self).map_err(|error| Problem::new(Kind::Malformed, format!("the code in the path: {error}")))
    }
}

/// A part of the path; none if it is no text.
async fn in_path<S: Send + Sync>(parts: &mut Parts, state: &S, wanted: &str) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    params.iter().find(|(name, _)| *name == wanted).map(|(_, text)| text.to_owned())
}

/// The same where there may be none.
pub fn words_or_null<W: Words>() -> Schema {
    let words = W::ALL.iter().map(|word| Value::from(word.word())).chain([Value::Null]);
    let types = SchemaType::from_iter([Type::String, Type::Null]);
    ObjectBuilder::new().schema_type(types).enum_values(Some(words)).into()
}
