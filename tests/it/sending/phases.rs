//! Every fault at every phase: what the database says of the notice, and that it says what the ledger says.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use permit_notifier::mail::Mailer;

use super::{agrees, by_smtp, hasty, holder, killed::large_mails};
use crate::{
    smtp::impatient,
    support::{
        postbox::{Postbox, Replica, until},
        smtp_server::{Act, At, Behaviour, PASSWORD, Rule, SmtpServer, USER},
    },
};

/// Longer than an impatient client waits.
const TOO_LATE: Act = Act::Late(Duration::from_secs(3));
const IN_TIME: Act = Act::Late(Duration::from_millis(100));
const MULTI_LINE_4XX: Act = Act::Say("451-4.3.0 not now,\r\n451 4.3.0 but later\r\n");
const MULTI_LINE_5XX: Act = Act::Say("550-5.6.0 not now,\r\n550 5.6.0 and never\r\n");

/// A fault with what it makes of the first message of a connection: the delivery's state, and the attempt's outcome
/// with `!` for a fault of the transport.
type Case = (Act, &'static str, &'static str);

/// One sender tries what is due, once.
async fn pass(post: &Postbox, mailer: Arc<dyn Mailer>) {
    let replica = Replica::start(post.rules(mailer, 1)).await;
    replica.run_once().await;
    replica.leave().await;
}

/// The server is well from now on, and everything that may go goes.
async fn heal(post: &Postbox, server: &SmtpServer, mailer: &Arc<dyn Mailer>) {
    server.behave([]);
    post.clock.advance(TimeDelta::minutes(2));
    post.breaker_lets_probe().await;
    pass(post, Arc::clone(mailer)).await;
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending')").await, 0);
    agrees(post, server).await;
}

/// Lets each case happen to the first message of a connection, and then the server be well.
async fn check(at: At, behaviour: Behaviour, url: fn(&SmtpServer) -> String, cases: impl IntoIterator<Item = Case>) {
    let post = Postbox::open().await;
    let server = SmtpServer::start(behaviour);
    let mailer = by_smtp(&url(&server), impatient());
    for (number, (act, end, outcome)) in cases.into_iter().enumerate() {
        post.permit(&holder(number)).await;
        server.behave([Rule::new(at, act.clone())]);
        pass(&post, Arc::clone(&mailer)).await;
        let copy = post.copy_to(&holder(number)).await;
        assert_eq!(copy.end(), end, "{at:?} {act:?}");
        let attempts = post.attempts().await;
        let attempt = attempts.iter().find(|attempt| attempt.delivery_id == copy.id).expect("an attempt");
        let (reason, fault) = (attempt.reason.iter(), if attempt.transport_fault { "!" } else { "" });
        let said: Vec<&String> = std::iter::once(&attempt.outcome).chain(reason).collect();
        let said = said.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ");
        assert_eq!(format!("{said}{fault}"), outcome, "{at:?} {act:?}: {attempt:?}");
        agrees(&post, &server).await;
        heal(&post, &server, &mailer).await;
        let finally = post.copy_to(&holder(number)).await;
        let expected = if end == "pending" { "sent" } else { end };
        assert_eq!(finally.end(), expected, "{at:?} {act:?}");
        assert_eq!(server.hasty(), 0);
    }
}

/// What nobody can blame on a notice.
fn transports() -> Vec<Case> {
    vec![
        (Act::Cut, "pending", "not_sent connection_lost!"),
        (Act::Stall, "pending", "not_sent timed_out!"),
        (Act::Say("451 4.3.0 later\r\n"), "pending", "not_sent!"),
        (Act::SayThenCut("421 4.3.2 closing\r\n"), "pending", "not_sent!"),
        (Act::Say("550 5.7.1 not you\r\n"), "pending", "not_sent!"),
        (Act::Say("571 not you\r\n"), "pending", "not_sent!"),
        (MULTI_LINE_4XX, "pending", "not_sent!"),
        (MULTI_LINE_5XX, "pending", "not_sent!"),
        (Act::Say("354 go ahead\r\n"), "pending", "not_sent unexpected_reply!"),
        (Act::Say("what was that?\r\n"), "pending", "not_sent unexpected_reply!"),
        (Act::SayThenCut("25"), "pending", "not_sent connection_lost!"),
        (Act::Say("250-half\r\n"), "pending", "not_sent timed_out!"),
        (TOO_LATE, "pending", "not_sent timed_out!"),
        (IN_TIME, "sent", "accepted"),
    ]
}

fn with_password(server: &SmtpServer) -> String {
    format!("smtp://{USER}:{}@127.0.0.1:{}?tls=none", PASSWORD.replace(' ', "%20"), server.port())
}

#[tokio::test]
async fn faults_at_the_banner() {
    check(At::Banner, Behaviour::default(), SmtpServer::url, transports()).await;
}

