//! How the process stops: a first signal asks (soft), a second one ends (hard).
//!
//! 1. SIGTERM or SIGINT cancels the soft token: loops take nothing more and finish what they hold.
//! 2. `drain` waits for all spawned tasks. When its limit has passed it cancels the hard token:
//!    what can still be dropped is dropped and recorded, in a few seconds more.
//! 3. A second signal ends at once: the hard token is cancelled, `drain` returns without waiting,
//!    and if nobody is there to notice, the process exits by itself.
//!
//! Every task is spawned here. One that panics or returns an error, and a loop that ends although
//! nobody asked it to, starts the soft stop and makes the exit code non-zero: a service that lost a
//! loop must not look healthy.

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What is left after the limit only has to write down that it gave up.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How long a second signal waits for the program to end in its own way.
const AT_ONCE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    soft: CancellationToken,
    hard: CancellationToken,
    /// Cancelled by a second signal only: nobody waits any more.
    at_once: CancellationToken,
    tasks: TaskTracker,
    failed: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every task ended by itself.
    Calmly,
    /// Every task ended, some only when the limit had passed.
    Late,
    /// So many tasks were left to their fate.
    CutOff(usize),
}

impl Shutdown {
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when no new work must be begun.
    pub fn soft(&self) -> &CancellationToken {
        &self.inner.soft
    }

    /// Cancelled when work in flight must be dropped.
    pub fn hard(&self) -> &CancellationToken {
        &self.inner.hard
    }

    /// Begins the soft stop without a signal.
    pub fn stop(&self) {
        self.inner.soft.cancel();
    }

    /// Begins the soft stop because something is wrong; the exit code will say so.
    pub fn fail(&self) {
        self.inner.failed.store(true, Ordering::SeqCst);
        self.inner.soft.cancel();
    }

    pub fn has_failed(&self) -> bool {
        self.inner.failed.load(Ordering::SeqCst)
    }

    /// A loop without which the service is not whole. It goes on until the soft stop; a panic, an
    /// error or an end before that is logged under its name and stops the service.
    pub fn spawn<F, E>(&self, name: &'static str, task: F) -> JoinHandle<()>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send,
    {
        let shutdown = self.clone();
        self.spawn_errand(name, async move {
            let ended = task.await;
            if ended.is_ok() && !shutdown.soft().is_cancelled() {
                tracing::error!(
                    task = name,
                    "the task {name} ended although nobody had asked it to, and stops the service"
                );
                shutdown.fail();
            }
            ended
        })
    }

    /// The same for a task that may end well at any time.
    pub fn spawn_errand<F, E>(&self, name: &'static str, task: F) -> JoinHandle<()>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send,
    {
        let shutdown = self.clone();
        self.inner.tasks.spawn(async move {
            // The state that a panic leaves behind is not used again: the service stops.
            match AssertUnwindSafe(task).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    tracing::error!(task = name, "the task {name} failed and stops the service: {error:#}");
                }
                Err(panic) => {
                    let panic = panic_message(panic.as_ref());
                    tracing::error!(task = name, "the task {name} panicked and stops the service: {panic}");
                }
            }
            shutdown.fail();
        })
    }

    /// Follows SIGTERM and SIGINT from now on; call once, inside the runtime.
    pub fn listen_for_signals(&self) -> io::Result<()> {
        let signals =
            Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
        let shutdown = self.clone();
        // Not on the tracker: this task waits for ever, and draining must not wait for it.
        #[expect(clippy::disallowed_methods, reason = "it has no work that could be lost")]
        tokio::spawn(shutdown.follow(signals));
        Ok(())
    }

    async fn follow(self, mut signals: Signals) {
        let name = signals.next().await;
        tracing::info!("{name} received: finishing what is in flight; a second signal ends at once");
        self.stop();
        let name = signals.next().await;
        tracing::warn!("{name} received again: ending at once");
        self.end_at_once();
        tokio::time::sleep(AT_ONCE).await;
        // Whoever should have returned by now is stuck, and the person asked twice.
        std::process::exit(1);
    }

    /// What a second signal does, short of leaving the process.
    pub fn end_at_once(&self) {
        self.inner.failed.store(true, Ordering::SeqCst);
        self.inner.soft.cancel();
        self.inner.hard.cancel();
        self.inner.at_once.cancel();
    }

    /// Waits for the spawned tasks, but never longer than the limit and a few seconds. Tasks that
    /// are cut off end with the runtime, so the caller returns from `main` without waiting either.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.inner.soft.cancel();
        self.inner.tasks.close();
        if self.all_done_within(limit).await {
            return Drained::Calmly;
        }
        let left = self.inner.tasks.len();
        if !self.inner.at_once.is_cancelled() {
            tracing::warn!("{left} tasks still run after the time that SHUTDOWN_SECONDS gives them");
            self.inner.hard.cancel();
            if self.all_done_within(LAST_WORDS).await {
                return Drained::Late;
            }
        }
        self.inner.failed.store(true, Ordering::SeqCst);
        Drained::CutOff(self.inner.tasks.len())
    }

    async fn all_done_within(&self, limit: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.inner.tasks.wait() => true,
            () = self.inner.at_once.cancelled() => false,
            () = tokio::time::sleep(limit) => false,
        }
    }

    /// Zero after an orderly stop, also a late one; one when a task died or was cut off.
    pub fn exit_code(&self) -> ExitCode {
        if self.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The text of a panic, if it has one.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
