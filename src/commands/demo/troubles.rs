//! Mail as files, with the troubles of a mail server for three addresses. Only the demo's own pass sends through it:
//! what is tried again from a page goes to its file like any other.

use std::path::PathBuf;

use futures_util::{FutureExt as _, future::BoxFuture};

use crate::{
    domain::attempt::{Outcome, Phase, Transport},
    mail::{Composed, Ended, Envelope, FileMailer, Mailer, MayFinish, Session, Transmitted, smtp},
};

/// Refused for now and for good: nobody empties this mailbox.
pub const FULL: &str = "full@example.com";
/// Refused: there is no such mailbox, so the address is suppressed.
pub const GONE: &str = "gone@example.com";
/// The message arrives, and the answer to it is lost.
pub const SILENT: &str = "silent@example.com";

/// Keeps mail in a folder, and answers for [`FULL`], [`GONE`] and [`SILENT`] as a mail server would.
#[derive(Debug)]
pub struct Troubled(FileMailer);

impl Troubled {
    /// A mailer that writes into `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(FileMailer::new(folder))
    }
}

impl Mailer for Troubled {
    fn transport(&self) -> Transport {
        self.0.transport()
    }

    fn session(&self) -> Box<dyn Session> {
        Box::new(TroubledSession(self.0.session()))
    }
}

struct TroubledSession(Box<dyn Session>);

impl Session for TroubledSession {
    fn offer<'a>(&'a mut self, envelope: &'a Envelope) -> BoxFuture<'a, Result<(), Ended>> {
        let refusal = match envelope.recipient.to_string().as_str() {
            FULL => Some(("5.2.2", "552 5.2.2 The mailbox is full")),
            GONE => Some(("5.1.1", "550 5.1.1 There is no such mailbox")),
            _ => None,
        };
        let Some((enhanced, response)) = refusal else { return self.0.offer(envelope) };
        let refused = Ended {
            smtp_code: response[..3].parse().ok(),
            enhanced_code: Some(enhanced.to_owned()),
            ..Ended::new(Outcome::Rejected, Phase::Rcpt).saying(response)
        };
        std::future::ready(Err(refused)).boxed()
    }

    fn transmit<'a>(
        &'a mut self,
        envelope: &'a Envelope,
        message: &'a Composed,
        next: Option<&'a Envelope>,
        may_finish: &'a MayFinish,
    ) -> BoxFuture<'a, Transmitted> {
        async move {
            let done = self.0.transmit(envelope, message, next, may_finish).await;
            if envelope.recipient.to_string() != SILENT || done.ended.outcome != Outcome::Accepted {
                return done;
            }
            let lost = Ended::new(Outcome::Ambiguous, Phase::Dot).because(smtp::CONNECTION_LOST);
            Transmitted { ended: lost.saying("the connection was lost before the answer"), next: done.next }
        }
        .boxed()
    }

    fn withdraw(&mut self) -> BoxFuture<'_, ()> {
        self.0.withdraw()
    }
}
