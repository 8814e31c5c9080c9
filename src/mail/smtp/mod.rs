//! Mail by SMTP, phase by phase, over our own stream: every phase has its own limit, every command exactly one
//! reply, and the end of each attempt says what is known and nothing more.
//!
//! `connect` opens, `connection` speaks, `session` is what a sender holds; `stream` guards the bytes, `reply` reads
//! them, and `judge` alone says what they mean. Libraries' transports are not used: they hide the phase, can hang,
//! and take a reply for the answer to another command.

mod came_to;
mod connect;
mod connection;
mod judge;
mod limits;
mod one_off;
mod probe;
pub mod reply;
mod session;
mod stream;
mod tls;
mod wait;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio_util::task::TaskTracker;

use super::{Mailer, Session};
use crate::{
    config::SmtpUrl,
    domain::{attempt::Transport, recipient::EmailAddress},
};

pub use connect::{
    AUTH_NOT_OFFERED, CONNECT_FAILED, HOST_UNKNOWN, PASSWORD_NEEDS_TLS, PLAINTEXT_AFTER_STARTTLS, STARTTLS_MISSING,
    Step,
};
pub use connection::{ADDRESS_UNUSABLE, MESSAGE_UNFIT, SMTPUTF8_NOT_OFFERED, TOO_LARGE};
pub use judge::{CONNECTION_LOST, TIMED_OUT, UNEXPECTED_REPLY};
pub use limits::Limits;
pub use one_off::NotAccepted;
pub use probe::SmtpCheck;
pub use session::{NOT_OFFERED, PARTED};
pub use tls::{CERTIFICATE_REFUSED, TLS_FAILED};

/// Hands mail to one server. Also lettre's `AsyncTransport`, for single mails outside dispatch.
#[derive(Clone)]
pub struct SmtpMailer {
    server: Arc<Server>,
}

/// What all sessions with one server share.
#[derive(Debug)]
struct Server {
    url: SmtpUrl,
    limits: Limits,
    /// The name we greet with.
    hello: String,
    trust: tls::Trust,
    /// The server has mixed up commands that were sent together.
    one_at_a_time: AtomicBool,
    tasks: TaskTracker,
}

impl SmtpMailer {
    /// Mail for the server at `url`, which is greeted with the domain of `from`, the sender's address. Connects to
    /// nothing.
    pub fn new(url: SmtpUrl, limits: Limits, from: &EmailAddress) -> Self {
        Self::trusting(url, limits, from, Vec::new())
    }

    /// The same, and certificates signed by `roots` (DER) are believed besides those that this machine believes.
    pub fn trusting(url: SmtpUrl, limits: Limits, from: &EmailAddress, roots: Vec<Vec<u8>>) -> Self {
        let server = Server {
            url,
            limits,
            hello: from.domain().to_owned(),
            trust: tls::Trust::with_extra(roots),
            one_at_a_time: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        };
        Self { server: Arc::new(server) }
    }

    /// Whether the server was found to mix up commands that are sent together; from then on it gets them one by
    /// one.
    pub fn sends_one_at_a_time(&self) -> bool {
        !self.server.may_pipeline()
    }
}

impl fmt::Debug for SmtpMailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpMailer").field("server", &self.server.url.server()).finish_non_exhaustive()
    }
}

impl Mailer for SmtpMailer {
    fn transport(&self) -> Transport {
        Transport::Smtp
    }

    fn session(&self) -> Box<dyn Session> {
        Box::new(session::SmtpSession::new(Arc::clone(&self.server)))
    }
}

impl Server {
    fn may_pipeline(&self) -> bool {
        !self.one_at_a_time.load(Ordering::Relaxed)
    }

    fn note(&self, mixed_up: bool) {
        if mixed_up && !self.one_at_a_time.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the mail server {} offers PIPELINING and mixes up its replies; it gets one command at a time",
                self.url.server()
            );
        }
    }
}
