//! What this process knows of the transport. The breaker itself is shared by all replicas and lives in the database
//! ([`crate::store::transport`]); here is what makes senders stop before the next look there.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::domain::words;

/// After a fault nothing is tried for so long, until the breaker is looked at again.
const PAUSE: Duration = Duration::from_secs(1);

words! {
    /// How the transport did in one dispatch.
    "transport state" TransportReport {
        /// It worked, or was not needed.
        Ok = "ok",
        /// It failed.
        Down = "down",
        /// The breaker was open, and nothing was tried.
        Paused = "paused",
    }
}

/// The transport, as far as this process knows.
#[derive(Debug, Default)]
pub struct TransportState(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    until: Option<Instant>,
    failed: bool,
    paused: bool,
    heard: bool,
}

impl TransportState {
    /// A fault was met.
    pub(super) fn broke(&self) {
        let mut seen = self.lock();
        seen.until = Some(Instant::now() + PAUSE);
        seen.failed = true;
        seen.heard = true;
    }

    /// A message was accepted.
    pub(super) fn works(&self) {
        *self.lock() = Seen { heard: true, ..Seen::default() };
    }

    /// The breaker was found open.
    pub(super) fn found_paused(&self) {
        self.lock().paused = true;
    }

    /// Whether a fault was met a moment ago.
    pub fn is_down(&self) -> bool {
        self.lock().until.is_some_and(|until| until > Instant::now())
    }

    /// Whether it failed and has not worked since.
    pub fn has_failed(&self) -> bool {
        self.lock().failed
    }

    /// A probe begins: what was heard before is no answer to it.
    pub(super) fn await_word(&self) {
        self.lock().heard = false;
    }

    /// Whether a message or a fault told anything of it yet.
    pub(super) fn was_heard(&self) -> bool {
        self.lock().heard
    }

    /// How it did.
    pub fn report(&self) -> TransportReport {
        let seen = self.lock();
        match (seen.failed, seen.paused) {
            (true, _) => TransportReport::Down,
            (false, true) => TransportReport::Paused,
            (false, false) => TransportReport::Ok,
        }
    }

    pub(super) async fn wait_until_up(&self) {
        let until = self.lock().until;
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
