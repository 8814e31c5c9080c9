//! What the database says, and whether it agrees with what was really taken.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use permit_notifier::domain::{delivery::DeliveryState, notice::NoticeState};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Postbox;

/// Rows and no counters, so that nobody waits for anybody.
pub const RECORD_TRANSITIONS: &str = "
    CREATE TABLE transitions (before text NOT NULL, after text NOT NULL);
    CREATE FUNCTION record_transition() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO transitions VALUES (OLD.state, NEW.state);
        RETURN NULL;
    END $$;
    CREATE TRIGGER record_transition AFTER UPDATE OF state ON deliveries
        FOR EACH ROW WHEN (NEW.state <> OLD.state) EXECUTE FUNCTION record_transition();";

/// A delivery with its notice.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Copy {
    pub id: Uuid,
    pub notice_id: Uuid,
    pub notice_type: String,
    pub notice_state: String,
    pub notice_reason: Option<String>,
    pub recipient: Option<String>,
    pub channel: String,
    pub state: String,
    pub reason_code: Option<String>,
    pub attempt_count: i32,
    pub next_attempt_at: DateTime<Utc>,
    pub lease_token: Option<Uuid>,
    pub message_id: Option<String>,
    pub last_error: Option<String>,
    pub payload_sha256: Option<Vec<u8>>,
}

impl Copy {
    /// Its state, with the reason if there is one.
    pub fn end(&self) -> String {
        match &self.reason_code {
            Some(reason) => format!("{} {reason}", self.state),
            None => self.state.clone(),
        }
    }
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Attempt {
    pub id: Uuid,
    pub delivery_id: Uuid,
    pub number: i32,
    pub boot_id: Uuid,
    pub transport: String,
    pub outcome: String,
    pub reason: Option<String>,
    pub payload_sha256: Option<Vec<u8>>,
    pub transport_fault: bool,
    pub response: Option<String>,
    pub resolution: Option<String>,
    pub late_result: Option<String>,
    pub content: Option<Vec<u8>>,
}

impl Postbox {
    /// Every delivery, in the order in which they were made.
    pub async fn copies(&self) -> Vec<Copy> {
        let copies = sqlx::query_as(
            "SELECT d.id, d.notice_id, n.notice_type, n.state AS notice_state,
                    n.reason_code AS notice_reason, d.recipient, d.channel, d.state, d.reason_code, d.attempt_count,
                    d.next_attempt_at, d.lease_token, d.message_id, d.last_error, d.payload_sha256
             FROM deliveries d JOIN notices n ON n.id = d.notice_id ORDER BY d.created_at, d.id",
        );
        copies.fetch_all(&mut self.session().await).await.expect("the deliveries")
    }

    /// The latest delivery to that address.
    pub async fn copy_to(&self, email: &str) -> Copy {
        let copies = self.copies().await;
        copies.into_iter().rfind(|copy| copy.recipient.as_deref() == Some(email)).expect("a copy to that address")
    }

    /// The first delivery to that address.
    pub async fn first_copy_to(&self, email: &str) -> Copy {
        let copies = self.copies().await;
        copies.into_iter().find(|copy| copy.recipient.as_deref() == Some(email)).expect("a copy to that address")
    }

    /// Every attempt, in the order of their numbers.
    pub async fn attempts(&self) -> Vec<Attempt> {
        let attempts = sqlx::query_as(
            "SELECT a.id, a.delivery_id, a.number, a.boot_id, a.transport, a.outcome, a.reason,
                    a.payload_sha256, a.transport_fault, a.response, a.resolution, a.late_result, m.content
             FROM attempts a LEFT JOIN attempt_messages m ON m.attempt_id = a.id ORDER BY a.number, a.id",
        );
        attempts.fetch_all(&mut self.session().await).await.expect("the attempts")
    }

    /// The outcomes of the attempts on a delivery, with reasons, in order.
    pub async fn outcomes(&self, delivery: Uuid) -> Vec<String> {
        let of_delivery = self.attempts().await.into_iter().filter(|attempt| attempt.delivery_id == delivery);
        of_delivery
            .map(|attempt| match attempt.reason {
                Some(reason) => format!("{} {reason}", attempt.outcome),
                None => attempt.outcome,
            })
            .collect()
    }

