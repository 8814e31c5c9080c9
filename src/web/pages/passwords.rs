//! Passwords: hashed where that blocks nobody, and set by one-time links.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::Pages;
use super::access::{check_csrf, session_cookie};
use super::form::Form;
use super::frame::{Frame, show_as, shown};
use super::path::Path;
use super::visit::{Visit, cookie, no_randomness};
use crate::auth::{Secret, password};
use crate::domain::recipient::EmailAddress;
use crate::domain::role::Role;
use crate::store::office_log::{Deed, Subject, record};
use crate::store::people::links::{LinkFor, find_link, take_link};
use crate::store::people::sessions::{begin_session, end_sessions};
use crate::store::people::users::{add_user, is_nobody, lock_users, set_password};
use crate::store::{PgConnection, unit};
use crate::web::api::problem::{Kind, Problem};

/// Passwords that are hashed at once: each takes a processor and 19 MiB.
const AT_ONCE: usize = 2;

/// Hashes passwords.
#[derive(Debug)]
pub(super) struct Passwords(Semaphore);

impl Default for Passwords {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl Passwords {
    /// Whether `password` is the one of which `kept` is kept.
    pub async fn verify(&self, password: SecretString, kept: Option<String>) -> Result<bool, Problem> {
        self.work(move || password::verify(&password, kept.as_deref())).await
    }

    /// What is kept of `password`.
    pub async fn hash(&self, password: SecretString) -> Result<String, Problem> {
        self.work(move || password::hash(&password)).await?.map_err(no_randomness)
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let _turn = self.0.acquire().await;
        let fault = |_panic| Problem::new(Kind::Internal, "the service has a fault, which is in its log");
        tokio::task::spawn_blocking(work).await.map_err(fault)
    }
}

/// What is wrong with a new password, typed twice.
pub(super) fn faults_of(password: &SecretString, again: &str, email: &str) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    if let Err(refused) = password::check(password, email) {
        faults.push(("password", format!("The password {refused}.")));
    } else if password.expose_secret() != again {
        faults.push(("again", "The two passwords are not the same.".to_owned()));
    }
    faults
}

#[derive(Template)]
#[template(path = "pages/set_password.html")]
struct SetPasswordPage {
    frame: Frame,
    /// Whose password; without it a first administrator is made, and says so.
    email: Option<String>,
    given: String,
    errors: Vec<(&'static str, String)>,
}

impl SetPasswordPage {
    fn of(frame: Frame, link: &LinkFor, given: &str, errors: Vec<(&'static str, String)>) -> Self {
        let email = match link {
            LinkFor::FirstAdmin => None,
            LinkFor::User { email, .. } => Some(email.clone()),
        };
        Self { frame, email, given: given.to_owned(), errors }
    }
}

const TITLE: &str = "Choose a password";

/// The form behind a one-time link. To look at it uses nothing up.
pub(super) async fn show(
    State(pages): State<Pages>,
    Path(secret): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (_, link) = open(&pages, &secret).await?;
    let visit = Visit::of(&pages, &headers)?;
    let page = SetPasswordPage::of(Frame::open(TITLE, visit.csrf()), &link, "", Vec::new());
    Ok((visit.jar(&pages), shown(&page)).into_response())
}

/// Sets the password, ends all sessions of the user, and signs in.
pub(super) async fn set(
    State(pages): State<Pages>,
    Path(secret): Path<String>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Problem> {
    let visit = Visit::of(&pages, &headers)?;
    check_csrf(Some(&form), &visit.csrf())?;
    let (secret, link) = open(&pages, &secret).await?;
    let password = SecretString::from(form.get("password").unwrap_or_default());
    let given = form.text("email");
    let mut errors = Vec::new();
    let email = match &link {
        LinkFor::User { email, .. } => email.clone(),
        LinkFor::FirstAdmin => given.parse::<EmailAddress>().map_or_else(
            |error| {
                errors.push(("email", format!("The email address {error}.")));
                String::new()
            },
            |email| email.to_string(),
        ),
    };
    errors.extend(faults_of(&password, form.get("again").unwrap_or_default(), &email));
    if !errors.is_empty() {
        let frame = Frame::open(TITLE, visit.csrf()).with_errors(true);
        let page = SetPasswordPage::of(frame, &link, given, errors);
        return Ok((visit.jar(&pages), show_as(StatusCode::UNPROCESSABLE_ENTITY, &page)).into_response());
    }
    let hash = pages.passwords.hash(password).await?;
    let session = Secret::generate().map_err(no_randomness)?;
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    if !take_link(&mut work, &secret.hash(), now).await? {
        return Err(used_up());
    }
    let user = match link {
        LinkFor::User { id, .. } => id,
        LinkFor::FirstAdmin => first_admin(&mut work, &email, now).await?,
    };
    set_password(&mut *work, user, &hash).await?;
    end_sessions(&mut *work, user).await?;
    begin_session(&mut work, user, &session.hash(), now).await?;
    let by = format!("user:{email}");
    let deed = Deed {
        by: &by,
        action: "password-set",
        subject: Subject::User,
        subject_id: Some(user),
        label: &email,
        before: None,
        after: None,
    };
    record(&mut *work, deed, now).await?;
    work.commit().await.map_err(Problem::from)?;
    let jar = CookieJar::new().add(cookie(&pages, session_cookie(&pages), session.reveal().to_owned()));
    Ok((jar, Redirect::to("/")).into_response())
}

async fn first_admin(
    connection: &mut PgConnection,
    email: &str,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<Uuid, Problem> {
    lock_users(connection).await?;
    if !is_nobody(&mut *connection).await? {
        return Err(used_up());
    }
    Ok(add_user(connection, email, Role::Admin, "first-start", now).await?.0.id)
}

/// The secret of a link and for whom it is.
async fn open(pages: &Pages, secret: &str) -> Result<(Secret, LinkFor), Problem> {
    let secret = Secret::parse(secret).ok_or_else(used_up)?;
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let link = find_link(&mut *connection, &secret.hash(), now).await?;
    Ok((secret, link.ok_or_else(used_up)?))
}

fn used_up() -> Problem {
    Problem::new(Kind::NotFound, "the link was used or is too old; ask an administrator for a new one")
}
