//! Every phase and every fault: how the attempt ends, what the ledger says, and that the next message goes through.

use std::time::Duration;

use permit_notifier::{
    domain::attempt::Outcome,
    mail::{Mailer as _, smtp::Limits},
};

use super::{assert_ledger_agrees, impatient, large_message, limits, line, mailer, message, send};
use crate::support::smtp_server::{Act, At, Behaviour, Rule, SmtpServer};

/// One fault, then a message after it, with and without PIPELINING.
async fn check(at: At, act: Act, expected: &str) {
    for pipelining in [false, true] {
        check_with(at, act.clone(), expected, pipelining, limits()).await;
    }
}

async fn check_with(at: At, act: Act, expected: &str, pipelining: bool, limits: Limits) {
    let rules = vec![Rule::new(at, act.clone()).once()];
    let server = SmtpServer::start(Behaviour { pipelining, rules, ..Behaviour::default() });
    let mut session = mailer(&server.url(), limits).session();
    let first = if at == At::Body { large_message("ann@bakery.example") } else { message("ann@bakery.example") };
    let ended = send(&mut *session, &first).await;
    assert_eq!(line(&ended), expected, "{at:?} {act:?} pipelining {pipelining}: {ended:?}");
    if let Some(code) = ended.smtp_code {
        assert!(ended.response.as_ref().unwrap().starts_with(&code.to_string()), "{ended:?}");
    }
    if matches!(act, Act::AcceptThenCut | Act::AcceptThenSay(_)) {
        assert_eq!(server.accepted().len(), 1, "the message is in the ledger although we cannot know");
    }
    server.release();
    if act == Act::AnswerThenCut {
        // A connection that the server closes at the very moment of the next MAIL is a fault; not meant here.
        server.wait_until(|heard| heard.iter().any(|heard| heard.line == "(end)"));
    }
    if matches!(act, Act::Stall | Act::Late(_)) {
        session = super::session(&server);
    }
    let second = message("bob@bakery.example");
    let after = send(&mut *session, &second).await;
    assert_eq!(after.outcome, Outcome::Accepted, "after {at:?} {act:?} pipelining {pipelining}: {after:?}");
    assert_ledger_agrees(&server, &[(&first, &ended), (&second, &after)]);
    assert_eq!(server.hasty(), 0);
}

#[tokio::test]
async fn before_the_recipient_everything_is_the_transports_fault() {
    for (at, phase) in [(At::Banner, "banner"), (At::Ehlo, "ehlo"), (At::Mail, "mail")] {
        for (act, rest) in [
            (Act::Cut, "connection_lost -"),
            (Act::Say("451 4.3.0 later\r\n"), "- 451"),
            (Act::Say("451 4.7.1 later\r\n"), "- 451"),
            (Act::Say("550 5.7.1 not you\r\n"), "- 550"),
            (Act::Say("571 not you\r\n"), "- 571"),
            (Act::SayThenCut("421 4.3.2 closing\r\n"), "- 421"),
            (Act::Say("354 what\r\n"), "unexpected_reply 354"),
            (Act::Say("hello\r\n"), "unexpected_reply -"),
            (Act::SayThenCut("250 half"), "connection_lost -"),
        ] {
            check(at, act, &format!("not_sent fault {phase} {rest}")).await;
        }
    }
    check(At::Ehlo, Act::Reset, "not_sent fault ehlo connection_lost -").await;
    check(At::Mail, Act::Reset, "not_sent fault mail connection_lost -").await;
    check(At::Connect, Act::Cut, "not_sent fault banner connection_lost -").await;
}

#[tokio::test]
async fn a_connection_reset_at_once_is_the_transports_fault() {
    for at in [At::Connect, At::Banner] {
        let server = SmtpServer::with([Rule::new(at, Act::Reset)]);
        let ended = send(&mut *super::session(&server), &message("ann@bakery.example")).await;
        // The reset may overtake the connection.
        let lines = ["not_sent fault connect connect_failed -", "not_sent fault banner connection_lost -"];
        assert!(lines.contains(&&*line(&ended)), "{ended:?}");
    }
}

