//! What can happen. Every step is one transaction, or one thing that one process or the mail server does alone;
//! between two steps of one process anything may happen elsewhere, which is how a process is slow or stopped.

use permit_notifier::domain::{
    attempt::{Outcome, Resolution},
    delivery::DeliveryState,
    notice::NoticeState,
};
use stateright::Model;

use super::{
    laws,
    world::{
        Attempt, Budget, COPIES, Delivery, Fault, Held, LIVES, Lease, Life, Row, Seen, Task, Truth, Try, WORKERS, World,
    },
};

/// Attempts that the budget of a delivery allows.
const MAX_ATTEMPTS: u8 = 2;
/// Owners that a delivery may lose between lease and gate.
const LOST_OWNERS_MAX: u8 = 3;

/// A rule that can be left out to see what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The gate: the delivery is pending with our token.
    GateDelivery,
    /// The gate: the notice is owed, the address is on the permit, the version is the one rendered from.
    GatePermit,
    /// The gate: the notice is of the permit's present period.
    GatePeriod,
    /// The gate: our process row is alive.
    GateRow,
    /// At most one effective attempt of a delivery, said by the database.
    UniqueIndex,
    /// No dot under a process row that is too old.
    DotRow,
    /// Asking for the row's age and writing the dot are one step.
    DotAtOnce,
    /// Only what is pending is leased; a lease that ran out does not free what is being sent.
    LeasePending,
    /// A lease is given only to a process whose row is alive.
    LeaseRow,
    /// A settle looks at its attempt, not at the delivery's state.
    SettleByAttempt,
    /// What a dead process left open is ambiguous, not free to be sent again.
    OwnerLost,
    /// Nobody says "not delivered" of what a dead process left until its conversation is surely over.
    DenyOver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Lease(usize, usize),
    LeaseUnanswered(usize, usize),
    FreeUnknown(usize),
    Render(usize),
    OfferDeferred(usize),
    OfferRejected(usize),
    OfferBroken(usize),
    Gate(usize),
    GateBusy(usize),
    GateUnanswered(usize),
    WriteEnding(usize),
    GiveBack(usize),
    BodyBroken(usize),
    AskRow(usize),
    Dot(usize),
    Decide(usize, usize, Seen),
    ReadReply(usize),
    LoseReply(usize),
    Settle(usize),
    SettleUnanswered(usize),
    Crash(usize),
    Restart(usize),
    RowAges(usize),
    RowDies(usize, usize),
    RenewRow(usize),
    RecoverAttempt(usize, usize),
    RecoverLease(usize),
    Renewal,
    ChangeBack,
    Move,
    MoveBack,
    Scan,
    Resolve(usize, usize, Resolution),
    Retry(usize),
    Release(usize),
}

impl Step {
    /// Whether this happens by itself when nothing goes wrong any more.
    pub fn heals(self) -> bool {
        !matches!(
            self,
            Self::LeaseUnanswered(..)
                | Self::OfferDeferred(_)
                | Self::OfferRejected(_)
                | Self::OfferBroken(_)
                | Self::GateBusy(_)
                | Self::GateUnanswered(_)
                | Self::BodyBroken(_)
                | Self::Decide(_, _, Seen::Deferred | Seen::Rejected)
                | Self::LoseReply(_)
                | Self::SettleUnanswered(_)
                | Self::Crash(_)
                | Self::RowAges(_)
                | Self::Renewal
                | Self::ChangeBack
                | Self::Move
                | Self::MoveBack
                | Self::Resolve(..)
                | Self::Retry(_)
                | Self::Release(_)
        )
    }
}

/// The model: what may go wrong, and which rules are left out.
#[derive(Debug, Clone, Copy)]
pub struct Sending {
    pub budget: Budget,
    pub without: &'static [Rule],
}

impl Model for Sending {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.fault.is_some() {
            // The first breach is what counts.
            return;
        }
        for (copy, delivery) in world.deliveries() {
            for (slot, _) in delivery.attempts.iter().enumerate().filter(|(_, attempt)| attempt.is_some()) {
                steps.extend(
                    [Seen::Nothing, Seen::Accepted, Seen::Deferred, Seen::Rejected]
                        .map(|seen| Step::Decide(copy, slot, seen)),
                );
                steps.push(Step::RecoverAttempt(copy, slot));
                steps.extend(
                    [Resolution::Delivered, Resolution::NotDelivered].map(|word| Step::Resolve(copy, slot, word)),
                );
            }
            steps.extend([Step::RecoverLease(copy), Step::Retry(copy), Step::Release(copy)]);
        }
        for worker in 0..WORKERS {
            self.worker_actions(world, worker, steps);
        }
        steps.extend([Step::Renewal, Step::ChangeBack, Step::Move, Step::MoveBack, Step::Scan]);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = *world;
        self.take(&mut next, step)?;
        next.tidy();
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        laws::all()
    }
}

