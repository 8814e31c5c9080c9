//! The rate that all replicas share.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::{agrees, due, patient};
use crate::support::{
    dispatching::{Dispatching, Role},
    postbox::{Postbox, Replica, until},
    smtp_server::{Act, At, Rule, SmtpServer},
};

/// The most that fell into any time of that length.
fn most_within(times: &[Instant], length: Duration) -> usize {
    times
        .iter()
        .map(|begin| times.iter().filter(|time| *time >= begin && **time - *begin < length).count())
        .max()
        .unwrap()
}

#[tokio::test]
async fn three_processes_keep_to_one_rate() {
    // More than may go in ten seconds, and more senders than may go in one.
    const NOTICES: usize = 66;
    const RATE: u32 = 6;
    let post = Postbox::open().await;
    due(&post, NOTICES).await;
    let server = SmtpServer::with([]);
    let role = Role { senders: 6, rate: RATE, ..Role::with_server(&post, &server) };
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(Dispatching::start(&role).await);
    }
    until("all are sent", async || server.accepted().len() == NOTICES).await;
    for process in processes {
        process.end().await;
    }
    let times = server.mails();
    assert_eq!(times.len(), NOTICES);
    let rate = RATE as usize;
    let [one, ten] = [1, 10].map(|seconds| most_within(&times, Duration::from_secs(seconds)));
    assert!(one <= 2 * rate && ten <= 10 * rate, "{one} in one second, {ten} in ten");
    let senders: HashSet<_> = post.attempts().await.into_iter().map(|attempt| attempt.boot_id).collect();
    assert_eq!(senders.len(), 3, "each process sent some");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn connections_that_open_together_do_not_send_together() {
    let post = Postbox::open().await;
    due(&post, 12).await;
    let server = SmtpServer::with([Rule::new(At::Banner, Act::Stall)]);
    let mut rules = post.rules(patient(&server), 6);
    rules.rate = 2;
    let replica = Replica::start(rules).await;
    let pass = replica.begin_once();
    server.wait_for_connections(6).await;
    server.release();
    assert_eq!(pass.done().await.0.accepted, 12);
    replica.leave().await;
    let times = server.mails();
    assert!(most_within(&times, Duration::from_secs(1)) <= 4, "{times:?}");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_server_that_leaves_at_mail_does_not_get_more_of_them() {
    let post = Postbox::open().await;
    due(&post, 12).await;
    let leaves = Rule::new(At::Mail, Act::SayThenCut("421 4.7.0 enough for one connection\r\n")).for_message(1);
    let server = SmtpServer::with([leaves]);
    let mut rules = post.rules(patient(&server), 2);
    rules.rate = 4;
    let replica = Replica::start(rules).await;
    assert_eq!(replica.run_once().await.0.accepted, 12);
    replica.leave().await;
    let times = server.mails();
    assert!(times.len() > 12, "some were given up: {}", times.len());
    assert!(most_within(&times, Duration::from_secs(1)) <= 8, "{times:?}");
    let took = *times.iter().max().unwrap() - *times.iter().min().unwrap();
    assert!(took.as_secs_f64() >= (times.len() - 1) as f64 / 4.0, "{} in {took:?}", times.len());
    agrees(&post, &server).await;
}
