//! Connections that are used again, worn out, closed by the server, or left in the middle of something.

use std::time::Duration;

use permit_notifier::{
    domain::attempt::Outcome,
    mail::{Mailer as _, MayFinish, smtp::Limits},
};

use super::{assert_ledger_agrees, limits, line, mailer, message, send, session};
use crate::support::smtp_server::{Act, At, Behaviour, Rule, SmtpServer};

#[tokio::test]
async fn an_idle_connection_that_the_server_gave_up_is_replaced_without_an_attempt() {
    for (unasked, then_cut) in [
        ("421 4.4.2 idle too long\r\n", true),
        ("421 4.4.2 idle too long\r\n", false),
        ("221 2.0.0 bye\r\n", true),
        ("250 2.0.0 what was I saying\r\n", false),
        ("25", false),
        ("", true),
    ] {
        let server = SmtpServer::start(Behaviour::default());
        let mut session = session(&server);
        let (first, second) = (message("ann@bakery.example"), message("bob@bakery.example"));
        let before = send(&mut *session, &first).await;
        server.say_unasked(unasked, then_cut);
        let after = send(&mut *session, &second).await;
        assert_eq!(after.outcome, Outcome::Accepted, "{unasked:?}: {after:?}");
        assert_eq!((server.connections(), server.count("MAIL")), (2, 2), "{unasked:?}");
        assert_ledger_agrees(&server, &[(&first, &before), (&second, &after)]);
    }
}

/// What servers do at the next MAIL of a connection that they want no more of.
fn partings() -> [Act; 7] {
    [
        Act::Cut,
        Act::Reset,
        Act::SayThenCut("421 4.7.0 enough for one connection\r\n"),
        Act::Say("421 4.4.2 idle too long\r\n"),
        Act::SayThenCut("221 2.0.0 bye\r\n"),
        Act::Say("221 2.0.0 bye\r\n"),
        Act::SayThenCut("42"),
    ]
}

#[tokio::test]
async fn a_used_connection_that_the_server_gives_up_at_mail_is_replaced_without_an_attempt() {
    for act in partings() {
        for pipelining in [false, true] {
            let rules = vec![Rule::new(At::Mail, act.clone()).for_message(1).once()];
            let server = SmtpServer::start(Behaviour { pipelining, rules, ..Behaviour::default() });
            let mailer = mailer(&server.url(), limits());
            let mut session = mailer.session();
            let (first, second) = (message("ann@bakery.example"), message("bob@bakery.example"));
            let before = send(&mut *session, &first).await;
            let after = send(&mut *session, &second).await;
            assert_eq!(line(&after), "accepted dot - 250", "{act:?} {pipelining}");
            assert_eq!(server.connections(), 2, "{act:?} {pipelining}");
            assert_ledger_agrees(&server, &[(&first, &before), (&second, &after)]);
            assert!(!mailer.sends_one_at_a_time(), "{act:?}");
        }
    }
}

#[tokio::test]
async fn a_next_message_at_whose_mail_the_server_leaves_is_offered_anew() {
    for act in partings() {
        let server = SmtpServer::with([Rule::new(At::Mail, act.clone()).for_message(1).once()]);
        let mailer = mailer(&server.url(), limits());
        let messages: Vec<_> = (0..3).map(|number| message(&format!("a{number}@bakery.example"))).collect();
        let ends = super::send_all(&mut *mailer.session(), &messages).await;
        assert_ledger_agrees(&server, &messages.iter().zip(&ends).collect::<Vec<_>>());
        assert_eq!((server.accepted().len(), server.connections()), (3, 2), "{act:?}: {ends:?}");
        assert!(!mailer.sends_one_at_a_time(), "{act:?}");
    }
}

