//! What people do with notices: hold and release, cancel, retry, ask for a copy, say whether one arrived, post letters.

use std::time::Duration;

use fastrand::Rng;
use permit_notifier::{
    domain::attempt::Resolution,
    store::actions::{ActionRules, Posting, Resolving, cancel, hold, posted, release, resolve, retry, send_copy},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{begins, is_committed, lasts_no_longer, rest, was_done};
use crate::support::postbox::Postbox;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Hold,
    Release,
    Cancel,
    Retry,
    Copy,
    Resolve,
    Post,
}

/// Oftener what comes at the wrong moment.
const KINDS: [Kind; 12] = [
    Kind::Hold,
    Kind::Hold,
    Kind::Hold,
    Kind::Release,
    Kind::Release,
    Kind::Cancel,
    Kind::Retry,
    Kind::Copy,
    Kind::Resolve,
    Kind::Resolve,
    Kind::Post,
    Kind::Post,
];

impl Kind {
    /// Deliveries to which it can be done, the most delicate first.
    fn finds(self) -> &'static str {
        match self {
            Self::Hold | Self::Cancel => {
                "SELECT d.id, n.id, n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state = 'pending' ORDER BY d.lease_token IS NULL, random() LIMIT 1"
            }
            Self::Release => {
                "SELECT d.id, n.id, n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state = 'held' ORDER BY random() LIMIT 1"
            }
            Self::Retry => {
                "SELECT d.id, n.id, n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state IN ('failed', 'suppressed') ORDER BY random() LIMIT 1"
            }
            Self::Copy => {
                "SELECT d.id, n.id, n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state IN ('pending', 'sending', 'sent', 'ambiguous', 'held') ORDER BY random() LIMIT 1"
            }
            Self::Resolve => {
                "SELECT d.id, n.id, n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state = 'ambiguous' ORDER BY random() LIMIT 1"
            }
            Self::Post => {
                "SELECT d.id, n.id, n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state = 'pending' AND d.channel = 'letter' ORDER BY random() LIMIT 1"
            }
        }
    }
}

/// Does one thing after another until `stop`. Says how many were done.
pub async fn run(post: &Postbox, pause: Duration, mut random: Rng, stop: &CancellationToken) -> u32 {
    let mut count = 0;
    while !stop.is_cancelled() {
        let kind = *random.choice(&KINDS).expect("some");
        let found: Option<(Uuid, Uuid, Uuid)> =
            sqlx::query_as(kind.finds()).fetch_optional(&mut post.session().await).await.expect("one or none");
        if let Some((delivery, notice, permit)) = found {
            let note = begins(post, permit, Some(notice), &format!("{kind:?}")).await;
            if act(post, kind, delivery, notice, &mut random).await {
                is_committed(post, &[note]).await;
                count += 1;
            } else {
                lasts_no_longer(post, &[note]).await;
            }
        }
        rest(pause, stop).await;
    }
    count
}

async fn act(post: &Postbox, kind: Kind, delivery: Uuid, notice: Uuid, random: &mut Rng) -> bool {
    let mut session = post.session().await;
    let rules = ActionRules { moment: post.moment(), window: None, zone: chrono_tz::UTC };
    match kind {
        Kind::Hold => was_done("hold", hold(&mut session, notice, "we look into it", &rules).await),
        Kind::Release => was_done("release", release(&mut session, notice, None, &rules).await),
        Kind::Cancel => was_done("cancel", cancel(&mut session, notice, "told by phone", &rules).await),
        Kind::Retry => was_done("retry", retry(&mut session, notice, &rules).await),
        Kind::Copy => {
            let to = random.bool().then_some("bookkeeper@x.example");
            was_done("a copy", send_copy(&mut session, notice, to, "lost the first", &rules).await)
        }
        // Rightly or not: nobody here knows.
        Kind::Resolve => {
            let outcome = if random.bool() { Resolution::Delivered } else { Resolution::NotDelivered };
            let resolving = Resolving { delivery: Some(delivery), outcome, reason: "the holder called", by: "a clerk" };
            was_done("resolve", resolve(&mut session, notice, resolving, &rules).await)
        }
        Kind::Post => {
            let posting =
                Posting { delivery: Some(delivery), posted_on: rules.moment.today, tracking: None, by: "a clerk" };
            was_done("posted", posted(&mut session, notice, posting, &rules).await)
        }
    }
}

/// Nobody holds anything back any more.
pub async fn release_all(post: &Postbox) {
    let held = "SELECT DISTINCT notice_id FROM deliveries WHERE state = 'held'";
    let held: Vec<Uuid> = sqlx::query_scalar(held).fetch_all(&mut post.session().await).await.expect("what is held");
    let rules = ActionRules { moment: post.moment(), window: None, zone: chrono_tz::UTC };
    for notice in held {
        was_done("release", release(&mut post.session().await, notice, None, &rules).await);
    }
}
