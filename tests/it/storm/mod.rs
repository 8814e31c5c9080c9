//! The storm: processes that are killed, stopped and ended, a mail server that fails in every way, a database that
//! drops its connections and loses answers, and people who change permits meanwhile. Then everything is well again,
//! and what the server took must be what the database says.
//!
//! It runs alone, by `cargo test --test it storm:: -- --ignored --nocapture`. `STORM_SEED` replays a storm,
//! `STORM_NOTICES` (up to 1,000) and `STORM_SECONDS` make a larger one.

mod changes;
mod fleet;
mod truth;
mod weather;

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use fastrand::Rng;
use sqlx::Row as _;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::{
    postbox::{Postbox, in_days},
    smtp_server::{Behaviour, SmtpServer},
};
use fleet::Fleet;

fn setting(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

/// Permits of which each has a notice that is due.
async fn due(post: &Postbox, count: usize) -> Vec<Uuid> {
    post.permit("holder000@x.example").await;
    post.more_of_the_same(count - count / 10).await;
    // Some have copies that are sent at the same time.
    for number in 0..count / 10 {
        let contacts = [format!("agent{number}@x.example"), format!("owner{number}@x.example")];
        let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
        post.permit_with(&format!("several{number}@x.example"), in_days(30), &contacts).await;
    }
    let permits = "SELECT id FROM permits ORDER BY holder_email";
    sqlx::query_scalar(permits).fetch_all(&mut post.session().await).await.expect("the permits")
}

#[ignore = "wants the machine for itself"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_goes_twice() {
    let seed = setting("STORM_SEED", 1);
    let notices = setting("STORM_NOTICES", 600) as usize;
    let length = Duration::from_secs(setting("STORM_SECONDS", 15));
    let post = Postbox::open().await;
    post.execute(truth::LOG).await;
    post.execute(changes::TABLE).await;
    let permits = due(&post, notices).await;
    // Slow enough that the storm lasts, and finds most senders waiting for their last reply.
    let pace = Duration::from_millis(setting("STORM_REPLY_MILLIS", 60));
    let server = SmtpServer::start(Behaviour { final_reply: pace, ..Behaviour::default() });

    let mut random = Rng::with_seed(seed);
    let changing = random.fork();
    let stop = CancellationToken::new();
    let pause = length / (notices as u32);
    let mut fleet = Fleet::start(&post, &server, 4, random).await;
    let (changed, ()) = tokio::join!(changes::run(&post, &permits, pause, changing, &stop), async {
        let end = Instant::now() + length;
        while Instant::now() < end {
            fleet.tick().await;
        }
        stop.cancel();
    });
    let count = fleet.end().await;
    server.behave([]);
    let passes = drain(&post, &server).await;

    let differences = truth::differences(&post, &server).await;
    println!(
        "storm {seed}: {notices} notices, {changed} changes, {count}, {} connections, {} taken, {passes} passes; {}; {} differences",
        server.connections(),
        server.accepted().len(),
        outcomes(&post).await,
        differences.len(),
    );
    let first: Vec<&str> = differences.iter().take(6).map(String::as_str).collect();
    assert!(first.is_empty(), "STORM_SEED={seed}:\n{}", first.join("\n"));
}

/// The server is well and nobody dies any more: sends until nothing waits. Says in how many passes.
async fn drain(post: &Postbox, server: &SmtpServer) -> usize {
    post.age_processes().await;
    for pass in 0..60 {
        // What three processes died of, a person lets go.
        post.execute(
            "UPDATE deliveries SET state = 'pending', reason_code = NULL, lost_owners = 0
             WHERE state = 'held' AND reason_code = 'owner_died';
             UPDATE notices SET state = 'pending', reason_code = NULL, reason = NULL
             WHERE state = 'held' AND reason_code = 'owner_died'",
        )
        .await;
        post.breaker_lets_probe().await;
        post.execute("UPDATE transport SET closed_at = closed_at - interval '1 hour'").await;
        let rest = "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending') AND channel = 'email'";
        let open = "SELECT count(*) FROM attempts WHERE outcome = 'sending'";
        if post.count(rest).await == 0 && post.count(open).await == 0 {
            return pass;
        }
        post.clock.advance(TimeDelta::hours(4));
        let mailer = crate::smtp::mailer(&server.url(), crate::smtp::limits());
        post.dispatch_with(Arc::new(mailer)).await;
    }
    60
}

/// How the attempts and the notices ended.
async fn outcomes(post: &Postbox) -> String {
    let ends = "
        SELECT coalesce(string_agg(what || ' ' || count, ', ' ORDER BY what), '') AS said FROM (
            SELECT 'attempts ' || outcome || coalesce(' ' || reason, '') AS what, count(*) FROM attempts GROUP BY 1
            UNION ALL SELECT 'notices ' || state, count(*) FROM notices GROUP BY 1) AS counted";
    sqlx::query(ends).fetch_one(&mut post.session().await).await.expect("the ends").get("said")
}
