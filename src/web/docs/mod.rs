//! Pages for whoever writes programs against the API: its description (`/openapi.json`, `/docs`) and what each kind of
//! problem means (`/docs/problems`, `/problems/<kind>`). Open to everybody, for they show nothing of the office; made once, without scripts.

mod curl;
mod prose;
mod shape;
mod view;

use std::sync::LazyLock;

use askama::Template;
use axum::Router;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

use super::api::description::description;
use super::api::problem::{Kind, PAGES};
use view::Description;

/// Nothing but our own stylesheet, which stands beside the pages.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("../../../templates/docs/style.css");

#[derive(Template)]
#[template(path = "docs/api.html")]
struct ApiPage<'d> {
    api: Description<'d>,
}

#[derive(Template)]
#[template(path = "docs/problems.html")]
struct ProblemsPage {
    kinds: &'static [Kind],
}

#[derive(Template)]
#[template(path = "docs/problem.html")]
struct ProblemPage {
    kind: Kind,
}

#[derive(Template)]
#[template(path = "docs/missing.html")]
struct MissingPage;

pub(super) fn router() -> Router {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/docs", get(docs))
        .route("/docs/style.css", get(style))
        .route("/docs/problems", get(problems))
        .route(&format!("{PAGES}/{{kind}}"), get(problem))
}

async fn openapi() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(|| description().to_string());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

async fn docs() -> Response {
    static TEXT: LazyLock<Result<String, askama::Error>> =
        LazyLock::new(|| ApiPage { api: Description::of(description()) }.render());
    shown(TEXT.as_deref())
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

async fn problems() -> Response {
    page(&ProblemsPage { kinds: Kind::ALL })
}

async fn problem(params: Result<RawPathParams, RawPathParamsRejection>) -> Response {
    let slug = params.ok().and_then(|params| Some(params.iter().next()?.1.to_owned()));
    match slug.as_deref().and_then(Kind::of_slug) {
        Some(kind) => page(&ProblemPage { kind }),
        None => (StatusCode::NOT_FOUND, page(&MissingPage)).into_response(),
    }
}

fn page(template: &impl Template) -> Response {
    shown(template.render().as_deref())
}

fn shown(rendered: Result<&str, &askama::Error>) -> Response {
    match rendered {
        Ok(text) => ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(text.to_owned())).into_response(),
        Err(error) => {
            tracing::error!("a page was not made: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
