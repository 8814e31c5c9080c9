//! What the end of an attempt makes of its delivery.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Facts, Settlement};
use crate::domain::{attempt::Outcome, backoff, delivery::DeliveryState, notice::ReasonCode};

/// What a delivery becomes.
pub(in crate::store) struct After {
    pub(in crate::store) state: DeliveryState,
    pub(in crate::store) reason: Option<ReasonCode>,
    pub(in crate::store) next_attempt_at: Option<DateTime<Utc>>,
    pub(in crate::store) attempt_count: i32,
}

impl After {
    pub(super) fn of(settlement: &Settlement, fact: &Facts, max_attempts: u32, now: DateTime<Utc>) -> Self {
        let after = Self::of_owed(settlement, fact.attempt_count, max_attempts, now);
        let reason = fact.superseded.or_else(|| fact.address_left().then_some(ReasonCode::AddressChanged));
        // A refusal of an address that nobody writes to any more is nothing for a person to decide.
        let unsent = settlement.outcome.delivery_state(reason.is_some(), false);
        let ends_unsent =
            unsent == DeliveryState::Superseded || (fact.address_left() && unsent == DeliveryState::Failed);
        if ends_unsent {
            return Self { state: DeliveryState::Superseded, reason, next_attempt_at: None, ..after };
        }
        // A person held the notice while nobody knew of this copy: it joins what is held.
        if after.state == DeliveryState::Pending && fact.held_by_person {
            return Self { state: DeliveryState::Held, reason: Some(ReasonCode::ByPerson), ..after };
        }
        after
    }

    /// What the outcome makes of a delivery whose notice is still owed to an address of the permit.
    pub(in crate::store) fn of_owed(
        settlement: &Settlement,
        attempts_before: i32,
        max_attempts: u32,
        now: DateTime<Utc>,
    ) -> Self {
        let counts = settlement.outcome == Outcome::Deferred && !settlement.transport_fault;
        let attempt_count = attempts_before + i32::from(counts);
        let exhausted = counts && attempt_count >= i32::try_from(max_attempts).unwrap_or(i32::MAX);
        let state = settlement.outcome.delivery_state(false, exhausted);
        let reason = match state {
            DeliveryState::Failed if exhausted => Some(ReasonCode::Exhausted),
            DeliveryState::Failed => Some(ReasonCode::Refused),
            _ => None,
        };
        let failures = u32::try_from(attempt_count).unwrap_or(0).max(1);
        let wait = backoff::delay(failures, fastrand::f64()).max(settlement.retry_after.unwrap_or_default());
        let wait = TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(6));
        let next_attempt_at = (state == DeliveryState::Pending).then(|| now + wait);
        Self { state, reason, next_attempt_at, attempt_count }
    }
}
