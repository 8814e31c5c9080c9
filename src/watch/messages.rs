//! Delivering the messages about alarms, each surface by a loop of its own: one that hangs must not hide another.
//!
//! A message is taken for as long as its delivery may last, so that two replicas never send it at once; one whose
//! process died is taken again by another. So an alarm may in rare cases be told twice, and is never lost; the mail has
//! the same Message-ID then, and the webhook the same `Idempotency-Key`.

use std::{sync::Arc, time::Duration};

use chrono_tz::Tz;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::words;
use crate::{
    clock::Clock,
    domain::{alarm::AlarmSurface, attempt::Outcome, attempt::Transport, recipient::EmailAddress},
    mail::{Mailer, MayFinish, Office, compose_plain},
    outgoing::{CallUrl, Caller},
    store::{
        PgConnection, Result,
        alarms::{AlarmMessage, message_delivered, message_failed, take_message},
        clock::database_now,
        connect::{Purpose, connect, in_time},
        watched::transport_fault,
    },
};

/// How often the outbox is looked at without being poked.
const PERIOD: Duration = Duration::from_secs(10);
/// A mail server may take ten minutes for its last word.
const MAIL_LEASE: Duration = Duration::from_mins(12);
/// A call has a limit of its own that is shorter.
const CALL_LEASE: Duration = Duration::from_mins(1);

/// How messages reach one surface.
#[derive(Debug)]
pub enum Way {
    /// A mail to the operator.
    Email { address: EmailAddress, office: Arc<Office>, mailer: Arc<dyn Mailer> },
    /// A call.
    Webhook { url: CallUrl, caller: Caller },
}

/// Delivers the messages for one surface.
#[derive(Debug)]
pub struct Messenger {
    /// Where its connection is opened.
    pub direct_url: String,
    pub way: Way,
    pub clock: Arc<dyn Clock>,
    /// In which times are written.
    pub zone: Tz,
    /// Where the pages are.
    pub pages: Url,
    /// Poked when there may be a message.
    pub poke: Arc<Notify>,
}

impl Messenger {
    /// Delivers until `soft`; what is under way then may finish until `hard`.
    pub async fn run(self, soft: CancellationToken, hard: CancellationToken) {
        while !soft.is_cancelled() {
            match hard.run_until_cancelled(self.deliver_all(&soft)).await {
                None => return,
                Some(Ok(())) => {}
                Some(Err(error)) => tracing::warn!("messages about alarms were not delivered: {error}"),
            }
            tokio::select! {
                () = soft.cancelled() => {}
                () = self.poke.notified() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Delivers what waits, one message after another, until none is left or one fails.
    pub async fn deliver_all(&self, soft: &CancellationToken) -> Result<()> {
        // Opened each time: alarms are rare, and a connection that idles for weeks is one more to break.
        let mut connection = connect(&self.direct_url, Purpose::Watch).await?;
        while !soft.is_cancelled() {
            let Some(message) = in_time(self.take(&mut connection)).await? else { return Ok(()) };
            let sent = self.send(&mut connection, &message).await;
            let (kind, surface) = (message.alarm.kind.as_str(), message.surface.as_str());
            match sent {
                Ok(()) => {
                    tracing::info!(alarm = kind, surface, event = message.event.as_str(), "told of an alarm");
                    in_time(message_delivered(&mut connection, message.id)).await?;
                }
                Err(why) => {
                    tracing::warn!(alarm = kind, surface, "not told of an alarm: {why}");
                    return in_time(message_failed(&mut connection, message.id, &why)).await;
                }
            }
        }
        Ok(())
    }

    fn surface(&self) -> (AlarmSurface, Duration) {
        match self.way {
            Way::Email { .. } => (AlarmSurface::Email, MAIL_LEASE),
            Way::Webhook { .. } => (AlarmSurface::Webhook, CALL_LEASE),
        }
    }

    /// The next message. While the breaker is open no mail is tried: it is for the dispatchers to find out when the
    /// server is back.
    async fn take(&self, connection: &mut PgConnection) -> Result<Option<AlarmMessage>> {
        let by_smtp = matches!(&self.way, Way::Email { mailer, .. } if mailer.transport() == Transport::Smtp);
        if by_smtp && transport_fault(connection).await?.is_some() {
            return Ok(None);
        }
        let (surface, lease) = self.surface();
        take_message(connection, &[surface], lease).await
    }

    async fn send(&self, connection: &mut PgConnection, message: &AlarmMessage) -> Result<(), String> {
        match &self.way {
            Way::Webhook { url, caller } => {
                let body = words::webhook(message, self.zone, &self.pages);
                let key = format!("{}-{}", message.alarm.id, message.event.as_str());
                caller.post(url, &key, &body).await.map_err(|error| error.to_string())
            }
            Way::Email { address, office, mailer } => {
                let now = in_time(async { Ok(database_now(&mut *connection).await?) }).await;
                let now = self.clock.business(now.map_err(|error| error.to_string())?);
                let (subject, text) = words::mail(message, self.zone, &self.pages);
                let seed = format!("alarm {} {} {address}", message.alarm.id, message.event.as_str());
                let mail = compose_plain(office, address, &seed, (&subject, &text), now);
                let mail = mail.map_err(|error| error.to_string())?;
                let mut session = mailer.session();
                let ended = match session.offer(&mail.envelope).await {
                    Ok(()) => session.transmit(&mail.envelope, &mail, None, &MayFinish::always()).await.ended,
                    Err(ended) => ended,
                };
                session.close().await;
                match ended.outcome {
                    Outcome::Accepted => Ok(()),
                    _ => Err(format!("{} at {}", ended.outcome.as_str(), ended.phase.as_str())),
                }
            }
        }
    }
}