#[tokio::test]
async fn faults_at_ehlo() {
    let reset = (Act::Reset, "pending", "not_sent connection_lost!");
    check(At::Ehlo, Behaviour::default(), SmtpServer::url, transports().into_iter().chain([reset])).await;
}

#[tokio::test]
async fn faults_at_auth() {
    let behaviour = Behaviour { auth: Some("PLAIN"), ..Behaviour::default() };
    let reset = (Act::Reset, "pending", "not_sent connection_lost!");
    check(At::Auth, behaviour, with_password, transports().into_iter().chain([reset])).await;
}

#[tokio::test]
async fn faults_at_mail() {
    let reset = (Act::Reset, "pending", "not_sent connection_lost!");
    check(At::Mail, Behaviour::default(), SmtpServer::url, transports().into_iter().chain([reset])).await;
}

/// What is about one message only.
fn messages() -> Vec<Case> {
    vec![
        (Act::Cut, "pending", "not_sent connection_lost"),
        (Act::Say("451 4.3.0 later\r\n"), "pending", "deferred"),
        (Act::SayThenCut("421 4.3.2 closing\r\n"), "pending", "not_sent!"),
        (Act::Say("550 5.2.1 disabled\r\n"), "failed refused", "rejected"),
        (Act::Say("571 never\r\n"), "failed refused", "rejected"),
        (MULTI_LINE_4XX, "pending", "deferred"),
        (MULTI_LINE_5XX, "failed refused", "rejected"),
        (Act::SayThenCut("25"), "pending", "not_sent connection_lost"),
        (IN_TIME, "sent", "accepted"),
        // Sent together with other commands, so from here on this server gets them one at a time.
        (Act::Stall, "pending", "not_sent timed_out"),
        (Act::Say("252 perhaps\r\n"), "pending", "not_sent unexpected_reply"),
        (Act::Say("what was that?\r\n"), "pending", "not_sent unexpected_reply"),
        (Act::Say("250-half\r\n"), "pending", "not_sent timed_out"),
        (Act::Reset, "pending", "not_sent connection_lost"),
        (TOO_LATE, "pending", "not_sent timed_out"),
    ]
}

#[tokio::test]
async fn faults_at_rcpt() {
    check(At::Rcpt, Behaviour::default(), SmtpServer::url, messages()).await;
}

#[tokio::test]
async fn faults_at_data() {
    check(At::Data, Behaviour::default(), SmtpServer::url, messages()).await;
}

#[tokio::test]
async fn faults_at_the_dot() {
    let cases = [
        (Act::Cut, "ambiguous", "ambiguous connection_lost"),
        (Act::Reset, "ambiguous", "ambiguous connection_lost"),
        (Act::AcceptThenCut, "ambiguous", "ambiguous connection_lost"),
        (Act::Stall, "ambiguous", "ambiguous timed_out"),
        (TOO_LATE, "ambiguous", "ambiguous timed_out"),
        (IN_TIME, "sent", "accepted"),
        (Act::AnswerThenCut, "sent", "accepted"),
        (Act::Say("250-2.0.0 queued\r\n250 as 12345\r\n"), "sent", "accepted"),
        (Act::Say("451 4.3.0 later\r\n"), "pending", "deferred"),
        (MULTI_LINE_4XX, "pending", "deferred"),
        (Act::Say("451 4.7.0 slower\r\n"), "pending", "deferred!"),
        (Act::SayThenCut("421 4.3.2 closing\r\n"), "pending", "deferred!"),
        (Act::Say("554 5.6.0 no\r\n"), "failed refused", "rejected"),
        (Act::Say("571 never\r\n"), "failed refused", "rejected"),
        (MULTI_LINE_5XX, "failed refused", "rejected"),
        (Act::AcceptThenSay("252 perhaps\r\n"), "ambiguous", "ambiguous unexpected_reply"),
        (Act::AcceptThenSay("what was that?\r\n"), "ambiguous", "ambiguous unexpected_reply"),
        (Act::AcceptThenSay("250-half\r\n"), "ambiguous", "ambiguous timed_out"),
        (Act::SayThenCut("25"), "ambiguous", "ambiguous connection_lost"),
        (Act::SayThenCut("250 2.0.0 que"), "ambiguous", "ambiguous connection_lost"),
    ];
    check(At::Dot, Behaviour::default(), SmtpServer::url, cases).await;
}

