//! Work that is dropped while it waits, as when a client hangs up or somebody else was faster.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// Lets `work` go on so many times, and then drops it where it waits; gives what it came to if it ended before.
pub async fn dropped_after<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}
