//! Schedules: which notices a permit type owes, and when.

use super::notice::{NoticeClass, NoticeType, RENEWED};

/// One line of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which notice.
    pub notice_type: NoticeType,
    /// Days after `expires_on`, negative before; `None` only for `renewed`.
    pub offset_days: Option<i32>,
    /// Whether a holder may decline it.
    pub class: NoticeClass,
    /// For a step after expiry: how many days after its due day it may still go.
    pub late_by_days: i32,
    /// A step switched off is owed to nobody.
    pub enabled: bool,
}

/// Default of [`Step::late_by_days`], and how many days a `renewed` confirmation may be late.
pub const LATE_BY_DAYS: i32 = 7;
/// Largest distance of a step from expiry, in days.
pub const OFFSET_DAYS_MAX: i32 = 3650;

/// The steps of one permit type, in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedule {
    steps: Vec<Step>,
}

/// Why a list of steps is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A notice type stands twice.
    #[error("notice type {0} stands twice in the schedule")]
    Twice(NoticeType),
    /// `renewed` has an offset, or another step has none.
    #[error("offset_days must be set for every step but {RENEWED}, which has none (step {0})")]
    Offset(NoticeType),
    /// A number out of range.
    #[error("offset_days and late_by_days must be within {OFFSET_DAYS_MAX} days (step {0})")]
    Range(NoticeType),
}

impl Schedule {
    /// A schedule of `steps`, checked.
    pub fn new(steps: Vec<Step>) -> Result<Self, ScheduleError> {
        for (i, step) in steps.iter().enumerate() {
            let named = || step.notice_type.clone();
            if steps[..i].iter().any(|s| s.notice_type == step.notice_type) {
                return Err(ScheduleError::Twice(named()));
            }
            if step.notice_type.is_renewed() != step.offset_days.is_none() {
                return Err(ScheduleError::Offset(named()));
            }
            let in_range = step.offset_days.is_none_or(|d| (-OFFSET_DAYS_MAX..=OFFSET_DAYS_MAX).contains(&d));
            if !in_range || !(0..=OFFSET_DAYS_MAX).contains(&step.late_by_days) {
                return Err(ScheduleError::Range(named()));
            }
        }
        Ok(Self { steps })
    }

    /// What a new permit type owes until someone changes it.
    pub fn usual() -> Self {
        let offsets = [-90, -60, -30, -14, -7, -1, 0, 1, 30];
        let dated = offsets.map(|days: i32| {
            let name = match days {
                0 => "expires-today".to_owned(),
                before if before < 0 => format!("expires-{}d", -before),
                after => format!("expired-{after}d"),
            };
            (name, Some(days), NoticeClass::Statutory)
        });
        let renewed = (RENEWED.to_owned(), None, NoticeClass::Courtesy);
        let steps = dated.into_iter().chain([renewed]).map(|(name, offset_days, class)| Step {
            notice_type: name.parse().unwrap_or_else(|_| unreachable!("{name} is a notice type")),
            offset_days,
            class,
            late_by_days: LATE_BY_DAYS,
            enabled: true,
        });
        Self { steps: steps.collect() }
    }

    /// The steps in the order of the list.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step of that notice type, switched on or off.
    pub fn step(&self, notice_type: &NoticeType) -> Option<&Step> {
        self.steps.iter().find(|step| &step.notice_type == notice_type)
    }

    /// The confirmation of a renewal, if it is switched on.
    pub fn confirmation(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.offset_days.is_none() && step.enabled)
    }
}
