//! A transport that does what a test tells it, stops where the test wants it to, and keeps a ledger of what it
//! really took: the outside truth.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::future::{BoxFuture, FutureExt as _};
use permit_notifier::{
    domain::attempt::{Outcome, Phase, Transport},
    mail::{Composed, Ended, Envelope, Mailer, MayFinish, Session, Transmitted},
};
use tokio::sync::oneshot;

/// Where a session can be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// The offer is made and not answered yet: before the gate.
    Offered,
    /// The gate is open, the final step not taken.
    BeforeFinal,
    /// The final step is taken, the caller knows nothing yet.
    AfterFinal,
}

/// What the transport says to one message.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Refuses the offer so; no body follows.
    Offer(Ended),
    /// Takes nothing and ends so.
    End(Ended),
    /// Takes the message and ends ambiguous all the same.
    TakeAndLose,
    /// Panics in the midst of transmitting.
    Panic,
}

/// One message that was really taken.
#[derive(Debug, Clone)]
pub struct Taken {
    pub message_id: String,
    pub recipient: String,
    pub notice_key: String,
    pub sha256: [u8; 32],
    pub bytes: Vec<u8>,
    /// What [`ScriptedMailer::tick`] said when the offer was answered, so before the gate.
    pub offered_at: u64,
}

/// A session that a test stopped, or will.
pub struct Stop {
    arrived: oneshot::Receiver<()>,
    go: oneshot::Sender<()>,
}

impl Stop {
    /// Waits until the session is there.
    pub async fn arrived(&mut self) {
        (&mut self.arrived).await.expect("a session that comes here");
    }

    /// Lets it go on.
    pub fn release(self) {
        let _ = self.go.send(());
    }
}

type Gates = HashMap<(String, Point), VecDeque<(oneshot::Sender<()>, oneshot::Receiver<()>)>>;

#[derive(Debug, Default)]
struct Shared {
    stops: Mutex<Gates>,
    replies: Mutex<HashMap<String, VecDeque<Reply>>>,
    to_all: Mutex<Option<Reply>>,
    ledger: Mutex<Vec<Taken>>,
    withdrawn: AtomicU64,
    ticks: AtomicU64,
}

#[derive(Debug, Clone, Default)]
pub struct ScriptedMailer(Arc<Shared>);

impl ScriptedMailer {
    /// The next session that comes to `point` with a message for `address` stops there.
    pub fn stop(&self, address: &str, point: Point) -> Stop {
        let (arrive, arrived) = oneshot::channel();
        let (go, wait) = oneshot::channel();
        let mut stops = self.0.stops.lock().unwrap();
        stops.entry((address.to_owned(), point)).or_default().push_back((arrive, wait));
        Stop { arrived, go }
    }

    /// What the next message for `address` is told; without such a reply messages are taken.
    pub fn reply(&self, address: &str, reply: Reply) {
        self.0.replies.lock().unwrap().entry(address.to_owned()).or_default().push_back(reply);
    }

    /// What every message without a reply of its own is told; `None` for taking them.
    pub fn reply_to_all(&self, reply: Option<Reply>) {
        *self.0.to_all.lock().unwrap() = reply;
    }

    pub fn ledger(&self) -> Vec<Taken> {
        self.0.ledger.lock().unwrap().clone()
    }

    /// Sorted addresses of what was taken.
    pub fn taken_by(&self) -> Vec<String> {
        let mut addresses: Vec<_> = self.ledger().into_iter().map(|taken| taken.recipient).collect();
        addresses.sort();
        addresses
    }

    /// How many offers were taken back.
    pub fn withdrawn(&self) -> u64 {
        self.0.withdrawn.load(Ordering::SeqCst)
    }

    /// A number that grows: of two events, the later has the greater one.
    pub fn tick(&self) -> u64 {
        self.0.ticks.fetch_add(1, Ordering::SeqCst)
    }

    async fn pass(&self, address: &str, point: Point) {
        let stop = self.0.stops.lock().unwrap().get_mut(&(address.to_owned(), point)).and_then(VecDeque::pop_front);
        if let Some((arrive, wait)) = stop {
            let _ = arrive.send(());
            let _ = wait.await;
        }
    }

