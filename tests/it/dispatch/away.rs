//! The database goes away, or takes a COMMIT and does not say so.

use chrono::TimeDelta;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::holder;
use crate::support::{
    cluster::cluster,
    postbox::{
        Postbox, Replica,
        mailer::{Point, deferred},
        proxy::{Commits, Proxy},
        until,
    },
};

/// Shuts the test's database for everybody, or opens it again.
async fn let_in(post: &Postbox, open: bool) {
    let name = post.url.split_once("localhost/").unwrap().1.split_once('?').unwrap().0;
    let mut server = PgConnection::connect(&cluster().url_for("permits")).await.unwrap();
    let statements = format!(
        "ALTER DATABASE {name} ALLOW_CONNECTIONS {open};
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND NOT {open}"
    );
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut server).await.unwrap();
    server.close().await.unwrap();
}

/// A replica of one sender whose every way to the database leads through the proxy.
async fn behind(proxy: &Proxy, post: &Postbox) -> Replica {
    Replica::start(post.rules_through(&proxy.url, std::sync::Arc::new(post.mailer.clone()), 1)).await
}

#[tokio::test]
async fn results_wait_while_the_database_is_away() {
    let post = Postbox::open().await;
    for number in 0..3 {
        post.permit(&holder(number)).await;
    }
    post.mailer.reply(&holder(1), deferred());
    let mut stops: Vec<_> = (0..3).map(|number| post.mailer.stop(&holder(number), Point::AfterFinal)).collect();
    let replica = post.replica(3).await;
    let pass = replica.begin_once();
    for stop in &mut stops {
        stop.arrived().await;
    }
    let_in(&post, false).await;
    stops.into_iter().for_each(crate::support::postbox::mailer::Stop::release);
    // Long enough for the first tries to fail.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let_in(&post, true).await;
    let (report, _) = pass.done().await;
    assert_eq!((report.accepted, report.deferred), (2, 1));
    for (number, end) in ["sent", "pending", "sent"].into_iter().enumerate() {
        assert_eq!(post.copy_to(&holder(number)).await.end(), end);
    }
    let outcomes: Vec<_> = post.attempts().await.into_iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "accepted").count(), 2, "{outcomes:?}");
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn a_gate_cut_off_before_its_commit_sends_nothing() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let lock = post.lock("LOCK TABLE attempt_messages IN ACCESS EXCLUSIVE MODE").await;
    let replica = post.replica(1).await;
    let pass = replica.begin_once();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'attempt_messages'::regclass";
    until("the gate waits for the table", async || post.count(waiting).await == 1).await;
    post.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'attempt_messages'::regclass",
    )
    .await;
    let (report, _) = pass.done().await;
    lock.release().await;
    assert_eq!((report.accepted, report.left_pending, post.mailer.withdrawn()), (0, 1, 1));
    assert!(post.attempts().await.is_empty() && post.mailer.ledger().is_empty());
    replica.leave().await;
    post.clock.advance(TimeDelta::seconds(2));
    assert_eq!(post.dispatch().await.accepted, 1);
    post.check().await;
}

#[tokio::test]
async fn a_gate_whose_commit_got_no_answer_sends_nothing_and_is_closed() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let proxy = Proxy::to(&post.url);
    let replica = behind(&proxy, &post).await;
    let mut stop = post.mailer.stop(&holder(0), Point::Offered);
    let pass = replica.begin_once();
    stop.arrived().await;
    proxy.let_commits(Commits::LoseNextAnswer);
    stop.release();
    let (report, _) = pass.done().await;
    assert_eq!(proxy.caught(), 1);
    assert_eq!((report.accepted, post.mailer.withdrawn()), (0, 1));
    assert!(post.mailer.ledger().is_empty(), "no final step without an answer");
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.attempt_count, copy.lease_token), ("pending", 0, None));
    assert_eq!(post.outcomes(copy.id).await, ["not_sent gate_unanswered"]);
    post.check().await;
    replica.leave().await;
    post.clock.advance(TimeDelta::minutes(1));
    assert_eq!(post.dispatch().await.accepted, 1);
    post.check().await;
}

#[tokio::test]
async fn nothing_else_begins_before_a_gate_without_an_answer_is_closed() {
    let post = Postbox::open().await;
    for number in 0..2 {
        post.permit(&holder(number)).await;
    }
    let proxy = Proxy::to(&post.url);
    let replica = behind(&proxy, &post).await;
    let mut stop = post.mailer.stop(&holder(0), Point::Offered);
    let pass = replica.begin_once();
    stop.arrived().await;
    proxy.let_commits(Commits::LoseNextAnswer);
    stop.release();
    until("the answer is lost", async || proxy.caught() == 1).await;
    // Nobody can settle it now.
    let lock = post.lock("SELECT FROM notices FOR UPDATE").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(post.count("SELECT count(*) FROM attempts WHERE outcome = 'sending'").await, 1);
    assert_eq!(post.count("SELECT count(*) FROM attempts").await, 1, "one unsettled attempt a sender");
    lock.release().await;
    assert_eq!(pass.done().await.0.accepted, 1);
    assert_eq!(post.outcomes(post.copy_to(&holder(0)).await.id).await, ["not_sent gate_unanswered"]);
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn a_settle_whose_commit_got_no_answer_is_repeated_and_counts_once() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.mailer.reply(&holder(0), deferred());
    let proxy = Proxy::to(&post.url);
    let replica = behind(&proxy, &post).await;
    let mut stop = post.mailer.stop(&holder(0), Point::AfterFinal);
    let pass = replica.begin_once();
    stop.arrived().await;
    proxy.let_commits(Commits::LoseNextAnswer);
    stop.release();
    pass.done().await;
    assert_eq!(proxy.caught(), 1);
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", 1));
    assert_eq!(post.outcomes(copy.id).await, ["deferred"]);
    assert_eq!(post.attempts().await[0].late_result, None);
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn a_connection_that_falls_silent_while_it_takes_over_does_not_stop_the_dispatch() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    // Left by a process that is dead.
    post.execute("UPDATE deliveries SET lease_token = gen_random_uuid(), lease_owner = gen_random_uuid()").await;
    let proxy = Proxy::to(&post.url);
    let mut replica = behind(&proxy, &post).await;
    proxy.let_commits(Commits::KeepAnswersBack);
    replica.begin();
    until("it takes over", async || proxy.caught() > 0).await;
    proxy.let_commits(Commits::Pass);
    until("the mail is sent all the same", async || post.copies().await[0].end() == "sent").await;
    replica.leave().await;
    post.check().await;
}
