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
    /// The server said nothing about this message: not a word, or a goodbye.
    pub(super) silent: bool,
    /// The server gave up a used connection when MAIL came, as many do after some time or some messages: worth a new
    /// connection.
    pub(super) parted: bool,
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
    /// The server takes its time over the next envelope, which was given up.
    pub(super) slow: bool,
}

impl Sent {
    pub(super) fn new(ended: Ended, after: After) -> Self {
        Self { ended, next: None, after, mixed_up: false, slow: false }
    }
}

impl Refusal {
    pub(super) fn gone(ended: Ended) -> Self {
        Self { ended, after: After::Gone, mixed_up: false, silent: false, parted: false }
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

    /// The same, at MAIL; on a connection that was `used` before, the server may only have had enough of it.
    pub(super) fn at_mail(self, used: bool) -> Self {
        let left = match self.ended.smtp_code {
            Some(code) => is_parting(code),
            None => self.ended.reason.as_deref() == Some(judge::CONNECTION_LOST),
        };
        Self { silent: self.silent || left, parted: left && used, ..self }
    }

    /// By a reply of which nobody knows which command it answers: no reason to give a message up.
    pub(super) fn mixed_up(self) -> Self {
        let Self { ended, silent, parted, .. } = self;
        let ended = Ended { outcome: Outcome::NotSent, ..ended.because(judge::UNEXPECTED_REPLY) };
        Self { ended, after: After::Gone, mixed_up: true, silent, parted }
    }
}

/// Whether a server that replies so is about to leave, whatever it was asked.
pub(super) fn is_parting(code: u16) -> bool {
    matches!(code, 221 | 421)
}
