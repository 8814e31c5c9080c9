//! PostgreSQL is restarted in the midst of a scan and of a dispatch. Nobody restarts ours.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::{NOTICES, PARKED_SCANS, PATIENT, Scanning, UNSENT, owing, sent_once};
use crate::{
    sending::holder,
    support::{
        own_server::{OwnServer, Stop},
        postbox::{Postbox, noon, until, until_within},
        program::{Desk, Running, get},
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

/// A service that sends from that database, with the URL of its pages.
fn serving(post: &Postbox, server: &SmtpServer) -> (Desk, Running, String) {
    let desk = Desk::new()
        .with("DATABASE_URL", &post.url)
        .with("SMTP_URL", server.url())
        .with("MAIL_FROM", "Maple County <permits@maple.example>")
        .with("MAIL_CONCURRENCY", "4")
        .with("ENVIRONMENT", "tests")
        .with("MAIL_ALLOWLIST", "*")
        .with("CLOCK", noon().to_rfc3339());
    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("Listening on http://");
    let url = line.split_whitespace().last().expect("an address").to_owned();
    (desk, serve, url)
}

async fn dispatch_through(how: Stop) {
    const DUE: usize = 160;
    let mut database = OwnServer::start();
    let post = Postbox::at(database.url.clone()).await;
    post.permit(&holder(0)).await;
    post.more_of_the_same(DUE).await;
    // Slow enough that the restart meets messages on their way.
    let server = SmtpServer::start(Behaviour { final_reply: Duration::from_millis(30), ..Behaviour::default() });
    let mut services = [serving(&post, &server), serving(&post, &server)];
    until("they send", async || server.accepted().len() >= 40).await;

    database.stop(how);
    assert!(server.accepted().len() < DUE);
    let ready = |answer: u16| {
        let urls: Vec<&String> = services.iter().map(|(_, _, url)| url).collect();
        async move || urls.iter().all(|url| get(&format!("{url}readyz")).0 == answer)
    };
    until("nobody is ready", ready(503)).await;
    for (_, _, url) in &services {
        assert_eq!(get(&format!("{url}livez")).0, 200);
    }
    database.start_again();
    until("all are ready", ready(200)).await;
    until_within(PATIENT, "all is sent", async || {
        post.hurry().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        post.count(UNSENT).await == 0
    })
    .await;
    for (_, serve, _) in &mut services {
        serve.signal(Signal::SIGTERM);
        assert_eq!(serve.wait(), Some(0));
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
