//! A connection is cut after any byte, of a question or of an answer.

use std::time::Duration;

use permit_notifier::{scan::pass::run_once, store::scans::ScanOutcome};

use super::{PATIENT, claimed, owing, sends_the_rest, sent_once};
use crate::{
    sending::{holder, patient},
    support::{
        office::by_hand,
        postbox::{
            Postbox, Replica,
            proxy::{Proxy, Way},
            until_within,
        },
        smtp_server::SmtpServer,
    },
};

/// So many places to cut in one conversation.
const CUTS: usize = 16;

/// After how many of `bytes` to cut: one place in each part, the first and the last byte among them.
fn places(bytes: usize) -> Vec<usize> {
    let part = bytes / CUTS;
    assert!(part > 0, "a conversation of {bytes} bytes");
    let mut random = fastrand::Rng::with_seed(7);
    let mut places: Vec<usize> = (0..CUTS).map(|number| number * part + random.usize(0..part)).collect();
    places[0] = 0;
    places[CUTS - 1] = bytes - 1;
    places
}

async fn scan_with_cuts(way: Way) {
    const PERMITS: i64 = 5;
    let post = Postbox::open().await;
    owing(&post, PERMITS as usize).await;
    let proxy = Proxy::to(&post.url);
    let rules = post.scan_rules(&proxy.url);
    run_once(&rules, by_hand(None)).await.expect("a scan");
    claimed(&post, PERMITS).await;
    for place in places(proxy.came(way)) {
        post.execute("TRUNCATE notices CASCADE").await;
        proxy.cut_after(way, place);
        until_within(PATIENT, "a scan completes", async || {
            let tried = run_once(&rules, by_hand(None)).await;
            proxy.has_cut() && tried.is_ok_and(|report| report.outcome == ScanOutcome::Completed)
        })
        .await;
        claimed(&post, PERMITS).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_cut_after_any_byte_of_what_it_says_is_completed_by_the_next() {
    scan_with_cuts(Way::ToServer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_cut_after_any_byte_of_what_it_is_told_is_completed_by_the_next() {
    scan_with_cuts(Way::ToClient).await;
}

async fn dispatch_with_cuts(way: Way) {
    const EACH: usize = 3;
    let mut post = Postbox::open().await;
    // What was leased in an answer that never came is freed with the next renewal, here after a second.
    post.lease = Duration::from_secs(6);
    let server = SmtpServer::with([]);
    let proxy = Proxy::to(&post.url);
    let mut due = 0;
    let mut more_due = async || {
        for number in due..due + EACH {
            post.permit(&holder(number)).await;
        }
        due += EACH;
        due
    };
    let replica = async || Replica::start(post.rules_through(&proxy.url, patient(&server), 2)).await;

    more_due().await;
    let mut first = replica().await;
    proxy.came(way);
    first.begin();
    sends_the_rest(&post, &first).await;
    let bytes = proxy.came(way);
    first.leave().await;
    for place in places(bytes) {
        let due = more_due().await;
        let mut replica = replica().await;
        proxy.cut_after(way, place);
        replica.begin();
        let wake = replica.dispatcher.wake();
        until_within(PATIENT, "it is cut", async || {
            wake.notify_one();
            proxy.has_cut()
        })
        .await;
        sends_the_rest(&post, &replica).await;
        replica.leave().await;
        sent_once(&post, &server, due).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_cut_after_any_byte_of_what_it_says_sends_everything_once() {
    dispatch_with_cuts(Way::ToServer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_cut_after_any_byte_of_what_it_is_told_sends_everything_once() {
    dispatch_with_cuts(Way::ToClient).await;
}
