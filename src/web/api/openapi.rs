//! The description of the API, made from the code: `OpenAPI` 3.1.

use axum::Router;
use serde::Serialize;
use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa::{OpenApi as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::access::needed;
use super::problem::{FieldError, Kind};
use super::{Api, ROOT, notices, permit_types, permits, scans, suppressions, tokens};

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
        .merge(scans::routes())
        .merge(suppressions::routes())
        .merge(tokens::routes());
    routes.split_for_parts()
}

/// The whole description.
pub fn description() -> OpenApi {
    let (_, mut description) = routes();
    let paths = std::mem::take(&mut description.paths.paths);
    description.paths.paths = paths.into_iter().map(|(path, item)| (format!("{ROOT}{path}"), item)).collect();
    let paths: Vec<String> = description.paths.paths.keys().cloned().collect();
    for path in paths {
        let Some(item) = description.paths.paths.get_mut(&path) else { continue };
        let operations = [
            (HttpMethod::Get, &mut item.get),
            (HttpMethod::Post, &mut item.post),
            (HttpMethod::Put, &mut item.put),
            (HttpMethod::Patch, &mut item.patch),
            (HttpMethod::Delete, &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                complete(&path, &method, operation);
            }
        }
    }
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("pnt_…").build();
    let components = description.components.get_or_insert_with(Components::new);
    components.add_security_scheme("token", SecurityScheme::Http(scheme));
    description
}

/// What every operation of its sort has in common.
fn complete(path: &str, method: &HttpMethod, operation: &mut Operation) {
    use Kind::{
        Forbidden, Internal, Malformed, NotFound, PreconditionRequired, RateLimited, Stale, StillRunning, TooLarge,
        Unauthorized, Unavailable, UnsupportedMediaType, ValidationFailed,
    };
    let mut kinds = vec![Malformed, Unauthorized, Forbidden, RateLimited, Internal, Unavailable];
    if path.contains('{') {
        kinds.push(NotFound);
    }
    if operation.request_body.is_some() {
        kinds.extend([TooLarge, UnsupportedMediaType, ValidationFailed]);
    }
    if *method == HttpMethod::Post {
        kinds.extend([StillRunning, TooLarge, UnsupportedMediaType, ValidationFailed]);
    }
    let is_conditional = operation.parameters.iter().flatten().any(|parameter| match parameter {
        RefOr::T(parameter) => parameter.name == "If-Match",
        RefOr::Ref(_) => false,
    });
    if is_conditional {
        kinds.extend([Stale, PreconditionRequired]);
    }
    for kind in kinds {
        let status = kind.status().as_str().to_owned();
        let responses = &mut operation.responses.responses;
        responses.entry(status).or_insert_with(|| problem(kind).into());
    }
    let http = axum::http::Method::from_bytes(method_name(method).as_bytes()).unwrap_or_default();
    let scope = needed(&http, path);
    operation.security = Some(vec![SecurityRequirement::new("token", [scope.as_str()])]);
    let scope = format!("Needs the scope `{scope}`.");
    operation.description = Some(match operation.description.take() {
        Some(text) => format!("{text}\n\n{scope}"),
        None => scope,
    });
}

fn method_name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Patch => "PATCH",
        _ => "DELETE",
    }
}

fn problem(kind: Kind) -> utoipa::openapi::Response {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    ResponseBuilder::new().description(kind.title()).content("application/problem+json", content).build()
}
