//! Clerks: gate and settle of all senders travel in small batches, one transaction each.
//!
//! A sender hands in its paper and waits for the answer. A clerk takes what has piled up meanwhile and does it
//! at once: one sender pays one commit, twenty senders pay one commit together. A batch that fails is repeated
//! one by one, so that one bad row does not stop the rest.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::DispatchRules;
use crate::{
    domain::attempt::{Outcome, Phase},
    store::{
        Result,
        gate::{GateAnswer, GateRequest, open_gates},
        settle::{Settled, Settlement, settle},
    },
};

/// Most papers done in one transaction.
const BATCH: usize = 64;
/// First and longest pause between tries to settle while the database is away.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Asks the gate for senders.
#[derive(Debug, Clone)]
pub(super) struct GateClerk(mpsc::Sender<(GateRequest, Uuid, oneshot::Sender<Option<GateAnswer>>)>);

/// Settles for senders.
#[derive(Debug, Clone)]
pub(super) struct SettleClerk(mpsc::Sender<(Settlement, oneshot::Sender<Settled>)>);

impl GateClerk {
    /// A clerk, and the work it does; it ends when the last clerk of that desk is dropped.
    pub(super) fn open(rules: DispatchRules, settle: SettleClerk) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, desk) = mpsc::channel(BATCH * 4);
        (Self(sender), keep_gate(rules, settle, desk))
    }

    /// Whether this message may go; `None` if the database gave no answer. Then no byte of a body may be sent.
    pub(super) async fn ask(&self, request: GateRequest, boot_id: Uuid) -> Option<GateAnswer> {
        let (answer, wait) = oneshot::channel();
        self.0.send((request, boot_id, answer)).await.ok()?;
        wait.await.ok().flatten()
    }
}

async fn keep_gate(
    rules: DispatchRules,
    settle: SettleClerk,
    mut desk: mpsc::Receiver<(GateRequest, Uuid, oneshot::Sender<Option<GateAnswer>>)>,
) {
    let mut papers = Vec::with_capacity(BATCH);
    while desk.recv_many(&mut papers, BATCH).await > 0 {
        while let Some((_, boot_id, _)) = papers.first() {
            let boot_id = *boot_id;
            let (same, other): (Vec<_>, Vec<_>) = papers.drain(..).partition(|(_, boot, _)| *boot == boot_id);
            papers = other;
            let (requests, waiting): (Vec<_>, Vec<_>) =
                same.into_iter().map(|(request, _, waiting)| (request, waiting)).unzip();
            let answers = answer_all(&rules, &settle, boot_id, &requests).await;
            for (waiting, answer) in waiting.into_iter().zip(answers) {
                // A sender that is gone left its attempt to the recovery of its process.
                let _ = waiting.send(answer);
            }
        }
    }
}

async fn answer_all(
    rules: &DispatchRules,
    settle: &SettleClerk,
    boot_id: Uuid,
    requests: &[GateRequest],
) -> Vec<Option<GateAnswer>> {
    match ask_store(rules, boot_id, requests).await {
        Ok(answers) => answers.into_iter().map(Some).collect(),
        Err(error) if error.is_transient() => {
            tracing::warn!(requests = requests.len(), "the gate did not answer: {error}");
            // The COMMIT may have gone through without an answer: whatever is there was not sent. Should it still
            // be on its way, settling waits for the lock that it holds on the delivery.
            for request in requests {
                settle.leave(not_sent(request)).await;
            }
            vec![None; requests.len()]
        }
        Err(error) if requests.len() == 1 => {
            let delivery = requests[0].delivery_id;
            tracing::error!(%delivery, "the gate refused a delivery: {error}");
            vec![None]
        }
        // The database said no, so nothing of this batch was written.
        Err(_) => {
            let mut answers = Vec::with_capacity(requests.len());
            for request in requests {
                answers.extend(Box::pin(answer_all(rules, settle, boot_id, std::slice::from_ref(request))).await);
            }
            answers
        }
    }
}

