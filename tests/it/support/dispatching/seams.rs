//! Places between two steps of a message at which the senders of a dispatching process wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use nix::sys::signal::{Signal, raise};
use permit_notifier::{
    domain::attempt::Transport,
    mail::{Composed, Ended, Envelope, Mailer, MayFinish, Session, Transmitted},
};
use serde::{Deserialize, Serialize};
use tokio::{runtime::Handle, sync::watch, task::block_in_place};

use super::{STANDING, WAITS};

/// Between two steps of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seam {
    /// It is leased and composed, and nothing of it was said to the server.
    Leased,
    /// Its gate is committed, and no byte of its body was written.
    PastTheGate,
    /// Its body is written but for the last block, which has the dot.
    BeforeTheDot,
    /// The server answered the dot, and the answer is known to nobody else.
    Answered,
}

/// Where the senders of a process wait.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Wait {
    pub seam: Seam,
    /// Each sender passes the seam so many times before.
    pub after: usize,
}

#[derive(Debug)]
pub(super) struct Seams {
    wait: Option<Wait>,
    may_go: watch::Sender<bool>,
    loiter: Duration,
}

/// Once so often a sender that loiters stops its whole process instead, until somebody lets it go on.
const STANDS: u32 = 15;

impl Seams {
    pub(super) fn new(wait: Option<Wait>, loiter: Duration) -> Self {
        Self { wait, may_go: watch::Sender::new(false), loiter }
    }

    /// How long to loiter at this seam, this time.
    fn loiters(&self) -> Option<Duration> {
        (!self.loiter.is_zero() && fastrand::u8(0..4) == 0).then(|| self.loiter.mul_f64(fastrand::f64()))
    }

    /// As with a debugger, a suspended machine or a full disk: nothing here runs any more.
    fn may_stand(&self) -> bool {
        let stands = !*self.may_go.borrow() && fastrand::u32(0..STANDS) == 0;
        if stands {
            println!("{STANDING}");
            raise(Signal::SIGSTOP).expect("to stop ourselves");
        }
        stands
    }

    pub(super) fn let_go(&self) {
        self.may_go.send_replace(true);
    }

    pub(super) fn around(self: &Arc<Self>, inner: Arc<dyn Mailer>) -> Arc<dyn Mailer> {
        Arc::new(SeamMailer { inner, seams: Arc::clone(self) })
    }

    async fn wait(&self, recipient: &str) {
        let mut may_go = self.may_go.subscribe();
        if !*may_go.borrow_and_update() {
            println!("{WAITS}{recipient}");
            let _ = may_go.wait_for(|may_go| *may_go).await;
        }
    }
}

#[derive(Debug)]
struct SeamMailer {
    inner: Arc<dyn Mailer>,
    seams: Arc<Seams>,
}

impl Mailer for SeamMailer {
    fn transport(&self) -> Transport {
        self.inner.transport()
    }

    fn session(&self) -> Box<dyn Session> {
        Box::new(SeamSession { inner: self.inner.session(), seams: Arc::clone(&self.seams), passed: 0 })
    }
}

struct SeamSession {
    inner: Box<dyn Session>,
    seams: Arc<Seams>,
    /// How often this session came to the seam.
    passed: usize,
}

impl SeamSession {
    /// Whether to wait here.
    fn comes_to(&mut self, seam: Seam) -> bool {
        let Some(wait) = self.seams.wait.filter(|wait| wait.seam == seam) else { return false };
        self.passed += 1;
        self.passed > wait.after
    }

    async fn pass(&mut self, seam: Seam, envelope: &Envelope) {
        if self.comes_to(seam) {
            self.seams.wait(&envelope.recipient.to_string()).await;
        }
        if let Some(pause) = self.seams.loiters()
            && !self.seams.may_stand()
        {
            tokio::time::sleep(pause).await;
        }
    }

    /// Asks `inner`, and waits before the first time.
    fn before_the_dot(&mut self, envelope: &Envelope, inner: &MayFinish) -> MayFinish {
        if !self.comes_to(Seam::BeforeTheDot) {
            return self.loitering(inner);
        }
        let (seams, inner) = (Arc::clone(&self.seams), inner.clone());
        let (recipient, waited) = (envelope.recipient.to_string(), AtomicBool::new(false));
        MayFinish::new(move || {
            if !waited.swap(true, Ordering::SeqCst) {
                block_in_place(|| Handle::current().block_on(seams.wait(&recipient)));
            }
            inner.ask()
        })
    }
}

impl SeamSession {
    /// Asks `inner`, now and then only after a while.
    fn loitering(&self, inner: &MayFinish) -> MayFinish {
        let Some(pause) = self.seams.loiters() else { return inner.clone() };
        let (seams, inner, loitered) = (Arc::clone(&self.seams), inner.clone(), AtomicBool::new(false));
        MayFinish::new(move || {
            if !loitered.swap(true, Ordering::SeqCst) && !seams.may_stand() {
                block_in_place(|| std::thread::sleep(pause));
            }
            inner.ask()
        })
    }
}

impl Session for SeamSession {
    fn ready(&mut self) -> BoxFuture<'_, Result<(), Ended>> {
        self.inner.ready()
    }

    fn offer<'a>(&'a mut self, envelope: &'a Envelope) -> BoxFuture<'a, Result<(), Ended>> {
        async {
            self.pass(Seam::Leased, envelope).await;
            self.inner.offer(envelope).await
        }
        .boxed()
    }

    fn transmit<'a>(
        &'a mut self,
        envelope: &'a Envelope,
        message: &'a Composed,
        next: Option<&'a Envelope>,
        may_finish: &'a MayFinish,
    ) -> BoxFuture<'a, Transmitted> {
        async move {
            self.pass(Seam::PastTheGate, envelope).await;
            let may_finish = self.before_the_dot(envelope, may_finish);
            let transmitted = self.inner.transmit(envelope, message, next, &may_finish).await;
            self.pass(Seam::Answered, envelope).await;
            transmitted
        }
        .boxed()
    }

    fn withdraw(&mut self) -> BoxFuture<'_, ()> {
        self.inner.withdraw()
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
