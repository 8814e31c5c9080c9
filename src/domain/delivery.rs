//! Deliveries: one copy of a notice to one address, or one letter to post.

use super::words;

words! {
    /// How a copy reaches its recipient.
    "channel" Channel {
        /// By mail server.
        Email = "email",
        /// By post, by hand.
        Letter = "letter",
    }
}

words! {
    /// State of a delivery.
    "delivery state" DeliveryState {
        /// To be sent; a lease leaves it so.
        Pending = "pending",
        /// Kept back until a person decides.
        Held = "held",
        /// Through the gate; its outcome is not known yet.
        Sending = "sending",
        /// Accepted.
        Sent = "sent",
        /// Accepted or not, we cannot know.
        Ambiguous = "ambiguous",
        /// Refused for good, or attempts used up.
        Failed = "failed",
        /// Accepted first, then returned.
        Bounced = "bounced",
        /// No longer owed.
        Superseded = "superseded",
        /// The address must not be mailed.
        Suppressed = "suppressed",
        /// Not to be sent any more.
        Skipped = "skipped",
        /// A person decided against it.
        Cancelled = "cancelled",
    }
}

impl DeliveryState {
    /// Whether a delivery may go from this state to `next`. Everything else is a fault in the program.
    pub fn may_become(self, next: Self) -> bool {
        use DeliveryState as S;
        match self {
            S::Pending => matches!(
                next,
                S::Held | S::Sending | S::Sent | S::Failed | S::Superseded | S::Suppressed | S::Skipped | S::Cancelled
            ),
            S::Held => matches!(next, S::Pending | S::Superseded | S::Suppressed | S::Skipped | S::Cancelled),
            S::Sending => matches!(next, S::Pending | S::Sent | S::Ambiguous | S::Failed | S::Superseded | S::Skipped),
            S::Ambiguous => matches!(next, S::Pending | S::Sent | S::Failed | S::Superseded | S::Bounced),
            S::Sent => matches!(next, S::Bounced),
            S::Failed => matches!(next, S::Pending | S::Cancelled),
            S::Suppressed => matches!(next, S::Pending | S::Held | S::Superseded),
            S::Superseded => matches!(next, S::Pending | S::Held | S::Suppressed | S::Skipped),
            S::Bounced | S::Skipped | S::Cancelled => false,
        }
    }
}
