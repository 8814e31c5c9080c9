//! The server misbehaves with one message: the database says what the ledger says.

use chrono::TimeDelta;

use super::{agrees, due, hasty, holder};
use crate::support::{
    postbox::Postbox,
    smtp_server::{Act, At, Rule, SmtpServer},
};

/// The server has accepted the message and says only half of it. The reply to the next MAIL completes it to a 250 that
/// nobody can tell from a true one, until a later reply is out of step; a busy machine may not wait that long. Both
/// ends are honest, for the server has the message.
const HALF_A_REPLY: Act = Act::AcceptThenSay(HALF);
const HALF: &str = "250-half of a reply\r\n";

#[tokio::test]
async fn without_a_reply_to_the_dot_the_outcome_is_ambiguous_and_nothing_is_sent_again() {
    let acts = [
        Act::Cut,
        Act::Reset,
        Act::AcceptThenCut,
        Act::Say("354 go ahead\r\n"),
        Act::AcceptThenSay("354 go ahead\r\n"),
        Act::AcceptThenSay("what was that?\r\n"),
        HALF_A_REPLY,
        Act::Stall,
    ];
    let post = Postbox::open().await;
    due(&post, acts.len() + 1).await;
    let rules = acts.iter().enumerate();
    let server =
        SmtpServer::with(rules.map(|(number, act)| Rule::new(At::Dot, act.clone()).for_recipient(&holder(number))));
    // A busy machine may be too slow for the little patience before a dot; such a copy goes in a later pass.
    let mut ends = (0, 0);
    for _ in 0..5 {
        let (report, is_down) = post.dispatch_with(hasty(&server)).await;
        ends = (ends.0 + report.accepted, ends.1 + report.ambiguous);
        if ends.0 + ends.1 == 9 {
            assert!(!is_down);
            break;
        }
        post.clock.advance(TimeDelta::hours(7));
    }
    assert!(matches!(ends, (1, 8) | (2, 7)), "{ends:?}");
    server.behave([]);
    for _ in 0..3 {
        post.clock.advance(TimeDelta::hours(7));
        let (report, _) = post.dispatch_with(hasty(&server)).await;
        assert_eq!((report.accepted, report.ambiguous), (0, 0));
    }
    for (number, act) in acts.iter().enumerate() {
        let copy = post.copy_to(&holder(number)).await;
        let is_completed = matches!(act, Act::AcceptThenSay(half) if *half == HALF) && copy.end() == "sent";
        assert!(copy.end() == "ambiguous" || is_completed, "{act:?}: {}", copy.end());
        assert_eq!(post.outcomes(copy.id).await.len(), 1, "{act:?}");
        assert!(copy.payload_sha256.is_some(), "{act:?}");
    }
    assert_eq!(server.count("."), acts.len() + 1, "each body went once");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_refusal_of_the_dot_is_definite() {
    let acts = [
        (Act::Say("451 4.3.0 later\r\n"), "pending", "deferred", 1),
        (Act::SayThenCut("452 4.2.2 full\r\n"), "pending", "deferred", 1),
        (Act::Say("554 5.6.0 no\r\n"), "failed refused", "rejected", 0),
        (Act::Say("571 5.7.1 never\r\n"), "failed refused", "rejected", 0),
        (Act::Say("550-no\r\n550 5.7.1 never\r\n"), "failed refused", "rejected", 0),
    ];
    let post = Postbox::open().await;
    due(&post, acts.len()).await;
    let rules = acts.iter().enumerate();
    let server = SmtpServer::with(
        rules.map(|(number, (act, ..))| Rule::new(At::Dot, act.clone()).for_recipient(&holder(number))),
    );
    post.dispatch_with(hasty(&server)).await;
    for (number, (act, end, outcome, count)) in acts.iter().enumerate() {
        let copy = post.copy_to(&holder(number)).await;
        assert_eq!((copy.end().as_str(), copy.attempt_count), (*end, *count), "{act:?}");
        assert_eq!(post.outcomes(copy.id).await, [*outcome], "{act:?}");
        let attempts = post.attempts().await;
        let attempt = attempts.iter().find(|attempt| attempt.delivery_id == copy.id).unwrap();
        assert_eq!(copy.last_error, attempt.response, "{act:?}");
        assert!(copy.last_error.is_some() && copy.payload_sha256 == attempt.payload_sha256, "{act:?}");
        let wait = (copy.next_attempt_at - post.moment().now).num_seconds();
        assert_eq!((30..=60).contains(&wait), *outcome == "deferred", "{act:?}: {wait} s");
    }
    agrees(&post, &server).await;
    server.behave([]);
    post.clock.advance(TimeDelta::minutes(1));
    assert_eq!(post.dispatch_with(hasty(&server)).await.0.accepted, 2, "only what was deferred");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_fault_at_one_recipient_is_that_notices_own_and_stops_nobody_else() {
    let acts = [
        (At::Rcpt, Act::Cut, "pending", "not_sent connection_lost"),
        (At::Rcpt, Act::Say("450 4.2.1 later\r\n"), "pending", "deferred"),
        (At::Rcpt, Act::Say("450 4.7.1 greylisted\r\n"), "pending", "deferred"),
        (At::Rcpt, Act::Say("550 5.2.1 disabled\r\n"), "failed refused", "rejected"),
        (At::Data, Act::Cut, "pending", "not_sent connection_lost"),
        (At::Data, Act::Say("451 4.3.0 later\r\n"), "pending", "deferred"),
        (At::Data, Act::Say("554 5.5.0 no\r\n"), "failed refused", "rejected"),
        // So small a body is gone with its dot before the server leaves: then nobody can know.
        (At::Body, Act::Cut, "ambiguous", "ambiguous connection_lost"),
    ];
    for pipelining in [true, false] {
        let post = Postbox::open().await;
        due(&post, acts.len() + 3).await;
        let server = server_that(
            pipelining,
            acts.iter()
                .enumerate()
                .map(|(number, (at, act, ..))| Rule::new(*at, act.clone()).for_recipient(&holder(number)))
                .collect(),
        );
        let (report, is_down) = post.dispatch_with(hasty(&server)).await;
        assert_eq!((report.accepted, is_down), (3, false), "{report:?}");
        for (number, (at, act, end, outcome)) in acts.iter().enumerate() {
            let copy = post.copy_to(&holder(number)).await;
            assert_eq!(copy.end(), *end, "{at:?} {act:?}");
            assert_eq!(post.outcomes(copy.id).await, [*outcome], "{at:?} {act:?}");
            assert!(copy.last_error.is_some() && copy.payload_sha256.is_some(), "{at:?} {act:?}");
            assert_eq!(copy.attempt_count, i32::from(*outcome == "deferred"), "{at:?} {act:?}");
        }
        agrees(&post, &server).await;
        server.behave([]);
        post.clock.advance(TimeDelta::minutes(1));
        assert_eq!(post.dispatch_with(hasty(&server)).await.0.accepted, 5, "what is known not to be there, and may go");
        agrees(&post, &server).await;
    }
}

#[tokio::test]
async fn a_fault_at_mail_is_the_transports_and_costs_the_notice_nothing() {
    let acts = [
        (At::Mail, Act::Cut),
        (At::Mail, Act::Stall),
        (At::Mail, Act::Say("451 4.3.0 later\r\n")),
        (At::Mail, Act::Say("550 5.7.1 not you\r\n")),
        (At::Rcpt, Act::Say("421 4.3.2 closing\r\n")),
        (At::Rcpt, Act::Say("550 5.1.8 bad sender\r\n")),
        (At::Data, Act::Say("421 4.3.2 closing\r\n")),
        (At::Data, Act::Say("550 5.1.8 bad sender\r\n")),
        (At::Dot, Act::Say("421 4.3.2 closing\r\n")),
        (At::Dot, Act::Say("451 4.7.0 slow down\r\n")),
    ];
    let mut post = Postbox::open().await;
    post.max_attempts = 1;
    for (number, (at, act)) in acts.iter().enumerate() {
        post.permit(&holder(number)).await;
        let server = SmtpServer::with([Rule::new(*at, act.clone()).once()]);
        let (report, is_down) = post.dispatch_with(hasty(&server)).await;
        assert_eq!((report.accepted, is_down), (0, true), "{at:?} {act:?}");
        let copy = post.copy_to(&holder(number)).await;
        assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", 0), "{at:?} {act:?}");
        assert_eq!(
            post.count("SELECT count(*) FROM transport WHERE paused_until IS NOT NULL").await,
            1,
            "{at:?} {act:?}"
        );
        assert!(server.accepted().is_empty());
        server.behave([]);
        server.release();
        post.clock.advance(TimeDelta::minutes(1));
        post.breaker_lets_probe().await;
        let (report, is_down) = post.dispatch_with(hasty(&server)).await;
        assert_eq!((report.accepted, is_down), (1, false), "{at:?} {act:?}");
        assert_eq!(post.copy_to(&holder(number)).await.end(), "sent");
        assert_eq!(server.accepted().len(), 1);
        let attempts = post.attempts().await;
        let fault = attempts.iter().find(|attempt| attempt.delivery_id == copy.id && attempt.number == 1).unwrap();
        assert!(fault.transport_fault, "{at:?} {act:?}: {fault:?}");
    }
    post.check_states().await;
}

#[tokio::test]
async fn a_server_that_leaves_after_each_message_costs_no_attempt_and_opens_no_breaker() {
    const NOTICES: usize = 12;
    let acts = [
        Act::Cut,
        Act::Reset,
        Act::SayThenCut("421 4.7.0 enough for one connection\r\n"),
        Act::Say("421 4.4.2 idle too long\r\n"),
        Act::SayThenCut("221 2.0.0 bye\r\n"),
    ];
    for (act, pipelining) in acts.iter().flat_map(|act| [(act, true), (act, false)]) {
        let post = Postbox::open().await;
        due(&post, NOTICES).await;
        let server = server_that(pipelining, vec![Rule::new(At::Mail, act.clone()).for_message(1)]);
        let (report, is_down) = post.dispatch_with(hasty(&server)).await;
        assert_eq!((report.accepted, report.not_sent, is_down), (NOTICES as u64, 0, false), "{act:?} {pipelining}");
        let attempts = post.attempts().await;
        assert_eq!(attempts.len(), NOTICES, "{act:?} {pipelining}");
        assert!(attempts.iter().all(|attempt| attempt.outcome == "accepted"), "{attempts:?}");
        let opened = "SELECT count(*) FROM transport WHERE paused_until IS NOT NULL OR closed_at IS NOT NULL";
        assert_eq!(post.count(opened).await, 0, "{act:?} {pipelining}");
        assert_eq!(server.accepted().len(), NOTICES);
        assert_eq!(server.connections(), NOTICES, "one for each message");
        agrees(&post, &server).await;
    }
}

fn server_that(pipelining: bool, rules: Vec<Rule>) -> SmtpServer {
    use crate::support::smtp_server::Behaviour;
    SmtpServer::start(Behaviour { pipelining, rules, ..Behaviour::default() })
}
