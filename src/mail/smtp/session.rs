//! One sender's session: keeps its connection between messages, opens another when in doubt. The connection is held
//! by whatever is under way, so a future that is dropped takes the connection with it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::time::{Instant, sleep};

use super::{
    Server,
    came_to::{After, Stage},
    connection::Connection,
};
use crate::{
    domain::attempt::{Outcome, Phase},
    mail::{Composed, Ended, Envelope, MayFinish, Session, Transmitted},
};

/// The reason when the server gave up a used connection at MAIL, and the caller wants to offer anew by itself.
pub const PARTED: &str = "parted";
/// The reason when a message is transmitted that was not offered: a fault of the caller.
pub const NOT_OFFERED: &str = "not_offered";

#[derive(Debug)]
pub(super) struct SmtpSession {
    server: Arc<Server>,
    shelf: Arc<Mutex<Shelf>>,
    offered: Option<Offered>,
    /// How the message ended that was transmitted last.
    heard: Option<Ended>,
    /// The server took too long over a next envelope; each waits for its own turn from then on.
    alone: bool,
    /// The caller made ready and counts each MAIL: none is sent twice without asking.
    counted: bool,
}

/// Where the connection waits between messages.
#[derive(Debug, Default)]
struct Shelf {
    connection: Option<Connection>,
    /// Somebody already looks after it.
    is_watched: bool,
}

#[derive(Debug)]
struct Offered {
    connection: Connection,
    stage: Stage,
    /// What was offered, so that a body can never go to another recipient.
    envelope: Envelope,
}

impl Offered {
    /// The size may have changed since; it is only a forecast.
    fn is_for(&self, envelope: &Envelope) -> bool {
        let Envelope { sender, recipient, size: _ } = envelope;
        self.envelope.sender == *sender && self.envelope.recipient == *recipient
    }
}

impl SmtpSession {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, shelf: Arc::default(), offered: None, heard: None, alone: false, counted: false }
    }

    /// The connection that waits, if it is still good.
    async fn waiting(&mut self) -> Option<Connection> {
        let mut connection = lock(&self.shelf).connection.take()?;
        if connection.is_worn() {
            connection.quit().await;
            return None;
        }
        connection.is_ready().await.then_some(connection)
    }

    fn may_pipeline(&self, connection: &Connection) -> bool {
        connection.pipelines() && self.server.may_pipeline()
    }

    fn put_back(&self, mut connection: Connection) {
        connection.rest();
        let mut place = lock(&self.shelf);
        place.connection = Some(connection);
        if !place.is_watched {
            place.is_watched = true;
            let watch = watch(Arc::downgrade(&self.shelf), self.server.limits.idle);
            self.server.tasks.spawn(watch);
        }
    }

    async fn ready_it(&mut self) -> Result<(), Ended> {
        self.offered = None;
        let connection = match self.waiting().await {
            Some(connection) => connection,
            None => super::connect::open(&self.server, &mut Vec::new()).await?,
        };
        self.put_back(connection);
        self.counted = true;
        Ok(())
    }

    async fn offer_it(&mut self, envelope: &Envelope) -> Result<(), Ended> {
        // An offer that nobody took up or back.
        self.offered = None;
        let mut connection = match self.waiting().await {
            Some(connection) => connection,
            None => super::connect::open(&self.server, &mut Vec::new()).await?,
        };
        let counted = std::mem::take(&mut self.counted);
        let mut offered = connection.offer(envelope, self.may_pipeline(&connection)).await;
        if offered.as_ref().is_err_and(|refusal| refusal.parted) {
            if counted {
                return Err(Ended::new(Outcome::NotSent, Phase::Mail).because(PARTED));
            }
            // A new connection shows whether the server is there; what it says then is what counts.
            tracing::debug!("the mail server gave up a used connection at MAIL; another is opened");
            connection = super::connect::open(&self.server, &mut Vec::new()).await?;
            offered = connection.offer(envelope, self.may_pipeline(&connection)).await;
        }
        match offered {
            Ok(stage) => {
                self.offered = Some(Offered { connection, stage, envelope: envelope.clone() });
                Ok(())
            }
            Err(refusal) => {
                self.server.note(refusal.mixed_up);
                if refusal.after == After::Idle {
                    self.put_back(connection);
                }
                Err(refusal.ended)
            }
        }
    }

    async fn transmit_it(
        &mut self,
        envelope: &Envelope,
        message: &Composed,
        next: Option<&Envelope>,
        may_finish: &MayFinish,
    ) -> Transmitted {
        self.heard = None;
        let Some(offered) = self.offered.take().filter(|offered| offered.is_for(envelope)) else {
            return Ended::new(Outcome::NotSent, Phase::Mail).because(NOT_OFFERED).into();
        };
        let Offered { mut connection, stage, .. } = offered;
        let together = self.may_pipeline(&connection) && !connection.is_last() && !self.alone;
        let next = next.filter(|_| together);
        let sent = connection.transmit(stage, &message.bytes, next, may_finish, &mut self.heard).await;
        self.server.note(sent.mixed_up);
        self.alone |= sent.slow;
        match (sent.after, next) {
            (After::Offered, Some(next)) => {
                self.offered = Some(Offered { connection, stage: Stage::Data, envelope: next.clone() });
            }
            (After::Idle, _) => self.put_back(connection),
            _ => {}
        }
        Transmitted { ended: sent.ended, next: sent.next }
    }

    async fn withdraw_it(&mut self) {
        // A server that waits for a body takes nothing but a body; the connection is dropped, and no dot is sent.
        let Some(mut offered) = self.offered.take().filter(|offered| offered.stage == Stage::Named) else { return };
        if offered.connection.reset().await {
            self.put_back(offered.connection);
        }
    }
}

impl Session for SmtpSession {
    fn ready(&mut self) -> BoxFuture<'_, Result<(), Ended>> {
        self.ready_it().boxed()
    }

    fn offer<'a>(&'a mut self, envelope: &'a Envelope) -> BoxFuture<'a, Result<(), Ended>> {
        self.offer_it(envelope).boxed()
    }

    fn transmit<'a>(
        &'a mut self,
        envelope: &'a Envelope,
        message: &'a Composed,
        next: Option<&'a Envelope>,
        may_finish: &'a MayFinish,
    ) -> BoxFuture<'a, Transmitted> {
        self.transmit_it(envelope, message, next, may_finish).boxed()
    }

    fn heard(&mut self) -> Option<Ended> {
        self.heard.take()
    }

    fn withdraw(&mut self) -> BoxFuture<'_, ()> {
        self.withdraw_it().boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        async {
            self.withdraw_it().await;
            let waiting = lock(&self.shelf).connection.take();
            if let Some(connection) = waiting {
                connection.quit().await;
            }
        }
        .boxed()
    }
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes the connection when it has waited for `idle`; ends then, or with the session.
async fn watch(shelf: Weak<Mutex<Shelf>>, idle: Duration) {
    loop {
        let Some(shelf) = shelf.upgrade() else { return };
        let (wait, worn) = {
            let mut shelf = lock(&shelf);
            let since = shelf.connection.as_ref().map(Connection::idle_since);
            let left = since.map_or(idle, |since| (since + idle).saturating_duration_since(Instant::now()));
            let worn = if left.is_zero() { shelf.connection.take() } else { None };
            shelf.is_watched = worn.is_none();
            (left, worn)
        };
        drop(shelf);
        if let Some(connection) = worn {
            connection.quit().await;
            return;
        }
        sleep(wait).await;
    }
}
