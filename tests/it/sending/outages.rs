//! The server is of no use to anybody for a while: nothing fails, nothing is used up, and all is sent when it heals.

use std::{collections::HashSet, sync::Arc};

use chrono::TimeDelta;
use permit_notifier::mail::Mailer;

use super::{agrees, by_smtp, due, holder, patient};
use crate::{
    smtp::limits,
    support::{
        postbox::{Postbox, Replica, until},
        smtp_server::{Act, At, Behaviour, PASSWORD, Rule, SmtpServer, USER},
    },
};

const NOTICES: usize = 1000;
const SENDERS: usize = 4;
const PASSES: usize = 5;

async fn many_due(post: &Postbox) {
    post.permit(&holder(0)).await;
    post.more_of_the_same(NOTICES).await;
}

/// Several passes, the first by all senders, the others with a probe: nothing is lost and nothing is used up.
async fn endure(post: &Postbox, mailer: &Arc<dyn Mailer>, words: &str) {
    for pass in 0..PASSES {
        post.breaker_lets_probe().await;
        let (report, is_down) = post.dispatch_with(Arc::clone(mailer)).await;
        assert!(is_down, "pass {pass}");
        assert_eq!((report.accepted, report.left_pending), (0, NOTICES as u64), "pass {pass}");
        let attempts = if pass == 0 { 1..=SENDERS as u64 } else { 1..=1 };
        assert!(attempts.contains(&(report.not_sent + report.deferred)), "pass {pass}: {report:?}");
    }
    // Nobody may try now.
    let (report, is_down) = post.dispatch_with(Arc::clone(mailer)).await;
    assert_eq!((report.not_sent, report.deferred, is_down), (0, 0, true), "paused");
    for copy in post.copies().await {
        assert_eq!((copy.end().as_str(), copy.attempt_count, copy.lease_token), ("pending", 0, None));
    }
    let attempts = post.attempts().await;
    assert!(attempts.len() < SENDERS + PASSES, "{} attempts", attempts.len());
    assert!(attempts.iter().all(|attempt| attempt.transport_fault));
    let fault: String = sqlx::query_scalar("SELECT fault FROM transport WHERE paused_until > clock_timestamp()")
        .fetch_one(&mut post.session().await)
        .await
        .expect("a breaker that is open");
    assert!(fault.contains(words), "{fault}");
    assert!(post.count("SELECT pause_seconds::bigint FROM transport").await >= 16, "each pause is twice the last");
}

/// The server is well again: all are sent, with one message each.
async fn heal(post: &Postbox, mailer: Arc<dyn Mailer>, server: &SmtpServer) {
    post.clock.advance(TimeDelta::minutes(1));
    post.breaker_lets_probe().await;
    let (report, is_down) = post.dispatch_with(mailer).await;
    assert_eq!((report.accepted, report.left_pending, is_down), (NOTICES as u64, 0, false));
    assert_eq!(server.accepted().len(), NOTICES);
    agrees(post, server).await;
}

#[tokio::test]
async fn a_server_that_is_down_costs_no_notice_anything() {
    let post = Postbox::open().await;
    many_due(&post).await;
    // Bound, so that nobody else gets the port, and deaf.
    let deaf = tokio::net::TcpSocket::new_v4().unwrap();
    deaf.set_reuseaddr(true).unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let number = deaf.local_addr().unwrap().port();
    let mailer = by_smtp(&format!("smtp://127.0.0.1:{number}"), limits());
    endure(&post, &mailer, "refused").await;
    let server = SmtpServer::start(Behaviour { port: number, ..Behaviour::default() });
    heal(&post, mailer, &server).await;
}

#[tokio::test]
async fn a_server_that_greets_and_cuts_costs_no_notice_anything() {
    let post = Postbox::open().await;
    many_due(&post).await;
    let server = SmtpServer::with([Rule::new(At::Banner, Act::AnswerThenCut)]);
    let mailer = patient(&server);
    endure(&post, &mailer, "").await;
    assert!(server.connections() < SENDERS + PASSES, "{} connections", server.connections());
    server.behave([]);
    heal(&post, mailer, &server).await;
}

#[tokio::test]
async fn a_server_that_refuses_the_password_costs_no_notice_anything() {
    let post = Postbox::open().await;
    many_due(&post).await;
    let rules = vec![Rule::new(At::Auth, Act::Say("535 5.7.8 this password has expired\r\n"))];
    let server = SmtpServer::start(Behaviour { auth: Some("PLAIN LOGIN"), rules, ..Behaviour::default() });
    let password = PASSWORD.replace(' ', "%20");
    let mailer = by_smtp(&format!("smtp://{USER}:{password}@127.0.0.1:{}?tls=none", server.port()), limits());
    endure(&post, &mailer, "this password has expired").await;
    assert_eq!(server.count("MAIL"), 0);
    assert!(server.connections() < SENDERS + PASSES, "{} connections", server.connections());
    server.behave([]);
    heal(&post, mailer, &server).await;
}

