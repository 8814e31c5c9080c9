//! Tries a server out, up to naming the sender; nothing is sent.

use super::{SmtpMailer, connect::Step};
use crate::{
    domain::{attempt::Phase, recipient::EmailAddress},
    mail::Ended,
};

/// What a server said when it was tried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpCheck {
    /// Every step in order, with the server's words.
    pub steps: Vec<Step>,
    /// The encryption that was agreed, and whether the certificate was checked; `None`: in clear.
    pub tls: Option<String>,
    /// Why it went no further; `None`: all went well.
    pub fault: Option<Ended>,
}

impl SmtpMailer {
    /// Connects, greets, encrypts, signs in, names `sender` as the sender of a mail, takes that back and leaves.
    pub async fn check(&self, sender: &EmailAddress) -> SmtpCheck {
        let mut check = SmtpCheck { steps: Vec::new(), tls: None, fault: None };
        let mut connection = match super::connect::open(&self.server, &mut check.steps).await {
            Ok(connection) => connection,
            Err(ended) => return SmtpCheck { fault: Some(ended), ..check },
        };
        check.tls.clone_from(&connection.tls);
        match connection.name_sender(sender).await {
            Ok(reply) => check.steps.push(Step { phase: Phase::Mail, said: reply.text() }),
            Err(ended) => check.fault = Some(ended),
        }
        if check.fault.as_ref().is_none_or(|fault| fault.smtp_code.is_some()) && connection.reset().await {
            connection.quit().await;
        }
        check
    }
}
