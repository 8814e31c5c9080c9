//! Problems as pages.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;

use super::Pages;
use super::access::User;
use super::frame::{Frame, show_as};
use crate::web::api::problem::{Kind, Problem};
use crate::web::api::work::request_id;

#[derive(Template)]
#[template(path = "pages/fault.html")]
struct FaultPage {
    frame: Frame,
    /// What it is about.
    detail: String,
    /// What is wrong with single fields.
    errors: Vec<String>,
    request_id: Option<String>,
}

/// What a handler says about who asked, so that its error page has the navigation too.
#[derive(Debug, Clone)]
pub struct Asked(pub User);

/// Shows a problem as a page with the same status.
pub async fn as_page(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let user = response.extensions().get::<Asked>().map(|Asked(user)| user);
    let mut page = page_of(&pages, user, problem, response.headers());
    *page.status_mut() = response.status();
    for (name, value) in response.headers() {
        if name != axum::http::header::CONTENT_TYPE && name != axum::http::header::CONTENT_LENGTH {
            page.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
    }
    page
}

/// The titles of problems are for programs; these say it to people.
fn title_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Unauthorized => "You are not signed in",
        Kind::Forbidden => "You may not do this",
        Kind::UnsupportedMediaType | Kind::Malformed => "The request cannot be read",
        Kind::TooLarge => "That is too large",
        other => other.title(),
    }
}

fn page_of(pages: &Pages, user: Option<&User>, problem: &Problem, headers: &HeaderMap) -> Response {
    let title = title_of(problem.kind());
    let frame = match user {
        Some(user) => Frame::of(pages, user, "", title),
        None => Frame::open(title, String::new()),
    };
    let errors = problem.errors().iter().map(|error| match error.pointer.trim_start_matches('/') {
        "" => error.detail.clone(),
        field => format!("{field}: {}", error.detail),
    });
    let request_id = request_id().or_else(|| headers.get("x-request-id")?.to_str().ok().map(str::to_owned));
    let page = FaultPage { frame, detail: problem.detail().to_owned(), errors: errors.collect(), request_id };
    show_as(problem.kind().status(), &page)
}