#[tokio::test]
async fn a_server_that_refuses_the_sender_costs_no_notice_anything() {
    let post = Postbox::open().await;
    many_due(&post).await;
    let server = SmtpServer::with([Rule::new(At::Mail, Act::Say("550 5.7.1 nothing from you\r\n"))]);
    let mailer = patient(&server);
    endure(&post, &mailer, "nothing from you").await;
    assert!(server.count("MAIL") < SENDERS + PASSES, "{} tries", server.count("MAIL"));
    server.behave([]);
    heal(&post, mailer, &server).await;
}

#[tokio::test]
async fn two_replicas_probe_one_at_a_time() {
    let post = Postbox::open().await;
    due(&post, 30).await;
    let server = SmtpServer::with([Rule::new(At::Banner, Act::Say("421 4.3.2 not now\r\n"))]);
    post.dispatch_with(patient(&server)).await;
    let before = server.connections();
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let mut replica = Replica::start(post.rules(patient(&server), SENDERS)).await;
        replica.begin();
        replicas.push(replica);
    }
    // The probe meets a server that says nothing for longer than the pause: no second one may begin meanwhile.
    server.behave([Rule::new(At::Banner, Act::Stall)]);
    post.breaker_lets_probe().await;
    server.wait_for_connections(before + 1).await;
    post.breaker_lets_probe().await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(server.connections(), before + 1, "one probe, whoever else looks");
    // It answers, and everything goes.
    server.behave([]);
    post.clock.advance(TimeDelta::minutes(1));
    server.release();
    until("all are sent", async || post.count("SELECT count(*) FROM deliveries WHERE state = 'sent'").await == 30)
        .await;
    for replica in replicas {
        replica.leave().await;
    }
    let recipients: HashSet<_> = server.accepted().into_iter().map(|message| message.recipient).collect();
    assert_eq!(recipients, (0..30).map(holder).collect());
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_server_that_heals_while_nothing_is_due_closes_the_breaker() {
    let post = Postbox::open().await;
    let permit = post.permit(&holder(0)).await;
    let server = SmtpServer::with([Rule::new(At::Mail, Act::Say("550 5.7.1 no such sender\r\n")).once()]);
    let (_, is_down) = post.dispatch_with(patient(&server)).await;
    assert!(is_down);
    post.archive(permit).await;
    let open = "SELECT count(*) FROM transport WHERE paused_until IS NOT NULL";
    assert_eq!(post.count(open).await, 1);
    post.breaker_lets_probe().await;
    post.dispatch_with(patient(&server)).await;
    assert_eq!(post.count(open).await, 0, "it was tried with our own address");
    agrees(&post, &server).await;
}

/// A probe is due, and `count` notices wait.
async fn probe_is_due(count: usize) -> (Postbox, SmtpServer) {
    let mut post = Postbox::open().await;
    post.lease = std::time::Duration::from_secs(6);
    due(&post, count).await;
    let server = SmtpServer::with([Rule::new(At::Banner, Act::Say("421 4.3.2 not now\r\n"))]);
    post.dispatch_with(patient(&server)).await;
    server.behave([]);
    post.clock.advance(TimeDelta::minutes(2));
    (post, server)
}

async fn sends(post: &Postbox, server: &SmtpServer, count: i64) {
    let sent = "SELECT count(*) FROM deliveries WHERE state = 'sent'";
    until("they are sent", async || post.count(sent).await == count).await;
    agrees(post, server).await;
}

#[tokio::test]
async fn a_probe_that_was_taken_and_lost_is_taken_again() {
    let (post, server) = probe_is_due(3).await;
    let mut replica = Replica::start(post.rules(patient(&server), 2)).await;
    // As if the database had gone away right after it gave the probe out.
    post.execute(
        "UPDATE transport SET paused_until = clock_timestamp(), probe_token = gen_random_uuid(),
                probe_boot_id = (SELECT boot_id FROM processes WHERE ended_at IS NULL)",
    )
    .await;
    replica.begin();
    sends(&post, &server, 3).await;
    replica.leave().await;
}

#[tokio::test]
async fn a_probe_whose_delivery_cannot_be_read_is_taken_with_another() {
    let (post, server) = probe_is_due(3).await;
    post.execute(
        "UPDATE deliveries SET recipient = 'nobody' WHERE id = (SELECT id FROM deliveries ORDER BY id LIMIT 1)",
    )
    .await;
    post.execute("UPDATE attempts SET transport_fault = false").await;
    post.breaker_lets_probe().await;
    let mut replica = Replica::start(post.rules(patient(&server), 2)).await;
    replica.begin();
    sends(&post, &server, 2).await;
    replica.leave().await;
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE state = 'failed'").await, 1);
}
