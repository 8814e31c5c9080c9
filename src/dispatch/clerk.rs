//! The clerk: settlements and gates of all senders travel in small batches, one transaction each.
//!
//! A sender hands in a paper, how its last message ended and which one wants to begin, and waits for the answers.
//! The clerk takes what has piled up meanwhile and does it at once: one sender pays one commit, twenty senders pay one
//! commit together. A batch that the database refuses is repeated one by one, so that one bad row does not stop the
//! rest. A settlement is tried until it is written; a gate waits with the settlement before it for a moment, and is then
//! answered.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::sleep,
};
use uuid::Uuid;

use super::DispatchRules;
use crate::{
    domain::attempt::{Outcome, Phase},
    store::{
        StoreError,
        gate::{GateAnswer, GateRequest},
        round::{Handled, Paper, RoundConnection},
        settle::{Settled, Settlement},
    },
};

/// Most papers done in one transaction.
const BATCH: usize = 64;
/// Clerks at one desk: one takes what comes in while the other waits for its commit.
const CLERKS: usize = 2;
/// First and longest pause before a settlement is tried again: somebody else is at its rows.
const BUSY_PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];
/// The same while the database is away.
const AWAY_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];
/// So often a gate waits with the settlement before it, which is for about half a second: copies of one notice end
/// together, and get in each other's way for a moment.
const PATIENCE: u32 = 6;

/// Where senders hand in.
#[derive(Debug, Clone)]
pub(super) struct Desk(mpsc::Sender<Case>);

/// The answers to one paper, as they come.
#[derive(Debug)]
pub(super) struct Answers {
    /// What the gate says; nothing if the database gave no answer, and then no byte of a body may be sent.
    pub(super) gate: oneshot::Receiver<Option<GateAnswer>>,
    /// What the settlement made, once it is durable.
    pub(super) settled: oneshot::Receiver<Settled>,
}

/// A paper with those who wait for it.
#[derive(Debug)]
struct Case {
    boot_id: Uuid,
    paper: Paper,
    gate: Option<oneshot::Sender<Option<GateAnswer>>>,
    settled: Option<oneshot::Sender<Settled>>,
    /// To be settled next: a gate that got no answer may have opened.
    unsent: Option<Settlement>,
    /// What the settlement before that made.
    first: Option<Settled>,
    /// How often its settlement was tried in vain.
    tries: u32,
}

impl Desk {
    /// A desk, and the work of each of its clerks; that ends when the last desk is dropped and everything is written.
    pub(super) fn open(rules: &DispatchRules) -> (Self, Vec<impl Future<Output = ()> + Send + use<>>) {
        let (sender, pile) = mpsc::channel(BATCH * 16);
        let pile = Arc::new(Mutex::new(pile));
        (Self(sender), (0..CLERKS).map(|_| keep(rules.clone(), Arc::clone(&pile))).collect())
    }

    /// Hands in how a message ended, which one wants to begin, or both: then the gate of the second opens in the
    /// transaction that settles the first, or not at all.
    pub(super) async fn hand_in(
        &self,
        boot_id: Uuid,
        settlement: Option<Settlement>,
        request: Option<GateRequest>,
    ) -> Answers {
        let (gate, gate_answer) = oneshot::channel();
        let (settled, settled_answer) = oneshot::channel();
        let gate = request.is_some().then_some(gate);
        let paper = Paper { settlement, request };
        // The clerks outlive every desk.
        let _ = self
            .0
            .send(Case { boot_id, paper, gate, settled: Some(settled), unsent: None, first: None, tries: 0 })
            .await;
        Answers { gate: gate_answer, settled: settled_answer }
    }
}

impl Answers {
    /// Waits for the gate, which may be none.
    pub(super) async fn gate(&mut self) -> Option<GateAnswer> {
        (&mut self.gate).await.ok().flatten()
    }

