//! The only place that speaks SQL. One function, one statement, named after what it does; `now` is a parameter.
//!
//! Locks are taken in one order everywhere: permit, notice, delivery, attempt, each by id.

pub mod actions;
pub mod alarms;
pub mod audits;
pub mod cases;
pub mod changes;
pub mod claims;
pub mod clock;
pub mod connect;
pub mod demo;
pub mod facts;
pub mod gate;
pub mod history;
pub mod idempotency;
pub mod imports;
pub mod kept_files;
pub mod leases;
pub mod lists;
pub mod mappings;
pub mod memory;
pub mod migrate;
pub mod notify;
pub mod office_log;
pub mod owing;
pub mod people;
pub mod permit_types;
pub mod permits;
pub mod pooler;
pub mod processes;
pub mod purge;
mod reasons;
pub mod recovery;
pub mod refused;
pub mod round;
pub mod scan_lock;
pub mod scans;
pub mod settle;
pub mod stock;
pub mod suppressions;
pub mod tokens;
pub mod transport;
pub mod unit;
pub mod watched;

pub use sqlx::{Error as DatabaseError, PgConnection, PgPool};

use chrono::{DateTime, NaiveDate, Utc};

/// When something is judged and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Business time, for instants.
    pub now: DateTime<Utc>,
    /// The day that counts as today; not always the day of `now` (`--as-of`).
    pub today: NaiveDate,
}

/// What can go wrong in the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database refused or was not there.
    #[error("{}", connect::said(.0))]
    Database(sqlx::Error),
    /// No such row.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The permit number belongs to another permit.
    #[error("permit number {number} is taken by permit {by}")]
    NumberTaken {
        /// The number.
        number: String,
        /// The permit that has it.
        by: uuid::Uuid,
    },
    /// The caller changed an older version than the present one.
    #[error("somebody else has changed it; its version is now {present}")]
    Stale {
        /// The present version.
        present: i64,
    },
    /// Not allowed in the present state.
    #[error("not possible: {why}")]
    WrongState {
        /// The present state, in one word.
        state: String,
        /// What it is and what would be allowed.
        why: String,
    },
    /// The service stops, and the work was broken off between two batches.
    #[error("not possible: the service is stopping; the next scan goes on from here")]
    Stopping,
    /// A renewal to a date before the present one.
    #[error("must be later than the present date ({present})")]
    NotLater {
        /// The present last valid day.
        present: NaiveDate,
    },
    /// A copy is through the gate: whether it is sent is not known yet, so nothing can be decided about it.
    #[error("not possible: a copy of the notice is being sent at this moment; its outcome will be known soon")]
    BeingSent,
    /// A field cannot take that value.
    #[error("{field}: {why}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// What is allowed.
        why: String,
    },
    /// A stored word that this program does not know.
    #[error("the database holds {0}")]
    Unknown(#[from] crate::domain::UnknownWord),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl StoreError {
    /// Not allowed in the present state, which is `state`; `why` says so in words.
    pub fn wrong_state(state: impl Into<String>, why: impl Into<String>) -> Self {
        Self::WrongState { state: state.into(), why: why.into() }
    }

    /// Whether the database was away or cut us off, so that trying again may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => connect::is_transient(error),
            _ => false,
        }
    }

    /// Whether this very data was refused, so that trying again is of no use.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Database(error) => connect::is_refusal(error),
            _ => true,
        }
    }
}

/// Result of a store function.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
