//! Lists, page by page: `limit`, an opaque `cursor`, and where the next page is.

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::answer::Answer;
use super::problem::Problem;
use super::query::{Query, wrong};
use crate::domain::calendar::LAST_DAY;

/// Rows of a page unless the caller says otherwise, and at most.
pub const LIMIT: i64 = 50;
pub const LIMIT_MAX: i64 = 200;
/// No cursor of ours is longer.
const CURSOR_MAX: usize = 1000;

/// The key of a row after which a page begins.
pub trait Key: Serialize + DeserializeOwned {
    /// Whether a row can have it. Whoever sends a cursor may have made it up, and the database does not take everything.
    fn is_possible(&self) -> bool {
        true
    }
}

impl Key for Uuid {}
impl Key for i32 {}
impl Key for i64 {}

impl Key for String {
    fn is_possible(&self) -> bool {
        !self.contains('\0')
    }
}

impl Key for (DateTime<Utc>, Uuid) {
    fn is_possible(&self) -> bool {
        let day = self.0.date_naive();
        day.year() >= 0 && day <= LAST_DAY
    }
}

impl Key for (String, Uuid) {
    fn is_possible(&self) -> bool {
        self.0.is_possible()
    }
}

impl Key for (NaiveDate, Uuid) {
    fn is_possible(&self) -> bool {
        self.0.year() >= 0 && self.0 <= LAST_DAY
    }
}

/// Which page of a list. `K` is the key of the row after which it begins.
#[derive(Debug)]
pub struct Page<K> {
    /// Rows at most.
    pub limit: i64,
    /// Where it begins.
    pub after: Option<K>,
    path: String,
    /// The query without `cursor`.
    query: String,
}

/// What a cursor says, behind its letters.
#[derive(Serialize, Deserialize)]
struct Cursor<K> {
    /// Which list with which filters it belongs to.
    of: String,
    after: K,
}

impl<K: Key> Page<K> {
    /// Reads `limit` and `cursor`. A cursor of another list, or of other filters, is refused.
    pub fn read(uri: &Uri, query: &mut Query) -> Result<Self, Problem> {
        let limit = match query.text("limit") {
            None => LIMIT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|limit| (1..=LIMIT_MAX).contains(limit))
                .ok_or_else(|| wrong("limit", &format!("must be a whole number from 1 to {LIMIT_MAX}")))?,
        };
        let rest = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let rest = rest.filter(|(name, _)| name != "cursor");
        let rest = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish();
        let mut page = Self { limit, after: None, path: uri.path().to_owned(), query: rest };
        if let Some(text) = query.text("cursor") {
            page.after = Some(page.decode(&text)?);
        }
        Ok(page)
    }

    /// How many rows to fetch: one more than shown tells whether there is another page.
    pub fn fetch(&self) -> i64 {
        self.limit + 1
    }

    /// The answer with this page's rows.
    pub fn answer<R, T: Serialize>(&self, rows: Vec<R>, key: impl Fn(&R) -> K, show: impl Fn(R) -> T) -> Answer {
        let (rows, next) = self.cut(rows, key);
        let items: Vec<T> = rows.into_iter().map(show).collect();
        let answer = Answer::ok(&Listed { items, next_cursor: next.clone() });
        match next {
            Some(cursor) => answer.headers(self.link(&cursor)),
            None => answer,
        }
    }

    /// The rows of this page, of those that were fetched, and the cursor of the next one.
    pub fn cut<R>(&self, mut rows: Vec<R>, key: impl Fn(&R) -> K) -> (Vec<R>, Option<String>) {
        let has_more = rows.len() as i64 > self.limit;
        rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let next = if has_more { rows.last().map(|last| self.encode(key(last))) } else { None };
        (rows, next)
    }

    /// Where the page that begins at `cursor` is.
    pub fn address(&self, cursor: &str) -> String {
        let and = if self.query.is_empty() { "" } else { "&" };
        format!("{}?{}{and}cursor={cursor}", self.path, self.query)
    }

    fn link(&self, cursor: &str) -> HeaderMap {
        let link = format!("<{}>; rel=\"next\"", self.address(cursor));
        HeaderValue::from_str(&link).into_iter().map(|link| (header::LINK, link)).collect()
    }

    /// Filters decide which rows there are, `limit` does not.
    fn list(&self) -> String {
        let mut pairs: Vec<_> = url::form_urlencoded::parse(self.query.as_bytes()).collect();
        pairs.retain(|(name, _)| name != "limit");
        pairs.sort();
        let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let hash = Sha256::digest(format!("{}?{text}", self.path));
        URL_SAFE_NO_PAD.encode(&hash[..12])
    }

    fn encode(&self, after: K) -> String {
        let cursor = Cursor { of: self.list(), after };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).unwrap_or_default())
    }

    fn decode(&self, text: &str) -> Result<K, Problem> {
        let bytes = if text.len() <= CURSOR_MAX { URL_SAFE_NO_PAD.decode(text).ok() } else { None };
        let cursor = bytes.and_then(|bytes| serde_json::from_slice::<Cursor<K>>(&bytes).ok());
        let cursor = cursor
            .filter(|cursor| cursor.after.is_possible())
            .ok_or_else(|| wrong("cursor", "is none of ours; begin without one"))?;
        if cursor.of != self.list() {
            return Err(wrong("cursor", "belongs to another list or to other filters; begin without one"));
        }
        Ok(cursor.after)
    }
}

/// The body of a list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Listed<T> {
    /// The rows of this page.
    pub items: Vec<T>,
    /// For the next page; null on the last one.
    pub next_cursor: Option<String>,
}
