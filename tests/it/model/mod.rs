//! A small model of sending, checked exhaustively: one notice, two processes, a mail server, and everything that
//! can come between two of their steps. The rows change as `src/store` changes them; what an outcome makes of a
//! delivery, what a delivery may become and what a notice is, the model asks the product.
//!
//! Two rules of the model the code must have as well: a lease needs a living row, and the gate compares the
//! notice's period with the permit's. Two tests show what happens without them.
//!
//! One thing is taken on trust: a server decides about a message within the ten minutes that RFC 5321 gives it. One that
//! takes longer, or that still has a message when the connection breaks, can be made to send twice by a person's word,
//! as with every sender of mail (RFC 1047).
//!
//! Left out: `send_by`, suppression, the breaker, letters, bounces, cancelling. Each either ends a delivery at the
//! gate the way superseding does, or comes after the send.

mod graph;
mod laws;
mod steps;
mod taking;
mod world;

use std::{collections::BTreeSet, thread};

use permit_notifier::domain::{attempt::Resolution, delivery::DeliveryState as S};
use stateright::{Checker as _, HasDiscoveries, Model as _, Path};

use graph::Graph;
use laws::{ALIVE, DEATHS, KNOWN, MATCH, ONCE, ONE_EFFECTIVE, RIGHT, RULES};
use steps::{Rule, Sending, Step};
use world::{Budget, Seen};

/// One renewal, which may be changed back; one word of a person.
const QUIET: Budget = Budget { renewals: 1, moves: 0, crashes: [0, 0], lapses: [0, 0], troubles: 0, words: 1 };
/// One process is taken for dead and goes on, the other crashes.
const SLOW_OWNER: Budget = Budget { crashes: [0, 1], lapses: [1, 0], ..QUIET };
/// What may go wrong together. Everything at once is too much to look at; these overlap.
const STORIES: [(&str, Budget); 7] = [
    ("each process crashes once", Budget { crashes: [1, 1], ..QUIET }),
    ("one is taken for dead and goes on, the other crashes", SLOW_OWNER),
    ("a slow owner and one trouble", Budget { lapses: [1, 0], troubles: 1, ..QUIET }),
    ("a crash and two troubles", Budget { crashes: [1, 0], troubles: 2, ..QUIET }),
    ("the address changes and a process crashes", Budget { renewals: 0, moves: 1, crashes: [1, 0], ..QUIET }),
    ("three owners die, then a person releases", Budget { renewals: 0, crashes: [1, 1], lapses: [1, 0], ..QUIET }),
    ("three owners die, then a renewal", Budget { words: 0, crashes: [1, 1], lapses: [1, 0], ..QUIET }),
];

/// Moves of the product's table that the model does not make, and why.
const LEFT_OUT: [(S, &[S], &str); 11] = [
    (S::Pending, &[S::Sent], "a letter is posted"),
    (S::Pending, &[S::Cancelled], "a person decides against it"),
    (S::Pending, &[S::Suppressed, S::Skipped], "ended at the gate like a superseded one, for other reasons"),
    (S::Held, &[S::Suppressed, S::Skipped, S::Cancelled], "as from pending"),
    (S::Sending, &[S::Skipped], "its last day passes while it is in flight"),
    (S::Ambiguous, &[S::Bounced], "bounces are evidence after the send"),
    (S::Sent, &[S::Bounced], "bounces are evidence after the send"),
    (S::Failed, &[S::Cancelled], "a person gives up"),
    (S::Suppressed, &[S::Pending, S::Held, S::Superseded], "no suppression in the model"),
    (S::Superseded, &[S::Suppressed], "no suppression in the model"),
    (S::Superseded, &[S::Held, S::Skipped], "the brake on revivals; lateness of a copy whose address left"),
];

#[test]
fn every_law_holds_in_every_story_and_there_is_always_a_way_out() {
    let (even, odd) = thread::scope(|scope| {
        let odd = scope.spawn(|| STORIES.iter().skip(1).step_by(2).map(tell).collect::<Vec<_>>());
        (STORIES.iter().step_by(2).map(tell).collect::<Vec<_>>(), odd.join().expect("the odd stories"))
    });
    let taken: BTreeSet<(S, S)> = even.into_iter().chain(odd).flatten().collect();
    let left_out: BTreeSet<(S, S)> =
        LEFT_OUT.iter().flat_map(|(from, to, _)| to.iter().map(|to| (*from, *to))).collect();
    let pairs = S::ALL.iter().flat_map(|from| S::ALL.iter().map(|to| (*from, *to)));
    let table: BTreeSet<(S, S)> = pairs.filter(|(from, to)| from.may_become(*to)).collect();
    assert_eq!(taken.intersection(&left_out).collect::<Vec<_>>(), Vec::<&(S, S)>::new(), "left out, but taken");
    assert_eq!(&taken | &left_out, table, "the model's moves and those left out are the product's table");
}

/// Tells one story; says which moves deliveries made in it.
fn tell((name, budget): &(&str, Budget)) -> BTreeSet<(S, S)> {
    let model = Sending { budget: *budget, without: &[] };
    let graph = Graph::of(&model);
    println!("{name}: {} states", graph.worlds.len());
    for (law, holds) in laws::ALWAYS {
        let broken = graph.worlds.iter().position(|world| !holds(&model, world));
        assert!(broken.is_none(), "{name}: {law}: {:?}", broken.map(|at| graph.way_to(at)));
    }
    let lost = graph.first_lost();
    assert!(lost.is_none(), "{name}: I6: no way out: {:?}", lost.map(|at| graph.way_to(at)));
    graph.moves
}

