//! Attempts: one try to hand one delivery over, and what its outcome makes of the delivery.

use std::time::Duration;

use super::{delivery::DeliveryState, words};

words! {
    /// What carries a message.
    "transport" Transport {
        /// A mail server.
        Smtp = "smtp",
        /// A file on disk.
        File = "file",
        /// A provider's HTTP interface.
        Http = "http",
        /// A person with a letter.
        Letter = "letter",
    }
}

words! {
    /// How an attempt ended.
    "outcome" Outcome {
        /// Not over yet.
        Sending = "sending",
        /// The transport took the message and said so.
        Accepted = "accepted",
        /// Refused for now.
        Deferred = "deferred",
        /// Refused for good.
        Rejected = "rejected",
        /// Nothing was handed over.
        NotSent = "not_sent",
        /// Handed over or not, we cannot know.
        Ambiguous = "ambiguous",
    }
}

words! {
    /// How far a conversation came.
    "phase" Phase {
        /// Opening the connection.
        Connect = "connect",
        /// Agreeing on encryption.
        Tls = "tls",
        /// Waiting for the server's greeting.
        Banner = "banner",
        /// Greeting the server.
        Ehlo = "ehlo",
        /// Signing in.
        Auth = "auth",
        /// Naming the sender.
        Mail = "mail",
        /// Naming the recipient.
        Rcpt = "rcpt",
        /// Asking to send the message.
        Data = "data",
        /// Sending the message.
        Body = "body",
        /// After the final dot.
        Dot = "dot",
    }
}

words! {
    /// What was found out about an ambiguous attempt.
    "resolution" Resolution {
        /// It had been accepted.
        Delivered = "delivered",
        /// It had not been accepted.
        NotDelivered = "not_delivered",
    }
}

/// Reason of an attempt whose process died after the gate; its owner may still replace it.
pub const OWNER_LOST: &str = "owner_lost";
/// How long a server has for its reply to the final dot; RFC 5321, 4.5.3.2.6, lets it take ten minutes.
pub const REPLY_LIMIT: Duration = Duration::from_mins(10);
/// Reason of an attempt that an orderly stop cut off.
pub const STOPPED: &str = "stopped";

impl Outcome {
    /// What a delivery becomes when its open attempt ends so. `superseded`: the notice is no longer owed.
    /// `exhausted`: the budget of attempts is used up.
    pub fn delivery_state(self, superseded: bool, exhausted: bool) -> DeliveryState {
        match self {
            Self::Sending => DeliveryState::Sending,
            Self::Accepted => DeliveryState::Sent,
            Self::Rejected => DeliveryState::Failed,
            Self::Ambiguous => DeliveryState::Ambiguous,
            Self::Deferred | Self::NotSent if superseded => DeliveryState::Superseded,
            Self::Deferred if exhausted => DeliveryState::Failed,
            Self::Deferred | Self::NotSent => DeliveryState::Pending,
        }
    }
}
