//! Single mails outside dispatch, such as test mails and alarms, through lettre's own interface.

use async_trait::async_trait;
use lettre::{AsyncTransport, address::Envelope as LettreEnvelope};
use sha2::{Digest as _, Sha256};

use super::SmtpMailer;
use crate::{
    domain::{
        attempt::{Outcome, Phase},
        recipient::EmailAddress,
    },
    mail::{Composed, Ended, Envelope, Mailer as _, MayFinish, compose::ending_in_one_crlf},
};

/// A mail that the server did not take, or of which nobody knows whether it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAccepted(pub Ended);

impl std::fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ended { outcome, phase, reason, response, .. } = &self.0;
        write!(f, "{} at {}", outcome.as_str(), phase.as_str())?;
        if let Some(reason) = reason {
            write!(f, " ({reason})")?;
        }
        match response {
            Some(response) => write!(f, ": {response}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotAccepted {}

#[async_trait]
impl AsyncTransport for SmtpMailer {
    /// How it ended for each recipient; all of them accepted.
    type Ok = Vec<Ended>;
    /// The first recipient whose copy was not accepted; those before it have theirs.
    type Error = NotAccepted;

    /// One copy for each recipient, one after another.
    async fn send_raw(&self, envelope: &LettreEnvelope, email: &[u8]) -> Result<Self::Ok, Self::Error> {
        let bytes = ending_in_one_crlf(email.to_vec());
        let sender = envelope.from().ok_or_else(|| unusable("a mail needs a sender"))?.to_string();
        let sender: EmailAddress = sender.parse().map_err(|error| unusable(&format!("the sender: {error}")))?;
        let mut session = self.session();
        let mut accepted = Vec::new();
        for recipient in envelope.to() {
            let recipient: EmailAddress =
                recipient.to_string().parse().map_err(|error| unusable(&format!("the recipient: {error}")))?;
            let envelope = Envelope { sender: sender.clone(), recipient, size: Some(bytes.len()) };
            let message = Composed {
                sha256: Sha256::digest(&bytes).into(),
                bytes: bytes.clone(),
                message_id: String::new(),
                envelope,
            };
            session.offer(&message.envelope).await.map_err(NotAccepted)?;
            let sent = session.transmit(&message.envelope, &message, None, &MayFinish::always()).await;
            if sent.ended.outcome != Outcome::Accepted {
                return Err(NotAccepted(sent.ended));
            }
            accepted.push(sent.ended);
        }
        session.close().await;
        Ok(accepted)
    }
}

fn unusable(fault: &str) -> NotAccepted {
    NotAccepted(Ended::new(Outcome::Rejected, Phase::Mail).because(super::ADDRESS_UNUSABLE).saying(fault))
}
