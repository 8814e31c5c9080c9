//! One's own account: password, and where one is signed in.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;
use secrecy::SecretString;

use super::Pages;
use super::access::{User, session_cookie};
use super::form::Form;
use super::frame::{Frame, show_as, shown};
use super::passwords::faults_of;
use super::visit::{cookie, no_randomness};
use super::words::{Done, Said};
use crate::auth::Secret;
use crate::store::office_log::{Deed, Subject, record};
use crate::store::people::sessions::{begin_session, end_session, end_sessions};
use crate::store::people::users::{find_sign_in, set_password};
use crate::store::unit;
use crate::web::api::problem::Problem;

#[derive(Template)]
#[template(path = "pages/account.html")]
struct AccountPage {
    frame: Frame,
    email: String,
    role: &'static str,
    errors: Vec<(&'static str, String)>,
}

impl AccountPage {
    fn of(frame: Frame, user: &User, errors: Vec<(&'static str, String)>) -> Self {
        Self { frame, email: user.who.email.clone(), role: user.who.role.as_str(), errors }
    }
}

fn frame(pages: &Pages, user: &User) -> Frame {
    Frame::of(pages, user, "/account", "Your account")
}

pub(super) async fn show(State(pages): State<Pages>, user: User, Done(done): Done) -> Response {
    shown(&AccountPage::of(frame(&pages, &user).said(done), &user, Vec::new()))
}

/// Changes one's own password, and ends all other sessions.
pub(super) async fn change_password(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let kept = find_sign_in(&mut *connection, &user.who.email).await?.and_then(|(_, kept)| kept);
    drop(connection);
    let present = SecretString::from(form.get("present").unwrap_or_default());
    let password = SecretString::from(form.get("password").unwrap_or_default());
    let mut errors = Vec::new();
    if !pages.passwords.verify(present, kept).await? {
        errors.push(("present", "The present password is not right.".to_owned()));
    }
    errors.extend(faults_of(&password, form.get("again").unwrap_or_default(), &user.who.email));
    if !errors.is_empty() {
        let page = AccountPage::of(frame(&pages, &user).with_errors(true), &user, errors);
        return Ok(show_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let hash = pages.passwords.hash(password).await?;
    let secret = Secret::generate().map_err(no_randomness)?;
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    set_password(&mut *work, user.who.user, &hash).await?;
    end_sessions(&mut *work, user.who.user).await?;
    begin_session(&mut work, user.who.user, &secret.hash(), now).await?;
    record(&mut *work, deed(&user, "password-changed"), now).await?;
    work.commit().await.map_err(Problem::from)?;
    let jar = CookieJar::new().add(cookie(&pages, session_cookie(&pages), secret.reveal().to_owned()));
    Ok((jar, Said::PasswordChanged.at("/account")).into_response())
}

/// Ends this session.
pub(super) async fn sign_out(State(pages): State<Pages>, user: User) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    end_session(&mut *connection, user.who.session).await?;
    Ok(gone(&pages))
}

/// Ends all sessions of this user.
pub(super) async fn sign_out_everywhere(State(pages): State<Pages>, user: User) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    end_sessions(&mut *work, user.who.user).await?;
    record(&mut *work, deed(&user, "signed-out-everywhere"), now).await?;
    work.commit().await.map_err(Problem::from)?;
    Ok(gone(&pages))
}

fn deed<'d>(user: &'d User, action: &'d str) -> Deed<'d> {
    Deed {
        by: &user.by,
        action,
        subject: Subject::User,
        subject_id: Some(user.who.user),
        label: &user.who.email,
        before: None,
        after: None,
    }
}

fn gone(pages: &Pages) -> Response {
    let mut spent = cookie(pages, session_cookie(pages), String::new());
    spent.make_removal();
    (CookieJar::new().add(spent), Said::SignedOut.at("/sign-in")).into_response()
}
