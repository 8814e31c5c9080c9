//! The routes of the API with what describes them, as the macros make it from the code: `OpenAPI` 3.1.
//! [`description`](super::description) completes it.

use axum::Router;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::OpenApi;
use utoipa::{OpenApi as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use uuid::Uuid;

use super::problem::FieldError;
use super::shapes::words;
use super::{Api, imports, notices, permit_types, permits, scans, suppressions, tokens};
use crate::domain::scope::Scope;

/// What every error looks like.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Names the kind; its page explains it.
    #[schema(example = "/problems/validation-failed")]
    r#type: String,
    title: String,
    status: u16,
    /// A sentence about this very case.
    detail: String,
    /// Id of the request, which also is in the log.
    instance: Option<String>,
    /// Fields that are not right; all of them.
    errors: Option<Vec<FieldError>>,
    /// With `permit-number-taken`: which permit has it.
    permit_id: Option<Uuid>,
    /// With `wrong-state`: the present state.
    state: Option<String>,
    /// With `stale`: the present version.
    version: Option<i64>,
    /// With `malformed`: which query parameter.
    parameter: Option<String>,
    /// With `forbidden`.
    #[schema(schema_with = words::<Scope>)]
    needed_scope: Option<Scope>,
    /// Where a notice has several copies: id, recipient and role of each.
    #[schema(value_type = Option<Vec<Object>>)]
    deliveries: Option<Vec<Value>>,
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Permit Notifier",
        description = "Permits, and every notice that their holders get before they expire.",
        license(name = "Not licensed for use outside the office that runs it")
    ),
    components(schemas(ProblemBody, FieldError))
)]
struct Description;

/// Every route with what describes it.
pub(super) fn routes() -> (Router<Api>, OpenApi) {
    let routes = OpenApiRouter::with_openapi(Description::openapi())
        .merge(permits::routes())
        .merge(permit_types::routes())
        .merge(notices::routes())
        .merge(imports::routes())
        .merge(scans::routes())
        .merge(suppressions::routes())
        .merge(tokens::routes());
    routes.split_for_parts()
}
