//! What a step on a connection came to, for the message and for the connection.

use super::{judge, reply::Reply};
use crate::{
    domain::attempt::{Outcome, Phase},
    mail::Ended,
};

/// How far an offer went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Sender and recipient are named.
    Named,
    /// The server waits for the body.
    Data,
}

/// An offer that came to nothing.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) ended: Ended,
    pub(super) after: After,
    /// The server mixed up replies to commands that were sent together.
    pub(super) mixed_up: bool,
    /// The server said nothing at all about this message.
    pub(super) silent: bool,
}

/// What can be done with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It takes the next message.
    Idle,
    /// The next message is offered on it.
    Offered,
    /// It must be dropped.
    Gone,
}

/// What became of a message, of the next one, and of the connection.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) ended: Ended,
    pub(super) next: Option<Result<(), Ended>>,
    pub(super) after: After,
    pub(super) mixed_up: bool,
}

impl Sent {
    pub(super) fn new(ended: Ended, after: After) -> Self {
        Self { ended, next: None, after, mixed_up: false }
    }
}

impl Refusal {
    pub(super) fn gone(ended: Ended) -> Self {
        Self { ended, after: After::Gone, mixed_up: false, silent: false }
    }

    pub(super) fn idle(ended: Ended) -> Self {
        Self { after: After::Idle, ..Self::gone(ended) }
    }

    /// For a reply that refuses: after a 421 the server leaves, and after anything but a plain no it is not
    /// understood.
    pub(super) fn by(phase: Phase, reply: &Reply) -> Self {
        let plain = (reply.is_class(4) || reply.is_class(5)) && reply.code != 421;
        let ended = judge::refusal(phase, reply);
        if plain { Self::idle(ended) } else { Self::gone(ended) }
    }
}

impl Refusal {
    /// The same, on a connection that must be dropped.
    pub(super) fn dropped(self) -> Self {
        Self { after: After::Gone, ..self }
    }

    /// By a reply of which nobody knows which command it answers: no reason to give a message up.
    pub(super) fn mixed_up(self) -> Self {
        let ended = Ended { outcome: Outcome::NotSent, ..self.ended.because(judge::UNEXPECTED_REPLY) };
        Self { ended, after: After::Gone, mixed_up: true, silent: self.silent }
    }
}
