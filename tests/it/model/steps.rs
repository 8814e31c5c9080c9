//! What can happen. Every step is one transaction, or one thing that one process or the mail server does alone;
//! between two steps of one process anything may happen elsewhere, which is how a process is slow or stopped.

use permit_notifier::domain::{
    attempt::{Outcome, Resolution},
    delivery::DeliveryState,
};
use stateright::Model;

use super::{
    laws,
    taking::{
        changed, come_to_life, decide, free_unknown, go, is_ours, judge, read_reply, recover_lease, refused, render,
        restore, row_dies, trouble, word, write_ending,
    },
    world::{Budget, COPIES, LIVES, Row, Seen, Task, WORKERS, World},
};

/// Attempts that the budget of a delivery allows.
pub(super) const MAX_ATTEMPTS: u8 = 2;
/// Owners that a delivery may lose between lease and gate.
pub(super) const LOST_OWNERS_MAX: u8 = 3;

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
    pub(super) fn keeps(&self, rule: Rule) -> bool {
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
}
