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
        alarms::{AlarmMessage, give_message_back, message_delivered, message_failed, take_message},
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
        let (mut connection, mut taken) = (None, None);
        while !soft.is_cancelled() {
            match hard.run_until_cancelled(self.deliver_on(&mut connection, &mut taken, &soft)).await {
                None => return self.give_back(taken).await,
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    tracing::warn!("messages about alarms were not delivered: {error}");
                    connection = None;
                }
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
        self.deliver_on(&mut None, &mut None, soft).await
    }

    /// The same on a connection that is kept, so that a database whose connections are used up does not silence it.
    /// `taken` is the message that is under way.
    async fn deliver_on(
        &self,
        connection: &mut Option<PgConnection>,
        taken: &mut Option<i64>,
        soft: &CancellationToken,
    ) -> Result<()> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(connect(&self.direct_url, Purpose::Watch).await?),
        };
        while !soft.is_cancelled() {
            let Some(message) = in_time(self.take(connection)).await? else { return Ok(()) };
            *taken = Some(message.id);
            let sent = self.send(connection, &message).await;
            *taken = None;
            let (kind, surface) = (message.alarm.kind.as_str(), message.surface.as_str());
            match sent {
                Ok(()) => {
                    tracing::info!(alarm = kind, surface, event = message.event.as_str(), "told of an alarm");
                    in_time(message_delivered(connection, message.id)).await?;
                }
                Err(why) => {
                    tracing::warn!(alarm = kind, surface, "not told of an alarm: {why}");
                    return in_time(message_failed(connection, message.id, &why)).await;
                }
            }
        }
        Ok(())
    }

    /// What was under way when everything had to end is told by another process, or at the next start: rather twice than
    /// twelve minutes late.
    async fn give_back(&self, taken: Option<i64>) {
        let Some(id) = taken else { return };
        let given = in_time(async {
            let mut connection = connect(&self.direct_url, Purpose::Watch).await?;
            give_message_back(&mut connection, id).await
        });
        if let Err(error) = given.await {
            tracing::warn!("a message about an alarm waits for its lease: {error}");
        }
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
