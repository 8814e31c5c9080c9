//! The REST API under `/api/v1`.
//!
//! Every request passes, from the outside in: its token ([`access`]); its turn among those with one Idempotency-Key; a
//! place and a task of its own, so that a caller who hangs up stops no work ([`work`]); its query parameters
//! ([`query`]); its Idempotency-Key ([`repeat`]); its handler, in a file named after the resource. Bodies are read by
//! [`fields`], query parameters by [`query`]; errors are [`problem`]s.

mod access;
mod answer;
pub(in crate::web) mod body;
mod conditional;
pub mod description;
pub(in crate::web) mod fields;
pub mod files;
pub(in crate::web) mod imports;
pub(in crate::web) mod notices;
mod openapi;
pub(in crate::web) mod page;
pub(in crate::web) mod permit_types;
pub(in crate::web) mod permits;
pub mod problem;
pub(in crate::web) mod query;
pub(in crate::web) mod rate;
mod repeat;
pub(in crate::web) mod scans;
mod session;
pub(in crate::web) mod shapes;
pub(in crate::web) mod suppressions;
pub(in crate::web) mod tokens;
pub(in crate::web) mod work;

use std::fmt::Debug;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use chrono::NaiveDate;
use chrono_tz::Tz;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::clock::Clock;
use crate::domain::calendar::day_in;
use crate::domain::window::SendWindow;
use crate::mail::Preview;
use crate::store::actions::ActionRules;
use crate::store::changes::ChangeRules;
use crate::store::leases::Leased;
use crate::store::unit::Session;
use crate::store::{Moment, PgConnection, PgPool, StoreError, clock::database_now};
pub use imports::UploadLimits;
use problem::{Kind, Problem};

/// Where the API is.
pub const ROOT: &str = "/api/v1";

/// How many files a process takes in at once. They are applied one after the other in any case.
const IMPORTS_AT_ONCE: usize = 2;
/// How many it writes at once.
const EXPORTS_AT_ONCE: usize = 4;

/// Scans by this process, as the API asks for them.
pub trait Scans: Debug + Send + Sync {
    /// Begins a scan, and says its id as soon as it is recorded; the scan goes on by itself.
    fn begin(&self) -> BoxFuture<'_, Result<Uuid, ScanRefused>>;

    /// What a scan would do on that day, or today; nothing is written. The report is what the command prints.
    fn preview(&self, as_of: Option<NaiveDate>) -> BoxFuture<'_, Result<Value, StoreError>>;
}

/// Mails as this process makes them.
pub trait Mails: Debug + Send + Sync {
    /// What a copy would say on `today`, or why it cannot be made.
    fn preview(&self, copy: &Leased, today: NaiveDate) -> Result<Preview, String>;
}

/// Why no scan was begun.
#[derive(Debug)]
pub enum ScanRefused {
    /// One runs, here or elsewhere.
    Running,
    /// This process does not scan.
    NotHere,
    /// The database refused or was not there.
    Store(StoreError),
}

/// What the API works on and goes by, given by the composition root.
#[derive(Debug)]
pub struct ApiParts {
    /// Connections for requests.
    pub pool: PgPool,
    /// Connections for requests that only read.
    pub reading_pool: PgPool,
    /// Business time.
    pub clock: Arc<dyn Clock>,
    /// The office's zone.
    pub zone: Tz,
    /// When mail may go.
    pub window: Option<SendWindow>,
    /// More pending notices than this at once are held; 0 for no limit.
    pub claim_limit: u64,
    /// Scans by this process.
    pub scans: Arc<dyn Scans>,
    /// Mails as this process makes them.
    pub mails: Arc<dyn Mails>,
    /// Imports and exports by this process.
    pub files: Arc<dyn files::Files>,
    /// How uploads are limited.
    pub uploads: UploadLimits,
    /// Requests a minute of one token in this process; `None` for no limit.
    pub rate_per_minute: Option<NonZeroU32>,
}

/// The API of this process.
#[derive(Debug, Clone)]
pub struct Api(Arc<Inner>);

/// See [`Api`].
#[derive(Debug)]
pub struct Inner {
    parts: ApiParts,
    tokens: access::Tokens,
    running: repeat::Running,
    /// Places for requests that are worked on.
    places: Arc<Semaphore>,
    /// Places for uploads and their imports, each of which may have a connection of its own and one of the pool.
    pub(in crate::web) imports: Arc<Semaphore>,
    /// Places for files that are read, each of which may have a connection of its own.
    pub(in crate::web) exports: Arc<Semaphore>,
    /// Requests whose callers may have hung up.
    requests: TaskTracker,
}

impl Deref for Api {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Deref for Inner {
    type Target = ApiParts;

    fn deref(&self) -> &ApiParts {
        &self.parts
    }
}

impl Api {
    /// The API over these parts.
    pub fn new(parts: ApiParts) -> Self {
        Self(Arc::new(Inner {
            parts,
            tokens: access::Tokens::default(),
            running: repeat::Running::default(),
            places: Arc::new(Semaphore::new(work::PLACES)),
            imports: Arc::new(Semaphore::new(IMPORTS_AT_ONCE)),
            exports: Arc::new(Semaphore::new(EXPORTS_AT_ONCE)),
            requests: TaskTracker::new(),
        }))
    }

    /// Waits for requests whose callers have hung up; to be called when no new ones come.
    pub async fn finish(&self) {
        self.requests.close();
        self.requests.wait().await;
    }

    pub(in crate::web) async fn connection(&self) -> Result<Session, Problem> {
        Ok(Session::pooled(&self.pool).await?)
    }

    /// Business time and day.
    pub(in crate::web) async fn moment(&self, connection: &mut PgConnection) -> Result<Moment, Problem> {
        let now = self.clock.business(database_now(connection).await?);
        Ok(Moment { now, today: day_in(now, self.zone) })
    }

    /// What changes by a caller go by; they do not wait, for no typo is mended here.
    pub(in crate::web) fn change_rules<'r>(&'r self, moment: Moment, by: &'r str) -> ChangeRules<'r> {
        ChangeRules { claim_limit: self.claim_limit, by, ..ChangeRules::at(moment, self.window.as_ref()) }
    }

    /// What actions of a caller go by.
    pub(in crate::web) fn action_rules(&self, moment: Moment) -> ActionRules<'_> {
        ActionRules { moment, window: self.window.as_ref(), zone: self.zone }
    }
}

/// All routes of the API.
pub(super) fn router(api: &Api) -> Router {
    let (routes, _) = openapi::routes();
    let api = api.clone();
    let guarded = routes
        .fallback(|| async { Problem::new(Kind::NotFound, "there is no such address under /api/v1") })
        .method_not_allowed_fallback(|| async {
            Problem::new(Kind::MethodNotAllowed, "the resource does not take this method")
        })
        .layer(from_fn_with_state(api.clone(), repeat::once))
        .layer(from_fn(query::only_described))
        .layer(from_fn_with_state(api.clone(), work::whole))
        .layer(from_fn_with_state(api.clone(), access::check))
        .layer(from_fn(work::identified));
    // Nothing is nested under the root with a slash at its end.
    let slash = axum::routing::any(|| async { Problem::new(Kind::NotFound, "there is no such address") });
    Router::new().nest(ROOT, guarded.with_state(api)).route(&format!("{ROOT}/"), slash)
}
