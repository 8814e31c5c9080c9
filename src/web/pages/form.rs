//! Forms as browsers send them.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use url::form_urlencoded;

use crate::web::api::problem::{Kind, Problem};

/// Most fields of a form.
const FIELDS_MAX: usize = 2000;

/// Names and values, in the order of the page.
#[derive(Debug, Clone, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Reads `application/x-www-form-urlencoded`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let pairs: Vec<(String, String)> =
            form_urlencoded::parse(bytes).take(FIELDS_MAX + 1).map(|(n, v)| (n.into(), v.into())).collect();
        if pairs.len() > FIELDS_MAX {
            return Err(Problem::new(Kind::TooLarge, format!("a form has at most {FIELDS_MAX} fields")));
        }
        // No field takes it, no browser sends it, and the database cannot keep it.
        if let Some((name, _)) = pairs.iter().find(|(name, value)| name.contains('\0') || value.contains('\0')) {
            let name = name.replace('\0', "");
            return Err(Problem::new(Kind::Malformed, format!("the field {name:?} contains the NUL character")));
        }
        Ok(Self(pairs))
    }

    /// The first field of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// What stands in the field, without blanks around; empty if it is not there.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// All fields of that name, in order.
    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Form {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Kind::Malformed, "a form is needed");
        parts.extensions.remove::<Self>().ok_or_else(missing)
    }
}
