//! A sender: one message after another through one session with the transport.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    DispatchRules, Membership, Tally,
    clerk::{GateClerk, SettleClerk},
    feeder::Work,
    service::TransportState,
};
use crate::{
    domain::{
        attempt::{Outcome, Phase, STOPPED},
        notice::ReasonCode,
    },
    mail::{Composed, Ended, NoticeMail, Session, compose},
    store::{
        Moment, Result,
        gate::{GateAnswer, GateRequest},
        leases::{Lease, Leased, give_back, read_leased},
        recovery::{end_unsent, serve_missing_copies},
        refused::record_refused,
        settle::Settlement,
    },
    telemetry::metrics,
};

/// How often a message is made anew because the permit changed under it, before the delivery waits its turn.
const REMAKES: usize = 5;

pub(super) struct Sender {
    pub(super) rules: DispatchRules,
    pub(super) membership: Arc<Membership>,
    pub(super) transport: Arc<TransportState>,
    pub(super) tally: Arc<Tally>,
    pub(super) gate: GateClerk,
    pub(super) settle: SettleClerk,
    pub(super) soft: CancellationToken,
    pub(super) hard: CancellationToken,
    pub(super) session: Box<dyn Session>,
    /// Set when a future of the session was dropped midway: it must not be used again.
    pub(super) doubtful: AtomicBool,
}

/// What became of one piece of work.
enum Next {
    /// It is over.
    Done,
    /// It goes back untouched.
    GiveBack,
    /// It goes back, to be tried a little later.
    Later,
    /// Make it anew from the permit as it is now.
    Remake,
}

impl Sender {
    /// Sends what comes through `queue` until it is closed and empty; after a soft stop gives it back instead.
    pub(super) async fn run(mut self, queue: Arc<Mutex<mpsc::Receiver<Work>>>) {
        loop {
            let work = queue.lock().await.recv().await;
            let Some(work) = work else { return };
            if let Err(error) = self.send(work).await {
                tracing::warn!("a delivery was left to be tried again: {error}");
            }
            if self.doubtful.swap(false, Ordering::Relaxed) {
                self.session = self.rules.mailer.session();
            }
        }
    }

    async fn send(&mut self, work: Work) -> Result<()> {
        let lease = Lease { delivery_id: work.leased.delivery_id, token: work.leased.token };
        let mut leased = work.leased;
        for _ in 0..REMAKES {
            if self.soft.is_cancelled() || self.transport.is_down() {
                return self.give_back(lease, false).await;
            }
            match self.try_once(&leased, work.boot_id).await? {
                Next::Done => return Ok(()),
                Next::GiveBack => return self.give_back(lease, false).await,
                Next::Later => return self.give_back(lease, true).await,
                Next::Remake => {
                    let mut connection = self.rules.pool.acquire().await?;
                    match read_leased(&mut connection, &[lease]).await?.pop() {
                        Some(again) => leased = again,
                        None => return Ok(()),
                    }
                }
            }
        }
        drop(work.held);
        self.give_back(lease, true).await
    }

    /// One way through compose, offer, gate, transmit and settle.
    async fn try_once(&mut self, leased: &Leased, boot_id: Uuid) -> Result<Next> {
        let moment = self.rules.moment().await?;
        let message = match make(&self.rules, leased, moment) {
            Ok(message) => message,
            Err(fault) => {
                self.end(leased, ReasonCode::CannotCompose, Some(&fault), moment).await?;
                return Ok(Next::Done);
            }
        };
        let started = Instant::now();
        if let Err(ended) = self.session.offer(&message.envelope).await {
            self.refused(leased, boot_id, &message, &ended, moment).await?;
            log(leased, None, &ended);
            metrics::attempt_ended(ended.outcome.as_str(), started.elapsed());
            return Ok(Next::Done);
        }
        let request = self.request(leased, &message);
        let attempt_id = request.attempt_id;
        let answer = self.gate.ask(request, boot_id).await;
        let Some(GateAnswer::Open(number)) = answer else {
            self.session.withdraw().await;
            return self.turned_away(leased, answer, moment).await;
        };
        let ended = self.transmit(&message, boot_id).await;
        metrics::attempt_ended(ended.outcome.as_str(), started.elapsed());
        self.note(&ended);
        log(leased, Some(number), &ended);
        let settled = self.settle.settle(settlement(attempt_id, leased.delivery_id, &ended)).await;
        if let Some(permit) = settled.and_then(|settled| settled.unserved) {
            self.serve(permit).await?;
        }
        Ok(Next::Done)
    }

    fn request(&self, leased: &Leased, message: &Composed) -> GateRequest {
        GateRequest {
            delivery_id: leased.delivery_id,
            token: leased.token,
            permit_id: leased.key.permit_id,
            version: leased.version,
            attempt_id: Uuid::now_v7(),
            transport: self.rules.mailer.transport(),
            message_id: message.message_id.clone(),
            payload_sha256: message.sha256.to_vec(),
            content: message.bytes.clone(),
        }
    }