#[tokio::test]
async fn a_new_connection_that_is_given_up_at_mail_too_is_the_transports_fault() {
    for (act, expected) in [
        (Act::Cut, "not_sent fault mail connection_lost -"),
        (Act::SayThenCut("421 4.7.0 enough\r\n"), "not_sent fault mail - 421"),
        (Act::SayThenCut("221 2.0.0 bye\r\n"), "not_sent fault mail unexpected_reply 221"),
    ] {
        for pipelining in [false, true] {
            let again = Rule::new(At::Mail, act.clone()).for_message(0).on_connection(1);
            let rules = vec![Rule::new(At::Mail, act.clone()).for_message(1), again];
            let server = SmtpServer::start(Behaviour { pipelining, rules, ..Behaviour::default() });
            let mut session = session(&server);
            assert_eq!(send(&mut *session, &message("ann@bakery.example")).await.outcome, Outcome::Accepted);
            let ended = send(&mut *session, &message("bob@bakery.example")).await;
            assert_eq!(line(&ended), expected, "{pipelining}");
            assert_eq!((server.connections(), server.count("MAIL")), (2, 3), "once anew, {act:?} {pipelining}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_only_opened_is_no_used_one() {
    let server = SmtpServer::with([Rule::new(At::Mail, Act::SayThenCut("421 4.7.0 not now\r\n"))]);
    let mut session = session(&server);
    session.ready().await.unwrap();
    let ended = send(&mut *session, &message("ann@bakery.example")).await;
    assert_eq!((line(&ended).as_str(), server.connections()), ("not_sent fault mail - 421", 1));
}

#[tokio::test]
async fn a_used_connection_that_refuses_mail_or_does_not_answer_is_the_transports_fault_as_ever() {
    for (act, expected) in [
        (Act::Say("451 4.3.0 later\r\n"), "not_sent fault mail - 451"),
        (Act::Say("550 5.7.1 not you\r\n"), "not_sent fault mail - 550"),
        (Act::Stall, "not_sent fault mail timed_out -"),
    ] {
        for pipelining in [false, true] {
            let rules = vec![Rule::new(At::Mail, act.clone()).for_message(1)];
            let server = SmtpServer::start(Behaviour { pipelining, rules, ..Behaviour::default() });
            let mut session = mailer(&server.url(), super::impatient()).session();
            assert_eq!(send(&mut *session, &message("ann@bakery.example")).await.outcome, Outcome::Accepted);
            let ended = send(&mut *session, &message("bob@bakery.example")).await;
            assert_eq!((line(&ended).as_str(), server.connections()), (expected, 1), "{pipelining}");
        }
    }
}

#[tokio::test]
async fn a_refused_message_costs_a_reset_and_no_connection() {
    let rule = Rule::new(At::Rcpt, Act::Say("550 5.1.1 nobody\r\n")).for_recipient("bob@bakery.example");
    for pipelining in [false, true] {
        let server = SmtpServer::start(Behaviour { pipelining, rules: vec![rule.clone()], ..Behaviour::default() });
        let mut session = session(&server);
        for (address, outcome) in [
            ("ann@bakery.example", Outcome::Accepted),
            ("bob@bakery.example", Outcome::Rejected),
            ("cid@bakery.example", Outcome::Accepted),
        ] {
            assert_eq!(send(&mut *session, &message(address)).await.outcome, outcome);
        }
        assert_eq!((server.connections(), server.count("RSET")), (1, 1));
    }
}

#[tokio::test]
async fn a_connection_carries_so_many_messages_and_no_more() {
    let server = SmtpServer::start(Behaviour::default());
    let limits = Limits { messages: 2, ..limits() };
    let mut session = mailer(&server.url(), limits).session();
    let messages: Vec<_> = (0..5).map(|number| message(&format!("a{number}@bakery.example"))).collect();
    let ends = super::send_all(&mut *session, &messages).await;
    assert!(ends.iter().all(|ended| ended.outcome == Outcome::Accepted), "{ends:?}");
    assert_eq!((server.connections(), server.count("QUIT")), (3, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed_politely() {
    let server = SmtpServer::start(Behaviour::default());
    let limits = Limits { idle: Duration::from_millis(200), ..limits() };
    let mut session = mailer(&server.url(), limits).session();
    for number in 0..2 {
        let ended = send(&mut *session, &message("ann@bakery.example")).await;
        assert_eq!(ended.outcome, Outcome::Accepted);
        server.wait_until(|heard| heard.iter().any(|heard| heard.connection == number && heard.line == "QUIT"));
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_session_can_be_closed_and_used_again() {
    let server = SmtpServer::start(Behaviour::default());
    let mut session = session(&server);
    session.close().await;
    for _ in 0..2 {
        assert_eq!(send(&mut *session, &message("ann@bakery.example")).await.outcome, Outcome::Accepted);
        session.close().await;
    }
    assert_eq!((server.connections(), server.count("QUIT")), (2, 2));
}

#[tokio::test]
async fn a_dropped_future_never_lends_its_reply_to_another_message() {
    for at in [At::Mail, At::Rcpt, At::Data, At::Dot] {
        let stall = Rule::new(at, Act::Stall).once();
        let refuse = Rule::new(At::Dot, Act::Say("554 5.6.0 no\r\n")).for_recipient("bob@bakery.example");
        let server = SmtpServer::with([stall, refuse]);
        let mut session = session(&server);
        let first = message("ann@bakery.example");
        let sending = send(&mut *session, &first);
        assert!(tokio::time::timeout(Duration::from_millis(300), sending).await.is_err());
        server.release();
        let bob = send(&mut *session, &message("bob@bakery.example")).await;
        assert_eq!(line(&bob), "rejected dot - 554", "{at:?}");
        let cid = message("cid@bakery.example");
        let ended = send(&mut *session, &cid).await;
        assert_ledger_agrees(&server, &[(&cid, &ended)]);
        assert_eq!((ended.outcome, server.connections()), (Outcome::Accepted, 2), "{at:?}");
    }
}

#[tokio::test]
async fn a_withdrawn_offer_sends_no_dot() {
    for (pipelining, connections, resets) in [(false, 1, 1), (true, 2, 0)] {
        let server = SmtpServer::start(Behaviour { pipelining, ..Behaviour::default() });
        let mut session = session(&server);
        session.offer(&message("ann@bakery.example").envelope).await.unwrap();
        session.withdraw().await;
        let second = message("bob@bakery.example");
        let ended = send(&mut *session, &second).await;
        assert_ledger_agrees(&server, &[(&second, &ended)]);
        assert_eq!(server.accepted().len(), 1);
        assert_eq!((server.connections(), server.count("RSET"), server.count(".")), (connections, resets, 1));
    }
}

#[tokio::test]
async fn only_what_was_offered_can_be_transmitted() {
    let server = SmtpServer::start(Behaviour::default());
    let mut session = session(&server);
    let (ann, bob) = (message("ann@bakery.example"), message("bob@bakery.example"));
    let ended = session.transmit(&ann.envelope, &ann, None, &MayFinish::always()).await.ended;
    assert_eq!(line(&ended), "not_sent mail not_offered -");
    session.offer(&ann.envelope).await.unwrap();
    let ended = session.transmit(&bob.envelope, &bob, None, &MayFinish::always()).await.ended;
    assert_eq!(line(&ended), "not_sent mail not_offered -");
    assert!(server.accepted().is_empty());
}
