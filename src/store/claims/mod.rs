//! Claiming: writing what [`crate::domain::owed::judge`] found, as few set-based statements.
//!
//! Whoever writes must hold an [`Authority`]: the scan's lock lends one, and so does a change that has locked
//! its permits. The unique key keeps the promise; the authority keeps the work from being done twice.

mod addresses;
mod insert;
mod revive;
mod supersede;

pub use addresses::follow_addresses;
use addresses::follow_revived;
pub use insert::Claim;
pub(super) use insert::{DeliveryColumns, insert_deliveries};
pub use supersede::refresh_states;
pub(super) use supersede::{cancel_former_copies, skip_former_copies};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Moment, Result,
    cases::{Case, Suppressed},
};
use crate::domain::{
    copies::copies,
    notice::ReasonCode,
    owed::{Action, Unsent},
};

/// Proof that the permits to be written for are locked: by the scan's lock, or by a change.
#[derive(Debug)]
pub struct Authority(());

impl Authority {
    pub(super) fn new() -> Self {
        Self(())
    }
}

/// On whose behalf notices are written, and how.
#[derive(Debug, Clone, Copy)]
pub struct Writing {
    /// When.
    pub moment: Moment,
    /// Business time before which new deliveries are not tried.
    pub not_before: DateTime<Utc>,
    /// Why what would be pending is held instead, if it is: by the brake, or because the memory went back.
    pub hold: Option<ReasonCode>,
    /// The scan that writes, if one does.
    pub scan_id: Option<Uuid>,
    /// The import that writes, if one does.
    pub import_id: Option<Uuid>,
}

/// How many notices were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Made pending or held.
    pub claimed: u64,
    /// Due, and recorded already.
    pub already_claimed: u64,
    /// Owed again.
    pub revived: u64,
    /// Recorded or turned superseded.
    pub superseded: u64,
    /// Recorded or turned skipped.
    pub skipped: u64,
    /// The part of `claimed` and `revived` that is held.
    pub held: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.claimed += other.claimed;
        self.already_claimed += other.already_claimed;
        self.revived += other.revived;
        self.superseded += other.superseded;
        self.skipped += other.skipped;
        self.held += other.held;
    }
}

/// A case with what is to be written for it.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'c> {
    /// The case.
    pub case: &'c Case,
    /// What to write.
    pub actions: &'c [Action],
}

/// The actions as they can be written: a courtesy of which no copy may be mailed is recorded as skipped instead of
/// claimed, and is not owed again. Whoever counts what would be written counts these.
pub fn mailable(case: &Case, actions: Vec<Action>, suppressed: &Suppressed) -> Vec<Action> {
    let goes = |class| !copies(class, &case.recipients, |r| suppressed.forbids(class, &r.address)).is_empty();
    let class_of = |id| case.rows.iter().find(|row| row.id == id).map(|row| row.class);
    let written = actions.into_iter().filter_map(|action| match action {
        Action::Claim(notice_type, class, timing) if !goes(class) => {
            Some(Action::Record(notice_type, class, timing, Unsent::NoAddress))
        }
        Action::Revive(id, ..) if class_of(id).is_some_and(|class| !goes(class)) => None,
        other => Some(other),
    });
    written.collect()
}

/// Whether the action makes a notice of the case pending, so that the brake counts it. What was held comes back held.
pub fn makes_pending(case: &Case, action: &Action) -> bool {
    match action {
        Action::Claim(..) => true,
        Action::Revive(id, ..) => !case.rows.iter().any(|row| row.id == *id && row.held),
        _ => false,
    }
}

/// Writes the actions of all cases; the permits are locked, as `authority` proves.
pub async fn write(
    connection: &mut PgConnection,
    authority: &Authority,
    judged: &[Judged<'_>],
    suppressed: &Suppressed,
    writing: Writing,
) -> Result<Counts> {
    // Endings first: a revived or new notice must not meet an open one that gives way to it.
    let mut counts = supersede::write(connection, authority, judged, writing.moment.now).await?;
    let revived = revive::write(connection, authority, judged, suppressed, writing).await?;
    counts += revived.counts;
    counts += insert::write(connection, authority, judged, suppressed, writing).await?;
    let half_served = |case: &&Case| case.rows.iter().any(|row| revived.half_served.contains_key(&row.id));
    let cases = judged.iter().map(|judged| judged.case).filter(half_served);
    follow_revived(connection, authority, cases, suppressed, writing, &revived.half_served).await?;
    Ok(counts)
}
