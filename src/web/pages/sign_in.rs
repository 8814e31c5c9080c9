//! Signing in. Whoever guesses waits longer and longer; nothing says whether an address is known here.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use askama::Template;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use chrono::TimeDelta;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use super::Pages;
use super::access::{check_csrf, session_cookie};
use super::form::Form;
use super::frame::{Frame, show_as, shown};
use super::visit::{Visit, cookie, no_randomness};
use super::words::Done;
use crate::auth::Secret;
use crate::domain::saying::counted;
use crate::domain::text::hex;
use crate::store::PgConnection;
use crate::store::people::attempts::{Counted, count_failure, forget_failures, wait_left};
use crate::store::people::sessions::begin_session;
use crate::store::people::users::{email_key, find_sign_in};
use crate::store::{Moment, unit};
use crate::web::api::problem::Problem;

#[derive(Template)]
#[template(path = "pages/sign_in.html")]
struct SignInPage {
    frame: Frame,
    email: String,
    next: String,
    fault: Option<String>,
}

/// The form.
pub(super) async fn show(
    State(pages): State<Pages>,
    Done(done): Done,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let visit = Visit::of(&pages, &headers)?;
    let frame = Frame::open("Sign in", visit.csrf()).said(done);
    // Where somebody wanted to go.
    let next = Form::parse(uri.query().unwrap_or_default().as_bytes())?.text("next").to_owned();
    let page = SignInPage { frame, email: String::new(), next, fault: None };
    Ok((visit.jar(&pages), shown(&page)).into_response())
}

/// Why nobody was signed in. Known and unknown addresses are answered alike.
enum Refused {
    /// Address or password is not right.
    Wrong,
    /// So long still until the next try is looked at.
    Wait(TimeDelta),
}

/// Signs in and leads to where somebody wanted to go.
pub(super) async fn sign_in(
    State(pages): State<Pages>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Problem> {
    let visit = Visit::of(&pages, &headers)?;
    check_csrf(Some(&form), &visit.csrf())?;
    let email = form.text("email").to_owned();
    let password = SecretString::from(form.get("password").unwrap_or_default());
    match enter(&pages, &email, password, &place_of(&pages, peer, &headers)).await? {
        Ok(secret) => {
            let jar = CookieJar::new().add(cookie(&pages, session_cookie(&pages), secret.reveal().to_owned()));
            Ok((jar, Redirect::to(local(form.text("next")))).into_response())
        }
        Err(refused) => {
            let (status, fault, wait) = match refused {
                Refused::Wrong => {
                    (StatusCode::UNAUTHORIZED, "The email address or the password is not right.".into(), None)
                }
                Refused::Wait(left) => {
                    let seconds = left.num_seconds() + 1;
                    let fault = format!("Too many tries failed. Try again in {}.", in_words(seconds));
                    (StatusCode::TOO_MANY_REQUESTS, fault, Some(seconds))
                }
            };
            let frame = Frame::open("Sign in", visit.csrf()).with_errors(true);
            let page = SignInPage { frame, email, next: form.text("next").to_owned(), fault: Some(fault) };
            let retry = wait.map(|seconds| [(header::RETRY_AFTER, seconds.to_string())]);
            Ok((visit.jar(&pages), retry, show_as(status, &page)).into_response())
        }
    }
}

/// Begins a session of whoever has this address and password.
async fn enter(
    pages: &Pages,
    email: &str,
    password: SecretString,
    place: &str,
) -> Result<Result<Secret, Refused>, Problem> {
    let account = key_of(email);
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    let left = count_try(&mut connection, &account, place, moment).await?;
    if left > TimeDelta::zero() {
        return Ok(Err(Refused::Wait(left)));
    }
    let (user, kept) = find_sign_in(&mut *connection, email).await?.unzip();
    // Nothing is held while a password is hashed.
    drop(connection);
    let is_right = pages.passwords.verify(password, kept.flatten()).await?;
    let (Some(user), true) = (user, is_right) else {
        tracing::info!("a try to sign in failed");
        return Ok(Err(Refused::Wrong));
    };
    let secret = Secret::generate().map_err(no_randomness)?;
    let mut connection = pages.api.connection().await?;
    let mut work = unit::begin(&mut connection).await?;
    forget_failures(&mut work, &account, place).await?;
    begin_session(&mut work, user, &secret.hash(), moment.now).await?;
    work.commit().await.map_err(Problem::from)?;
    tracing::info!(user = %user, "signed in");
    Ok(Ok(secret))
}

/// Counts this try as a failure until it is none; says how long it would have to wait, in which case it is not
/// counted.
async fn count_try(
    connection: &mut PgConnection,
    account: &str,
    place: &str,
    moment: Moment,
) -> Result<TimeDelta, Problem> {
    let counted = [(Counted::Account, account), (Counted::Address, place)];
    let mut left = TimeDelta::zero();
    for (counted, key) in counted {
        left = left.max(wait_left(connection, counted, key, moment.now).await?);
    }
    if left == TimeDelta::zero() {
        for (counted, key) in counted {
            count_failure(connection, counted, key, moment.now).await?;
        }
    }
    Ok(left)
}

/// What stands for an address that was typed: it may be a password typed into the wrong field.
fn key_of(email: &str) -> String {
    hex(&Sha256::digest(email_key(email)))
}

/// Where a request comes from. Who has one address of the sixth version has 2^64 of them.
fn place_of(pages: &Pages, peer: SocketAddr, headers: &HeaderMap) -> String {
    let forwarded = headers.get_all("x-forwarded-for").iter();
    match pages.proxies.origin(peer.ip(), forwarded.map(|value| value.to_str().unwrap_or_default())) {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("{}/64", Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
    }
}

/// A path of ours, and nothing that leads elsewhere.
fn local(next: &str) -> &str {
    let is_local =
        next.starts_with('/') && !next.starts_with("//") && !next.contains('\\') && !next.chars().any(char::is_control);
    if is_local { next } else { "/" }
}

fn in_words(seconds: i64) -> String {
    match seconds {
        1 => "1 second".to_owned(),
        ..=90 => counted(seconds, "second"),
        _ => counted((seconds + 59) / 60, "minute"),
    }
}