async fn ask_store(rules: &DispatchRules, boot_id: Uuid, requests: &[GateRequest]) -> Result<Vec<GateAnswer>> {
    let moment = rules.moment().await?;
    let mut connection = rules.pool.acquire().await?;
    open_gates(&mut connection, boot_id, requests, moment).await
}

fn not_sent(request: &GateRequest) -> Settlement {
    Settlement {
        attempt_id: request.attempt_id,
        delivery_id: request.delivery_id,
        outcome: Outcome::NotSent,
        transport_fault: false,
        reason: Some("gate_unanswered".to_owned()),
        phase: Phase::Data,
        smtp_code: None,
        enhanced_code: None,
        response: None,
    }
}

impl SettleClerk {
    /// A clerk, and the work it does; it ends when the last clerk of that desk is dropped.
    pub(super) fn open(rules: DispatchRules) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, desk) = mpsc::channel(BATCH * 16);
        (Self(sender), keep_settling(rules, desk))
    }

    /// Records how an attempt ended and waits until that is durable, however long the database is away.
    pub(super) async fn settle(&self, settlement: Settlement) -> Option<Settled> {
        let (answer, wait) = oneshot::channel();
        self.0.send((settlement, answer)).await.ok()?;
        wait.await.ok()
    }

    /// The same without waiting.
    async fn leave(&self, settlement: Settlement) {
        let (answer, _) = oneshot::channel();
        let _ = self.0.send((settlement, answer)).await;
    }
}

async fn keep_settling(rules: DispatchRules, mut desk: mpsc::Receiver<(Settlement, oneshot::Sender<Settled>)>) {
    let mut papers = Vec::with_capacity(BATCH);
    while desk.recv_many(&mut papers, BATCH).await > 0 {
        let (settlements, waiting): (Vec<_>, Vec<_>) = papers.drain(..).unzip();
        let settled = settle_all(&rules, &settlements).await;
        for (waiting, settled) in waiting.into_iter().zip(settled) {
            if let Some(settled) = settled {
                let _ = waiting.send(settled);
            }
        }
    }
}

/// Settles until it is done: results wait in memory while the database is away.
async fn settle_all(rules: &DispatchRules, settlements: &[Settlement]) -> Vec<Option<Settled>> {
    let [mut pause, longest] = PAUSES;
    loop {
        match settle_in_store(rules, settlements).await {
            Ok(settled) => return settled.into_iter().map(Some).collect(),
            // Whatever is not about these results will end: the database is away, full, or being restored.
            Err(error) if !error.is_refusal() => {
                tracing::warn!(waiting = settlements.len(), "results wait for the database: {error}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(longest);
            }
            Err(error) if settlements.len() == 1 => {
                let attempt_id = settlements[0].attempt_id;
                tracing::error!(%attempt_id, "a result cannot be recorded: {error}");
                if settlements[0].reason.as_deref() == Some(CANNOT_RECORD) {
                    return vec![None];
                }
                // Better nobody knows than that it seems to be under way for ever.
                return Box::pin(settle_all(rules, &[unrecordable(&settlements[0])])).await;
            }
            Err(_) => {
                let mut settled = Vec::with_capacity(settlements.len());
                for settlement in settlements {
                    settled.extend(Box::pin(settle_all(rules, std::slice::from_ref(settlement))).await);
                }
                return settled;
            }
        }
    }
}

/// Reason of an attempt whose real end the database would not take.
const CANNOT_RECORD: &str = "cannot_record";

fn unrecordable(settlement: &Settlement) -> Settlement {
    Settlement {
        attempt_id: settlement.attempt_id,
        delivery_id: settlement.delivery_id,
        outcome: Outcome::Ambiguous,
        transport_fault: false,
        reason: Some(CANNOT_RECORD.to_owned()),
        phase: settlement.phase,
        smtp_code: settlement.smtp_code,
        enhanced_code: None,
        response: None,
    }
}

async fn settle_in_store(rules: &DispatchRules, settlements: &[Settlement]) -> Result<Vec<Settled>> {
    let now = rules.moment().await?.now;
    let mut connection = rules.pool.acquire().await?;
    settle(&mut connection, settlements, rules.max_attempts, now).await
}
