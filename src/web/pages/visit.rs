//! Whoever is not signed in: a cookie that ties their forms to their browser.

use axum::http::HeaderMap;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};

use super::Pages;
use crate::auth::{NoRandomness, Secret};
use crate::web::api::problem::{Kind, Problem};

/// A browser, known by a cookie.
#[derive(Debug)]
pub struct Visit {
    secret: Secret,
    /// The browser has the cookie already.
    is_known: bool,
}

/// A cookie of ours: for this site alone, out of reach for scripts, and over https alone where we have it.
pub fn cookie(pages: &Pages, name: &'static str, value: String) -> Cookie<'static> {
    let cookie = Cookie::build((name, value)).path("/").http_only(true).same_site(SameSite::Lax);
    cookie.secure(pages.is_secure()).build()
}

/// Our fault, which is in the log.
pub fn no_randomness(error: NoRandomness) -> Problem {
    tracing::error!("no secret was made: {error}");
    Problem::new(Kind::Internal, "the service has a fault, which is in its log")
}

impl Visit {
    fn name(pages: &Pages) -> &'static str {
        if pages.is_secure() { "__Host-visit" } else { "visit" }
    }

    /// The visit that the cookie names, or a new one.
    pub fn of(pages: &Pages, headers: &HeaderMap) -> Result<Self, Problem> {
        let jar = CookieJar::from_headers(headers);
        match jar.get(Self::name(pages)).and_then(|cookie| Secret::parse(cookie.value())) {
            Some(secret) => Ok(Self { secret, is_known: true }),
            None => Ok(Self { secret: Secret::generate().map_err(no_randomness)?, is_known: false }),
        }
    }

    /// What the forms of this browser carry.
    pub fn csrf(&self) -> String {
        self.secret.derived("form")
    }

    /// The cookie to set.
    pub fn jar(&self, pages: &Pages) -> CookieJar {
        if self.is_known {
            return CookieJar::new();
        }
        CookieJar::new().add(cookie(pages, Self::name(pages), self.secret.reveal().to_owned()))
    }
}
