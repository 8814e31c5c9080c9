//! Sessions of the database are ended all the time.

use std::{sync::Arc, time::Duration};

use permit_notifier::{
    scan::pass::run_once,
    store::{notify::wake_on_notify, scans::ScanOutcome},
};
use sqlx::AssertSqlSafe;
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{NOTICES, PARKED_SCANS, PATIENT, UNSENT, claimed, owing, sends_all};
use crate::{
    sending::{due, patient},
    support::{
        office::by_hand,
        postbox::{Postbox, Replica, until, until_within},
        smtp_server::{Behaviour, SmtpServer},
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_loses_its_session_in_every_batch_is_completed_by_those_after_it() {
    const BATCHES: i64 = 4;
    const BATCH: i64 = 1000;
    let post = Postbox::open().await;
    owing(&post, (BATCHES * BATCH) as usize).await;
    let rules = post.scan_rules(&post.url);
    let scan = || {
        let rules = rules.clone();
        async move { run_once(&rules, by_hand(None)).await }
    };
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'permit-notifier scan'";
    for batch in 0..BATCHES {
        let within = batch * BATCH + BATCH / 2;
        let one = format!("SELECT id FROM permits ORDER BY id OFFSET {within} LIMIT 1");
        let lock = format!("SELECT FROM permits WHERE id = ({one}) FOR UPDATE");
        let lock = post.lock(AssertSqlSafe(lock)).await;
        let scanning = JoinSet::from_iter([scan()]);
        until("the scan is in this batch", async || post.count(PARKED_SCANS).await == 1).await;
        assert_eq!(post.count(kill).await, 1);
        assert!(scanning.join_all().await[0].is_err(), "a scan that lost its session fails");
        assert_eq!(post.count(NOTICES).await, batch * BATCH, "the batches before, and nothing of this one");
        lock.release().await;
    }
    let report = scan().await.expect("a scan");
    assert_eq!(report.outcome, ScanOutcome::Completed);
    claimed(&post, BATCHES * BATCH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_whose_sessions_are_ended_all_the_time_sends_everything_once() {
    const DUE: usize = 120;
    const ROUNDS: usize = 12;
    let post = Postbox::open().await;
    due(&post, DUE).await;
    let server = SmtpServer::start(Behaviour { final_reply: Duration::from_millis(5), ..Behaviour::default() });
    let mut replica = Replica::start(post.rules(patient(&server), 4)).await;
    replica.begin();
    let wake = replica.dispatcher.wake();
    // All but the test's own.
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name LIKE 'permit-notifier%'";
    let mut killed = 0;
    for round in 1..=ROUNDS {
        until_within(PATIENT, "some more are sent", async || {
            post.hurry().await;
            wake.notify_one();
            server.accepted().len() >= round * DUE / (ROUNDS + 1)
        })
        .await;
        killed += post.count(kill).await;
    }
    assert!(killed > ROUNDS as i64 && post.count(UNSENT).await > 0, "{killed} were killed in the midst");
    sends_all(&post, &server, replica, DUE).await;
}

#[tokio::test]
async fn a_listener_whose_session_is_ended_hears_again() {
    let post = Postbox::open().await;
    let (wake, stop) = (Arc::new(Notify::new()), CancellationToken::new());
    let listening = {
        let (url, wake, stop) = (post.url.clone(), Arc::clone(&wake), stop.clone());
        JoinSet::from_iter([async move { wake_on_notify(&url, &wake, &stop).await }])
    };
    let hears = async || {
        until("it hears", async || {
            post.execute("NOTIFY deliveries_due").await;
            tokio::time::timeout(Duration::from_millis(20), wake.notified()).await.is_ok()
        })
        .await;
    };
    hears().await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    assert_eq!(post.count(kill).await, 1);
    // That it was cut off is a poke too, and perhaps one was still waiting; the third can only be heard.
    for _ in 0..3 {
        hears().await;
    }
    stop.cancel();
    listening.join_all().await;
}
