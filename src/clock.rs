//! Business time: today, due, backoff and schedule follow the database's clock plus an offset.
//! The clocks of hosts decide nothing, so that replicas with wrong clocks agree all the same.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// Turns what the database says into the time the office lives in.
/// Leases, process rows and the breaker use the database's clock bare and do not ask here.
pub trait Clock: Debug + Send + Sync {
    fn business(&self, database_now: DateTime<Utc>) -> DateTime<Utc>;
}

/// The database's clock, moved by what `CLOCK` asks for (nothing in production).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock {
    pub offset: TimeDelta,
}

impl Clock for SystemClock {
    fn business(&self, database_now: DateTime<Utc>) -> DateTime<Utc> {
        database_now.checked_add_signed(self.offset).unwrap_or(database_now)
    }
}

/// Stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<DateTime<Utc>>,
}

impl ManualClock {
    pub fn new(now: DateTime<Utc>) -> Self {
        Self { now: Mutex::new(now) }
    }

    pub fn now(&self) -> DateTime<Utc> {
        *self.lock()
    }

    pub fn set(&self, now: DateTime<Utc>) {
        *self.lock() = now;
    }

    pub fn advance(&self, by: TimeDelta) {
        *self.lock() += by;
    }

    /// An instant cannot be left half written, so a panic elsewhere is no reason to fail here.
    fn lock(&self) -> std::sync::MutexGuard<'_, DateTime<Utc>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn business(&self, _database_now: DateTime<Utc>) -> DateTime<Utc> {
        self.now()
    }
}
