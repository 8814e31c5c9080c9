//! A sender: one message after another through one session with the transport.
//!
//! While a message is at the gate the next one is prepared, and its envelope travels with the body of the first where
//! the transport can do that. Then the gate of the second is asked in the transaction that settles the first: one round
//! trip and one commit a message, and never more than one attempt of this sender that is not settled.

use std::{collections::VecDeque, sync::Arc};

use tokio::{
    join,
    sync::{Mutex, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Membership,
    clerk::Desk,
    ending::Endings,
    feeder::Work,
    finish::FinalStep,
    judgement::{reconsider, wait_for_turn},
    letter::{Letter, make},
};
use crate::{
    domain::{
        attempt::{Outcome, Phase, STOPPED},
        notice::ReasonCode,
    },
    mail::{Ended, Envelope, Session, Transmitted, smtp::PARTED},
    store::{
        Moment, Result,
        connect::in_time,
        gate::GateAnswer,
        leases::{Lease, Leased, Unreadable, read_leased},
    },
};

/// How often a message is made anew because the permit changed under it, before the delivery waits its turn.
const REMAKES: usize = 5;

pub(super) struct Sender {
    pub(super) membership: Arc<Membership>,
    pub(super) queue: Arc<Mutex<mpsc::Receiver<Work>>>,
    pub(super) desk: Desk,
    pub(super) endings: Endings,
    pub(super) soft: CancellationToken,
    pub(super) hard: CancellationToken,
    pub(super) session: Box<dyn Session>,
    /// Prepared, and not offered to the transport.
    pub(super) ready: VecDeque<Letter>,
}

/// A letter that the gate let through; its attempt is recorded under this number.
struct Open {
    letter: Letter,
    number: i32,
}

impl Open {
    fn new(mut letter: Letter, number: i32) -> Self {
        letter.work.held = None;
        Self { letter, number }
    }
}

impl Sender {
    /// Sends what comes through the queue until it is closed and empty; after a soft stop gives it back instead.
    pub(super) async fn run(mut self) {
        loop {
            let letter = match self.ready.pop_front() {
                Some(letter) => Some(letter),
                None => match self.next_work().await {
                    Some(work) => self.prepare(work, 0).await,
                    None => return,
                },
            };
            if let Some(letter) = letter {
                Box::pin(self.send(letter)).await;
            }
        }
    }

    async fn next_work(&self) -> Option<Work> {
        self.queue.lock().await.recv().await
    }

    /// Makes the letter, unless nothing may begin or it must not go.
    async fn prepare(&self, work: Work, remakes: usize) -> Option<Letter> {
        if !self.may_begin(&work) {
            self.endings.give_back(work, false).await;
            return None;
        }
        let rules = &self.endings.rules;
        if rules.allowlist.as_ref().is_some_and(|list| !list.allows(&work.leased.recipient.address)) {
            self.endings.must_not_go(work, ReasonCode::Guard, None).await;
            return None;
        }
        match make(rules, &work) {
            Ok(message) => Some(Letter::new(work, message, remakes)),
            Err(fault) => {
                self.endings.must_not_go(work, ReasonCode::CannotCompose, Some(&fault)).await;
                None
            }
        }
    }

    /// Prepares the letter that may travel behind another one. Whoever waits at the queue with idle hands comes first,
    /// a probe goes alone, and under a rate each message has its own turn.
    async fn prepare_behind(&self, first: &Work) -> Option<Letter> {
        if first.probe.is_some() || self.endings.rules.rate > 0 || !self.may_begin(first) {
            return None;
        }
        let work = self.queue.try_lock().ok()?.try_recv().ok()?;
        self.prepare(work, 0).await
    }

    fn may_begin(&self, work: &Work) -> bool {
        !self.soft.is_cancelled() && (work.probe.is_some() || !self.endings.transport.is_down())
    }

    /// Offers a letter and brings it through the gate; then sends it, and all that follow on its heels.
    async fn send(&mut self, mut letter: Letter) {
        if !self.may_begin(&letter.work) {
            return self.endings.give_back(letter.work, false).await;
        }
        letter.started = Instant::now();
        let hard = self.hard.clone();
        match hard.run_until_cancelled(self.offer(&letter.message.envelope)).await {
            // Nothing is accepted before the gate.
            None => {
                self.renew_session();
                return self.endings.give_back(letter.work, false).await;
            }
            Some(Err(error)) => {
                tracing::warn!(notice_key = %letter.work.leased.key, "no turn could be taken: {error}");
                return self.endings.give_back(letter.work, true).await;
            }
            Some(Ok(Err(ended))) => return self.refused(letter, ended).await,
            Some(Ok(Ok(()))) => {}
        }
        if self.soft.is_cancelled() {
            self.session.withdraw().await;
            return self.endings.give_back(letter.work, false).await;
        }
        let request = letter.request(&self.endings.rules);
        let mut answers = self.desk.hand_in(letter.work.boot_id, None, Some(request)).await;
        let (answer, behind) = join!(answers.gate(), self.prepare_behind(&letter.work));
        match answer {
            Some(GateAnswer::Open(number)) => Box::pin(self.send_chain(Open::new(letter, number), behind)).await,
            answer => {
                self.session.withdraw().await;
                self.ready.extend(behind);
                if answer.is_none() {
                    // No connection is kept while the database is away, and nothing begins before it is written that
                    // nothing was sent.
                    self.session.close().await;
                    answers.settled().await;
                }
                self.turned_away(letter, answer).await;
            }
        }
    }

    /// Transmits a letter that is through the gate, and those behind it as long as each is offered by the time the one
    /// before has ended.
    async fn send_chain(&mut self, mut open: Open, mut behind: Option<Letter>) {
        loop {
            if let Some(behind) = &mut behind {
                behind.started = Instant::now();
            }
            let next = behind.as_ref().map(|letter| &letter.message.envelope);
            let Transmitted { ended, next } = self.transmit(&open.letter, next).await;
            let ended = self.reconsider(&open.letter, ended).await;
            self.endings.over(&open.letter, &ended);
            let settlement = open.letter.settlement(&ended);
            let letter = match (behind.take(), next) {
                (Some(letter), Some(Ok(()))) if self.may_begin(&letter.work) => letter,
                (behind, next) => {
                    if matches!(next, Some(Ok(()))) {
                        self.session.withdraw().await;
                    }
                    let answers = self.desk.hand_in(open.letter.work.boot_id, Some(settlement), None).await;
                    self.endings.recorded(&open.letter, open.number, &ended, answers.settled().await).await;
                    match (behind, next) {
                        (Some(letter), Some(Err(ended))) => self.refused(letter, ended).await,
                        (behind, _) => self.ready.extend(behind),
                    }
                    return;
                }
            };
            let request = letter.request(&self.endings.rules);
            let mut answers = self.desk.hand_in(letter.work.boot_id, Some(settlement), Some(request)).await;
            let (answer, following) = join!(answers.gate(), self.prepare_behind(&letter.work));
            let Some(GateAnswer::Open(number)) = answer else {
                // The settlement may have to wait; what is offered must not.
                self.session.withdraw().await;
                if answer.is_none() {
                    self.session.close().await;
                }
                self.endings.recorded(&open.letter, open.number, &ended, answers.settled().await).await;
                self.ready.extend(following);
                return self.turned_away(letter, answer).await;
            };
            self.endings.recorded(&open.letter, open.number, &ended, answers.settled().await).await;
            (open, behind) = (Open::new(letter, number), following);
        }
    }

    /// Offers the message, in its turn: the connection is opened first, so that a slow one does not bunch the turns. One
    /// that the server gives up then costs another turn.
    async fn offer(&mut self, envelope: &Envelope) -> Result<Result<(), Ended>> {
        if self.endings.rules.rate == 0 {
            return Ok(self.session.offer(envelope).await);
        }
        loop {
            if let Err(ended) = self.session.ready().await {
                return Ok(Err(ended));
            }
            wait_for_turn(&self.endings.rules).await?;
            match self.session.offer(envelope).await {
                // The next one is new, and cannot part so.
                Err(ended) if ended.reason.as_deref() == Some(PARTED) => {}
                offered => return Ok(offered),
            }
        }
    }

    /// Transmits, unless the stop turns hard meanwhile: then a final step that was not taken is given up, and
    /// of one that was taken nobody can know any more, unless the answer was there and only the next was waited for.
    async fn transmit(&mut self, letter: &Letter, next: Option<&Envelope>) -> Transmitted {
        let step = FinalStep::default();
        let may_finish = step.guard(self.membership.may_finish(letter.work.boot_id, self.hard.clone()));
        let hard = self.hard.clone();
        let message = &letter.message;
        tokio::select! {
            biased;
            sent = self.session.transmit(&message.envelope, message, next, &may_finish) => return sent,
            () = hard.cancelled() => {}
        }
        let known = self.session.heard();
        self.renew_session();
        if let Some(ended) = known {
            return ended.into();
        }
        let given_up = step.give_up();
        let (outcome, phase) =
            if given_up { (Outcome::NotSent, Phase::Body) } else { (Outcome::Ambiguous, Phase::Dot) };
        Ended::new(outcome, phase).because(STOPPED).into()
    }

    /// A future of the session was dropped midway: it must not be used again.
    fn renew_session(&mut self) {
        self.session = self.endings.rules.mailer.session();
    }

    async fn refused(&mut self, letter: Letter, ended: Ended) {
        let ended = self.reconsider(&letter, ended).await;
        self.endings.refused(&letter, &ended).await;
    }

    /// Without the database the end stays what it is; to record it waits for the database.
    async fn reconsider(&self, letter: &Letter, ended: Ended) -> Ended {
        if ended.outcome == Outcome::Accepted {
            return ended;
        }
        let reconsidered = async {
            let mut connection = self.endings.rules.pool.acquire().await?;
            reconsider(&mut connection, &letter.work.leased, ended.clone()).await
        };
        in_time(reconsidered).await.unwrap_or(ended)
    }

    /// What to do when the gate did not open; what was offered is taken back already.
    async fn turned_away(&mut self, letter: Letter, answer: Option<GateAnswer>) {
        match answer {
            Some(GateAnswer::Changed) => self.remake(letter).await,
            Some(GateAnswer::Ended(reason)) => self.endings.must_not_go(letter.work, reason, None).await,
            // Another owner, or ended by a change: what we held is not ours to touch.
            Some(GateAnswer::NotOurs) => self.endings.not_ours(letter.work).await,
            Some(GateAnswer::ProcessDead | GateAnswer::Paused | GateAnswer::Open(_)) => {
                self.endings.give_back(letter.work, false).await;
            }
            // No answer is later too, so that one that the gate can never answer does not come round without a pause.
            Some(GateAnswer::Busy) | None => self.endings.give_back(letter.work, true).await,
        }
    }

    /// Makes it anew from the permit and the day as they are now.
    async fn remake(&mut self, letter: Letter) {
        let (mut work, remakes) = (letter.work, letter.remakes + 1);
        if remakes >= REMAKES {
            return self.endings.give_back(work, true).await;
        }
        match in_time(self.read_again(work.lease())).await {
            Ok(Some(Ok((leased, moment)))) => {
                (work.leased, work.moment) = (leased, moment);
                let again = self.prepare(work, remakes).await;
                self.ready.extend(again);
            }
            Ok(None) => self.endings.not_ours(work).await,
            // The next lease tells what is wrong with it.
            Ok(Some(Err(_))) => self.endings.give_back(work, true).await,
            Err(error) => {
                tracing::warn!(notice_key = %work.leased.key, "a permit that changed could not be read: {error}");
                self.endings.give_back(work, true).await;
            }
        }
    }

    /// What the lease holds now; nothing if it is gone.
    async fn read_again(&self, lease: Lease) -> Result<Option<Result<(Leased, Moment), Unreadable>>> {
        let moment = self.endings.rules.moment().await?;
        let read = read_leased(&mut *self.endings.rules.pool.acquire().await?, &[lease]).await?.pop();
        Ok(read.map(|read| read.map(|leased| (leased, moment))))
    }
}
