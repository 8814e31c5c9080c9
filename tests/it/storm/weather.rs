//! How the mail server misbehaves for a while.

use std::time::Duration;

use fastrand::Rng;

use crate::support::smtp_server::{Act, At, Rule};

/// Oftener where it says less of the server than of one message: after other faults everybody waits.
const PHASES: [At; 16] = [
    At::Connect,
    At::Banner,
    At::Ehlo,
    At::Mail,
    At::Rset,
    At::Rcpt,
    At::Rcpt,
    At::Rcpt,
    At::Data,
    At::Data,
    At::Body,
    At::Body,
    At::Dot,
    At::Dot,
    At::Dot,
    At::Dot,
];

/// Replies that are none, or only the half of one.
const BROKEN: [&str; 6] = ["25", "250-", "250-2.0.0 the first line\r\n", "250 2.0.0 no line e", "4", "what\r\n"];
const CLOSING: &str = "421 4.3.2 closing\r\n";

/// What a server that is well may answer in this phase.
fn refusals(at: At) -> &'static [&'static str] {
    match at {
        At::Banner => &["554 5.3.2 not today\r\n", "421 4.3.2 not now\r\n"],
        At::Ehlo => &["451 4.3.0 later\r\n", "550 5.7.1 no\r\n"],
        At::Mail => &["451 4.3.0 later\r\n", "450 4.7.1 slower\r\n", "550 5.7.1 no\r\n"],
        At::Rcpt => &[
            "450 4.2.0 busy\r\n",
            "450 4.7.1 greylisted\r\n",
            "451 4.3.0 later\r\n",
            "550 5.7.1 policy\r\n",
            "550 5.2.1 disabled\r\n",
            "550 5.1.8 bad sender\r\n",
        ],
        At::Data => &["451 4.3.0 later\r\n", "554 5.5.1 no valid recipients\r\n"],
        At::Dot => &["451 4.3.0 later\r\n", "452 4.3.1 full\r\n", "451 4.7.1 slower\r\n", "554 5.6.0 not this\r\n"],
        _ => &[CLOSING],
    }
}

fn act(at: At, random: &mut Rng) -> Act {
    // Nothing may be said inside a body; a server that closes says so and is gone.
    if at == At::Body {
        return match random.u8(0..4) {
            0 => Act::Cut,
            1 => Act::Reset,
            // Less than half the shortest lease, so that what was written in time is read before its owner counts as lost.
            2 => Act::Late(Duration::from_millis(random.u64(5..700))),
            _ => Act::SayThenCut(CLOSING),
        };
    }
    match random.u8(0..14) {
        0 => Act::Cut,
        1 => Act::Reset,
        2 => Act::Late(Duration::from_millis(random.u64(5..400))),
        // Longer than anybody waits.
        3 => Act::Late(Duration::from_millis(1100)),
        4 => Act::AnswerThenCut,
        5 => Act::Say(CLOSING),
        6 => Act::SayThenCut(CLOSING),
        7 => Act::Say(random.choice(BROKEN).expect("some")),
        8 => Act::SayThenCut(random.choice(BROKEN).expect("some")),
        9 => Act::Add("250 2.0.0 and one more\r\n"),
        10 | 11 if at == At::Dot => Act::AcceptThenCut,
        _ => Act::Say(random.choice(refusals(at)).expect("some")),
    }
}

/// Rules for the next moments; none at all now and then.
pub fn rules(random: &mut Rng) -> Vec<Rule> {
    let mut rules = Vec::new();
    for _ in 0..random.usize(0..9) {
        let at = *random.choice(&PHASES).expect("some");
        let rule = Rule::new(at, act(at, random));
        rules.push(match random.u8(0..4) {
            0 => rule.for_message(random.usize(0..4)),
            1 => rule.for_message(random.usize(0..4)).once(),
            _ => rule.once(),
        });
    }
    rules
}