    /// What must be true at every moment of rest, whatever happened before.
    pub async fn check(&self) {
        self.check_states().await;
        let purged = self.count("SELECT count(*) FROM purges").await > 0;
        self.check_ledger(&self.copies().await, &self.attempts().await, purged);
    }

    /// The part of [`Postbox::check`] that looks at the database alone.
    pub async fn check_states(&self) {
        self.check_transitions().await;
        check_notices(&self.copies().await);
    }

    async fn check_transitions(&self) {
        let pairs: Vec<(String, String)> = sqlx::query_as("SELECT DISTINCT before, after FROM transitions")
            .fetch_all(&mut self.session().await)
            .await
            .expect("the transitions");
        for (before, after) in pairs {
            let (from, to): (DeliveryState, DeliveryState) = (before.parse().unwrap(), after.parse().unwrap());
            assert!(from.may_become(to), "a delivery went from {before} to {after}");
        }
    }

    /// I2, I3 and I12: every message that was taken has an attempt that admits it, no delivery has two of them,
    /// and what the database calls accepted was taken, with the very bytes; after a purge the hash of them is enough.
    fn check_ledger(&self, copies: &[Copy], attempts: &[Attempt], purged: bool) {
        let ledger = self.mailer.ledger();
        let by_message: HashMap<&str, &Copy> =
            copies.iter().filter_map(|copy| Some((copy.message_id.as_deref()?, copy))).collect();
        let admits = |attempt: &&Attempt| {
            matches!(attempt.outcome.as_str(), "sending" | "accepted")
                || (attempt.outcome == "ambiguous" && attempt.resolution.as_deref() != Some("not_delivered"))
        };
        for taken in &ledger {
            let copy = by_message.get(taken.message_id.as_str()).expect("a delivery for every message taken");
            let hash = Sha256::digest(&taken.bytes).to_vec();
            assert_eq!(hash, taken.sha256);
            let admitted = attempts.iter().filter(admits).any(|attempt| {
                attempt.delivery_id == copy.id
                    && attempt.payload_sha256.as_ref() == Some(&hash)
                    && attempt.content.as_ref().map_or(purged, |content| *content == taken.bytes)
            });
            assert!(admitted, "{} was taken and no attempt says so", taken.message_id);
        }
        let hashes: HashSet<[u8; 32]> = ledger.iter().map(|taken| taken.sha256).collect();
        let by_smtp = attempts.iter().filter(|attempt| attempt.transport == "smtp");
        for accepted in by_smtp.filter(|attempt| attempt.outcome == "accepted") {
            let hash: [u8; 32] = accepted.payload_sha256.clone().unwrap().try_into().unwrap();
            assert!(hashes.contains(&hash), "attempt {} was never taken", accepted.id);
        }
        let mut effective = HashSet::new();
        for attempt in attempts.iter().filter(admits) {
            assert!(effective.insert(attempt.delivery_id), "two attempts on {}", attempt.delivery_id);
        }
        let mut once = HashSet::new();
        for taken in &ledger {
            assert!(once.insert(&taken.message_id), "{} was taken twice", taken.message_id);
        }
    }
}

/// The state of a notice follows from its deliveries, and nothing that waits or went gives a reason for ending.
fn check_notices(copies: &[Copy]) {
    let mut notices: HashMap<Uuid, (&Copy, Vec<DeliveryState>)> = HashMap::new();
    for copy in copies {
        notices.entry(copy.notice_id).or_insert((copy, Vec::new())).1.push(copy.state.parse().unwrap());
    }
    for (copy, states) in notices.values() {
        let derived = NoticeState::of(states).unwrap();
        assert_eq!(copy.notice_state, derived.as_str(), "{} of {states:?}", copy.notice_type);
        if matches!(derived, NoticeState::Failed | NoticeState::Held) {
            assert!(copy.notice_reason.is_some(), "a notice is {derived} for no reason");
        }
    }
}
