//! The next message on the heels of the last: its envelope travels with the last body, its gate with the last
//! settlement, and whatever happens to its permit meanwhile it is not sent.

use std::time::Duration;

use chrono::TimeDelta;
use permit_notifier::mail::smtp::Limits;

use super::{agrees, by_smtp, due, holder, patient};
use crate::{
    smtp::limits,
    support::{
        postbox::{Postbox, Replica, Running, in_days, until},
        smtp_server::{Act, At, Rule, SmtpServer},
    },
};

/// One sender whose first message was taken, and who waits for the server to answer to the second one's envelope.
async fn under_way(post: &Postbox, server: &SmtpServer) -> (Replica, Running) {
    let replica = Replica::start(post.rules(patient(server), 1)).await;
    let pass = replica.begin_once();
    until("the second envelope is there", async || server.count("RCPT") == 2).await;
    (replica, pass)
}

/// A server that has accepted the first message and answers to the second recipient only when it is released.
fn slow_at_second() -> SmtpServer {
    SmtpServer::with([Rule::new(At::Rcpt, Act::Stall).on_connection(0).for_message(1)])
}

#[tokio::test]
async fn the_next_envelope_goes_with_the_last_body_and_is_no_attempt_yet() {
    let post = Postbox::open().await;
    due(&post, 5).await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    assert_eq!(server.accepted().len(), 1);
    assert_eq!(post.count("SELECT count(*) FROM attempts").await, 1, "one unsettled attempt a sender");
    assert_eq!(post.count("SELECT count(*) FROM attempts WHERE outcome = 'sending'").await, 1);
    server.release();
    assert_eq!(pass.done().await.0.accepted, 5);
    assert_eq!((server.connections(), server.count("MAIL")), (1, 5));
    replica.leave().await;
    agrees(&post, &server).await;
}

