//! Delays to a tenth of a millisecond: those of the runtime come up to two milliseconds late, which is much of a
//! round trip.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Condvar, LazyLock, Mutex},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

struct Sleeper {
    until: Instant,
    wake: oneshot::Sender<()>,
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.until == other.until
    }
}

impl Eq for Sleeper {}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.until.cmp(&other.until)
    }
}

type Sleepers = Arc<(Mutex<BinaryHeap<Reverse<Sleeper>>>, Condvar)>;

/// One thread for all delays of this process.
static SLEEPERS: LazyLock<Sleepers> = LazyLock::new(|| {
    let sleepers = Sleepers::default();
    let theirs = Arc::clone(&sleepers);
    std::thread::spawn(move || wake_them(&theirs));
    sleepers
});

/// Waits so long.
pub(super) async fn precisely(delay: Duration) {
    let (wake, woken) = oneshot::channel();
    SLEEPERS.0.lock().expect("no panic").push(Reverse(Sleeper { until: Instant::now() + delay, wake }));
    SLEEPERS.1.notify_one();
    let _ = woken.await;
}

fn wake_them((sleepers, changed): &(Mutex<BinaryHeap<Reverse<Sleeper>>>, Condvar)) {
    let mut heap = sleepers.lock().expect("no panic");
    loop {
        let now = Instant::now();
        while heap.peek().is_some_and(|next| next.0.until <= now) {
            if let Some(Reverse(sleeper)) = heap.pop() {
                let _ = sleeper.wake.send(());
            }
        }
        heap = match heap.peek().map(|next| next.0.until) {
            Some(until) => changed.wait_timeout(heap, until.saturating_duration_since(now)).expect("no panic").0,
            None => changed.wait(heap).expect("no panic"),
        };
    }
}
