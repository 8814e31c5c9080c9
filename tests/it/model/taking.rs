//! What each step does to the world, as `src/store` and the senders do it; none when it cannot be taken now.

use permit_notifier::domain::{
    attempt::{Outcome, Resolution},
    delivery::DeliveryState,
    notice::NoticeState,
};

use super::{
    steps::{LOST_OWNERS_MAX, MAX_ATTEMPTS, Rule, Sending},
    world::{Attempt, COPIES, Delivery, Fault, Held, Lease, Life, Row, Seen, Task, Truth, Try, World},
};

impl Sending {
    pub(super) fn lease(&self, world: &mut World, w: usize, copy: usize, answered: bool) -> Option<()> {
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
    pub(super) fn gate(&self, world: &mut World, w: usize, answered: bool) -> Option<()> {
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

    pub(super) fn ask_row(&self, world: &mut World, w: usize) -> Option<()> {
        let Task::Gated(attempt) = world.workers[w].task else { return None };
        let same_life = attempt.life.number == world.workers[w].life;
        let may_finish = same_life && world.rows[w][attempt.life.number] == Row::Young;
        let goes_on = may_finish || !self.keeps(Rule::DotRow);
        go(world, w, if goes_on { Task::Cleared(attempt) } else { Task::Known(attempt, Outcome::NotSent) })
    }

    pub(super) fn settle(&self, world: &mut World, w: usize, answered: bool) -> Option<()> {
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
    pub(super) fn resolve(&self, world: &mut World, copy: usize, slot: usize, resolution: Resolution) -> Option<()> {
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

    pub(super) fn recover_attempt(&self, world: &mut World, copy: usize, slot: usize) -> Option<()> {
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
pub(super) fn go(world: &mut World, w: usize, task: Task) -> Option<()> {
    world.workers[w].task = task;
    Some(())
}

pub(super) fn trouble(world: &mut World) -> Option<()> {
    world.budget.troubles = world.budget.troubles.checked_sub(1)?;
    Some(())
}

pub(super) fn word(world: &mut World) -> Option<()> {
    world.budget.words = world.budget.words.checked_sub(1)?;
    Some(())
}

/// Pending under this lease.
pub(super) fn is_ours(world: &mut World, held: Held) -> bool {
    let delivery = world.delivery(held.copy);
    delivery.state == DeliveryState::Pending && delivery.lease.is_some_and(|lease| lease.token == held.token)
}

/// A process frees leases in its present name that its sender does not hold.
#[expect(clippy::unnecessary_wraps, reason = "the shape of every step")]
pub(super) fn free_unknown(world: &mut World, w: usize) -> Option<()> {
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
pub(super) fn render(world: &mut World, w: usize) -> Option<()> {
    let Task::Leased(held) = world.workers[w].task else { return None };
    let stands = world.delivery(held.copy).lease.is_some_and(|lease| lease.token == held.token);
    go(world, w, if stands { Task::Rendered(held, world.permit.version) } else { Task::Idle })
}

/// Refused or broken before the gate: the attempt is written finished; the delivery changes only if it is ours.
pub(super) fn refused(world: &mut World, w: usize, outcome: Outcome) -> Option<()> {
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
pub(super) fn write_ending(world: &mut World, w: usize) -> Option<()> {
    let Task::Ending(held) = world.workers[w].task else { return None };
    if is_ours(world, held) {
        world.become_(held.copy, DeliveryState::Superseded);
        // A former address ends the copy, anything else the notice.
        world.superseded |= world.on_permit(held.copy);
    }
    go(world, w, Task::Idle)
}

pub(super) fn decide(world: &mut World, copy: usize, slot: usize, seen: Seen) -> Option<()> {
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

pub(super) fn read_reply(world: &mut World, w: usize) -> Option<()> {
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

pub(super) fn come_to_life(world: &mut World, w: usize) -> Option<()> {
    let number = world.workers[w].life + 1;
    *world.rows[w].get_mut(number)? = Row::Young;
    world.workers[w].life = number;
    Some(())
}

/// A row that nobody renews dies: of a crashed process or a former life, or one that was old already.
pub(super) fn row_dies(world: &mut World, w: usize, number: usize) -> Option<()> {
    let forsaken = number < world.workers[w].life || world.workers[w].task == Task::Crashed;
    match &mut world.rows[w][number] {
        row @ Row::Old => *row = Row::Dead { left_one: false },
        row @ Row::Young if forsaken => *row = Row::Dead { left_one: false },
        _ => return None,
    }
    Some(())
}

pub(super) fn recover_lease(world: &mut World, copy: usize) -> Option<()> {
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
pub(super) fn changed(world: &mut World) -> Option<()> {
    world.permit.version += 1;
    judge(world);
    Some(())
}

/// What every change and every scan does: supersede or revive the notice, let its copies follow the addresses.
pub(super) fn judge(world: &mut World) {
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
pub(super) fn restore(world: &mut World, copy: usize, from: DeliveryState) -> Option<()> {
    if world.copies[copy]?.state != from {
        return None;
    }
    let delivery = world.delivery(copy);
    (delivery.attempt_count, delivery.lost_owners) = (0, 0);
    world.become_(copy, DeliveryState::Pending);
    Some(())
}
