//! The rate that all replicas share.

use std::time::{Duration, Instant};

use super::{agrees, due, patient};
use crate::support::{
    postbox::{Postbox, Replica},
    smtp_server::{Act, At, Rule, SmtpServer},
};

const RATE: u32 = 20;

/// The most that fell into any time of that length.
fn most_within(times: &[Instant], length: Duration) -> usize {
    times
        .iter()
        .map(|begin| times.iter().filter(|time| *time >= begin && **time - *begin < length).count())
        .max()
        .unwrap()
}

#[tokio::test]
async fn three_replicas_keep_to_one_rate() {
    let post = Postbox::open().await;
    due(&post, 60).await;
    let server = SmtpServer::with([]);
    let mut replicas = Vec::new();
    for _ in 0..3 {
        let mut rules = post.rules(patient(&server), 4);
        rules.rate = RATE;
        replicas.push(Replica::start(rules).await);
    }
    let passes: Vec<_> = replicas.iter().map(Replica::begin_once).collect();
    let mut accepted = 0;
    for pass in passes {
        accepted += pass.done().await.0.accepted;
    }
    assert_eq!(accepted, 60);
    for replica in replicas {
        replica.leave().await;
    }
    let times = server.mails();
    assert_eq!(times.len(), 60);
    let rate = RATE as usize;
    assert!(most_within(&times, Duration::from_secs(1)) <= 2 * rate, "{times:?}");
    assert!(most_within(&times, Duration::from_secs(10)) <= 10 * rate, "{times:?}");
    let took = *times.iter().max().unwrap() - *times.iter().min().unwrap();
    assert!(took >= Duration::from_millis(2500), "sixty at twenty a second in {took:?}");
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
