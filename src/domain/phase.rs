//! Where in its life a permit is, by its dates alone.

use chrono::{Days, NaiveDate, TimeDelta};

use super::words;

words! {
    /// Where in its life a permit is on a day.
    "phase" Phase {
        /// Before the first term's start.
        NotYetEffective = "not_yet_effective",
        /// In force, and no notice due yet.
        Active = "active",
        /// From the due day of the schedule's first step to the last valid day.
        Expiring = "expiring",
        /// Past the last valid day, within the days of grace.
        Grace = "grace",
        /// Past them.
        Expired = "expired",
    }
}

/// What decides the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Start of the first term, if it has one.
    pub first_effective_on: Option<NaiveDate>,
    /// Last valid day.
    pub expires_on: NaiveDate,
    /// Days from the last valid day to the first step of the schedule that is switched on; negative before it.
    pub first_step: Option<i32>,
    /// Days of grace after the last valid day.
    pub grace_days: i32,
}

impl Life {
    /// The phase on `today`.
    pub fn phase(&self, today: NaiveDate) -> Phase {
        let after = |days: i32| self.expires_on.checked_add_signed(TimeDelta::days(days.into()));
        if self.first_effective_on.is_some_and(|first| today < first) {
            Phase::NotYetEffective
        } else if today <= self.expires_on {
            let begun = self.first_step.and_then(after).is_some_and(|due| due <= today);
            if begun { Phase::Expiring } else { Phase::Active }
        } else {
            let grace = Days::new(u64::from(self.grace_days.unsigned_abs()));
            let last = self.expires_on.checked_add_days(grace).unwrap_or(NaiveDate::MAX);
            if today <= last { Phase::Grace } else { Phase::Expired }
        }
    }
}
