//! What a handler works on: the request's own transaction if there is one, else a connection of a pool; of the one
//! that cannot write if the request only asks.

use std::ops::{Deref, DerefMut};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::Api;
use super::problem::Problem;
use super::repeat::SharedUnit;
use crate::store::PgConnection;
use crate::store::unit::Session;

/// A connection to the database, for as long as the handler runs.
#[derive(Debug)]
pub struct Db(Session);

impl FromRequestParts<Api> for Db {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        match parts.extensions.remove::<SharedUnit>() {
            Some(unit) => Ok(Self(Session::of(unit).await)),
            None if parts.method.is_safe() => Ok(Self(Session::pooled(&api.reading_pool).await?)),
            None => Ok(Self(api.connection().await?)),
        }
    }
}

impl Db {
    /// Whether all of the request is one transaction, so that a fault takes back everything.
    pub fn is_one_transaction(&self) -> bool {
        matches!(self.0, Session::Unit(_))
    }
}

impl Deref for Db {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl DerefMut for Db {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}