    fn next_reply(&self, address: &str, is_offer: bool) -> Option<Reply> {
        let fits = |reply: &Reply| matches!(reply, Reply::Offer(_)) == is_offer;
        let mut replies = self.0.replies.lock().unwrap();
        let own = replies.get_mut(address).and_then(|queue| queue.pop_front_if(|reply| fits(reply)));
        own.or_else(|| self.0.to_all.lock().unwrap().clone().filter(fits))
    }
}

impl Mailer for ScriptedMailer {
    fn transport(&self) -> Transport {
        Transport::Smtp
    }

    fn session(&self) -> Box<dyn Session> {
        Box::new(ScriptedSession { mailer: self.clone(), offered_at: 0 })
    }
}

struct ScriptedSession {
    mailer: ScriptedMailer,
    offered_at: u64,
}

impl Session for ScriptedSession {
    fn offer<'a>(&'a mut self, envelope: &'a Envelope) -> BoxFuture<'a, Result<(), Ended>> {
        async {
            let address = envelope.recipient.to_string();
            if let Some(Reply::Offer(ended)) = self.mailer.next_reply(&address, true) {
                return Err(ended);
            }
            self.mailer.pass(&address, Point::Offered).await;
            self.offered_at = self.mailer.tick();
            Ok(())
        }
        .boxed()
    }

    fn transmit<'a>(
        &'a mut self,
        envelope: &'a Envelope,
        message: &'a Composed,
        _next: Option<&'a Envelope>,
        may_finish: &'a MayFinish,
    ) -> BoxFuture<'a, Transmitted> {
        async {
            let address = envelope.recipient.to_string();
            self.mailer.pass(&address, Point::BeforeFinal).await;
            if !may_finish.ask() {
                return Ended::lease_too_old().into();
            }
            let ended = match self.mailer.next_reply(&address, false) {
                Some(Reply::End(ended)) => return self.after(&address, ended).await.into(),
                Some(Reply::Panic) => panic!("a transport that panics"),
                Some(Reply::TakeAndLose) => Ended::new(Outcome::Ambiguous, Phase::Dot).because("connection_lost"),
                Some(Reply::Offer(_)) | None => accepted(),
            };
            self.mailer.0.ledger.lock().unwrap().push(Taken {
                message_id: message.message_id.clone(),
                recipient: address.clone(),
                notice_key: notice_key(&message.bytes),
                sha256: message.sha256,
                bytes: message.bytes.clone(),
                offered_at: self.offered_at,
            });
            self.after(&address, ended).await.into()
        }
        .boxed()
    }

    fn withdraw(&mut self) -> BoxFuture<'_, ()> {
        self.mailer.0.withdrawn.fetch_add(1, Ordering::SeqCst);
        std::future::ready(()).boxed()
    }
}

impl ScriptedSession {
    async fn after(&self, address: &str, ended: Ended) -> Ended {
        self.mailer.pass(address, Point::AfterFinal).await;
        ended
    }
}

fn notice_key(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n ", " ");
    let line = text.lines().find_map(|line| line.strip_prefix("X-Notice-Key:"));
    line.expect("a notice key in every message").split_whitespace().collect()
}

/// 250 to the dot.
pub fn accepted() -> Ended {
    coded(Outcome::Accepted, Phase::Dot, 250, "2.0.0 Ok")
}

/// A reply with a code.
pub fn coded(outcome: Outcome, phase: Phase, code: u16, words: &str) -> Ended {
    Ended { smtp_code: Some(code), ..Ended::new(outcome, phase).saying(words) }
}

/// Refused for now, after the dot.
pub fn deferred() -> Reply {
    Reply::End(coded(Outcome::Deferred, Phase::Dot, 451, "4.3.0 try later"))
}

/// Refused for good, after the dot.
pub fn rejected() -> Reply {
    Reply::End(coded(Outcome::Rejected, Phase::Dot, 554, "5.6.0 never"))
}

/// The connection broke before the dot.
pub fn broken() -> Reply {
    Reply::End(Ended::new(Outcome::NotSent, Phase::Body).because("connection_lost").as_transport_fault())
}

/// It was cut off before the dot for a reason that is not the transport's.
pub fn not_sent() -> Reply {
    Reply::End(Ended::new(Outcome::NotSent, Phase::Body).because("timed_out"))
}

/// The dot was sent, no reply came, and nothing was taken.
pub fn lost() -> Reply {
    Reply::End(Ended::new(Outcome::Ambiguous, Phase::Dot).because("connection_lost"))
}
