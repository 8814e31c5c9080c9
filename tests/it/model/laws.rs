//! What must always hold, and what must be possible at all.

use permit_notifier::domain::{
    attempt::{Outcome, Resolution},
    delivery::DeliveryState,
};
use stateright::Property;

use super::{
    steps::Sending,
    world::{Attempt, Delivery, Row, Seen, Task, Truth, World},
};

type Law = (&'static str, fn(&Sending, &World) -> bool);

pub const ONE_EFFECTIVE: &str = "I2: a delivery has at most one effective attempt";
pub const ONCE: &str = "twice only by a person's word about a conversation that was over";
pub const KNOWN: &str = "I3: what was accepted is sending, accepted or ambiguous";
pub const RIGHT: &str = "I5: what was accepted was owed, and made from the present permit, at its gate";
pub const RULES: &str = "no step breaks a rule about steps";
pub const ALIVE: &str = "no attempt begins under a dead row";
pub const MATCH: &str = "deliveries and attempts tell the same story";
pub const DEATHS: &str = "a delivery loses at most as many owners as died";
pub const LEFT: &str = "I6: a death leaves at most one ambiguous attempt";

pub const ALWAYS: &[Law] = &[
    (ONE_EFFECTIVE, |_, world| {
        world.deliveries().all(|(_, d)| d.attempts().filter(|attempt| attempt.is_effective()).count() <= 1)
    }),
    (ONCE, |_, world| world.deliveries().all(|(_, delivery)| accepted_once(delivery))),
    (KNOWN, |_, world| {
        let known = |a: &Attempt| matches!(a.outcome, Outcome::Sending | Outcome::Accepted | Outcome::Ambiguous);
        world.deliveries().all(|(_, d)| d.attempts().all(|a| a.seen != Seen::Accepted || known(a)))
    }),
    (RIGHT, |_, world| world.deliveries().all(|(_, d)| d.attempts().all(|a| a.seen != Seen::Accepted || a.right))),
    (ALIVE, |_, world| world.deliveries().all(|(_, d)| d.attempts().all(|attempt| attempt.begun_alive))),
    (RULES, |_, world| world.fault.is_none()),
    (MATCH, |_, world| world.deliveries().all(|(_, delivery)| tells_the_same(delivery))),
    (DEATHS, |_, world| world.deliveries().all(|(_, d)| usize::from(d.lost_owners) <= world.deaths())),
    (LEFT, |_, world| {
        let lost = world.deliveries().flat_map(|(_, d)| d.attempts()).filter(|a| a.owner_lost).count();
        lost <= world.rows.iter().flatten().filter(|row| matches!(row, Row::Dead { left_one: true })).count()
    }),
];

/// The model must be able to get there, or it proves nothing.
pub const SOMETIMES: &[Law] = &[
    ("a late owner's 250 replaces owner_lost", |_, world| {
        world.workers.iter().any(|worker| {
            let Task::Known(attempt, Outcome::Accepted) = worker.task else { return false };
            world.copies[attempt.copy].is_some_and(|d| d.attempts[attempt.slot].is_some_and(|a| a.owner_lost))
        })
    }),
    ("superseded in flight and sent all the same", |_, world| {
        world.superseded && world.deliveries().any(|(_, d)| d.state == DeliveryState::Sent)
    }),
    ("a former life's message is accepted", |_, world| {
        world.deliveries().flat_map(|(_, d)| d.attempts()).any(|a| a.owner_lost && a.seen == Seen::Accepted)
    }),
    ("accepted twice, because a person denied what had been accepted", |_, world| twice(world, Truth::Accepted)),
    ("accepted twice, because a person denied what a broken conversation had left behind", |_, world| {
        twice(world, Truth::LeftBehind)
    }),
];

pub fn all() -> Vec<Property<Sending>> {
    let always = ALWAYS.iter().map(|(name, law)| Property::always(name, *law));
    always.chain(SOMETIMES.iter().map(|(name, law)| Property::sometimes(name, *law))).collect()
}

/// The mail server's ledger has a delivery once; more often only beside attempts that a person denied when their
/// conversation was over, and they had been accepted or the server still had them. Neither a true "not delivered" nor
/// one that the program should not have taken yet ever leads to a second message.
fn accepted_once(delivery: &Delivery) -> bool {
    let accepted = || delivery.attempts().filter(|attempt| attempt.seen == Seen::Accepted);
    let over = |truth: Option<Truth>| matches!(truth, Some(Truth::LeftBehind | Truth::Accepted));
    let denied = |a: &&Attempt| a.resolution == Some(Resolution::NotDelivered) && over(a.truth);
    accepted().count() <= 1 + accepted().filter(denied).count()
}

fn twice(world: &World, truth: Truth) -> bool {
    world.deliveries().any(|(_, delivery)| {
        let accepted = || delivery.attempts().filter(|attempt| attempt.seen == Seen::Accepted);
        accepted().count() > 1 && accepted().any(|attempt| attempt.truth == Some(truth))
    })
}

fn tells_the_same(delivery: &Delivery) -> bool {
    let has = |wanted: Outcome| delivery.attempts().any(|attempt| attempt.outcome == wanted);
    let delivered = delivery.attempts().any(|attempt| attempt.resolution == Some(Resolution::Delivered));
    let open = delivery.attempts().any(|a| a.outcome == Outcome::Ambiguous && a.resolution.is_none());
    (delivery.state == DeliveryState::Sending) == has(Outcome::Sending)
        && (delivery.state == DeliveryState::Ambiguous) == open
        && (delivery.state == DeliveryState::Sent) == (has(Outcome::Accepted) || delivered)
}

/// Everything is over: nobody works, nothing is under way, nothing is leased or open, and what is owed was sent,
/// may have been sent, or waits for a person. Nothing is merely pending, nothing owed is merely superseded.
pub fn is_drained(world: &World) -> bool {
    use DeliveryState as S;
    let ends = |delivery: &Delivery| matches!(delivery.state, S::Sent | S::Ambiguous | S::Failed | S::Held);
    let quiet = |delivery: &Delivery| {
        let at_rest = |a: &Attempt| a.seen != Seen::UnderWay && a.outcome != Outcome::Sending;
        delivery.lease.is_none() && delivery.attempts().all(at_rest)
    };
    world.workers.iter().all(|worker| worker.task == Task::Idle)
        && world.deliveries().all(|(_, d)| quiet(d) && (ends(d) || d.state == S::Superseded))
        && (world.permit.renewed || world.deliveries().any(|(_, d)| ends(d)))
}
