//! The office's pages: made on the server, each task possible without script.
//!
//! Every request passes, from the outside in: the page that a problem becomes ([`faults`]); its form, session, role and
//! CSRF token ([`access`]); a task of its own, as requests of the API have; its handler, in a file named after the
//! page. What all pages show is in [`frame`]; what people write is read by the same code as bodies of the API.

mod access;
mod account;
mod assets;
mod audit;
mod chart;
mod differences;
mod faults;
mod form;
mod frame;
mod import;
mod listing;
mod notices;
mod passwords;
mod path;
mod permit_types;
mod permits;
mod problems;
mod scans;
mod shown;
mod sign_in;
mod suppressions;
mod today;
mod tokens;
mod unsent;
mod upcoming;
mod users;
mod visit;
mod when;
mod words;
mod wrongs;

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use chrono::TimeDelta;
use url::Url;

pub use self::unsent::Unsent;

use super::api::problem::{Kind, Problem};
use super::api::{Api, work};
use crate::config::TrustedProxies;
use crate::scan::schedule::ScanSchedule;

/// What the pages work on and go by besides what the API does, given by the composition root.
#[derive(Debug)]
pub struct PagesParts {
    /// The API of the same process, whose pool, clock and ways to read and change the pages use.
    pub api: Api,
    /// Where people reach the pages.
    pub public_url: Url,
    /// Whose word is taken about where requests come from.
    pub proxies: TrustedProxies,
    /// When scans are expected.
    pub schedule: ScanSchedule,
    /// How late a scan may be.
    pub grace: TimeDelta,
    /// How long notices of a change made here wait, so that a typo can be mended.
    pub change_delay: TimeDelta,
    /// In what way mail is not sent as by a real service, if it is not: every page says so.
    pub unsent: Option<Unsent>,
}

/// The pages of this process.
#[derive(Debug, Clone)]
pub struct Pages(Arc<Inner>);

/// See [`Pages`].
#[derive(Debug)]
pub struct Inner {
    parts: PagesParts,
    passwords: passwords::Passwords,
    weeks: today::Weeks,
}

impl Deref for Pages {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Deref for Inner {
    type Target = PagesParts;

    fn deref(&self) -> &PagesParts {
        &self.parts
    }
}

impl Pages {
    /// The pages over these parts.
    pub fn new(parts: PagesParts) -> Self {
        Self(Arc::new(Inner { parts, passwords: passwords::Passwords::default(), weeks: today::Weeks::default() }))
    }

    /// Whether browsers reach us by https only.
    pub(super) fn is_secure(&self) -> bool {
        self.public_url.scheme() == "https"
    }
}

/// All pages.
pub(super) fn router(pages: &Pages) -> Router {
    let guarded = Router::new()
        .route("/", get(today::show))
        .route("/sign-out", post(account::sign_out))
        .route("/account", get(account::show))
        .route("/account/password", post(account::change_password))
        .route("/account/sign-out-everywhere", post(account::sign_out_everywhere))
        .route("/users", get(users::list).post(users::add))
        .route("/users/{id}/role", post(users::change_role))
        .route("/users/{id}/link", post(users::new_link))
        .route("/users/{id}/disable", post(users::disable))
        .route("/users/{id}/enable", post(users::enable))
        .merge(permits::routes())
        .merge(upcoming::routes())
        .merge(problems::routes())
        .merge(notices::routes())
        .merge(scans::routes())
        .merge(import::routes())
        .merge(permit_types::routes())
        .merge(suppressions::routes())
        .merge(tokens::routes())
        .route("/audit", get(audit::list))
        .layer(from_fn_with_state(pages.clone(), access::check));
    let open = Router::new()
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/set-password/{secret}", get(passwords::show).post(passwords::set))
        .layer(from_fn_with_state(pages.clone(), access::read_form));
    guarded
        .merge(open)
        .merge(assets::router())
        .fallback(access::nowhere)
        .method_not_allowed_fallback(|| async {
            Problem::new(Kind::MethodNotAllowed, "the page does not take this method")
        })
        .layer(from_fn(work::identified))
        .layer(from_fn_with_state(pages.clone(), faults::as_page))
        .with_state(pages.clone())
}