/// Lets each fault happen to the second of three messages on one connection. With the commands of one message behind
/// the dot of another there are several ways to tell them apart, all of them right; these ends are the only ones.
async fn check_reused(at: At, acts: impl IntoIterator<Item = Act>, ends: fn(&Act) -> &'static [&'static str]) {
    let post = Postbox::open().await;
    let server = SmtpServer::with([]);
    for (round, act) in acts.into_iter().enumerate() {
        let addresses = [0, 1, 2].map(|number| holder(round * 3 + number));
        for address in &addresses {
            post.permit(address).await;
        }
        if at == At::Body {
            large_mails(&post).await;
        }
        server.behave([Rule::new(at, act.clone()).on_connection(server.connections()).for_message(1)]);
        pass(&post, hasty(&server)).await;
        agrees(&post, &server).await;
        heal(&post, &server, &hasty(&server)).await;
        let mut found = Vec::new();
        for address in &addresses {
            found.push(post.copy_to(address).await.end());
        }
        // What breaks the connection may take with it the answer to the message before.
        let breaks = matches!(act, Act::Cut | Act::Reset | Act::SayThenCut(_)) && found[0] == "ambiguous";
        assert!(found[0] == "sent" || breaks, "{at:?} {act:?}: {found:?}");
        assert!(ends(&act).contains(&found[1].as_str()), "{at:?} {act:?}: {found:?}");
        assert_eq!(found[2], "sent", "{at:?} {act:?}");
    }
}

fn acts() -> Vec<Act> {
    let acts = transports().into_iter().map(|(act, ..)| act).filter(|act| *act != IN_TIME);
    acts.chain([Act::Reset, Act::SayThenCut("221 2.0.0 bye\r\n"), Act::Say("221 2.0.0 bye\r\n")]).collect()
}

fn is_refusal(act: &Act) -> bool {
    matches!(act, Act::Say(text) if text.starts_with('5'))
}

#[tokio::test]
async fn faults_at_mail_on_a_reused_connection() {
    check_reused(At::Mail, acts(), |_| &["sent"]).await;
}

#[tokio::test]
async fn faults_at_rcpt_on_a_reused_connection() {
    check_reused(At::Rcpt, acts(), |act| match act {
        // A refusal by policy is for now only.
        Act::Say(text) if text.contains(" 5.7.") => &["sent"],
        act if is_refusal(act) => &["failed refused"],
        _ => &["sent"],
    })
    .await;
}

#[tokio::test]
async fn faults_at_data_on_a_reused_connection() {
    // A server that wants the body has said nothing wrong.
    let acts = acts().into_iter().filter(|act| *act != Act::Say("354 go ahead\r\n"));
    check_reused(At::Data, acts, |act| if is_refusal(act) { &["failed refused"] } else { &["sent"] }).await;
}

#[tokio::test]
async fn faults_in_the_body_on_a_reused_connection() {
    // The server may be too late for this body, whose dot is then gone.
    let acts = [
        Act::Cut,
        Act::Reset,
        Act::Stall,
        Act::SayThenCut("451 4.3.0 later\r\n"),
        Act::SayThenCut("554 5.3.4 too big\r\n"),
        Act::SayThenCut("571 never\r\n"),
        Act::SayThenCut("421 4.3.2 closing\r\n"),
        Act::SayThenCut("25"),
    ];
    check_reused(At::Body, acts, |act| match act {
        Act::SayThenCut(text) if text.starts_with('5') => &["sent", "ambiguous", "failed refused"],
        _ => &["sent", "ambiguous"],
    })
    .await;
}

#[tokio::test]
async fn faults_at_the_dot_on_a_reused_connection() {
    check_reused(At::Dot, acts().into_iter().chain([Act::AnswerThenCut]), |act| match act {
        Act::AnswerThenCut => &["sent"],
        Act::Say(text) | Act::SayThenCut(text) if text.starts_with('4') => &["sent"],
        // Where the next envelope follows the dot, the answer to its MAIL ends this one, with the same code.
        Act::Say("250-half\r\n") => &["ambiguous", "sent"],
        act if is_refusal(act) => &["failed refused"],
        _ => &["ambiguous"],
    })
    .await;
}

#[tokio::test]
async fn a_server_that_leaves_between_two_messages_costs_no_attempt() {
    for (unasked, then_cut) in [("421 4.4.2 idle too long\r\n", true), ("221 2.0.0 bye\r\n", true), ("", true)] {
        let post = Postbox::open().await;
        post.permit(&holder(0)).await;
        let server = SmtpServer::with([]);
        let mut replica = Replica::start(post.rules(hasty(&server), 1)).await;
        replica.begin();
        let sent = "SELECT count(*) FROM deliveries WHERE state = 'sent'";
        until("the first is sent", async || post.count(sent).await == 1).await;
        server.say_unasked(unasked, then_cut);
        post.permit(&holder(1)).await;
        replica.dispatcher.wake().notify_one();
        until("the second is sent", async || post.count(sent).await == 2).await;
        replica.leave().await;
        let outcomes: Vec<_> = post.attempts().await.into_iter().map(|attempt| attempt.outcome).collect();
        assert_eq!((&outcomes[..], server.connections()), (&["accepted".to_owned(), "accepted".to_owned()][..], 2));
        agrees(&post, &server).await;
    }
}
