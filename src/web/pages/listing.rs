//! Lists on pages: filters, order and place are all in the address, so that it can be kept and sent to somebody.

use axum::http::Uri;
use url::form_urlencoded::{self, Serializer};

use crate::web::api::page::{Key, Page};
use crate::web::api::problem::Problem;
use crate::web::api::query::Query;

/// The address of a list without what a form left empty, and what is asked there.
#[derive(Debug)]
pub struct Asked {
    /// The address without empty fields.
    pub uri: Uri,
    /// What is still to be read.
    pub query: Query,
}

impl Asked {
    /// Reads an address. A field that was left empty says nothing.
    pub fn of(uri: &Uri) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let given = pairs.filter(|(name, value)| !value.trim().is_empty() && name != "done");
        let query = Serializer::new(String::new()).extend_pairs(given).finish();
        let address = if query.is_empty() { uri.path().to_owned() } else { format!("{}?{query}", uri.path()) };
        let uri = address.parse().unwrap_or_else(|_| uri.clone());
        Ok(Self { query: Query::parse(Some(&query))?, uri })
    }

    /// After everything that is known here was read: refuses what is left.
    pub fn read(self) -> Result<Self, Problem> {
        self.query.finish()?;
        Ok(Self { uri: self.uri, query: Query::parse(None)? })
    }

    /// What the filter has in this field, as it was typed.
    pub fn given(&self, name: &str) -> String {
        let pairs = form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes());
        pairs.into_iter().find(|(known, _)| known == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
    }

    /// This list with `changes` instead of what the address has in those fields, from its beginning.
    pub fn with(&self, path: &str, changes: &[(&str, &str)]) -> String {
        let pairs = form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes());
        let is_kept = |name: &str| name != "cursor" && changes.iter().all(|(changed, _)| *changed != name);
        let kept = pairs.filter(|(name, _)| is_kept(name));
        let mut query = Serializer::new(String::new());
        query.extend_pairs(kept).extend_pairs(changes.iter().filter(|(_, value)| !value.is_empty()));
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }
}

/// The rows of one page, and where the others are.
#[derive(Debug)]
pub struct Listing<R> {
    pub rows: Vec<R>,
    /// The first page.
    pub first: String,
    /// The next one.
    pub next: Option<String>,
    /// This is not the first one.
    pub is_later: bool,
}

impl<R> Listing<R> {
    /// Of the rows that were fetched for `page`.
    pub fn of<K: Key>(asked: &Asked, page: &Page<K>, rows: Vec<R>, key: impl Fn(&R) -> K) -> Self {
        let (rows, next) = page.cut(rows, key);
        Self {
            rows,
            first: asked.with(asked.uri.path(), &[]),
            next: next.map(|cursor| page.address(&cursor)),
            is_later: page.after.is_some(),
        }
    }

    /// The same page with each row as something else.
    pub fn map<T>(self, show: impl FnMut(R) -> T) -> Listing<T> {
        let Self { rows, first, next, is_later } = self;
        Listing { rows: rows.into_iter().map(show).collect(), first, next, is_later }
    }
}

/// In which order a list stands, as its address says: a column, with `-` before it for the other way round.
#[derive(Debug)]
pub struct Order<'a> {
    asked: &'a Asked,
    sort: String,
}

impl<'a> Order<'a> {
    /// `usual` is the order of an address that says nothing.
    pub fn of(asked: &'a Asked, usual: &str) -> Self {
        let given = asked.given("sort");
        Self { asked, sort: if given.is_empty() { usual.to_owned() } else { given } }
    }

    /// Value of `aria-sort` of a column.
    pub fn aria(&self, column: &str) -> Option<&'static str> {
        match self.sort.strip_prefix('-') {
            Some(descending) => (descending == column).then_some("descending"),
            None => (self.sort == column).then_some("ascending"),
        }
    }

    /// The list by this column, or the other way round if it is already.
    pub fn link(&self, column: &str) -> String {
        let turned = format!("-{column}");
        let sort = if self.sort == column { turned.as_str() } else { column };
        self.asked.with(self.asked.uri.path(), &[("sort", sort)])
    }
}