    /// Waits until the settlement is durable, however long the database is away. Nothing, if it cannot be recorded.
    pub(super) async fn settled(self) -> Option<Settled> {
        self.settled.await.ok()
    }
}

type Later = FuturesUnordered<BoxFuture<'static, Case>>;

async fn keep(rules: DispatchRules, pile: Arc<Mutex<mpsc::Receiver<Case>>>) {
    let mut connection = RoundConnection::new(rules.direct_url.clone());
    let mut later = Later::new();
    let mut open = true;
    loop {
        let cases = tokio::select! {
            taken = take(&pile), if open => taken,
            Some(case) = later.next() => vec![case],
            else => return,
        };
        open = open && !cases.is_empty();
        for cases in by_boot(cases) {
            for (case, pause) in handle(&rules, &mut connection, cases).await {
                later.push(sleep(pause).map(|()| case).boxed());
            }
        }
    }
}

/// What has piled up; nothing when the desk is closed.
async fn take(pile: &Mutex<mpsc::Receiver<Case>>) -> Vec<Case> {
    let mut cases = Vec::with_capacity(BATCH);
    pile.lock().await.recv_many(&mut cases, BATCH).await;
    cases
}

/// One batch for each life of this process; nearly always one.
fn by_boot(cases: Vec<Case>) -> Vec<Vec<Case>> {
    let mut batches: Vec<Vec<Case>> = Vec::new();
    for case in cases {
        match batches.iter_mut().find(|batch| batch[0].boot_id == case.boot_id) {
            Some(batch) => batch.push(case),
            None => batches.push(vec![case]),
        }
    }
    batches
}

/// Does one batch. Gives back what must be settled later, and after what pause.
async fn handle(
    rules: &DispatchRules,
    connection: &mut RoundConnection,
    mut cases: Vec<Case>,
) -> Vec<(Case, Duration)> {
    let papers: Vec<Paper> = cases.iter_mut().map(|case| std::mem::take(&mut case.paper)).collect();
    let moment_at = |now| rules.moment_at(now);
    let result = connection.go_round(cases[0].boot_id, &papers, rules.max_attempts, moment_at).await;
    for (case, paper) in cases.iter_mut().zip(papers) {
        case.paper = paper;
    }
    match result {
        Ok(handled) => cases.into_iter().zip(handled).filter_map(|(case, handled)| case.answer(handled)).collect(),
        // Whatever is not about this data will end: the database is away, full, or being restored.
        Err(error) if !error.is_refusal() => {
            let waiting = cases.len();
            tracing::warn!(waiting, "results and gates got no answer from the database: {error}");
            cases.into_iter().filter_map(Case::unanswered).collect()
        }
        // The database said no, so nothing of this batch was written.
        Err(error) if cases.len() > 1 => {
            tracing::warn!(papers = cases.len(), "done one by one, for the database refused one of them: {error}");
            one_by_one(rules, connection, cases).await
        }
        Err(error) => match cases.remove(0).split() {
            [Some(settles), Some(mut begins)] => {
                let mut later = one_by_one(rules, connection, vec![settles]).await;
                // No gate opens before the last message of its sender is settled.
                if later.is_empty() {
                    later = one_by_one(rules, connection, vec![begins]).await;
                } else {
                    begins.tell_gate(Some(GateAnswer::Busy));
                }
                later
            }
            [settles, begins] => settles.or(begins).and_then(|case| case.refused(&error)).into_iter().collect(),
        },
    }
}

async fn one_by_one(
    rules: &DispatchRules,
    connection: &mut RoundConnection,
    cases: Vec<Case>,
) -> Vec<(Case, Duration)> {
    let mut later = Vec::new();
    for case in cases {
        later.extend(Box::pin(handle(rules, connection, vec![case])).await);
    }
    later
}

