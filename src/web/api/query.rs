//! Reading query parameters: unknown ones are refused by name, and so is one that stands twice where
//! it may not.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDate, Utc};

use super::description::query_parameters;
use super::fields::parse_date;
use super::problem::{Kind, Problem};

/// The parameters of a request that is being read.
#[derive(Debug)]
pub struct Query {
    given: BTreeMap<String, Vec<String>>,
    asked: Vec<&'static str>,
}

impl Query {
    /// From the part of the address after the question mark.
    pub fn parse(query: Option<&str>) -> Result<Self, Problem> {
        Self::parse_with_lists(query, &[])
    }

    /// The same where the parameters in `lists` may stand any number of times.
    pub fn parse_with_lists(query: Option<&str>, lists: &[&str]) -> Result<Self, Problem> {
        let mut given = BTreeMap::<String, Vec<String>>::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if value.contains('\0') {
                return Err(wrong(&name, "must not contain the NUL character"));
            }
            let values = given.entry(name.clone().into_owned()).or_default();
            values.push(value.into_owned());
            if values.len() > 1 && !lists.contains(&name.as_ref()) {
                return Err(wrong(&name, "stands twice"));
            }
        }
        Ok(Self { given, asked: Vec::new() })
    }

    /// The text of a parameter.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.list(name).into_iter().next()
    }

    /// The texts of a parameter, in order.
    pub fn list(&mut self, name: &'static str) -> Vec<String> {
        self.asked.push(name);
        self.given.remove(name).unwrap_or_default()
    }

    /// A parameter that says itself what is wrong with it.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Result<Option<T>, Problem> {
        let parse = |text: String| text.parse().map_err(|error: T::Err| wrong(name, &error.to_string()));
        self.text(name).map(parse).transpose()
    }

    /// A calendar date.
    pub fn date(&mut self, name: &'static str) -> Result<Option<NaiveDate>, Problem> {
        let parse = |text: String| {
            parse_date(&text).ok_or_else(|| wrong(name, "must be a date that exists, written YYYY-MM-DD"))
        };
        self.text(name).map(parse).transpose()
    }

    /// An instant.
    pub fn instant(&mut self, name: &'static str) -> Result<Option<DateTime<Utc>>, Problem> {
        let parse = |text: String| {
            let instant = DateTime::parse_from_rfc3339(&text).map(|instant| instant.with_timezone(&Utc));
            instant.map_err(|_| wrong(name, "must be an RFC 3339 instant such as 2026-11-29T08:00:00Z"))
        };
        self.text(name).map(parse).transpose()
    }

    /// True or false.
    pub fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, Problem> {
        let parse = |text: String| text.parse().map_err(|_| wrong(name, "must be true or false"));
        self.text(name).map(parse).transpose()
    }

    /// Refuses what nobody asked for.
    pub fn finish(self) -> Result<(), Problem> {
        match self.given.keys().next() {
            None => Ok(()),
            Some(name) => Err(unknown(name, &self.asked)),
        }
    }
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let detail = format!("there is no query parameter {name:?}; known here: {known}");
    Problem::new(Kind::Malformed, detail).with("parameter", name)
}

/// Refuses what the operation does not describe, before it does anything: whoever mistypes an option must not find out
/// from what was done without it.
pub async fn only_described(request: Request, next: Next) -> Response {
    match refuse_undescribed(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn refuse_undescribed(request: &Request) -> Result<(), Problem> {
    let Some(query) = request.uri().query() else { return Ok(()) };
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let Some(known) = query_parameters(request.method(), path) else { return Ok(()) };
    // One that may stand twice is for whoever reads it.
    let mut names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    match names.find(|name| !known.contains(&name.as_ref())) {
        None => Ok(()),
        Some(name) => Err(unknown(&name, known)),
    }
}

/// A parameter with a value that is not allowed.
pub fn wrong(name: &str, why: &str) -> Problem {
    Problem::new(Kind::Malformed, format!("query parameter {name}: {why}")).with("parameter", name)
}
