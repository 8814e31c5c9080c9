//! The dispatcher: one feeder, its senders and clerks, from start to a bounded stop.

use std::{collections::VecDeque, sync::Arc};

use futures_util::FutureExt as _;
use tokio::{
    sync::{Mutex, Notify, mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    DispatchRules, Membership, Report, Tally, TransportReport,
    clerk::Desk,
    ending::Endings,
    feeder::{Feeder, Stay},
    sender::Sender,
    transport::TransportState,
};
use crate::store::{Result, connect::in_time, stock::count_pending};

/// Sends for one process.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    rules: DispatchRules,
    membership: Arc<Membership>,
    transport: Arc<TransportState>,
    tally: Arc<Tally>,
    /// Poked when there may be something to send.
    wake: Arc<Notify>,
}

impl Dispatcher {
    /// A dispatcher for a process that is registered.
    pub fn new(rules: DispatchRules, membership: Arc<Membership>) -> Self {
        Self { rules, membership, transport: Arc::default(), tally: Arc::default(), wake: Arc::default() }
    }

    /// What makes it look at once.
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Sends until `soft`, then finishes what is past the gate; `hard` gives that up too.
    pub async fn run(&self, soft: CancellationToken, hard: CancellationToken) {
        // Whoever stays for ever tries again whatever the error, so none comes out of here.
        let _ = self.send_all(Stay::Forever, &soft, hard).await;
    }

    /// Tries every due delivery once and says what came of it, and how the transport did.
    pub async fn run_once(
        &self,
        soft: CancellationToken,
        hard: CancellationToken,
    ) -> Result<(Report, TransportReport)> {
        let once = Self { tally: Arc::default(), transport: Arc::default(), ..self.clone() };
        once.send_all(Stay::UntilDone, &soft, hard).await?;
        let left = in_time(async { count_pending(&mut *once.rules.pool.acquire().await?).await }).await?;
        Ok((once.tally.report(left.unsigned_abs()), once.transport.report()))
    }

    async fn send_all(&self, stay: Stay, soft: &CancellationToken, hard: CancellationToken) -> Result<()> {
        // One of our tasks that panics stops the others softly, whatever the process does about it.
        let soft = soft.child_token();
        // As many as there are senders: the next of each is leased while the last is under way.
        let (queue, taken) = mpsc::channel(self.rules.concurrency);
        let taken = Arc::new(Mutex::new(taken));
        let (desk, clerks) = Desk::open(&self.rules);
        let mut tasks: JoinSet<Result<()>> = JoinSet::new();
        for clerk in clerks {
            tasks.spawn(run_apart(clerk).map(Ok));
        }
        for _ in 0..self.rules.concurrency {
            let sender = Sender {
                membership: Arc::clone(&self.membership),
                queue: Arc::clone(&taken),
                desk: desk.clone(),
                endings: Endings {
                    rules: self.rules.clone(),
                    transport: Arc::clone(&self.transport),
                    tally: Arc::clone(&self.tally),
                },
                soft: soft.clone(),
                hard: hard.clone(),
                session: self.rules.mailer.session(),
                ready: VecDeque::new(),
            };
            tasks.spawn(sender.run().map(Ok));
        }
        drop(desk);
        let feeder = Feeder {
            rules: self.rules.clone(),
            membership: Arc::clone(&self.membership),
            transport: Arc::clone(&self.transport),
            tally: Arc::clone(&self.tally),
            wake: Arc::clone(&self.wake),
            stop: soft.clone(),
            suspect: None,
        };
        tasks.spawn(feeder.run(queue, stay));
        // Only the feeder and the senders have it now: when all senders are gone the feeder must notice.
        drop(taken);
        let mut result = Ok(());
        let mut panic = None;
        while let Some(ended) = tasks.join_next().await {
            match ended {
                Ok(Err(error)) => result = Err(error),
                Err(error) if error.is_panic() => {
                    soft.cancel();
                    panic = panic.or(Some(error.into_panic()));
                }
                Ok(Ok(())) | Err(_) => {}
            }
        }
        if let Some(panic) = panic {
            // Whoever supervises this dispatcher stops the process; what the panic left in flight is recovered.
            std::panic::resume_unwind(panic);
        }
        result
    }
}

/// Runs a clerk on a thread and a runtime of its own: it talks with the database and does nothing else, one short
/// statement after another, and each would wait for its turn among the senders.
async fn run_apart(clerk: impl Future<Output = ()> + Send + 'static) {
    let (done, ended) = oneshot::channel();
    // Not a blocking task: one that still waits for the database must not keep the process from ending.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(clerk);
        let _ = done.send(());
    });
    ended.await.expect("a clerk that ends well");
}
