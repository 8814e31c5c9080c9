//! The next envelope travelling with the last bytes of a message.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use permit_notifier::{
    domain::attempt::Outcome,
    mail::{Composed, Mailer as _, MayFinish, Transmitted},
};

use super::{assert_ledger_agrees, impatient, large_message, limits, line, mailer, message, send, send_all, session};
use crate::support::smtp_server::{Act, At, Behaviour, Rule, SmtpServer};

fn many(count: usize) -> Vec<Composed> {
    (0..count).map(|number| message(&format!("a{number}@bakery.example"))).collect()
}

#[tokio::test]
async fn two_hundred_messages_share_a_connection_with_refusals_between() {
    let refused = |at, act, number| Rule::new(at, act).for_recipient(&format!("a{number}@bakery.example"));
    let server = SmtpServer::with([
        refused(At::Rcpt, Act::Say("550 5.1.1 nobody\r\n"), 50),
        refused(At::Rcpt, Act::Say("450 4.7.1 greylisted\r\n"), 51),
        refused(At::Dot, Act::Say("451 4.3.0 later\r\n"), 100),
        refused(At::Data, Act::Say("451 4.3.0 later\r\n"), 120),
        refused(At::Dot, Act::Say("554 5.6.0 no\r\n"), 150),
        refused(At::Rcpt, Act::Say("550 5.1.1 nobody\r\n"), 151),
    ]);
    let messages = many(200);
    let ends = send_all(&mut *session(&server), &messages).await;
    assert_eq!(ends.len(), 200);
    for (number, ended) in ends.iter().enumerate() {
        let expected = match number {
            50 | 151 => "rejected rcpt - 550",
            51 => "deferred rcpt - 450",
            100 => "deferred dot - 451",
            120 => "deferred data - 451",
            150 => "rejected dot - 554",
            _ => "accepted dot - 250",
        };
        assert_eq!(line(ended), expected, "message {number}");
    }
    assert_ledger_agrees(&server, &messages.iter().zip(&ends).collect::<Vec<_>>());
    assert_eq!((server.accepted().len(), server.connections(), server.mails().len()), (194, 1, 200));
    assert!(server.mails().is_sorted());
    assert_eq!(server.hasty(), 0);
}

#[tokio::test]
async fn without_pipelining_the_same_messages_go_one_command_at_a_time() {
    let server = SmtpServer::start(Behaviour { pipelining: false, ..Behaviour::default() });
    let messages = many(50);
    let ends = send_all(&mut *session(&server), &messages).await;
    assert_ledger_agrees(&server, &messages.iter().zip(&ends).collect::<Vec<_>>());
    assert_eq!((server.accepted().len(), server.connections(), server.hasty()), (50, 1, 0));
}

/// Offers the first of two messages and transmits it with the envelope of the second.
async fn first_of_two(server: &SmtpServer, may_finish: &MayFinish) -> (Transmitted, [Composed; 2]) {
    let messages = [message("ann@bakery.example"), message("bob@bakery.example")];
    let mut session = mailer(&server.url(), impatient()).session();
    session.offer(&messages[0].envelope).await.unwrap();
    let sent = session.transmit(&messages[0].envelope, &messages[0], Some(&messages[1].envelope), may_finish).await;
    (sent, messages)
}

#[tokio::test]
async fn a_cut_after_the_dot_leaves_the_next_message_certainly_unsent() {
    for (act, expected) in [
        (Act::Cut, "ambiguous dot connection_lost -"),
        (Act::AcceptThenCut, "ambiguous dot connection_lost -"),
        (Act::Stall, "ambiguous dot timed_out -"),
        (Act::AcceptThenSay("354 what\r\n"), "ambiguous dot unexpected_reply 354"),
        (Act::SayThenCut("421 closing\r\n"), "deferred fault dot - 421"),
        (Act::AnswerThenCut, "accepted dot - 250"),
    ] {
        let server = SmtpServer::with([Rule::new(At::Dot, act.clone())]);
        let (sent, messages) = first_of_two(&server, &MayFinish::always()).await;
        assert_eq!(line(&sent.ended), expected, "{act:?}");
        assert_eq!(sent.next, None, "{act:?}");
        assert!(server.accepted().iter().all(|entry| entry.message_id != messages[1].message_id));
    }
}

#[tokio::test]
async fn the_next_message_has_an_end_of_its_own() {
    for (at, act, expected) in [
        (At::Mail, Act::Say("451 4.3.0 later\r\n"), "not_sent fault mail - 451"),
        (At::Rcpt, Act::Say("550 5.1.1 nobody\r\n"), "rejected rcpt - 550"),
        (At::Rcpt, Act::Cut, "not_sent rcpt connection_lost -"),
        (At::Data, Act::Say("451 4.3.0 later\r\n"), "deferred data - 451"),
        (At::Data, Act::Stall, "not_sent data timed_out -"),
    ] {
        let server = SmtpServer::with([Rule::new(at, act.clone()).for_message(1)]);
        let (sent, _) = first_of_two(&server, &MayFinish::always()).await;
        assert_eq!(sent.ended.outcome, Outcome::Accepted, "{at:?} {act:?}");
        assert_eq!(line(&sent.next.unwrap().unwrap_err()), expected, "{at:?} {act:?}");
        assert_eq!(server.accepted().len(), 1);
    }
}

