//! What every page has around it, and how a template becomes an answer.

use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use url::form_urlencoded;

use super::access::User;
use super::when::{When, when};
use super::words::Said;
use super::{Pages, Unsent};
use crate::domain::role::Role;

/// The field of a form that proves that we made it.
pub const CSRF: &str = "csrf";

/// Nothing but our own stylesheet, script and icon; nothing inline.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; \
                          frame-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A place in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// Who sees it.
    pub role: Role,
}

const fn place(path: &'static str, name: &'static str, role: Role) -> Place {
    Place { path, name, role }
}

/// The navigation, in order.
const PLACES: &[Place] = &[
    place("/", "Today", Role::Viewer),
    place("/upcoming", "Upcoming", Role::Viewer),
    place("/permits", "Permits", Role::Viewer),
    place("/problems", "Problems", Role::Viewer),
    place("/notices", "Notices", Role::Viewer),
    place("/import", "Import", Role::Viewer),
    place("/scans", "Scans", Role::Viewer),
    place("/permit-types", "Permit types", Role::Viewer),
    place("/suppressions", "Suppressions", Role::Viewer),
    place("/users", "Users", Role::Admin),
    place("/tokens", "Tokens", Role::Admin),
    place("/audit", "Audit", Role::Admin),
];

/// What stands around a page.
#[derive(Debug, Clone)]
pub struct Frame {
    /// What the page is called, in its title and heading.
    pub title: String,
    /// Who is signed in.
    pub user: Option<User>,
    /// What the forms carry.
    pub csrf: String,
    /// Path of the place in the navigation to which the page belongs.
    pub here: &'static str,
    /// In what way mail is not sent as by a real service.
    pub unsent: Option<Unsent>,
    /// What was just done.
    pub said: Option<&'static str>,
    /// The page shows what is wrong with what was filled in.
    pub has_errors: bool,
    /// The office's.
    pub zone: Tz,
}

impl Frame {
    /// Around a page of somebody who is signed in.
    pub fn of(pages: &Pages, user: &User, here: &'static str, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            user: Some(user.clone()),
            csrf: user.csrf.clone(),
            here,
            unsent: pages.unsent.clone(),
            said: None,
            has_errors: false,
            zone: pages.api.zone,
        }
    }

    /// Around a page for whoever is not signed in.
    pub fn open(title: impl Into<String>, csrf: String) -> Self {
        Self {
            title: title.into(),
            user: None,
            csrf,
            here: "",
            unsent: None,
            said: None,
            has_errors: false,
            zone: Tz::UTC,
        }
    }

    /// Whether some mail that counts as accepted was never really sent.
    pub fn is_kept_back(&self) -> bool {
        self.unsent.as_ref().is_some_and(|unsent| !unsent.to_everybody)
    }

    /// With the sentence about what was just done.
    #[must_use]
    pub fn said(self, said: Option<Said>) -> Self {
        Self { said: said.map(Said::sentence), ..self }
    }

    /// Of a page that shows what is wrong with what was filled in.
    #[must_use]
    pub fn with_errors(self, has_errors: bool) -> Self {
        Self { has_errors, ..self }
    }

    /// An instant in the office's zone.
    pub fn when(&self, at: &DateTime<Utc>) -> When {
        when(*at, self.zone)
    }

    /// Where this person can go.
    pub fn places(&self) -> Vec<Place> {
        let may = |place: &Place| self.user.as_ref().is_some_and(|user| user.may(place.role));
        PLACES.iter().copied().filter(may).collect()
    }
}

/// The page that a template makes.
pub fn shown(template: &impl Template) -> Response {
    show_as(StatusCode::OK, template)
}

/// The same with another status.
pub fn show_as(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, [(header::CONTENT_SECURITY_POLICY, POLICY)], Html(text)).into_response(),
        Err(error) => {
            tracing::error!("a page was not made: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// `?name=value&…`, or nothing.
pub fn query_of(pairs: &[(&str, &str)]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    format!("?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
}
