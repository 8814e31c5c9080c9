//! The point of no return of one message: taken by the transport, or given up by a hard stop, never both.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use crate::mail::MayFinish;

const AHEAD: u8 = 0;
const TAKEN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Whether the final step of a message was taken. A transport may go on for a moment after its future was
/// dropped (the blocking thread that writes a file does), so both sides decide on one value.
#[derive(Debug, Clone, Default)]
pub(super) struct FinalStep(Arc<AtomicU8>);

impl FinalStep {
    /// `inner`, which may be asked for the final step until that is given up.
    pub(super) fn guard(&self, inner: MayFinish) -> MayFinish {
        let step = Arc::clone(&self.0);
        MayFinish::new(move || inner.ask() && decide(&step, TAKEN))
    }

    /// Gives the final step up; `false` if it was taken already.
    pub(super) fn give_up(&self) -> bool {
        decide(&self.0, GIVEN_UP)
    }
}

fn decide(step: &AtomicU8, wanted: u8) -> bool {
    match step.compare_exchange(AHEAD, wanted, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => true,
        Err(present) => present == wanted,
    }
}
