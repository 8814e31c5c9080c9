//! Mail: composing a notice, and the seam through which dispatch hands it over, phase by phase.
//!
//! `compose` makes the exact bytes and knows nothing of transports; a `Mailer` carries bytes and knows nothing
//! of notices. What a phase proved is in [`Ended`], so that no caller has to read a server's words.

mod compose;
mod file;
mod header;
mod office;
pub mod smtp;
mod text;
mod wording;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};

use crate::domain::{
    attempt::{Outcome, Phase, Transport},
    recipient::EmailAddress,
};

pub use compose::{ComposeError, Composed, compose, compose_plain, compose_test, message_id};
pub use file::FileMailer;
pub use office::{Mailbox, MailboxError, Office, OfficeError};
pub use smtp::SmtpMailer;
pub use wording::{LANGUAGE, NoticeMail, Preview, URL_MAX, preview, shown_link};

/// What the transport is told about a message: who sends it and who gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Where bounces go. Set to the office's bounce address; an address per attempt may take its place.
    pub sender: EmailAddress,
    /// The one recipient.
    pub recipient: EmailAddress,
    /// Bytes of the message before dot-stuffing, for a server that wants to know in advance; `None`: not known yet.
    pub size: Option<usize>,
}

impl Envelope {
    /// Whether one of the addresses needs a server with SMTPUTF8. The message itself never does.
    pub fn needs_smtputf8(&self) -> bool {
        self.sender.needs_smtputf8() || self.recipient.needs_smtputf8()
    }
}

/// Carries messages: a mail server, or a folder. Shared by all senders of a process.
pub trait Mailer: Send + Sync + fmt::Debug {
    /// What is written on attempts made through this mailer.
    fn transport(&self) -> Transport;

    /// A session of its own for one sender. Opens nothing yet.
    fn session(&self) -> Box<dyn Session>;
}

/// One sender's conversation with the transport, for one message after another. The contract:
///
/// 1. [`offer`](Session::offer) does everything that comes before the gate: opening what is not open, naming
///    sender and recipient. When it returns, whatever it returns, **nothing was accepted**. `Err` is how this
///    delivery's attempt ended, and this message is over; the session may be offered the next one.
/// 2. After `Ok` the caller asks the gate, and then calls exactly one of `transmit` and `withdraw`.
/// 3. [`transmit`](Session::transmit) is called only after the gate is committed, with the envelope that was
///    offered. It sends the body and takes the final step. Immediately before the point of no return (the final
///    dot, the rename) it asks `may_finish`; `false` ends the message as `not_sent` in phase `body` with reason
///    [`LEASE_TOO_OLD`]. Its [`Ended`] is never `Sending`; `accepted` only with the transport's proof;
///    `not_sent` only if the final step was certainly not taken; everything in between is `ambiguous`.
/// 4. `transmit` may be given the envelope of the `next` message. A transport that can lets it travel with this
///    message's last bytes, and says in [`Transmitted::next`] what became of it; then the caller goes on at
///    point 2 with it. Nothing of the next message's body is sent.
/// 5. [`withdraw`](Session::withdraw): the gate refused. The offer is taken back, no byte of a body is sent.
/// 6. Futures are awaited to their end. They keep their own time limits; dropping one midway leaves an attempt
///    that nobody knows the outcome of. The session gives up the connection of a future that was dropped.
/// 7. A session that doubts its connection drops it by itself and opens another at the next offer; a transport
///    fault is reported, never retried inside. Only a connection that the server had given up while it was idle, or
///    gives up at the first command of another message, is replaced without a word, once, before anything of the
///    message was taken.
pub trait Session: Send + Sync {
    /// Opens what has to be open before the first message, if it is not. `offer` does so by itself; this is for a
    /// caller who must know when the message itself begins: the offer after it names nobody twice, and ends with the
    /// reason [`PARTED`](smtp::PARTED) where it would have tried a new connection.
    fn ready(&mut self) -> BoxFuture<'_, Result<(), Ended>> {
        std::future::ready(Ok(())).boxed()
    }

    /// Everything before the gate; nothing is accepted yet.
    fn offer<'a>(&'a mut self, envelope: &'a Envelope) -> BoxFuture<'a, Result<(), Ended>>;

    /// Body and final step, after the gate is committed; and the next envelope, where the transport can.
    fn transmit<'a>(
        &'a mut self,
        envelope: &'a Envelope,
        message: &'a Composed,
        next: Option<&'a Envelope>,
        may_finish: &'a MayFinish,
    ) -> BoxFuture<'a, Transmitted>;

    /// How the message ended that was transmitted last, if that was known before the future of `transmit` was dropped:
    /// it may have waited only for the next message.
    fn heard(&mut self) -> Option<Ended> {
        None
    }

    /// The gate refused what was offered.
    fn withdraw(&mut self) -> BoxFuture<'_, ()>;

    /// Closes politely what is open between two messages; what is offered is taken back. The session can be used
    /// again. For a sender that has nothing to do, or must not keep a connection while the database is away.
    fn close(&mut self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// What [`Session::transmit`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmitted {
    /// How the message ended.
    pub ended: Ended,
    /// The next message. `Some(Ok)`: it is offered, and its body may follow once its gate is committed. `Some(Err)`:
    /// how its attempt ended, before the gate. `None`: it is not offered, and nothing of it is to be recorded.
    pub next: Option<Result<(), Ended>>,
}

