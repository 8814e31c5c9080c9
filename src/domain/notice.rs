//! Notices: their keys, types, classes, states, and the reasons for ending unsent.

use chrono::NaiveDate;
use uuid::Uuid;

use super::{delivery::DeliveryState, words};

/// Which notice: 1 to 40 lower-case letters, digits and dashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoticeType(String);

/// A text that is no notice type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a notice type has 1 to 40 lower-case letters, digits and dashes")]
pub struct NoticeTypeError;

/// The confirmation of a renewal, the one notice without an offset.
pub const RENEWED: &str = "renewed";

impl NoticeType {
    /// The type's word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the confirmation of a renewal.
    pub fn is_renewed(&self) -> bool {
        self.0 == RENEWED
    }
}

impl std::str::FromStr for NoticeType {
    type Err = NoticeTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=40).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoticeTypeError)
        }
    }
}

impl std::fmt::Display for NoticeType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The key that one notice bears for ever: `<permit id>:<notice type>:<expires_on>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoticeKey {
    /// The permit.
    pub permit_id: Uuid,
    /// The step.
    pub notice_type: NoticeType,
    /// The expiry period.
    pub expires_on: NaiveDate,
}

impl std::fmt::Display for NoticeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.permit_id, self.notice_type, self.expires_on.format("%Y-%m-%d"))
    }
}

words! {
    /// Whether a holder may decline it.
    "notice class" NoticeClass {
        /// Owed by law; cannot be unsubscribed, and becomes a letter when it cannot be mailed.
        Statutory = "statutory",
        /// A kindness; can be unsubscribed.
        Courtesy = "courtesy",
    }
}

words! {
    /// State of a notice; follows from its deliveries.
    "notice state" NoticeState {
        /// A copy waits or is being sent.
        Pending = "pending",
        /// Kept back until a person decides.
        Held = "held",
        /// A copy may or may not have been accepted.
        Ambiguous = "ambiguous",
        /// A copy was accepted.
        Sent = "sent",
        /// No copy could be sent.
        Failed = "failed",
        /// No longer owed.
        Superseded = "superseded",
        /// Owed, but not to be sent any more.
        Skipped = "skipped",
        /// A person decided against it.
        Cancelled = "cancelled",
    }
}

impl NoticeState {
    /// Still to be sent.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Held)
    }

    /// The state that follows from the states of a notice's deliveries; `None` if it has none, for then its
    /// state was written with it.
    pub fn of(deliveries: &[DeliveryState]) -> Option<Self> {
        use DeliveryState as D;
        let any = |states: &[D]| deliveries.iter().any(|d| states.contains(d));
        [
            (&[D::Pending, D::Sending][..], Self::Pending),
            (&[D::Held], Self::Held),
            (&[D::Ambiguous], Self::Ambiguous),
            (&[D::Sent], Self::Sent),
            (&[D::Failed, D::Bounced, D::Suppressed], Self::Failed),
            (&[D::Superseded], Self::Superseded),
            (&[D::Skipped], Self::Skipped),
            (&[D::Cancelled], Self::Cancelled),
        ]
        .into_iter()
        .find_map(|(states, notice)| any(states).then_some(notice))
    }
}

words! {
    /// Why a notice or a delivery is held or ended unsent.
    "reason code" ReasonCode {
        /// A later step of its class took its place.
        MoreUrgentStep = "more_urgent_step",
        /// The permit has another expiry date now.
        PeriodChanged = "period_changed",
        /// The permit is not active.
        NotActive = "not_active",
        /// Notices of the permit are paused.
        Paused = "paused",
        /// The permit is archived.
        Archived = "archived",
        /// The address is no longer on the permit.
        AddressChanged = "address_changed",
        /// The step is gone from the schedule or switched off.
        StepRemoved = "step_removed",
        /// The step is not owed, or not due, any more.
        NotOwed = "not_owed",
        /// The confirmation of the renewal tells the date.
        Renewed = "renewed",
        /// Its last day for sending has passed.
        TooLate = "too_late",
        /// Held because more was to be sent at once than the limit allows.
        ClaimLimit = "claim_limit",
        /// Held because the database was restored, and it may have been sent since.
        MemoryWentBack = "memory_went_back",
        /// Held because its owner died three times on it.
        OwnerDied = "owner_died",
        /// Nobody on the permit may be mailed.
        NoAddress = "no_address",
        /// The address is suppressed for this class.
        Suppressed = "suppressed",
        /// A guard keeps mail from leaving this environment.
        Guard = "guard",
        /// A person decided.
        ByPerson = "by_person",
        /// The message could not be made.
        CannotCompose = "cannot_compose",
        /// Attempts are used up.
        Exhausted = "exhausted",
        /// The server refused it for good.
        Refused = "refused",
    }
}

impl ReasonCode {
    /// Whether a notice superseded for this reason is owed again when the reason ends.
    pub fn is_revivable(self) -> bool {
        matches!(
            self,
            Self::PeriodChanged | Self::NotActive | Self::Paused | Self::Archived | Self::StepRemoved | Self::NotOwed
        )
    }

    /// The reason as a plain sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::MoreUrgentStep => "A later step took its place.",
            Self::PeriodChanged => "The permit has another expiry date now.",
            Self::NotActive => "The permit is not active.",
            Self::Paused => "Notices of this permit are paused.",
            Self::Archived => "The permit is archived.",
            Self::AddressChanged => "The address is no longer on the permit.",
            Self::StepRemoved => "The step was removed from the schedule or switched off.",
            Self::NotOwed => "The step is not owed any more.",
            Self::Renewed => "The confirmation of the renewal tells the new date.",
            Self::TooLate => "Its last day for sending has passed.",
            Self::ClaimLimit => "More notices were due at once than the limit allows; a person decides.",
            Self::MemoryWentBack => {
                "The database was restored or moved, so it may have been sent already; a person decides."
            }
            Self::OwnerDied => "The process that was sending it died three times.",
            Self::NoAddress => "Nobody on the permit may be mailed.",
            Self::Suppressed => "The address is suppressed.",
            Self::Guard => "This environment does not mail that address.",
            Self::ByPerson => "A person decided so.",
            Self::CannotCompose => "The message could not be made.",
            Self::Exhausted => "All attempts are used up.",
            Self::Refused => "The mail server refused it for good.",
        }
    }
}