#[tokio::test]
async fn a_withdrawn_next_message_costs_the_connection_and_sends_no_dot() {
    let server = SmtpServer::start(Behaviour::default());
    let messages = many(3);
    let mut session = session(&server);
    session.offer(&messages[0].envelope).await.unwrap();
    let next = Some(&messages[1].envelope);
    let sent = session.transmit(&messages[0].envelope, &messages[0], next, &MayFinish::always()).await;
    assert_eq!(sent.next, Some(Ok(())));
    session.withdraw().await;
    assert_eq!(send(&mut *session, &messages[2]).await.outcome, Outcome::Accepted);
    server.wait_until(|heard| heard.iter().any(|heard| heard.connection == 0 && heard.line == "(end)"));
    assert_eq!((server.count("."), server.connections()), (2, 2));
    assert!(server.accepted().iter().all(|entry| entry.message_id != messages[1].message_id));
}

#[tokio::test]
async fn no_dot_leaves_once_the_message_may_not_be_finished() {
    let server = SmtpServer::start(Behaviour::default());
    let (sent, _) = first_of_two(&server, &MayFinish::new(|| false)).await;
    assert_eq!(line(&sent.ended), "not_sent body lease_too_old -");
    assert_eq!(sent.next, None);

    // Once the body is on its way the answer may change.
    let asked = Arc::new(AtomicBool::new(false));
    let was_asked = Arc::clone(&asked);
    let no = MayFinish::new(move || was_asked.swap(true, Ordering::SeqCst));
    let large = large_message("cid@bakery.example");
    let mut session = session(&server);
    session.offer(&large.envelope).await.unwrap();
    assert!(!asked.load(Ordering::SeqCst), "an offer does not ask");
    let ended = session.transmit(&large.envelope, &large, None, &no).await.ended;
    assert_eq!(line(&ended), "not_sent body lease_too_old -");
    drop(session);
    server.wait_until(|heard| heard.iter().filter(|heard| heard.line == "(end)").count() == 2);
    assert_eq!((server.count("."), server.accepted().len()), (0, 0));
}

#[tokio::test]
async fn a_server_that_forgets_commands_gets_them_one_at_a_time_from_then_on() {
    let server = SmtpServer::start(Behaviour { drops_pipelined: true, ..Behaviour::default() });
    let mailer = mailer(&server.url(), impatient());
    let mut session = mailer.session();
    let messages = many(4);
    let ended = send(&mut *session, &messages[0]).await;
    assert_eq!(line(&ended), "not_sent rcpt timed_out -");
    assert!(mailer.sends_one_at_a_time());
    let ends = send_all(&mut *session, &messages[1..]).await;
    assert_ledger_agrees(&server, &messages[1..].iter().zip(&ends).collect::<Vec<_>>());
    assert_eq!(server.accepted().len(), 3);
    let mut other = mailer.session();
    assert_eq!(send(&mut *other, &messages[0]).await.outcome, Outcome::Accepted, "other sessions know it too");
}

#[tokio::test]
async fn replies_too_many_or_too_few_are_never_taken_for_an_acceptance() {
    for (at, act) in [
        (At::Dot, Act::Add("250 2.0.0 again\r\n")),
        (At::Dot, Act::Add("354 go\r\n")),
        (At::Mail, Act::Add("250 2.1.0 again\r\n")),
        (At::Rcpt, Act::Add("250 2.1.5 again\r\n")),
        (At::Rcpt, Act::Say("")),
        (At::Mail, Act::Say("354 go\r\n")),
        (At::Data, Act::Say("250 2.0.0 ok\r\n")),
    ] {
        let rule = Rule::new(at, act.clone()).for_message(1).on_connection(0);
        let refuse = Rule::new(At::Dot, Act::Say("554 5.6.0 no\r\n")).for_recipient("a3@bakery.example");
        let server = SmtpServer::with([rule, refuse]);
        let mailer = mailer(&server.url(), impatient());
        let messages = many(6);
        let mut session = mailer.session();
        let ends = send_all(&mut *session, &messages).await;
        assert_ledger_agrees(&server, &messages.iter().zip(&ends).collect::<Vec<_>>());
        assert_eq!(line(&ends[3]), "rejected dot - 554", "{at:?} {act:?}");
        assert!(mailer.sends_one_at_a_time(), "{at:?} {act:?}");
        let lost = ends.iter().filter(|ended| ended.outcome != Outcome::Accepted).count();
        assert!(lost <= 2, "{at:?} {act:?}: {ends:?}");
    }
}

#[tokio::test]
async fn a_server_that_wants_a_body_for_nobody_is_left_without_a_dot() {
    let refuse = Rule::new(At::Rcpt, Act::Say("550 5.1.1 nobody\r\n")).once();
    let server = SmtpServer::with([refuse, Rule::new(At::Data, Act::Say("354 go on\r\n")).once()]);
    let mut session = mailer(&server.url(), limits()).session();
    let ended = send(&mut *session, &message("ann@bakery.example")).await;
    assert_eq!(line(&ended), "rejected rcpt - 550");
    assert_eq!(send(&mut *session, &message("bob@bakery.example")).await.outcome, Outcome::Accepted);
    assert_eq!((server.connections(), server.count(".")), (2, 1));
}
