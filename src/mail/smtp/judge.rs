//! What a reply, or its absence, makes of an attempt. The only place that knows; everything else asks it.

use super::{
    reply::Reply,
    stream::{Broken, Noise, Why},
};
use crate::{
    domain::attempt::{Outcome, Phase},
    mail::Ended,
};

/// No complete reply within the limit.
pub const TIMED_OUT: &str = "timed_out";
/// The connection broke.
pub const CONNECTION_LOST: &str = "connection_lost";
/// A reply that is none of those the protocol allows here, or no reply at all.
pub const UNEXPECTED_REPLY: &str = "unexpected_reply";

/// A reply other than the one hoped for, before the dot.
pub(super) fn refusal(phase: Phase, reply: &Reply) -> Ended {
    let enhanced = reply.enhanced_code();
    let detail = enhanced.as_deref().and_then(|code| code.split_once('.')).map(|(_, detail)| detail);
    let (outcome, fault) = match phase {
        // Before the recipient nothing is about this message.
        Phase::Connect | Phase::Tls | Phase::Banner | Phase::Ehlo | Phase::Auth | Phase::Mail => {
            (Outcome::NotSent, true)
        }
        _ if reply.code == 421 => (Outcome::NotSent, true),
        // The sender's address is at fault, whoever the recipient is.
        Phase::Rcpt | Phase::Data if matches!(detail, Some("1.7" | "1.8")) && is_no(reply) => (Outcome::NotSent, true),
        Phase::Rcpt | Phase::Data if reply.is_class(4) => (Outcome::Deferred, false),
        Phase::Rcpt | Phase::Data if reply.is_class(5) => (Outcome::Rejected, false),
        _ => (Outcome::NotSent, false),
    };
    // A "no" while the body is under way is no answer to anything we asked.
    let expected = is_no(reply) && phase != Phase::Body;
    finish(Ended::new(outcome, phase), fault, expected, reply)
}

/// The reply to the dot.
pub(super) fn verdict(reply: &Reply) -> Ended {
    let blames_us = reply.enhanced_code().is_some_and(|code| code.starts_with("4.7."));
    let (outcome, fault) = match reply.code {
        250 => (Outcome::Accepted, false),
        421 => (Outcome::Deferred, true),
        400..=499 => (Outcome::Deferred, blames_us),
        500..=599 => (Outcome::Rejected, false),
        _ => (Outcome::Ambiguous, false),
    };
    finish(Ended::new(outcome, Phase::Dot), fault, outcome != Outcome::Ambiguous, reply)
}

fn is_no(reply: &Reply) -> bool {
    reply.is_class(4) || reply.is_class(5)
}

fn finish(mut ended: Ended, fault: bool, expected: bool, reply: &Reply) -> Ended {
    ended.transport_fault = fault;
    ended.smtp_code = Some(reply.code);
    ended.enhanced_code = reply.enhanced_code();
    ended.response = Some(reply.text());
    ended.retry_after = reply.retry_after();
    if expected { ended } else { ended.because(UNEXPECTED_REPLY) }
}

/// No reply, before the dot.
pub(super) fn broken(phase: Phase, broken: Broken) -> Ended {
    let fault = !matches!(phase, Phase::Rcpt | Phase::Data | Phase::Body);
    let ended = Ended::new(Outcome::NotSent, phase).because(reason(broken.why)).saying(broken.detail);
    Ended { transport_fault: fault, ..ended }
}

/// No reply to the dot.
pub(super) fn unknown(broken: Broken) -> Ended {
    Ended::new(Outcome::Ambiguous, Phase::Dot).because(reason(broken.why)).saying(broken.detail)
}

/// The server spoke or left in the middle of a message, before its dot. A refusal that came before the command was
/// sent does not answer it: it is no reason to give a message up, or to think ill of an address.
pub(super) fn noise(phase: Phase, noise: Noise) -> Ended {
    match noise.reply {
        Some(reply) => {
            let ended = refusal(phase, &reply).because(UNEXPECTED_REPLY);
            Ended { outcome: Outcome::NotSent, ..ended }
        }
        None => broken(phase, Broken { why: Why::Lost, detail: noise.detail }),
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::TimedOut => TIMED_OUT,
        Why::Lost => CONNECTION_LOST,
        Why::Malformed => UNEXPECTED_REPLY,
    }
}
