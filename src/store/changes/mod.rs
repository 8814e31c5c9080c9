//! Changes: what people and files do to permits, each with its notices in one transaction.
//!
//! Every change runs the same way: lock its permits in order of id; write them; lock their notices and
//! deliveries; judge them; write what that says. The notices table is the outbox: nothing is queued elsewhere.

mod engine;
mod permit;
mod schedule;

pub use engine::{Change, Renewals, apply, apply_many};
pub use permit::{archive, correct, create, renew, restore};
pub use schedule::{count_due, reschedule};

use chrono::TimeDelta;
use uuid::Uuid;

use super::Moment;
use crate::domain::window::SendWindow;

/// Who makes a change of which nothing else is said: somebody at the machine itself.
pub const COMMAND: &str = "command";

/// How changes are made.
#[derive(Debug, Clone)]
pub struct ChangeRules<'r> {
    /// When.
    pub moment: Moment,
    /// When mail may go.
    pub window: Option<&'r SendWindow>,
    /// How long notices of this change wait, so that a typo can be mended; none for the API and imports.
    pub delay: TimeDelta,
    /// More pending notices than this at once are held; 0 for no limit.
    pub claim_limit: u64,
    /// The import that makes the change, if one does.
    pub import_id: Option<Uuid>,
    /// Who makes them; kept in the history of each permit.
    pub by: &'r str,
}

impl<'r> ChangeRules<'r> {
    /// Changes made at `moment` that do not wait and have no limit.
    pub fn at(moment: Moment, window: Option<&'r SendWindow>) -> Self {
        Self { moment, window, delay: TimeDelta::zero(), claim_limit: 0, import_id: None, by: COMMAND }
    }
}
