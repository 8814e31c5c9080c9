//! Connections on which nothing comes any more, without a word, and slow ones.

use std::time::Duration;

use super::{NOTICES, PARKED_SCANS, Scanning, owing, sends_all};
use crate::{
    sending::{due, patient},
    support::{
        postbox::{Postbox, Replica, proxy::Proxy, until},
        smtp_server::{Behaviour, SmtpServer},
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_whose_connection_falls_silent_is_given_up_and_the_next_completes_it() {
    let post = Postbox::open().await;
    owing(&post, 1200).await;
    let proxy = Proxy::to(&post.url);
    // Half a minute and a minute in the product; until then the server keeps the lock of a client that is gone. No
    // batch takes as long, on a machine that does other things too.
    let limits = "&options[idle_in_transaction_session_timeout]=4s&options[idle_session_timeout]=4s";
    let way = format!("{}{limits}", proxy.url);
    let rules = permit_notifier::scan::ScanRules { patience: Duration::from_secs(8), ..post.scan_rules(&way) };
    let lock = post.lock("SELECT FROM permits ORDER BY id DESC LIMIT 1 FOR UPDATE").await;
    let scanning = Scanning::start(rules);
    until("the scan is in its last batch", async || post.count(PARKED_SCANS).await == 1).await;
    proxy.fall_silent();
    lock.release().await;
    assert_eq!(post.count(NOTICES).await, 1000);
    scanning.completes(&post, 1200).await;
    let failed = "SELECT count(*) FROM scans WHERE outcome = 'failed' AND error LIKE '%timed out%'";
    assert!(post.count(failed).await >= 1, "the loop gave it up by itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_whose_connections_all_fall_silent_sends_everything_once() {
    const DUE: usize = 60;
    let mut post = Postbox::open().await;
    post.lease = Duration::from_secs(6);
    due(&post, DUE).await;
    let server = SmtpServer::start(Behaviour { final_reply: Duration::from_millis(10), ..Behaviour::default() });
    let proxy = Proxy::to(&post.url);
    let mut replica = Replica::start(post.rules_through(&proxy.url, patient(&server), 3)).await;
    replica.begin();
    until("it sends", async || server.accepted().len() >= 20).await;
    proxy.fall_silent();
    sends_all(&post, &server, replica, DUE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_far_away_costs_time_and_nothing_else() {
    const DUE: usize = 30;
    let post = Postbox::open().await;
    owing(&post, DUE).await;
    let server = SmtpServer::with([]);
    let proxy = Proxy::to(&post.url);
    proxy.delay(Duration::from_millis(20));
    Scanning::start(post.scan_rules(&proxy.url)).completes(&post, DUE as i64).await;
    let mut replica = Replica::start(post.rules_through(&proxy.url, patient(&server), 3)).await;
    replica.begin();
    sends_all(&post, &server, replica, DUE).await;
}
