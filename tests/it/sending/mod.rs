//! Sending from end to end: real dispatchers with mail by SMTP, a real database, and a scripted server. Every test
//! ends by comparing the server's ledger with the database ([`agrees`]).

mod chain;
mod faults;
mod happy;
mod killed;
mod outages;
mod phases;
mod policy;
mod rate;
mod slow;
mod stopped;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use permit_notifier::mail::{Mailer, smtp::Limits};

use crate::{
    smtp::{impatient, limits, mailer},
    support::{
        postbox::{Postbox, world::Attempt},
        smtp_server::{SmtpServer, hex},
    },
};

/// The address of the holder with that number.
pub fn holder(number: usize) -> String {
    format!("holder{number:03}@x.example")
}

/// Permits with a notice that is due, for holders from 0 on.
pub async fn due(post: &Postbox, count: usize) {
    for number in 0..count {
        post.permit(&holder(number)).await;
    }
}

fn by_smtp(url: &str, limits: Limits) -> Arc<dyn Mailer> {
    Arc::new(mailer(url, limits))
}

pub fn patient(server: &SmtpServer) -> Arc<dyn Mailer> {
    by_smtp(&server.url(), limits())
}

fn hasty(server: &SmtpServer) -> Arc<dyn Mailer> {
    by_smtp(&server.url(), impatient())
}

/// Every message in the ledger has an attempt of its own that admits it, with the same Message-ID, recipient and
/// hash; every accepted attempt is in the ledger; nothing is there twice, but what was resolved and sent again.
pub async fn agrees(post: &Postbox, server: &SmtpServer) {
    post.check_states().await;
    let copies = post.copies().await;
    let attempts = post.attempts().await;
    let by_id: HashMap<_, _> = copies.iter().map(|copy| (copy.id, copy)).collect();
    let may_be_taken = |attempt: &&Attempt| matches!(attempt.outcome.as_str(), "accepted" | "ambiguous");
    // The sure ones first, so that each finds its own message.
    let mut unseen: Vec<&Attempt> = attempts.iter().filter(may_be_taken).collect();
    unseen.sort_by_key(|attempt| attempt.outcome.clone());
    for taken in server.accepted() {
        let of_message = |attempt: &&Attempt| {
            let copy = by_id[&attempt.delivery_id];
            copy.message_id.as_ref() == Some(&taken.message_id)
                && copy.recipient.as_ref() == Some(&taken.recipient)
                && attempt.payload_sha256.as_deref().map(hex).as_ref() == Some(&taken.sha256)
        };
        let place = unseen.iter().position(of_message);
        unseen.remove(place.unwrap_or_else(|| panic!("no attempt admits {taken:?}")));
    }
    if let Some(never) = unseen.iter().find(|attempt| attempt.outcome == "accepted") {
        panic!("the server never took {never:?}");
    }
    let mut unresolved = HashSet::new();
    for attempt in attempts.iter().filter(may_be_taken).filter(|attempt| attempt.resolution.is_none()) {
        assert!(unresolved.insert(attempt.delivery_id), "sent again though it may have arrived: {attempt:?}");
    }
}