impl Sending {
    fn keeps(&self, rule: Rule) -> bool {
        !self.without.contains(&rule)
    }

    fn worker_actions(&self, world: &World, w: usize, steps: &mut Vec<Step>) {
        match world.workers[w].task {
            Task::Crashed => {
                steps.push(Step::Restart(w));
                return steps.extend((0..LIVES).map(|life| Step::RowDies(w, life)));
            }
            Task::Idle => {
                for copy in 0..COPIES {
                    steps.extend([Step::Lease(w, copy), Step::LeaseUnanswered(w, copy)]);
                }
            }
            Task::Leased(_) => steps.push(Step::Render(w)),
            Task::Rendered(..) => steps.extend([
                Step::OfferDeferred(w),
                Step::OfferRejected(w),
                Step::OfferBroken(w),
                Step::Gate(w),
                Step::GateBusy(w),
                Step::GateUnanswered(w),
            ]),
            Task::Ending(_) => steps.push(Step::WriteEnding(w)),
            Task::Returning(_) => {}
            Task::Gated(_) => {
                steps.push(Step::BodyBroken(w));
                steps.push(if self.keeps(Rule::DotAtOnce) { Step::Dot(w) } else { Step::AskRow(w) });
            }
            Task::Cleared(_) => steps.push(Step::Dot(w)),
            Task::Dotted(_) => steps.extend([Step::ReadReply(w), Step::LoseReply(w)]),
            Task::Known(..) => steps.extend([Step::Settle(w), Step::SettleUnanswered(w)]),
        }
        if world.workers[w].task.held().is_some() {
            steps.push(Step::GiveBack(w));
        }
        steps.extend([Step::FreeUnknown(w), Step::Crash(w), Step::RowAges(w), Step::RenewRow(w)]);
        steps.extend((0..LIVES).map(|life| Step::RowDies(w, life)));
    }

