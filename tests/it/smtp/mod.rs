//! Mail by SMTP against a scripted server: what each attempt ends as, and that the server's ledger agrees.

mod outcomes;
mod pipelined;
mod replies;
mod reuse;
mod tls;

use std::time::Duration;

use permit_notifier::{
    config::SmtpUrl,
    domain::attempt::Outcome,
    mail::{Composed, Ended, Mailer as _, MayFinish, Session, SmtpMailer, compose, smtp::Limits},
};

use crate::{
    mail::{key, notice, now, office, recipient},
    support::smtp_server::{SmtpServer, hex},
};

/// Long enough for a busy machine, short enough for a test that fails.
pub fn limits() -> Limits {
    Limits::of(Duration::from_secs(20))
}

/// The same with little patience for replies.
pub fn impatient() -> Limits {
    let Limits { connect, tls, next, quit, idle, .. } = limits();
    Limits { connect, tls, next, quit, idle, ..Limits::of(Duration::from_secs(1)) }
}

pub fn mailer(url: &str, limits: Limits) -> SmtpMailer {
    SmtpMailer::new(SmtpUrl::parse(url).unwrap(), limits, office().from.address())
}

pub fn session(server: &SmtpServer) -> Box<dyn Session> {
    mailer(&server.url(), limits()).session()
}

/// A message to `address`; different addresses make different messages.
pub fn message(address: &str) -> Composed {
    compose(&office(), &notice(&key("expires-30d"), &recipient(address, "Ann"), 27), now()).unwrap()
}

/// A message that no socket takes at once, with many lines that begin with a dot.
pub fn large_message(address: &str) -> Composed {
    let mut message = message(address);
    for number in 0..400_000 {
        message.bytes.extend_from_slice(format!("..line {number} of very many\r\n").as_bytes());
    }
    message.envelope.size = Some(message.bytes.len());
    message
}

/// The whole way of one message, whose gate opens.
pub async fn send(session: &mut dyn Session, message: &Composed) -> Ended {
    match session.offer(&message.envelope).await {
        Ok(()) => session.transmit(&message.envelope, message, None, &MayFinish::always()).await.ended,
        Err(ended) => ended,
    }
}

/// All messages one after another, each envelope with the message before it where the session can.
pub async fn send_all(session: &mut dyn Session, messages: &[Composed]) -> Vec<Ended> {
    let mut ends = Vec::with_capacity(messages.len());
    let mut offered = false;
    for (number, message) in messages.iter().enumerate() {
        if ends.len() > number {
            continue;
        }
        if !offered && let Err(ended) = session.offer(&message.envelope).await {
            ends.push(ended);
            continue;
        }
        let next = messages.get(number + 1).map(|next| &next.envelope);
        let sent = session.transmit(&message.envelope, message, next, &MayFinish::always()).await;
        ends.push(sent.ended);
        offered = matches!(sent.next, Some(Ok(())));
        if let Some(Err(ended)) = sent.next {
            ends.push(ended);
        }
    }
    ends
}

/// Outcome, whose fault, phase, reason and code, in one line.
pub fn line(ended: &Ended) -> String {
    let fault = if ended.transport_fault { " fault" } else { "" };
    let reason = ended.reason.as_deref().unwrap_or("-");
    let code = ended.smtp_code.map_or("-".to_owned(), |code| code.to_string());
    format!("{}{fault} {} {reason} {code}", ended.outcome.as_str(), ended.phase.as_str())
}

/// The server has what was accepted, byte for byte and once; and nothing else but what may be ambiguous.
pub fn assert_ledger_agrees(server: &SmtpServer, ends: &[(&Composed, &Ended)]) {
    let ledger = server.accepted();
    for (message, ended) in ends {
        let mine: Vec<_> = ledger.iter().filter(|entry| entry.message_id == message.message_id).collect();
        match ended.outcome {
            Outcome::Accepted => {
                assert_eq!(mine.len(), 1, "{ended:?}");
                assert_eq!(mine[0].sha256, hex(&message.sha256));
                assert_eq!(mine[0].recipient, message.envelope.recipient.to_string());
            }
            Outcome::Ambiguous => assert!(mine.len() <= 1, "{ended:?}"),
            _ => assert!(mine.is_empty(), "{ended:?}"),
        }
    }
}
