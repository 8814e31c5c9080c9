//! What a dispatch counted.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::domain::{attempt::Outcome, notice::ReasonCode};

/// Counters that all senders share.
#[derive(Debug, Default)]
pub struct Tally {
    accepted: AtomicU64,
    deferred: AtomicU64,
    rejected: AtomicU64,
    not_sent: AtomicU64,
    ambiguous: AtomicU64,
    superseded: AtomicU64,
    suppressed: AtomicU64,
    skipped: AtomicU64,
}

/// What a dispatch did, as `dispatch --json` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Attempts that the transport took.
    pub accepted: u64,
    /// Attempts refused for now.
    pub deferred: u64,
    /// Attempts refused for good.
    pub rejected: u64,
    /// Attempts of which nothing was handed over.
    pub not_sent: u64,
    /// Attempts that nobody can know the outcome of.
    pub ambiguous: u64,
    /// Deliveries that the gate found to be no longer owed.
    pub superseded: u64,
    /// Deliveries that the gate found to be suppressed.
    pub suppressed: u64,
    /// Deliveries that the gate found to be too late.
    pub skipped: u64,
    /// Deliveries that wait still, due or not.
    pub left_pending: u64,
}

impl Tally {
    pub(super) fn ended(&self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Accepted => &self.accepted,
            Outcome::Deferred => &self.deferred,
            Outcome::Rejected => &self.rejected,
            Outcome::NotSent | Outcome::Sending => &self.not_sent,
            Outcome::Ambiguous => &self.ambiguous,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, reason: ReasonCode) {
        let counter = match reason {
            ReasonCode::TooLate => &self.skipped,
            ReasonCode::Suppressed | ReasonCode::Guard => &self.suppressed,
            ReasonCode::CannotCompose => &self.rejected,
            _ => &self.superseded,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_ambiguous(&self, count: u64) {
        self.ambiguous.fetch_add(count, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn report(&self, left_pending: u64) -> Report {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Report {
            accepted: of(&self.accepted),
            deferred: of(&self.deferred),
            rejected: of(&self.rejected),
            not_sent: of(&self.not_sent),
            ambiguous: of(&self.ambiguous),
            superseded: of(&self.superseded),
            suppressed: of(&self.suppressed),
            skipped: of(&self.skipped),
            left_pending,
        }
    }
}
