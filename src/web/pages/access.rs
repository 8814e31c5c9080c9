//! Who may see a page or press a button: the session of a request, its role, and the proof that its form is ours.

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;

use super::Pages;
use super::faults::Asked;
use super::form::Form;
use super::frame::{CSRF, query_of};
use super::path::missing;
use crate::auth::{Secret, secret};
use crate::domain::role::Role;
use crate::store::people::sessions::{SignedIn, find_session, touch_session};
use crate::web::api::body;
use crate::web::api::problem::{Kind, Problem};
use crate::web::api::work;

/// Largest form, in bytes.
const FORM_MAX: usize = 256 * 1024;
/// The page that takes files.
const UPLOADS: &str = "/import";

/// Who asks for a page.
#[derive(Debug, Clone)]
pub struct User {
    /// Session, address and role.
    pub who: SignedIn,
    /// What the forms of this session carry.
    pub csrf: String,
    /// How this person is named in histories.
    pub by: String,
}

impl User {
    /// Whether the role is enough where `needed` is asked for.
    pub fn may(&self, needed: Role) -> bool {
        self.who.role.includes(needed)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Kind::Unauthorized, "sign in first");
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}

/// What a request needs: to read is everybody's, to change a clerk's; users, tokens and the audit are the
/// administrator's, and so are changes of permit types. One's own account is one's own.
pub fn needed(method: &Method, path: &str) -> Role {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let reads = matches!(*method, Method::GET | Method::HEAD);
    match parts[0] {
        "account" | "sign-out" => Role::Viewer,
        "users" | "tokens" | "audit" => Role::Admin,
        // There is nothing there but a form.
        "permits" if matches!(parts.last(), Some(&("new" | "edit"))) => Role::Clerk,
        _ if reads => Role::Viewer,
        "permit-types" => Role::Admin,
        _ => Role::Clerk,
    }
}

/// The cookie that holds the secret of a session.
pub fn session_cookie(pages: &Pages) -> &'static str {
    if pages.is_secure() { "__Host-session" } else { "session" }
}

/// Lets in whoever is signed in and may do this; sends everybody else to sign in.
pub async fn check(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    match admit(&pages, request).await {
        Ok((request, user)) => {
            let mut response = work::in_a_place(&pages.api, next.run(request)).await;
            response.extensions_mut().insert(Asked(user));
            response
        }
        Err(refusal) => refusal,
    }
}

async fn admit(pages: &Pages, request: Request) -> Result<(Request, User), Response> {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let user = match find_user(pages, request.headers()).await.map_err(IntoResponse::into_response)? {
        Some(user) => user,
        None if matches!(method, Method::GET | Method::HEAD) => return Err(to_sign_in(&request)),
        None => {
            let detail = "you are not signed in any more; sign in, and fill in the form again";
            return Err(Problem::new(Kind::Unauthorized, detail).into_response());
        }
    };
    if !user.may(needed(&method, &path)) {
        let detail = format!("a {} may not do this; ask an administrator", user.who.role);
        let mut response = Problem::new(Kind::Forbidden, detail).into_response();
        response.extensions_mut().insert(Asked(user));
        return Err(response);
    }
    let is_upload = is_upload(&request);
    let mut request = with_form(request).await.map_err(IntoResponse::into_response)?;
    if method == Method::POST && !is_upload {
        let form = request.extensions().get::<Form>();
        check_csrf(form, &user.csrf).map_err(IntoResponse::into_response)?;
    }
    request.extensions_mut().insert(user.clone());
    Ok((request, user))
}

/// Whether `form` carries what the forms of this visitor carry.
pub fn check_csrf(form: Option<&Form>, expected: &str) -> Result<(), Problem> {
    check_token(form.and_then(|form| form.get(CSRF)).unwrap_or_default(), expected)
}

/// The same of what a form of another sort carries.
pub fn check_token(given: &str, expected: &str) -> Result<(), Problem> {
    if secret::same(given, expected) {
        return Ok(());
    }
    Err(Problem::new(Kind::Forbidden, "the form is not of this session; open the page again, and fill it in again"))
}

/// What nothing has as its address; whoever is signed in keeps the navigation.
pub async fn nowhere(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let mut response = missing().into_response();
    if let Ok(Some(user)) = find_user(&pages, &headers).await {
        response.extensions_mut().insert(Asked(user));
    }
    response
}

/// Reads the form of a request that anybody may send.
pub async fn read_form(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    match with_form(request).await {
        Ok(request) => work::in_a_place(&pages.api, next.run(request)).await,
        Err(problem) => problem.into_response(),
    }
}

/// Files come as they are, to the one page that takes them, and are read by it with the proof that stands before them.
/// Everything else that is sent must be a form, for the proof is looked for in forms alone.
fn is_upload(request: &Request) -> bool {
    request.uri().path() == UPLOADS && content_type(request.headers()).eq_ignore_ascii_case("multipart/form-data")
}

fn content_type(headers: &HeaderMap) -> &str {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim()
}

/// The request with its form in its extensions.
async fn with_form(request: Request) -> Result<Request, Problem> {
    if request.method() != Method::POST {
        return Ok(request);
    }
    refuse_other_sites(request.headers())?;
    if is_upload(&request) {
        return Ok(request);
    }
    if !content_type(request.headers()).eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(Problem::new(Kind::UnsupportedMediaType, "a page takes forms only"));
    }
    let (parts, body) = request.into_parts();
    let bytes = body::read(Request::from_parts(parts.clone(), body), FORM_MAX).await?;
    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(Form::parse(&bytes)?);
    Ok(request)
}

/// Browsers say where a form was sent from; what comes from elsewhere is refused before it is read.
fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    match site {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(Problem::new(Kind::Forbidden, "the form was sent from another site")),
    }
}

async fn find_user(pages: &Pages, headers: &HeaderMap) -> Result<Option<User>, Problem> {
    let jar = CookieJar::from_headers(headers);
    let Some(secret) = jar.get(session_cookie(pages)).and_then(|cookie| Secret::parse(cookie.value())) else {
        return Ok(None);
    };
    let (api, hash) = (pages.api.clone(), secret.hash());
    // In a task of its own: a browser that hangs up leaves no connection in the middle of a statement.
    let found = work::detached(&pages.api, async move {
        let mut connection = api.connection().await?;
        let now = api.moment(&mut connection).await?.now;
        let found = find_session(&mut *connection, &hash, now).await?;
        if let Some(who) = found.as_ref().filter(|who| who.is_unnoted) {
            touch_session(&mut *connection, who.session, now).await?;
        }
        Ok::<_, Problem>(found)
    })
    .await??;
    Ok(found.map(|who| User { csrf: secret.derived("form"), by: format!("user:{}", who.email), who }))
}

/// The page to sign in, which leads back to where somebody wanted to go.
fn to_sign_in(request: &Request) -> Response {
    let wanted = request.uri().path_and_query().map_or("/", |wanted| wanted.as_str());
    let address =
        if wanted == "/" { "/sign-in".to_owned() } else { format!("/sign-in{}", query_of(&[("next", wanted)])) };
    Redirect::to(&address).into_response()
}
