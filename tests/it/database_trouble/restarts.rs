//! PostgreSQL is restarted in the midst of a scan and of a dispatch. Nobody restarts ours.

use std::time::Duration;

use super::{NOTICES, PARKED_SCANS, PATIENT, Scanning, UNSENT, owing, sent_once};
use crate::{
    sending::holder,
    support::{
        own_server::{OwnServer, Stop},
        postbox::{Postbox, until, until_within},
        service::{Service, desk},
        smtp_server::{Behaviour, SmtpServer},
    },
};

async fn scan_through(how: Stop) {
    const PERMITS: i64 = 3000;
    let mut server = OwnServer::start();
    let post = Postbox::at(server.url.clone()).await;
    owing(&post, PERMITS as usize).await;
    let _lock = post.lock("SELECT FROM permits ORDER BY id DESC LIMIT 1 FOR UPDATE").await;
    let scanning = Scanning::start(post.scan_rules(&post.url));
    until("the scan is in its last batch", async || post.count(PARKED_SCANS).await == 1).await;
    server.stop(how);
    server.start_again();
    assert_eq!(post.count(NOTICES).await, 2000, "two batches were committed, and a third begun");
    scanning.completes(&post, PERMITS).await;
    let broken = "SELECT count(*) FROM scans WHERE outcome IN ('failed', 'abandoned')";
    assert!(post.count(broken).await >= 1, "the first try is on record");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_goes_on_after_the_server_was_shut_down_and_started() {
    scan_through(Stop::Fast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_goes_on_after_the_server_crashed() {
    scan_through(Stop::Crash).await;
}

async fn dispatch_through(how: Stop) {
    const DUE: usize = 160;
    let mut database = OwnServer::start();
    let post = Postbox::at(database.url.clone()).await;
    post.permit(&holder(0)).await;
    post.more_of_the_same(DUE).await;
    // Slow enough that the restart meets messages on their way.
    let server = SmtpServer::start(Behaviour { final_reply: Duration::from_millis(30), ..Behaviour::default() });
    let mut services = [(); 2].map(|()| Service::start(desk(&post, &server.url())));
    until("they send", async || server.accepted().len() >= 40).await;

    database.stop(how);
    assert!(server.accepted().len() < DUE);
    let all_say = async |answer: u16| services.iter().all(|service| service.status("readyz") == answer);
    until("nobody is ready", async || all_say(503).await).await;
    assert!(services.iter().all(|service| service.status("livez") == 200));
    database.start_again();
    until("all are ready", async || all_say(200).await).await;
    until_within(PATIENT, "all is sent", async || {
        post.hurry().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        post.count(UNSENT).await == 0
    })
    .await;
    for service in &mut services {
        service.terminate();
        assert_eq!(service.ended(), Some(0));
    }
    sent_once(&post, &server, DUE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_goes_on_after_the_server_was_shut_down_and_started() {
    dispatch_through(Stop::Fast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_goes_on_after_the_server_crashed() {
    dispatch_through(Stop::Crash).await;
}
