//! Permits as callers write them over: what can be written, and what only we write, which may be sent back as it was
//! read.

use std::borrow::Cow;

use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::view::{PermitView, READ_ONLY};
use super::write::PermitWrite;

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