#[tokio::test]
async fn a_refused_recipient_is_the_messages_own_unless_the_server_speaks_of_the_sender() {
    for (act, expected) in [
        (Act::Say("450 4.2.0 later\r\n"), "deferred rcpt - 450"),
        (Act::Say("450 4.7.1 greylisted\r\n"), "deferred rcpt - 450"),
        (Act::Say("550 5.1.1 nobody\r\n"), "rejected rcpt - 550"),
        (Act::Say("550-5.1.1 nobody\r\n550 5.1.1 of that name\r\n"), "rejected rcpt - 550"),
        (Act::Say("550 5.7.1 policy\r\n"), "rejected rcpt - 550"),
        (Act::Say("571 policy\r\n"), "rejected rcpt - 571"),
        (Act::Say("550 5.1.8 bad sender\r\n"), "not_sent fault rcpt - 550"),
        (Act::Say("451 4.1.7 bad sender\r\n"), "not_sent fault rcpt - 451"),
        (Act::SayThenCut("421 4.7.0 too many\r\n"), "not_sent fault rcpt - 421"),
        (Act::Say("251 elsewhere\r\n"), "accepted dot - 250"),
        (Act::Say("252 perhaps\r\n"), "not_sent rcpt unexpected_reply 252"),
        (Act::Say("???\r\n"), "not_sent rcpt unexpected_reply -"),
        (Act::Cut, "not_sent rcpt connection_lost -"),
        (Act::SayThenCut("250 2.1"), "not_sent rcpt connection_lost -"),
    ] {
        check(At::Rcpt, act, expected).await;
    }
    check_with(At::Rcpt, Act::Reset, "not_sent rcpt connection_lost -", false, limits()).await;
}

#[tokio::test]
async fn a_refused_data_is_the_messages_own_unless_the_server_speaks_of_the_sender() {
    for (act, expected) in [
        (Act::Say("550 5.1.8 bad sender\r\n"), "not_sent fault data - 550"),
        (Act::Say("451 4.1.7 bad sender\r\n"), "not_sent fault data - 451"),
        (Act::Say("451 4.3.0 later\r\n"), "deferred data - 451"),
        (Act::Say("554 5.6.0 no\r\n"), "rejected data - 554"),
        (Act::SayThenCut("421 closing\r\n"), "not_sent fault data - 421"),
        (Act::Say("250 ok\r\n"), "not_sent data unexpected_reply 250"),
        (Act::Cut, "not_sent data connection_lost -"),
    ] {
        check(At::Data, act, expected).await;
    }
}

#[tokio::test]
async fn what_breaks_inside_the_body_was_not_sent() {
    for (act, expected) in [
        (Act::Cut, "not_sent body connection_lost -"),
        (Act::Reset, "not_sent body connection_lost -"),
        (Act::Say("554 5.3.4 too big\r\n"), "not_sent body unexpected_reply 554"),
        (Act::Say("250 2.0.0 fine already\r\n"), "not_sent body unexpected_reply 250"),
        (Act::Say("421 4.3.2 closing\r\n"), "not_sent fault body unexpected_reply 421"),
    ] {
        check(At::Body, act, expected).await;
    }
    let early = Act::Add("250 2.0.0 fine already\r\n");
    check(At::Data, early, "not_sent body unexpected_reply 250").await;
}

#[tokio::test]
async fn after_the_dot_only_a_complete_reply_counts() {
    for (act, expected) in [
        (Act::Say("250\r\n"), "accepted dot - 250"),
        (Act::Say("250-2.0.0 queued\r\n250 as 12345\r\n"), "accepted dot - 250"),
        (Act::AnswerThenCut, "accepted dot - 250"),
        (Act::Late(Duration::from_millis(300)), "accepted dot - 250"),
        (Act::Say("451 4.3.0 later\r\n"), "deferred dot - 451"),
        (Act::Say("451 4.7.0 slower\r\n"), "deferred fault dot - 451"),
        (Act::SayThenCut("421 4.3.2 closing\r\n"), "deferred fault dot - 421"),
        (Act::Say("554 5.6.0 no\r\n"), "rejected dot - 554"),
        (Act::Say("550 5.7.1 no\r\n"), "rejected dot - 550"),
        (Act::Say("571 no\r\n"), "rejected dot - 571"),
        (Act::Cut, "ambiguous dot connection_lost -"),
        (Act::Reset, "ambiguous dot connection_lost -"),
        (Act::AcceptThenCut, "ambiguous dot connection_lost -"),
        (Act::AcceptThenSay("354 again\r\n"), "ambiguous dot unexpected_reply 354"),
        (Act::AcceptThenSay("252 perhaps\r\n"), "ambiguous dot unexpected_reply 252"),
        (Act::AcceptThenSay("all is well\r\n"), "ambiguous dot unexpected_reply -"),
        (Act::AcceptThenSay("250-fine\r\n550 or not\r\n"), "ambiguous dot unexpected_reply -"),
        (Act::SayThenCut("250 2.0.0 que"), "ambiguous dot connection_lost -"),
        (Act::SayThenCut("55"), "ambiguous dot connection_lost -"),
    ] {
        check(At::Dot, act, expected).await;
    }
}