impl Case {
    /// Passes the answers on; what is still to be settled comes back.
    fn answer(mut self, handled: Handled) -> Option<(Self, Duration)> {
        if self.paper.settlement.is_some() && handled.settled.is_none() && self.tries < PATIENCE {
            return Some(self.again(BUSY_PAUSES));
        }
        self.tell_gate(handled.answer);
        match (&self.paper.settlement, handled.settled) {
            (Some(_), None) => Some(self.again(BUSY_PAUSES)),
            (Some(_), Some(settled)) => {
                if let Some(unsent) = self.unsent.take() {
                    return Some(self.then(unsent, Some(settled)));
                }
                self.tell_settled(settled);
                None
            }
            (None, _) => None,
        }
    }

    /// The COMMIT may have gone through without an answer. Of an attempt that is there then nothing was sent; should
    /// the COMMIT still be on its way, settling waits for the lock that it holds on the delivery. The sender hears that
    /// all is settled when this is.
    fn unanswered(mut self) -> Option<(Self, Duration)> {
        if let Some(request) = self.paper.request.take() {
            self.unsent = Some(not_sent(&request));
        }
        self.tell_gate(None);
        self.paper.settlement = self.paper.settlement.take().or_else(|| self.unsent.take());
        self.paper.settlement.is_some().then(|| self.again(AWAY_PAUSES))
    }

    /// Settles this too before the sender hears what became of the first.
    fn then(mut self, unsent: Settlement, first: Option<Settled>) -> (Self, Duration) {
        self.paper.settlement = Some(unsent);
        self.first = self.first.or(first);
        self.tries = 0;
        (self, Duration::ZERO)
    }

    /// A settlement and a request apart.
    fn split(mut self) -> [Option<Self>; 2] {
        let (request, gate) = (self.paper.request.take(), self.gate.take());
        let begins = request.map(|request| Self {
            boot_id: self.boot_id,
            paper: Paper { settlement: None, request: Some(request) },
            gate,
            settled: None,
            unsent: None,
            first: None,
            tries: 0,
        });
        [self.paper.settlement.is_some().then_some(self), begins]
    }

    /// The database would not take this, alone.
    fn refused(mut self, error: &StoreError) -> Option<(Self, Duration)> {
        if let Some(request) = &self.paper.request {
            tracing::error!(delivery = %request.delivery_id, "the gate refused a delivery: {error}");
            self.tell_gate(None);
            return None;
        }
        let settlement = self.paper.settlement.as_ref()?;
        tracing::error!(attempt = %settlement.attempt_id, "a result cannot be recorded: {error}");
        if settlement.reason.as_deref() == Some(CANNOT_RECORD) {
            let unsent = self.unsent.take()?;
            return Some(self.then(unsent, None));
        }
        // Better nobody knows than that it seems to be under way for ever.
        self.paper.settlement = Some(unrecordable(settlement));
        Some(self.again(BUSY_PAUSES))
    }

    fn again(mut self, [first, longest]: [Duration; 2]) -> (Self, Duration) {
        let pause = (first * 2u32.saturating_pow(self.tries)).min(longest);
        self.tries = (self.tries + 1).min(16);
        (self, pause)
    }

    fn tell_gate(&mut self, answer: Option<GateAnswer>) {
        // A sender that is gone left its attempt to the recovery of its process.
        if let Some(gate) = self.gate.take() {
            let _ = gate.send(answer);
        }
        self.paper.request = None;
    }

    fn tell_settled(&mut self, result: Settled) {
        if let Some(settled) = self.settled.take() {
            let _ = settled.send(self.first.take().unwrap_or(result));
        }
    }
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
        retry_after: None,
        probe: request.probe,
    }
}

/// Reason of an attempt whose real end the database would not take.
const CANNOT_RECORD: &str = "cannot_record";

fn unrecordable(settlement: &Settlement) -> Settlement {
    Settlement {
        outcome: Outcome::Ambiguous,
        transport_fault: false,
        reason: Some(CANNOT_RECORD.to_owned()),
        enhanced_code: None,
        response: None,
        retry_after: None,
        ..settlement.clone()
    }
}
