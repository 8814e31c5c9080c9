//! Permits that are changed by hand, and changed back.

use std::time::Duration;

use fastrand::Rng;
use permit_notifier::domain::permit::PermitStatus;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{begins, choose, is_back, is_committed, lasts_no_longer, rest};
use crate::support::postbox::{Postbox, in_days, verbs::address};

#[derive(Debug, Clone, Copy)]
enum Kind {
    Archive,
    Renew,
    Pause,
    Revoke,
    ChangeDate,
    Readdress,
    /// No address is left: a letter is owed.
    Unaddress,
    Rename,
}

/// Oftener what nothing but the version of the permit tells the gate.
const KINDS: [Kind; 10] = [
    Kind::Archive,
    Kind::Renew,
    Kind::Pause,
    Kind::Revoke,
    Kind::ChangeDate,
    Kind::Readdress,
    Kind::Unaddress,
    Kind::Rename,
    Kind::Rename,
    Kind::Rename,
];

impl Kind {
    fn can_be_undone(self) -> bool {
        !matches!(self, Self::Archive | Self::Renew | Self::Readdress)
    }
}

/// A change that will be taken back.
struct Made {
    change: Uuid,
    permit: Uuid,
    kind: Kind,
    address: Option<String>,
}

/// Changes one permit after another until `stop`, and takes half of what can be taken back. Says how many.
pub async fn run(
    post: &Postbox,
    mut untouched: Vec<Uuid>,
    pause: Duration,
    mut random: Rng,
    stop: &CancellationToken,
) -> u32 {
    let mut to_undo: Vec<Made> = Vec::new();
    let mut count = 0;
    while !stop.is_cancelled() {
        if !to_undo.is_empty() && random.u8(0..3) == 0 {
            let made = to_undo.swap_remove(random.usize(0..to_undo.len()));
            let permit = made.permit;
            undo(post, made).await;
            // Once more, later: its keys are those of before.
            if random.bool() {
                untouched.insert(0, permit);
            }
        } else {
            let Some(permit) = choose(post, &mut untouched, &mut random).await else { break };
            let kind = *random.choice(&KINDS).expect("some");
            let made = make(post, permit, kind, count).await;
            if kind.can_be_undone() && random.bool() {
                to_undo.push(made);
            }
        }
        count += 1;
        rest(pause, stop).await;
    }
    count
}

async fn make(post: &Postbox, permit: Uuid, kind: Kind, number: u32) -> Made {
    let change = begins(post, permit, None, &format!("{kind:?}")).await;
    let mut address_before = None;
    match kind {
        Kind::Archive => post.archive(permit).await,
        Kind::Renew => post.renew(permit, in_days(395)).await,
        Kind::Pause => post.correct(permit, |p| p.notices_paused_until = Some(in_days(60))).await,
        Kind::Revoke => post.correct(permit, |p| p.status = PermitStatus::Revoked).await,
        // To one that is not due yet, or to one that is due as well.
        Kind::ChangeDate => {
            let day = in_days(if number.is_multiple_of(2) { 300 } else { 29 });
            post.correct(permit, |p| p.expires_on = day).await;
        }
        Kind::Readdress => {
            post.correct(permit, |p| p.holder_email = Some(address(&format!("moved{number}@x.example")))).await;
        }
        Kind::Unaddress => {
            let before = &mut address_before;
            post.correct(permit, |p| *before = p.holder_email.take().map(|email| email.to_string())).await;
        }
        Kind::Rename => post.correct(permit, |p| "Village Bakery".clone_into(&mut p.holder_name)).await,
    }
    is_committed(post, &[change]).await;
    Made { change, permit, kind, address: address_before }
}

async fn undo(post: &Postbox, made: Made) {
    let Made { change, permit, kind, address: before } = made;
    lasts_no_longer(post, &[change]).await;
    match kind {
        Kind::Pause => post.correct(permit, |p| p.notices_paused_until = None).await,
        Kind::Revoke => post.correct(permit, |p| p.status = PermitStatus::Active).await,
        Kind::ChangeDate => post.correct(permit, |p| p.expires_on = in_days(30)).await,
        Kind::Unaddress => post.correct(permit, |p| p.holder_email = before.as_deref().map(address)).await,
        Kind::Rename => post.correct(permit, |p| "Corner Bakery".clone_into(&mut p.holder_name)).await,
        Kind::Archive | Kind::Renew | Kind::Readdress => {}
    }
    is_back(post, &[change]).await;
}