    /// Transmits, unless the stop turns hard meanwhile: then nobody can know any more.
    async fn transmit(&mut self, message: &Composed, boot_id: Uuid) -> Ended {
        let may_finish = self.membership.may_finish(boot_id, self.hard.clone());
        let hard = self.hard.clone();
        tokio::select! {
            biased;
            sent = self.session.transmit(&message.envelope, message, None, &may_finish) => sent.ended,
            () = hard.cancelled() => {
                self.doubtful.store(true, Ordering::Relaxed);
                Ended::new(Outcome::Ambiguous, Phase::Dot).because(STOPPED)
            }
        }
    }

    fn note(&self, ended: &Ended) {
        self.tally.ended(ended.outcome);
        if ended.transport_fault {
            self.transport.broke();
        } else if ended.outcome == Outcome::Accepted {
            self.transport.works();
        }
    }

    /// The transport refused before the gate: the attempt is recorded already finished.
    async fn refused(
        &self,
        leased: &Leased,
        boot_id: Uuid,
        message: &Composed,
        ended: &Ended,
        moment: Moment,
    ) -> Result<()> {
        self.note(ended);
        let settlement = settlement(Uuid::now_v7(), leased.delivery_id, ended);
        let mut connection = self.rules.pool.acquire().await?;
        let transport = self.rules.mailer.transport();
        let (hash, max) = (&message.sha256, self.rules.max_attempts);
        record_refused(&mut connection, &settlement, leased.token, boot_id, transport, hash, max, moment.now).await
    }

    /// What to do when the gate did not open.
    async fn turned_away(&self, leased: &Leased, answer: Option<GateAnswer>, moment: Moment) -> Result<Next> {
        Ok(match answer {
            Some(GateAnswer::Changed) => Next::Remake,
            Some(GateAnswer::Busy) => Next::Later,
            Some(GateAnswer::Ended(reason)) => {
                self.end(leased, reason, None, moment).await?;
                Next::Done
            }
            // Another owner, another life, or no answer: what we held is not ours to touch.
            Some(GateAnswer::NotOurs) => {
                self.tally.refused(ReasonCode::NotOwed);
                Next::Done
            }
            Some(GateAnswer::ProcessDead | GateAnswer::Open(_)) | None => Next::GiveBack,
        })
    }

    async fn end(&self, leased: &Leased, reason: ReasonCode, fault: Option<&str>, moment: Moment) -> Result<()> {
        self.tally.refused(reason);
        let lease = Lease { delivery_id: leased.delivery_id, token: leased.token };
        tracing::info!(notice_key = %leased.key, state = reason.as_str(), "not sent: {}", reason.sentence());
        let mut connection = self.rules.pool.acquire().await?;
        end_unsent(&mut connection, &[(lease, reason)], fault, moment.now).await?;
        drop(connection);
        if matches!(reason, ReasonCode::AddressChanged | ReasonCode::Suppressed) {
            self.serve(leased.key.permit_id).await?;
        }
        Ok(())
    }

    async fn serve(&self, permit: Uuid) -> Result<()> {
        let moment = self.rules.moment().await?;
        let mut connection = self.rules.pool.acquire().await?;
        serve_missing_copies(&mut connection, &[permit], moment).await
    }

    async fn give_back(&self, lease: Lease, later: bool) -> Result<()> {
        let mut connection = self.rules.pool.acquire().await?;
        let not_before =
            if later { Some(self.rules.moment().await?.now + chrono::TimeDelta::seconds(1)) } else { None };
        give_back(&mut connection, &[lease], not_before).await
    }
}

/// Composes the message; an error or a panic there is this delivery's own.
fn make(rules: &DispatchRules, leased: &Leased, moment: Moment) -> Result<Composed, String> {
    let mail = NoticeMail {
        key: &leased.key,
        class: leased.class,
        today: moment.today,
        due_on: leased.due_on,
        permit_number: &leased.permit_number,
        permit_type: &leased.permit_type,
        holder_name: &leased.holder_name,
        site_address: leased.site_address.as_deref().unwrap_or_default(),
        description: leased.description.as_deref().unwrap_or_default(),
        renewal_url: leased.renewal_url.as_deref(),
        office_contact: leased.office_contact.as_deref(),
        grace_days: leased.grace_days,
        recipient: &leased.recipient,
        copy: u32::try_from(leased.copy).unwrap_or(1),
        message_id: leased.message_id.as_deref(),
    };
    catch_unwind(AssertUnwindSafe(|| compose(&rules.office, &mail, moment.now)))
        .map_err(|panic| format!("composing panicked: {}", crate::shutdown::panic_message(panic.as_ref())))?
        .map_err(|error| error.to_string())
}

fn settlement(attempt_id: Uuid, delivery_id: Uuid, ended: &Ended) -> Settlement {
    Settlement {
        attempt_id,
        delivery_id,
        outcome: ended.outcome,
        transport_fault: ended.transport_fault,
        reason: ended.reason.as_deref().map(str::to_owned),
        phase: ended.phase,
        smtp_code: ended.smtp_code.map(i32::from),
        enhanced_code: ended.enhanced_code.clone(),
        response: ended.response.clone(),
    }
}

fn log(leased: &Leased, attempt: Option<i32>, ended: &Ended) {
    let outcome = ended.outcome.as_str();
    let state = ended.outcome.delivery_state(false, false);
    tracing::info!(
        notice_key = %leased.key,
        attempt,
        outcome,
        smtp_code = ended.smtp_code,
        state = state.as_str(),
        "attempt ended: {outcome}"
    );
}
