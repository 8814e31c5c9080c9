//! A sender: one message after another through one session with the transport.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    DispatchRules, Membership, Tally, TransportState,
    clerk::{GateClerk, SettleClerk},
    feeder::Work,
    finish::FinalStep,
    judgement::{reconsider, tell, wait_for_turn},
};
use crate::{
    domain::{
        attempt::{Outcome, Phase, STOPPED},
        delivery::DeliveryState,
        notice::ReasonCode,
    },
    mail::{Composed, Ended, NoticeMail, Session, compose},
    store::{
        Moment, Result,
        gate::{GateAnswer, GateRequest},
        leases::{Lease, Leased, give_back, read_leased},
        recovery::{end_unsent, serve_missing_copies},
        refused::{Refusal, record_refused},
        settle::Settlement,
        transport::return_probe,
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
    pub(super) doubtful: bool,
}

/// What became of one piece of work.
enum Next {
    /// It is over, and the transport was heard.
    Done,
    /// It is over, and says nothing of the transport.
    Ended,
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
            let key = work.leased.key.clone();
            if let Err(error) = self.send(work).await {
                tracing::warn!(notice_key = %key, "a delivery was left to be tried again: {error}");
            }
            if std::mem::take(&mut self.doubtful) {
                self.session = self.rules.mailer.session();
            }
        }
    }

    async fn send(&mut self, work: Work) -> Result<()> {
        let lease = Lease { delivery_id: work.leased.delivery_id, token: work.leased.token };
        let (mut leased, probe) = (work.leased, work.probe);
        for _ in 0..REMAKES {
            if self.soft.is_cancelled() || (self.transport.is_down() && probe.is_none()) {
                return self.give_back(lease, probe, false).await;
            }
            match self.try_once(&leased, work.boot_id, probe).await? {
                Next::Done => return Ok(()),
                Next::Ended => return self.free_probe(probe).await,
                Next::GiveBack => return self.give_back(lease, probe, false).await,
                Next::Later => return self.give_back(lease, probe, true).await,
                Next::Remake => {
                    let mut connection = self.rules.pool.acquire().await?;
                    match read_leased(&mut connection, &[lease]).await?.pop() {
                        Some(Ok(again)) => leased = again,
                        // The next lease tells what is wrong with it.
                        Some(Err(_)) => break,
                        None => return self.free_probe(probe).await,
                    }
                }
            }
        }
        drop(work.held);
        self.give_back(lease, probe, true).await
    }

    /// One way through compose, offer, gate, transmit and settle.
    async fn try_once(&mut self, leased: &Leased, boot_id: Uuid, probe: Option<Uuid>) -> Result<Next> {
        let moment = self.rules.moment().await?;
        if self.rules.allowlist.as_ref().is_some_and(|list| !list.allows(&leased.recipient.address)) {
            self.end(leased, ReasonCode::Guard, None, moment).await?;
            return Ok(Next::Ended);
        }
        let message = match make(&self.rules, leased, moment) {
            Ok(message) => message,
            Err(fault) => {
                self.end(leased, ReasonCode::CannotCompose, Some(&fault), moment).await?;
                return Ok(Next::Ended);
            }
        };
        let started = Instant::now();
        let hard = self.hard.clone();
        let Some(offered) = hard.run_until_cancelled(self.offer(&message)).await.transpose()? else {
            // Nothing is accepted before the gate.
            self.doubtful = true;
            return Ok(Next::GiveBack);
        };
        if let Err(ended) = offered {
            let ended = reconsider(&mut *self.rules.pool.acquire().await?, leased, ended).await?;
            let state = self.refused(leased, boot_id, &message, &ended, moment).await?;
            log(leased, None, &ended, state);
            metrics::attempt_ended(ended.outcome.as_str(), started.elapsed());
            self.tell(leased, &ended, probe, moment).await?;
            return Ok(Next::Done);
        }
        if self.soft.is_cancelled() {
            self.session.withdraw().await;
            return Ok(Next::GiveBack);
        }
        let request = self.request(leased, &message, probe);
        let attempt_id = request.attempt_id;
        let answer = self.gate.ask(request, boot_id).await;
        let Some(GateAnswer::Open(number)) = answer else {
            self.session.withdraw().await;
            return self.turned_away(leased, answer, moment).await;
        };
        let mut ended = self.transmit(&message, boot_id).await;
        if ended.transport_fault {
            // Without the database it stays what it is; the settle waits for the database.
            if let Ok(mut connection) = self.rules.pool.acquire().await {
                ended = reconsider(&mut connection, leased, ended.clone()).await.unwrap_or(ended);
            }
        }
        metrics::attempt_ended(ended.outcome.as_str(), started.elapsed());
        self.tally.ended(ended.outcome);
        let settled = self.settle.settle(settlement(attempt_id, leased.delivery_id, &ended)).await;
        log(leased, Some(number), &ended, settled.as_ref().and_then(|settled| settled.state));
        self.tell(leased, &ended, probe, moment).await?;
        if let Some(permit) = settled.and_then(|settled| settled.unserved) {
            self.serve(permit).await?;
        }
        Ok(Next::Done)
    }

    /// Offers the message, in its turn: the connection is opened first, so that a slow one does not bunch the turns.
    async fn offer(&mut self, message: &Composed) -> Result<std::result::Result<(), Ended>> {
        if self.rules.rate > 0 {
            if let Err(ended) = self.session.ready().await {
                return Ok(Err(ended));
            }
            wait_for_turn(&self.rules).await?;
        }
        Ok(self.session.offer(&message.envelope).await)
    }

    fn request(&self, leased: &Leased, message: &Composed, probe: Option<Uuid>) -> GateRequest {
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
            probe,
        }
    }

    /// Transmits, unless the stop turns hard meanwhile: then a final step that was not taken is given up, and
    /// of one that was taken nobody can know any more.
    async fn transmit(&mut self, message: &Composed, boot_id: Uuid) -> Ended {
        let step = FinalStep::default();
        let may_finish = step.guard(self.membership.may_finish(boot_id, self.hard.clone()));
        let hard = self.hard.clone();
        tokio::select! {
            biased;
            sent = self.session.transmit(&message.envelope, message, None, &may_finish) => sent.ended,
            () = hard.cancelled() => {
                self.doubtful = true;
                let given_up = step.give_up();
                let (outcome, phase) =
                    if given_up { (Outcome::NotSent, Phase::Body) } else { (Outcome::Ambiguous, Phase::Dot) };
                Ended::new(outcome, phase).because(STOPPED)
            }
        }
    }

    /// Tells the others what this message showed of the transport.
    async fn tell(&self, leased: &Leased, ended: &Ended, probe: Option<Uuid>, moment: Moment) -> Result<()> {
        let mut connection = self.rules.pool.acquire().await?;
        let suppressed = tell(&mut connection, &self.rules, &self.transport, leased, ended, probe, moment.now).await?;
        drop(connection);
        if suppressed {
            self.serve(leased.key.permit_id).await?;
        }
        Ok(())
    }

    async fn free_probe(&self, probe: Option<Uuid>) -> Result<()> {
        if let Some(token) = probe {
            return_probe(&mut *self.rules.pool.acquire().await?, token).await?;
        }
        Ok(())
    }

    /// The transport refused before the gate: the attempt is recorded already finished.
    async fn refused(
        &self,
        leased: &Leased,
        boot_id: Uuid,
        message: &Composed,
        ended: &Ended,
        moment: Moment,
    ) -> Result<Option<DeliveryState>> {
        self.tally.ended(ended.outcome);
        let settlement = settlement(Uuid::now_v7(), leased.delivery_id, ended);
        let refusal = Refusal {
            settlement: &settlement,
            lease: Lease { delivery_id: leased.delivery_id, token: leased.token },
            boot_id,
            transport: self.rules.mailer.transport(),
            message_id: &message.message_id,
            payload_sha256: &message.sha256,
        };
        let mut connection = self.rules.pool.acquire().await?;
        record_refused(&mut connection, &refusal, self.rules.max_attempts, moment.now).await
    }

    /// What to do when the gate did not open.
    async fn turned_away(&self, leased: &Leased, answer: Option<GateAnswer>, moment: Moment) -> Result<Next> {
        Ok(match answer {
            Some(GateAnswer::Changed) => Next::Remake,
            Some(GateAnswer::Ended(reason)) => {
                self.end(leased, reason, None, moment).await?;
                Next::Ended
            }
            // Another owner, or ended by a change: what we held is not ours to touch.
            Some(GateAnswer::NotOurs) => {
                self.tally.refused(ReasonCode::NotOwed);
                Next::Ended
            }
            Some(GateAnswer::ProcessDead | GateAnswer::Paused | GateAnswer::Open(_)) => Next::GiveBack,
            // No answer is later too, so that one that the gate can never answer does not come round without a pause.
            Some(GateAnswer::Busy) | None => Next::Later,
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

    async fn give_back(&self, lease: Lease, probe: Option<Uuid>, later: bool) -> Result<()> {
        self.free_probe(probe).await?;
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
        reason: ended.reason.as_deref().map(storable),
        phase: ended.phase,
        smtp_code: ended.smtp_code.map(i32::from),
        enhanced_code: ended.enhanced_code.as_deref().map(storable),
        response: ended.response.as_deref().map(storable),
    }
}

/// Longest text of a server that is kept, in characters.
const WORDS_MAX: usize = 2000;

/// What a server said, as the database takes it: without NUL, and not without end.
fn storable(words: &str) -> String {
    words.chars().filter(|c| *c != '\0').take(WORDS_MAX).collect()
}

fn log(leased: &Leased, attempt: Option<i32>, ended: &Ended, state: Option<DeliveryState>) {
    let outcome = ended.outcome.as_str();
    tracing::info!(
        notice_key = %leased.key,
        attempt,
        outcome,
        smtp_code = ended.smtp_code,
        state = state.map(DeliveryState::as_str),
        "attempt ended: {outcome}"
    );
}
