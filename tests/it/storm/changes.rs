//! What people change beside the storm. Since when each change is committed, and until when it lasts at least, is
//! written down by the database's own clock.

use std::time::Duration;

use fastrand::Rng;
use permit_notifier::{
    domain::{attempt::Resolution, permit::PermitStatus},
    store::actions::{ActionRules, Resolving, resolve},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::postbox::{Postbox, in_days, verbs::address};

pub const TABLE: &str = "
    CREATE TABLE storm_changes (
        id uuid PRIMARY KEY, permit_id uuid NOT NULL, kind text NOT NULL, expires_on date, address text,
        began_at timestamptz NOT NULL DEFAULT clock_timestamp(), committed_at timestamptz, undone_at timestamptz);";

#[derive(Debug, Clone, Copy)]
enum Kind {
    Archive,
    Renew,
    Pause,
    Revoke,
    ChangeDate,
    Readdress,
    Rename,
}

const KINDS: [Kind; 7] =
    [Kind::Archive, Kind::Renew, Kind::Pause, Kind::Revoke, Kind::ChangeDate, Kind::Readdress, Kind::Rename];

/// Changes one permit after another until `stop`, and takes half of what can be taken back. Says how many.
pub async fn run(post: &Postbox, permits: &[Uuid], pause: Duration, mut random: Rng, stop: &CancellationToken) -> u32 {
    let mut untouched = permits.to_vec();
    random.shuffle(&mut untouched);
    let mut to_undo: Vec<(Uuid, Uuid, Kind)> = Vec::new();
    let mut count = 0;
    // A few are left alone.
    untouched.truncate(permits.len() * 2 / 3);
    while !stop.is_cancelled() {
        if !to_undo.is_empty() && random.u8(0..3) == 0 {
            let (change, permit, kind) = to_undo.swap_remove(random.usize(0..to_undo.len()));
            undo(post, change, permit, kind).await;
        } else {
            let Some(permit) = choose(post, &mut untouched, &mut random).await else { break };
            let kind = *random.choice(&KINDS).expect("some");
            let change = make(post, permit, kind, count).await;
            if !matches!(kind, Kind::Archive | Kind::Renew | Kind::Readdress) && random.bool() {
                to_undo.push((change, permit, kind));
            }
        }
        count += 1;
        if random.u8(0..6) == 0 {
            find_out(post, &mut random).await;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
    }
    count
}

/// Mostly one whose message is on its way to the gate just now: that is when a change is hard to heed.
async fn choose(post: &Postbox, untouched: &mut Vec<Uuid>, random: &mut Rng) -> Option<Uuid> {
    let leased = "SELECT n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                  WHERE d.lease_token IS NOT NULL AND d.state = 'pending' AND n.permit_id = ANY ($1)
                  ORDER BY random() LIMIT 1";
    if random.u8(0..4) > 0 {
        let found: Option<Uuid> = sqlx::query_scalar(leased)
            .bind(&*untouched)
            .fetch_optional(&mut post.session().await)
            .await
            .expect("one or none");
        if let Some(permit) = found {
            untouched.retain(|other| *other != permit);
            return Some(permit);
        }
    }
    untouched.pop()
}

async fn make(post: &Postbox, permit: Uuid, kind: Kind, number: u32) -> Uuid {
    let change = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO storm_changes (id, permit_id, kind, expires_on, address)
         SELECT $1, id, $2, expires_on, holder_email FROM permits WHERE id = $3",
    )
    .bind(change)
    .bind(format!("{kind:?}"))
    .bind(permit)
    .execute(&mut post.session().await)
    .await
    .expect("a note of the change");
    match kind {
        Kind::Archive => post.archive(permit).await,
        Kind::Renew => post.renew(permit, in_days(395)).await,
        Kind::Pause => post.correct(permit, |p| p.notices_paused_until = Some(in_days(60))).await,
        Kind::Revoke => post.correct(permit, |p| p.status = PermitStatus::Revoked).await,
        Kind::ChangeDate => post.correct(permit, |p| p.expires_on = in_days(300)).await,
        Kind::Readdress => {
            post.correct(permit, |p| p.holder_email = Some(address(&format!("moved{number}@x.example")))).await;
        }
        Kind::Rename => post.correct(permit, |p| "Village Bakery".clone_into(&mut p.holder_name)).await,
    }
    note(post, "UPDATE storm_changes SET committed_at = clock_timestamp() WHERE id = $1", change).await;
    change
}

async fn undo(post: &Postbox, change: Uuid, permit: Uuid, kind: Kind) {
    note(post, "UPDATE storm_changes SET undone_at = clock_timestamp() WHERE id = $1", change).await;
    match kind {
        Kind::Pause => post.correct(permit, |p| p.notices_paused_until = None).await,
        Kind::Revoke => post.correct(permit, |p| p.status = PermitStatus::Active).await,
        Kind::ChangeDate => post.correct(permit, |p| p.expires_on = in_days(30)).await,
        Kind::Rename => post.correct(permit, |p| "Corner Bakery".clone_into(&mut p.holder_name)).await,
        Kind::Archive | Kind::Renew | Kind::Readdress => {}
    }
}

/// Somebody says, rightly or not, whether a message arrived of which nobody knows.
async fn find_out(post: &Postbox, random: &mut Rng) {
    let mut session = post.session().await;
    let unknown = "SELECT notice_id, id FROM deliveries WHERE state = 'ambiguous' ORDER BY random() LIMIT 1";
    let found: Option<(Uuid, Uuid)> = sqlx::query_as(unknown).fetch_optional(&mut session).await.expect("one or none");
    let Some((notice, delivery)) = found else { return };
    let outcome = if random.bool() { Resolution::Delivered } else { Resolution::NotDelivered };
    let resolving = Resolving { delivery: Some(delivery), outcome, reason: "the holder called", by: "a clerk" };
    let rules = ActionRules { moment: post.moment(), window: None, zone: chrono_tz::UTC };
    // Refused while its owner may still get the reply, or if that just came.
    let _ = resolve(&mut session, notice, resolving, &rules).await;
}

async fn note(post: &Postbox, statement: &'static str, change: Uuid) {
    sqlx::query(statement).bind(change).execute(&mut post.session().await).await.expect("a note of the change");
}