#[tokio::test]
async fn every_phase_ends_by_its_own_limit() {
    for (at, expected) in [
        (At::Banner, "not_sent fault banner timed_out -"),
        (At::Ehlo, "not_sent fault ehlo timed_out -"),
        (At::Mail, "not_sent fault mail timed_out -"),
        (At::Rcpt, "not_sent rcpt timed_out -"),
        (At::Data, "not_sent data timed_out -"),
        (At::Body, "not_sent body timed_out -"),
        (At::Dot, "ambiguous dot timed_out -"),
    ] {
        let one_by_one = check_with(at, Act::Stall, expected, false, impatient());
        let together = check_with(at, Act::Stall, expected, true, impatient());
        tokio::join!(one_by_one, together);
    }
    let late = Act::Late(Duration::from_secs(3));
    check_with(At::Dot, late, "ambiguous dot timed_out -", true, impatient()).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_so() {
    let closed = {
        let server = SmtpServer::start(Behaviour::default());
        server.url()
    };
    let mut session = mailer(&closed, limits()).session();
    let ended = send(&mut *session, &message("ann@bakery.example")).await;
    assert_eq!(line(&ended), "not_sent fault connect connect_failed -");
    let mut session = mailer("smtp://nowhere.invalid", limits()).session();
    let ended = send(&mut *session, &message("ann@bakery.example")).await;
    assert_eq!(line(&ended), "not_sent fault connect host_unknown -");
}

#[tokio::test]
async fn what_the_server_said_it_cannot_take_is_refused_before_mail() {
    let behaviour = Behaviour { smtputf8: false, size: Some(1000), ..Behaviour::default() };
    let server = SmtpServer::start(behaviour);
    let mut session = super::session(&server);
    let ended = send(&mut *session, &message("zoë@bakery.example")).await;
    assert_eq!(line(&ended), "rejected rcpt smtputf8_not_offered -");
    let ended = send(&mut *session, &message("ann@bakery.example")).await;
    assert_eq!(line(&ended), "rejected mail too_large_for_server -");
    assert_eq!((server.count("MAIL"), server.connections()), (0, 1));

    let server = SmtpServer::start(Behaviour::default());
    let mut session = super::session(&server);
    let (plain, beyond) = (message("ann@bakery.example"), message("zoë@bakery.example"));
    let ends = [send(&mut *session, &plain).await, send(&mut *session, &beyond).await];
    assert_ledger_agrees(&server, &[(&plain, &ends[0]), (&beyond, &ends[1])]);
    let mails: Vec<_> = server.heard().into_iter().filter(|heard| heard.line.starts_with("MAIL")).collect();
    assert!(!mails[0].line.contains("SMTPUTF8") && mails[0].line.contains("SIZE="));
    assert!(mails[1].line.contains("SMTPUTF8"));
}

#[tokio::test]
async fn a_reply_is_kept_as_one_short_clean_line_with_its_enhanced_code() {
    let reply = Act::Say("550-5.1.1 no\u{1b}[31m such\r\n550 5.1.1 person\0 here\r\n");
    let server = SmtpServer::with([Rule::new(At::Rcpt, reply)]);
    let ended = send(&mut *super::session(&server), &message("ann@bakery.example")).await;
    assert_eq!(ended.enhanced_code.as_deref(), Some("5.1.1"));
    assert_eq!(ended.response.as_deref(), Some("550-5.1.1 no[31m such 550 5.1.1 person here"));
}

#[tokio::test]
async fn a_time_that_the_server_names_goes_with_a_refusal_for_now() {
    for (at, act, expected) in [
        (At::Rcpt, Act::Say("450 4.7.1 greylisted, try again in 5 minutes\r\n"), Some(300)),
        (At::Dot, Act::Say("451 4.3.0 please try again in 90 seconds\r\n"), Some(90)),
        (At::Mail, Act::SayThenCut("421 4.7.0 too fast, retry in 2 min\r\n"), Some(120)),
        (At::Rcpt, Act::Say("450 4.7.1 greylisted\r\n"), None),
        (At::Rcpt, Act::Say("550 5.7.1 blocked, try again in 5 minutes\r\n"), None),
    ] {
        let server = SmtpServer::with([Rule::new(at, act.clone())]);
        let ended = send(&mut *super::session(&server), &message("ann@bakery.example")).await;
        assert_eq!(ended.retry_after.map(|wait| wait.as_secs()), expected, "{act:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_not_fit_for_mail_is_not_begun() {
    let server = SmtpServer::start(Behaviour::default());
    let mut session = super::session(&server);
    for tail in [&b"smuggled\n.\n"[..], b"no end", "ü\r\n".as_bytes()] {
        let mut unfit = message("ann@bakery.example");
        unfit.bytes.extend_from_slice(tail);
        let ended = send(&mut *session, &unfit).await;
        assert_eq!(line(&ended), "rejected body message_unfit -");
    }
    assert_eq!(server.count("."), 0);
}

#[tokio::test]
async fn the_ledger_is_on_disk_before_the_reply() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let server = SmtpServer::start(Behaviour { ledger: Some(path.clone()), ..Behaviour::default() });
    let message = message("ann@bakery.example");
    let ended = send(&mut *super::session(&server), &message).await;
    assert_eq!(ended.outcome, Outcome::Accepted);
    let text = std::fs::read_to_string(path).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(line["message_id"], message.message_id);
    assert_eq!(line["recipient"], "ann@bakery.example");
}