#[test]
fn the_checker_counts_as_many_states_and_reaches_what_must_be_possible() {
    let model = Sending { budget: Budget { lapses: [1, 0], troubles: 1, ..QUIET }, without: &[] };
    let checker = model.checker().spawn_bfs().join();
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), Graph::of(&model).worlds.len());
}

/// Looks for a breach of `law` with some rules left out.
fn breach(law: &'static str, budget: Budget, without: &'static [Rule]) -> Option<Vec<Step>> {
    let found = HasDiscoveries::AllOf([law].into());
    let checker = Sending { budget, without }.checker().finish_when(found).spawn_bfs().join();
    let steps = checker.discovery(law).map(Path::into_actions);
    println!("without {without:?}, {law}: {steps:?}");
    steps
}

#[test]
fn without_the_gate_wrong_mail_goes_out() {
    assert!(breach(RIGHT, SLOW_OWNER, &[Rule::GatePermit]).is_some());
}

/// An ambiguous notice is not open, so a renewal does not stamp it; if its late owner then says that nothing was
/// sent, only the gate can see that it is of a former period.
#[test]
fn without_the_period_at_the_gate_a_renewed_permit_is_reminded() {
    let by_itself = Budget { words: 0, crashes: [0, 0], ..SLOW_OWNER };
    assert!(breach(RIGHT, by_itself, &[Rule::GatePeriod]).is_some());
    let by_a_person = Budget { crashes: [1, 0], ..QUIET };
    assert!(breach(RIGHT, by_a_person, &[Rule::GatePeriod]).is_some());
}

/// The index is behind the other rules: alone it is not missed; where one of them fails, it holds the promise.
#[test]
fn without_the_index_a_second_fault_sends_twice() {
    let budget = Budget { renewals: 0, lapses: [1, 0], ..QUIET };
    for without in [&[Rule::UniqueIndex][..], &[Rule::GateRow, Rule::GateDelivery], &[Rule::LeasePending]] {
        let both = HasDiscoveries::AllOf([ONE_EFFECTIVE, ONCE].into());
        let checker = Sending { budget, without }.checker().finish_when(both).spawn_bfs().join();
        assert!([ONE_EFFECTIVE, ONCE].iter().all(|law| checker.discovery(law).is_none()), "without {without:?}");
    }
    assert!(breach(ONE_EFFECTIVE, budget, &[Rule::LeasePending, Rule::UniqueIndex]).is_some());
    assert!(breach(ONCE, budget, &[Rule::LeasePending, Rule::UniqueIndex]).is_some());
    assert!(breach(ONE_EFFECTIVE, budget, &[Rule::GateRow, Rule::GateDelivery, Rule::UniqueIndex]).is_some());
}

#[test]
fn without_the_process_row_the_dead_go_on() {
    assert!(breach(ALIVE, SLOW_OWNER, &[Rule::GateRow]).is_some());
    assert!(breach(ONCE, SLOW_OWNER, &[Rule::DotRow]).is_some());
}

/// Known and not to be closed from our side: a process that is stopped between the question and the write for longer
/// than half a lease writes its dot although a person has said, truly, that nothing was delivered.
#[test]
fn a_stop_between_question_and_dot_is_the_one_gap() {
    let budget = Budget { renewals: 0, lapses: [1, 0], ..QUIET };
    assert!(breach(ONCE, budget, &[Rule::DotAtOnce]).is_some());
}

#[test]
fn a_settle_that_looks_at_the_delivery_tells_lies() {
    assert!(breach(RULES, SLOW_OWNER, &[Rule::SettleByAttempt]).is_some());
    assert!(breach(MATCH, SLOW_OWNER, &[Rule::SettleByAttempt]).is_some());
}

#[test]
fn sending_again_what_a_dead_process_left_sends_twice() {
    assert!(breach(KNOWN, SLOW_OWNER, &[Rule::OwnerLost]).is_some());
    assert!(breach(ONCE, SLOW_OWNER, &[Rule::OwnerLost]).is_some());
}

/// A process that was only slow or stopped is taken for dead after its dot. Denied at once, its message is sent again
/// and accepted, and then the server takes the first one too.
#[test]
fn denying_what_may_still_be_under_way_sends_twice_by_our_own_doing() {
    let budget = Budget { renewals: 0, lapses: [1, 0], ..QUIET };
    assert!(breach(ONCE, budget, &[]).is_none());
    let steps = breach(ONCE, budget, &[Rule::DenyOver]).expect("a counterexample");
    let denied = steps.iter().position(|step| matches!(step, Step::Resolve(_, _, Resolution::NotDelivered)));
    let lost = steps.iter().position(|step| matches!(step, Step::RecoverAttempt(..)));
    let accepted: Vec<usize> =
        (0..steps.len()).filter(|at| matches!(steps[*at], Step::Decide(_, _, Seen::Accepted))).collect();
    assert!(lost < denied && accepted.iter().all(|at| Some(*at) > denied), "{steps:?}");
    assert_eq!(accepted.len(), 2, "{steps:?}");
}

/// One lapse is counted as many deaths: what was leased under a dead row is recovered, and leased under it again.
#[test]
fn leasing_under_a_dead_row_blames_the_delivery() {
    let budget = Budget { renewals: 0, words: 0, lapses: [1, 0], ..QUIET };
    assert!(breach(DEATHS, budget, &[Rule::LeaseRow]).is_some());
}
