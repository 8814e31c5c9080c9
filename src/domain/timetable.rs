//! The timetable of one expiry period: when each step is due, until when it may go, and on which day it goes.

use chrono::NaiveDate;

use super::{
    calendar::{LAST_DAY, plus_days},
    notice::NoticeClass,
    permit::{PermitStatus, Standing},
    schedule::{LATE_BY_DAYS, Schedule, Step},
    window::SendWindow,
};

/// A dated step that is switched on, placed in one expiry period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot<'s> {
    /// The step.
    pub step: &'s Step,
    /// Place in the schedule's list.
    pub position: usize,
    /// `expires_on` plus the step's offset.
    pub due_on: NaiveDate,
    /// Last day on which its notice may go.
    pub send_by: NaiveDate,
    /// The day from which it counts as due: `due_on`, or an earlier window day if none is left until `send_by`.
    pub first_day: NaiveDate,
}

impl Slot<'_> {
    /// It goes before its due day, because no sending window lies between `due_on` and `send_by`.
    pub fn is_brought_forward(&self) -> bool {
        self.first_day < self.due_on
    }

    /// Order of urgency: the later first day, then the later due day, then the later place in the list.
    pub fn urgency(&self) -> (NaiveDate, NaiveDate, usize) {
        (self.first_day, self.due_on, self.position)
    }
}

/// Why a step is not owed to a permit, whatever the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOwed {
    /// The permit is not active.
    NotActive(PermitStatus),
    /// The permit is archived.
    Archived,
    /// Notices are paused up to and including this day.
    Paused(NaiveDate),
    /// Due on or before the day the term takes effect.
    TermNotBegun(NaiveDate),
    /// Due before the day from which this permit is sent notices.
    BeforeNoticesFrom(NaiveDate),
    /// After expiry, and due before the permit first had this date.
    BeforeThisDate(NaiveDate),
}

impl std::fmt::Display for NotOwed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotActive(status) => write!(f, "The permit is {status}; only active permits are sent notices."),
            Self::Archived => write!(f, "The permit is archived."),
            Self::Paused(until) => write!(f, "Notices of this permit are paused until {until}."),
            Self::TermNotBegun(day) => write!(f, "It was due on or before {day}, the day this term took effect."),
            Self::BeforeNoticesFrom(day) => {
                write!(f, "It was due before {day}, the day from which this permit is sent notices.")
            }
            Self::BeforeThisDate(day) => {
                write!(f, "It was due before {day}, the day on which this permit first had this expiry date.")
            }
        }
    }
}

/// Every dated step of `schedule` that is switched on, placed for a permit that expires on `expires_on`. One whose day
/// cannot be written has no place: a permit that expires on 9999-12-31 never does.
pub fn timetable<'s>(schedule: &'s Schedule, expires_on: NaiveDate, window: Option<&SendWindow>) -> Vec<Slot<'s>> {
    let dated: Vec<_> = schedule
        .steps()
        .iter()
        .enumerate()
        .filter(|(_, step)| step.enabled)
        .filter_map(|(position, step)| {
            let due_on = plus_days(expires_on, i64::from(step.offset_days?));
            (due_on <= LAST_DAY).then_some((position, step, due_on))
        })
        .collect();
    let next_of_class = |class: NoticeClass, after: NaiveDate| {
        let dues = dated.iter().filter(|(_, step, due)| step.class == class && *due > after);
        dues.map(|(_, _, due)| *due).min()
    };
    dated
        .iter()
        .map(|&(position, step, due_on)| {
            let until_next = next_of_class(step.class, due_on).map(|next| plus_days(next, -1));
            let own_limit =
                if due_on <= expires_on { expires_on } else { plus_days(due_on, i64::from(step.late_by_days)) };
            let send_by = until_next.map_or(own_limit, |day| day.min(own_limit)).min(LAST_DAY);
            Slot { step, position, due_on, send_by, first_day: first_day(due_on, send_by, window) }
        })
        .collect()
}

/// Last day on which the confirmation of a renewal made on `renewed_on` may go.
pub fn confirmation_send_by(renewed_on: NaiveDate, expires_on: NaiveDate) -> NaiveDate {
    plus_days(renewed_on, i64::from(LATE_BY_DAYS)).min(expires_on)
}

/// The day on which a step counts as due.
fn first_day(due_on: NaiveDate, send_by: NaiveDate, window: Option<&SendWindow>) -> NaiveDate {
    let Some(window) = window else { return due_on };
    if window.next_window_day_on_or_after(due_on) <= send_by { due_on } else { window.last_window_day_before(due_on) }
}

/// Why a permit may be sent nothing at all on `today`, if so.
pub fn barred(standing: &Standing, today: NaiveDate) -> Option<NotOwed> {
    if standing.archived {
        return Some(NotOwed::Archived);
    }
    if standing.status != PermitStatus::Active {
        return Some(NotOwed::NotActive(standing.status));
    }
    let paused = standing.notices_paused_until.filter(|until| *until >= today);
    paused.map(NotOwed::Paused)
}

/// Why the step in `slot` is not owed to this permit, if so; [`barred`] is asked apart.
pub fn not_owed(standing: &Standing, slot: &Slot<'_>) -> Option<NotOwed> {
    let due = slot.due_on;
    if let Some(day) = standing.takes_effect_on.filter(|day| due <= *day) {
        return Some(NotOwed::TermNotBegun(day));
    }
    if let Some(day) = standing.notices_from.filter(|day| due < *day) {
        return Some(NotOwed::BeforeNoticesFrom(day));
    }
    (due > standing.expires_on && due < standing.period_since).then_some(NotOwed::BeforeThisDate(standing.period_since))
}