impl From<Ended> for Transmitted {
    /// Without a next message.
    fn from(ended: Ended) -> Self {
        Self { ended, next: None }
    }
}

/// Asked immediately before the point of no return: may this message still be finished?
#[derive(Clone)]
pub struct MayFinish(Arc<dyn Fn() -> bool + Send + Sync>);

impl MayFinish {
    /// Asks `check` each time. It is called from any thread and must not block.
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Always yes: for messages outside dispatch, such as a test mail.
    pub fn always() -> Self {
        Self::new(|| true)
    }

    /// The answer at this moment.
    pub fn ask(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for MayFinish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MayFinish")
    }
}

/// Reason of an attempt that was not finished because its process could no longer be sure to own it.
pub const LEASE_TOO_OLD: &str = "lease_too_old";

/// How one attempt ended, and how that is known. The fields are those of an attempt in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The outcome; never `Sending`.
    pub outcome: Outcome,
    /// The transport's fault and not the notice's: counts against the transport, not against the delivery.
    pub transport_fault: bool,
    /// A word for why, when no reply of a server says it.
    pub reason: Option<Cow<'static, str>>,
    /// How far it came.
    pub phase: Phase,
    /// The server's reply code.
    pub smtp_code: Option<u16>,
    /// The server's enhanced code, such as `5.1.1`.
    pub enhanced_code: Option<String>,
    /// What the transport said: the server's reply, or the name of the file.
    pub response: Option<String>,
    /// After how long the transport takes it again, if it says so.
    pub retry_after: Option<Duration>,
}

impl Ended {
    /// An end without codes, words or blame; the rest is set by field.
    pub fn new(outcome: Outcome, phase: Phase) -> Self {
        Self {
            outcome,
            transport_fault: false,
            reason: None,
            phase,
            smtp_code: None,
            enhanced_code: None,
            response: None,
            retry_after: None,
        }
    }

    /// The same, for `reason`.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The same, as a fault of the transport.
    #[must_use]
    pub fn as_transport_fault(mut self) -> Self {
        self.transport_fault = true;
        self
    }

    /// The same, with what the transport said.
    #[must_use]
    pub fn saying(mut self, response: impl Into<String>) -> Self {
        self.response = Some(response.into());
        self
    }

    /// Not finished, because `may_finish` said no.
    pub fn lease_too_old() -> Self {
        Self::new(Outcome::NotSent, Phase::Body).because(LEASE_TOO_OLD)
    }
}