    fn take(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Lease(w, copy) => self.lease(world, w, copy, true),
            Step::LeaseUnanswered(w, copy) => {
                trouble(world)?;
                self.lease(world, w, copy, false)
            }
            Step::FreeUnknown(w) => free_unknown(world, w),
            Step::Render(w) => render(world, w),
            Step::OfferDeferred(w) => {
                trouble(world)?;
                refused(world, w, Outcome::Deferred)
            }
            Step::OfferRejected(w) => refused(world, w, Outcome::Rejected),
            Step::OfferBroken(w) => {
                trouble(world)?;
                refused(world, w, Outcome::NotSent)
            }
            Step::Gate(w) => self.gate(world, w, true),
            Step::GateBusy(w) => {
                trouble(world)?;
                let held = world.workers[w].task.held()?;
                go(world, w, Task::Returning(held))
            }
            Step::GateUnanswered(w) => {
                trouble(world)?;
                self.gate(world, w, false)
            }
            Step::WriteEnding(w) => write_ending(world, w),
            Step::GiveBack(w) => {
                let held = world.workers[w].task.held()?;
                if is_ours(world, held) {
                    world.delivery(held.copy).lease = None;
                }
                go(world, w, Task::Idle)
            }
            Step::BodyBroken(w) => {
                trouble(world)?;
                let attempt = world.workers[w].task.attempt()?;
                go(world, w, Task::Known(attempt, Outcome::NotSent))
            }
            Step::AskRow(w) => self.ask_row(world, w),
            Step::Dot(w) => {
                if self.keeps(Rule::DotAtOnce) {
                    self.ask_row(world, w)?;
                }
                if let Task::Cleared(attempt) = world.workers[w].task {
                    world.attempt(attempt).seen = Seen::UnderWay;
                    go(world, w, Task::Dotted(attempt))?;
                }
                Some(())
            }
            Step::Decide(copy, slot, seen) => decide(world, copy, slot, seen),
            Step::ReadReply(w) => read_reply(world, w),
            Step::LoseReply(w) => {
                trouble(world)?;
                let attempt = world.workers[w].task.attempt()?;
                go(world, w, Task::Known(attempt, Outcome::Ambiguous))
            }
            Step::Settle(w) => self.settle(world, w, true),
            Step::SettleUnanswered(w) => {
                trouble(world)?;
                self.settle(world, w, false)
            }
            _ => self.take_around(world, step),
        }
    }

    fn take_around(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Crash(w) => {
                world.budget.crashes[w] = world.budget.crashes[w].checked_sub(1)?;
                go(world, w, Task::Crashed)
            }
            Step::Restart(w) => {
                come_to_life(world, w)?;
                go(world, w, Task::Idle)
            }
            Step::RowAges(w) => {
                let row = &mut world.rows[w][world.workers[w].life];
                *row = if *row == Row::Young { Row::Old } else { return None };
                world.budget.lapses[w] = world.budget.lapses[w].checked_sub(1)?;
                Some(())
            }
            Step::RowDies(w, number) => row_dies(world, w, number),
            Step::RenewRow(w) => match world.rows[w][world.workers[w].life] {
                Row::Old => {
                    world.rows[w][world.workers[w].life] = Row::Young;
                    Some(())
                }
                Row::Dead { .. } => come_to_life(world, w),
                Row::Young | Row::Unborn => None,
            },
            Step::RecoverAttempt(copy, slot) => self.recover_attempt(world, copy, slot),
            Step::RecoverLease(copy) => recover_lease(world, copy),
            Step::Renewal => {
                world.budget.renewals = world.budget.renewals.checked_sub(1)?;
                if world.permit.renewed {
                    return None;
                }
                world.permit.renewed = true;
                changed(world)
            }
            Step::ChangeBack => {
                if !world.permit.renewed {
                    return None;
                }
                world.permit.renewed = false;
                changed(world)
            }
            Step::Move | Step::MoveBack => {
                if world.permit.moved != (step == Step::MoveBack) {
                    return None;
                }
                if step == Step::Move {
                    world.budget.moves = world.budget.moves.checked_sub(1)?;
                }
                world.permit.moved = !world.permit.moved;
                changed(world)
            }
            Step::Scan => {
                judge(world);
                Some(())
            }
            Step::Resolve(copy, slot, said) => self.resolve(world, copy, slot, said),
            Step::Retry(copy) => {
                word(world)?;
                restore(world, copy, DeliveryState::Failed)
            }
            Step::Release(copy) => {
                word(world)?;
                restore(world, copy, DeliveryState::Held)
            }
            _ => None,
        }
    }

    fn lease(&self, world: &mut World, w: usize, copy: usize, answered: bool) -> Option<()> {
        let owner = Life { worker: w, number: world.workers[w].life };
        if world.workers[w].task != Task::Idle || (self.keeps(Rule::LeaseRow) && !world.is_alive(owner)) {
            return None;
        }
        let delivery = world.copies[copy].as_ref()?;
        let ran_out = delivery.lease.is_some_and(|lease| !world.is_alive(lease.owner));
        let is_free = delivery.state == DeliveryState::Pending && delivery.lease.is_none();
        let is_taken = delivery.state == DeliveryState::Sending && ran_out && !self.keeps(Rule::LeasePending);
        if !is_free && !is_taken {
            return None;
        }
        world.become_(copy, DeliveryState::Pending);
        // Tokens are random; here the smallest that nobody knows.
        let in_hands = |token| world.workers.iter().any(|worker| worker.task.held().is_some_and(|h| h.token == token));
        let in_rows = |token| world.deliveries().any(|(_, d)| d.lease.is_some_and(|lease| lease.token == token));
        let token = (0..u8::MAX).find(|token| !in_hands(*token) && !in_rows(*token))?;
        world.delivery(copy).lease = Some(Lease { token, owner });
        if answered { go(world, w, Task::Leased(Held { copy, token, life: owner })) } else { Some(()) }
    }

    /// The gate: one transaction.
    fn gate(&self, world: &mut World, w: usize, answered: bool) -> Option<()> {
        let Task::Rendered(held, version) = world.workers[w].task else { return None };
        let lives = world.is_alive(held.life);
        if self.keeps(Rule::GateRow) && !lives {
            return go(world, w, Task::Returning(held));
        }
        if self.keeps(Rule::GateDelivery) && !is_ours(world, held) {
            return go(world, w, Task::Idle);
        }
        let left = !world.on_permit(held.copy);
        if self.keeps(Rule::GatePermit) {
            if world.superseded || left || (self.keeps(Rule::GatePeriod) && world.permit.renewed) {
                return go(world, w, if answered { Task::Ending(held) } else { Task::Returning(held) });
            }
            if world.permit.version != version {
                return go(world, w, if answered { Task::Leased(held) } else { Task::Returning(held) });
            }
        }
        let delivery = world.delivery(held.copy);
        if delivery.attempts().any(Attempt::is_effective) && self.keeps(Rule::UniqueIndex) {
            // The transaction fails. As long as every other rule is kept, this never happens.
            if self.without.is_empty() {
                world.blame(Fault::IndexFired);
            }
            return go(world, w, Task::Returning(held));
        }
        let slot = delivery.attempts.iter().position(Option::is_none).expect("a free slot: raise SLOTS");
        let right = !world.permit.renewed && !world.superseded && !left && world.permit.version == version;
        world.delivery(held.copy).attempts[slot] = Some(Attempt {
            outcome: Outcome::Sending,
            owner: Some(held.life),
            owner_lost: false,
            resolution: None,
            truth: None,
            right,
            begun_alive: lives,
            seen: Seen::Nothing,
        });
        world.become_(held.copy, DeliveryState::Sending);
        let attempt = Try { copy: held.copy, slot, life: held.life };
        // Without an answer no byte of the body is sent, and whatever is there is settled as not sent.
        go(world, w, if answered { Task::Gated(attempt) } else { Task::Known(attempt, Outcome::NotSent) })
    }

    fn ask_row(&self, world: &mut World, w: usize) -> Option<()> {
        let Task::Gated(attempt) = world.workers[w].task else { return None };
        let same_life = attempt.life.number == world.workers[w].life;
        let may_finish = same_life && world.rows[w][attempt.life.number] == Row::Young;
        let goes_on = may_finish || !self.keeps(Rule::DotRow);
        go(world, w, if goes_on { Task::Cleared(attempt) } else { Task::Known(attempt, Outcome::NotSent) })
    }

    fn settle(&self, world: &mut World, w: usize, answered: bool) -> Option<()> {
        let Task::Known(handle, outcome) = world.workers[w].task else { return None };
        let attempt = *world.attempt(handle);
        let is_open = if self.keeps(Rule::SettleByAttempt) {
            attempt.outcome == Outcome::Sending
                || (attempt.outcome == Outcome::Ambiguous && attempt.owner_lost && attempt.resolution.is_none())
        } else {
            matches!(world.delivery(handle.copy).state, DeliveryState::Sending | DeliveryState::Ambiguous)
        };
        if is_open {
            if attempt.resolution.is_some() || !matches!(attempt.outcome, Outcome::Sending | Outcome::Ambiguous) {
                world.blame(Fault::OutcomeWrittenTwice);
            }
            let left = !world.on_permit(handle.copy);
            let superseded = world.superseded || left;
            let delivery = world.delivery(handle.copy);
            delivery.attempt_count += u8::from(outcome == Outcome::Deferred);
            let exhausted = outcome == Outcome::Deferred && delivery.attempt_count >= MAX_ATTEMPTS;
            delivery.lease = None;
            let attempt = world.attempt(handle);
            (attempt.outcome, attempt.owner_lost) = (outcome, false);
            world.become_(handle.copy, outcome.delivery_state(superseded, exhausted));
        }
        if answered { go(world, w, Task::Idle) } else { Some(()) }
    }

    /// A person's word, or the policy's. "Not delivered" of what a dead process left waits so long after its last sign
    /// of life that the server has had its time to decide: no dot is written later, and what was under way no longer
    /// is.
    fn resolve(&self, world: &mut World, copy: usize, slot: usize, resolution: Resolution) -> Option<()> {
        let attempt = world.copies[copy]?.attempts[slot]?;
        if attempt.outcome != Outcome::Ambiguous || attempt.resolution.is_some() {
            return None;
        }
        let truth = match attempt.seen {
            Seen::UnderWay if attempt.owner_lost => Truth::Talking,
            Seen::UnderWay => Truth::LeftBehind,
            Seen::Accepted => Truth::Accepted,
            Seen::Nothing | Seen::Deferred | Seen::Rejected => Truth::NeverSent,
        };
        if resolution == Resolution::NotDelivered {
            if self.keeps(Rule::DenyOver) && truth == Truth::Talking {
                return None;
            }
            word(world)?;
        }
        let left = !world.on_permit(copy);
        let place = world.attempt(Try { copy, slot, life: Life { worker: 0, number: 0 } });
        (place.resolution, place.truth) = (Some(resolution), Some(truth));
        if world.delivery(copy).state != DeliveryState::Ambiguous {
            world.blame(Fault::ResolvedTwice);
        }
        let next = match resolution {
            Resolution::Delivered => DeliveryState::Sent,
            Resolution::NotDelivered => Outcome::NotSent.delivery_state(world.superseded || left, false),
        };
        world.become_(copy, next);
        Some(())
    }

    fn recover_attempt(&self, world: &mut World, copy: usize, slot: usize) -> Option<()> {
        let attempt = world.copies[copy]?.attempts[slot]?;
        let owner = attempt.owner.filter(|owner| !world.is_alive(*owner))?;
        if attempt.outcome != Outcome::Sending {
            return None;
        }
        match &mut world.rows[owner.worker][owner.number] {
            Row::Dead { left_one: true } => world.blame(Fault::TwoLeftByOneLife),
            row => *row = Row::Dead { left_one: true },
        }
        let place = world.attempt(Try { copy, slot, life: owner });
        if self.keeps(Rule::OwnerLost) {
            (place.outcome, place.owner_lost) = (Outcome::Ambiguous, true);
        } else {
            place.outcome = Outcome::NotSent;
        }
        let outcome = place.outcome;
        if world.delivery(copy).state == DeliveryState::Sending {
            world.delivery(copy).lease = None;
            world.become_(copy, outcome.delivery_state(false, false));
        }
        Some(())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every step")]
fn go(world: &mut World, w: usize, task: Task) -> Option<()> {
    world.workers[w].task = task;
    Some(())
}

fn trouble(world: &mut World) -> Option<()> {
    world.budget.troubles = world.budget.troubles.checked_sub(1)?;
    Some(())
}

fn word(world: &mut World) -> Option<()> {
    world.budget.words = world.budget.words.checked_sub(1)?;
    Some(())
}

/// Pending under this lease.
fn is_ours(world: &mut World, held: Held) -> bool {
    let delivery = world.delivery(held.copy);
    delivery.state == DeliveryState::Pending && delivery.lease.is_some_and(|lease| lease.token == held.token)
}

/// A process frees leases in its present name that its sender does not hold.
#[expect(clippy::unnecessary_wraps, reason = "the shape of every step")]
fn free_unknown(world: &mut World, w: usize) -> Option<()> {
    let me = Life { worker: w, number: world.workers[w].life };
    let held = world.workers[w].task.held().map(|held| held.token);
    let is_unknown = |lease: Lease| lease.owner == me && Some(lease.token) != held;
    for delivery in world.copies.iter_mut().flatten() {
        if delivery.state == DeliveryState::Pending && delivery.lease.is_some_and(is_unknown) {
            delivery.lease = None;
        }
    }
    Some(())
}

/// Reads the permit as it is now, if the lease still stands.
fn render(world: &mut World, w: usize) -> Option<()> {
    let Task::Leased(held) = world.workers[w].task else { return None };
    let stands = world.delivery(held.copy).lease.is_some_and(|lease| lease.token == held.token);
    go(world, w, if stands { Task::Rendered(held, world.permit.version) } else { Task::Idle })
}

/// Refused or broken before the gate: the attempt is written finished; the delivery changes only if it is ours.
fn refused(world: &mut World, w: usize, outcome: Outcome) -> Option<()> {
    let Task::Rendered(held, _) = world.workers[w].task else { return None };
    if is_ours(world, held) {
        let delivery = world.delivery(held.copy);
        delivery.attempt_count += u8::from(outcome == Outcome::Deferred);
        let exhausted = outcome == Outcome::Deferred && delivery.attempt_count >= MAX_ATTEMPTS;
        delivery.lease = None;
        world.become_(held.copy, outcome.delivery_state(false, exhausted));
    }
    go(world, w, Task::Idle)
}

/// What the gate said is written down, in a transaction of its own, if the lease still stands.
fn write_ending(world: &mut World, w: usize) -> Option<()> {
    let Task::Ending(held) = world.workers[w].task else { return None };
    if is_ours(world, held) {
        world.become_(held.copy, DeliveryState::Superseded);
        // A former address ends the copy, anything else the notice.
        world.superseded |= world.on_permit(held.copy);
    }
    go(world, w, Task::Idle)
}

fn decide(world: &mut World, copy: usize, slot: usize, seen: Seen) -> Option<()> {
    if seen == Seen::Deferred {
        trouble(world)?;
    }
    let attempt = world.delivery(copy).attempts[slot].as_mut()?;
    if attempt.seen != Seen::UnderWay {
        return None;
    }
    attempt.seen = seen;
    Some(())
}

fn read_reply(world: &mut World, w: usize) -> Option<()> {
    let Task::Dotted(attempt) = world.workers[w].task else { return None };
    let outcome = match world.attempt(attempt).seen {
        Seen::UnderWay => return None,
        // The dot never arrived: the connection is broken, and that is all that is known.
        Seen::Nothing => Outcome::Ambiguous,
        Seen::Accepted => Outcome::Accepted,
        Seen::Deferred => Outcome::Deferred,
        Seen::Rejected => Outcome::Rejected,
    };
    go(world, w, Task::Known(attempt, outcome))
}

fn come_to_life(world: &mut World, w: usize) -> Option<()> {
    let number = world.workers[w].life + 1;
    *world.rows[w].get_mut(number)? = Row::Young;
    world.workers[w].life = number;
    Some(())
}

/// A row that nobody renews dies: of a crashed process or a former life, or one that was old already.
fn row_dies(world: &mut World, w: usize, number: usize) -> Option<()> {
    let forsaken = number < world.workers[w].life || world.workers[w].task == Task::Crashed;
    match &mut world.rows[w][number] {
        row @ Row::Old => *row = Row::Dead { left_one: false },
        row @ Row::Young if forsaken => *row = Row::Dead { left_one: false },
        _ => return None,
    }
    Some(())
}

fn recover_lease(world: &mut World, copy: usize) -> Option<()> {
    let lease = world.copies[copy]?.lease?;
    if world.copies[copy]?.state != DeliveryState::Pending || world.is_alive(lease.owner) {
        return None;
    }
    let delivery = world.delivery(copy);
    delivery.lease = None;
    delivery.lost_owners += 1;
    if delivery.lost_owners >= LOST_OWNERS_MAX {
        world.become_(copy, DeliveryState::Held);
    }
    Some(())
}

/// A change of the permit, in its own transaction.
#[expect(clippy::unnecessary_wraps, reason = "the shape of every step")]
fn changed(world: &mut World) -> Option<()> {
    world.permit.version += 1;
    judge(world);
    Some(())
}

/// What every change and every scan does: supersede or revive the notice, let its copies follow the addresses.
fn judge(world: &mut World) {
    let notice = world.notice();
    if world.permit.renewed && notice.is_open() && !world.superseded {
        for copy in 0..COPIES {
            if world.copies[copy].is_some_and(|delivery| delivery.is_open()) {
                world.become_(copy, DeliveryState::Superseded);
            }
        }
        world.superseded = true;
    }
    let revivable = matches!(notice, NoticeState::Superseded | NoticeState::Pending | NoticeState::Held);
    if !world.permit.renewed && world.superseded && revivable {
        world.superseded = false;
        wake_or_make(world);
    }
    if !world.permit.renewed && !world.superseded {
        follow_addresses(world);
    }
}

/// The copy that goes to the permit's present address.
fn present(world: &World) -> usize {
    usize::from(world.permit.moved)
}

fn wake_or_make(world: &mut World) {
    let copy = present(world);
    match world.copies[copy].map(|delivery| delivery.state) {
        None => world.copies[copy] = Some(Delivery::NEW),
        Some(DeliveryState::Superseded) => world.become_(copy, DeliveryState::Pending),
        Some(_) => {}
    }
}

fn follow_addresses(world: &mut World) {
    let other = 1 - present(world);
    if world.copies[other].is_some_and(|delivery| delivery.is_open()) {
        world.become_(other, DeliveryState::Superseded);
    }
    let keeps = |delivery: &Delivery| {
        use DeliveryState as S;
        matches!(delivery.state, S::Pending | S::Held | S::Sending | S::Sent | S::Ambiguous)
    };
    if !world.copies.iter().flatten().any(keeps) {
        wake_or_make(world);
    }
}

/// A person's retry of what failed, or release of what is held.
fn restore(world: &mut World, copy: usize, from: DeliveryState) -> Option<()> {
    if world.copies[copy]?.state != from {
        return None;
    }
    let delivery = world.delivery(copy);
    (delivery.attempt_count, delivery.lost_owners) = (0, 0);
    world.become_(copy, DeliveryState::Pending);
    Some(())
}