#[tokio::test]
async fn the_gate_of_the_next_opens_in_the_transaction_that_settles_the_last() {
    let post = Postbox::open().await;
    due(&post, 5).await;
    post.execute(
        "CREATE TABLE written (operation text, transaction xid8 DEFAULT pg_current_xact_id());
         CREATE FUNCTION note_writing() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO written VALUES (TG_OP); RETURN NULL; END $$;
         CREATE TRIGGER note_writing AFTER INSERT OR UPDATE ON attempts EXECUTE FUNCTION note_writing()",
    )
    .await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    until("the others wait for the sender", async || {
        post.count("SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL AND state = 'pending'").await == 4
    })
    .await;
    // What is leased is at the queue a moment later.
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.release();
    assert_eq!(pass.done().await.0.accepted, 5);
    replica.leave().await;
    let together =
        "SELECT count(*) FROM (SELECT FROM written GROUP BY transaction HAVING count(DISTINCT operation) = 2) t";
    assert_eq!(post.count(together).await, 4, "all but the first gate and the last settlement");
    assert_eq!(post.count("SELECT count(DISTINCT transaction) FROM written").await, 6, "a commit a message");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_permit_archived_while_its_envelope_is_offered_is_not_written_to() {
    let post = Postbox::open().await;
    due(&post, 1).await;
    let second = post.permit(&holder(1)).await;
    let third = post.permit(&holder(2)).await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    post.archive(second).await;
    post.archive(third).await;
    server.release();
    assert_eq!(pass.done().await.0.accepted, 1);
    replica.leave().await;
    assert_eq!(server.accepted().len(), 1);
    assert_eq!(post.copy_to(&holder(1)).await.state, "superseded");
    assert_eq!(post.count("SELECT count(*) FROM attempts").await, 1);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_permit_changed_while_its_envelope_is_offered_is_written_to_as_it_is_then() {
    let post = Postbox::open().await;
    due(&post, 1).await;
    let second = post.permit(&holder(1)).await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    post.correct(second, |permit| permit.holder_name = "Changed Meanwhile".to_owned()).await;
    server.release();
    assert_eq!(pass.done().await.0.accepted, 2);
    replica.leave().await;
    let told = "SELECT count(*) FROM attempt_messages WHERE convert_from(content, 'UTF8') LIKE '%Changed Meanwhile%'";
    assert_eq!(post.count(told).await, 1);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_message_made_before_midnight_is_made_anew_after_it() {
    let post = Postbox::open().await;
    due(&post, 2).await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    post.clock.advance(TimeDelta::days(1));
    server.release();
    assert_eq!(pass.done().await.0.accepted, 2);
    replica.leave().await;
    let days_left = |days: i64| format!("{days} days");
    let texts = sqlx::query_scalar::<_, String>(
        "SELECT convert_from(m.content, 'UTF8') FROM attempt_messages m JOIN attempts a ON a.id = m.attempt_id
         ORDER BY a.started_at, a.id",
    )
    .fetch_all(&mut post.session().await)
    .await
    .unwrap();
    assert!(texts[0].contains(&days_left(30)) && texts[1].contains(&days_left(29)), "{texts:?}");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn the_next_gate_does_not_open_before_the_last_result_is_written() {
    let post = Postbox::open().await;
    due(&post, 2).await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    let lock = post.lock("SELECT FROM notices FOR UPDATE").await;
    server.release();
    // The server waits for a body that nobody may send, and its connection is given up instead.
    until("its connection is gone", async || server.count("(END)") == 1).await;
    assert_eq!(post.count("SELECT count(*) FROM attempts").await, 1);
    assert_eq!(post.count("SELECT count(*) FROM attempts WHERE outcome = 'sending'").await, 1);
    lock.release().await;
    pass.done().await;
    post.clock.advance(TimeDelta::minutes(1));
    replica.run_once().await;
    replica.leave().await;
    assert_eq!(server.accepted().len(), 2);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_fault_of_the_last_message_shuts_the_gate_of_the_next() {
    let post = Postbox::open().await;
    due(&post, 3).await;
    let server = SmtpServer::with([Rule::new(At::Dot, Act::Say("451 4.7.1 too much from you\r\n")).once()]);
    let replica = Replica::start(post.rules(patient(&server), 1)).await;
    let (report, is_down) = replica.run_once().await;
    replica.leave().await;
    assert_eq!((report.accepted, report.deferred, report.left_pending, is_down), (0, 1, 3, true));
    assert_eq!(post.count("SELECT count(*) FROM attempts").await, 1);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn the_breaker_opens_in_the_transaction_that_records_the_fault() {
    let post = Postbox::open().await;
    due(&post, 1).await;
    let server = SmtpServer::with([Rule::new(At::Dot, Act::Say("421 4.3.2 going down\r\n")).once()]);
    let lock = post.lock("SELECT FROM transport FOR UPDATE").await;
    let replica = Replica::start(post.rules(patient(&server), 1)).await;
    let pass = replica.begin_once();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    until("the settlement waits for the breaker", async || post.count(waits).await == 1).await;
    assert_eq!(post.count("SELECT count(*) FROM attempts WHERE outcome = 'sending'").await, 1);
    lock.release().await;
    pass.done().await;
    replica.leave().await;
    assert_eq!(post.count("SELECT count(*) FROM transport WHERE paused_until IS NOT NULL").await, 1);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_stop_gives_back_what_is_offered_behind_the_last() {
    let post = Postbox::open().await;
    due(&post, 4).await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    replica.soft.cancel();
    server.release();
    assert_eq!(pass.done().await.0.accepted, 1);
    replica.leave().await;
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL").await, 0);
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE state = 'pending'").await, 3);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_hard_stop_while_the_next_envelope_waits_knows_what_became_of_the_last() {
    let post = Postbox::open().await;
    due(&post, 4).await;
    let server = slow_at_second();
    let (replica, pass) = under_way(&post, &server).await;
    replica.soft.cancel();
    replica.hard.cancel();
    assert_eq!(pass.done().await.0.accepted, 1, "its 250 was there");
    replica.leave().await;
    assert_eq!(post.count("SELECT count(*) FROM attempts WHERE outcome = 'accepted'").await, 1);
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL").await, 0);
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE state = 'pending'").await, 3);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_pass_sends_to_everybody_on_a_permit_although_their_results_meet() {
    let post = Postbox::open().await;
    for number in 0..20 {
        let others: Vec<String> = (1..5).map(|other| format!("agent{other}-{number}@x.example")).collect();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        post.permit_with(&holder(number), in_days(30), &others).await;
    }
    let server = SmtpServer::with([]);
    let replica = Replica::start(post.rules(patient(&server), 8)).await;
    let report = replica.run_once().await.0;
    replica.leave().await;
    assert_eq!((report.accepted, report.left_pending), (100, 0));
    assert_eq!(server.connections(), 8, "none was lost");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn what_is_known_of_a_message_does_not_wait_for_what_is_said_of_the_next() {
    let post = Postbox::open().await;
    due(&post, 4).await;
    let server = slow_at_second();
    let limits = Limits { next: Duration::from_millis(300), ..limits() };
    let replica = Replica::start(post.rules(by_smtp(&server.url(), limits), 1)).await;
    let (report, _) = replica.run_once().await;
    replica.leave().await;
    assert_eq!(report.accepted, 4, "the server was never released");
    // Given up on the first connection, and each in its own turn on the second.
    assert_eq!((server.connections(), server.mails().len(), server.accepted().len()), (2, 5, 4));
    assert_eq!(post.count("SELECT count(*) FROM attempts WHERE outcome <> 'accepted'").await, 0);
    agrees(&post, &server).await;
}
