//! A process that stands still past its lease, is taken for dead, and goes on: before the dot it sends nothing more,
//! after it what it saw counts.

use std::{collections::HashSet, time::Duration};

use nix::sys::signal::Signal;

use super::{
    agrees, due, holder,
    killed::{finish, large_mails},
};
use crate::support::{
    dispatching::{Dispatching, Role, Seam, Wait},
    postbox::{Postbox, until},
    smtp_server::{Act, At, Rule, SmtpServer},
};

const SENDERS: usize = 2;
const NOTICES: usize = 9;
const LEASE: Duration = Duration::from_secs(3);

/// Stops the process, and lets another take over once its lease has run out. Both its messages are then ambiguous.
async fn stop_and_take_over(post: &Postbox, server: &SmtpServer, child: &Dispatching) -> Vec<String> {
    child.signal(Signal::SIGSTOP);
    let living = "SELECT count(*) FROM living_processes";
    until("its lease has run out", async || post.count(living).await == 0).await;
    finish(post, server).await;
    let mut lost = Vec::new();
    for copy in post.copies().await {
        let outcomes = post.outcomes(copy.id).await;
        if copy.state == "sent" {
            assert_eq!(outcomes, ["accepted"]);
        } else {
            assert_eq!(copy.end(), "ambiguous");
            assert_eq!(outcomes, ["ambiguous owner_lost"]);
            lost.push(copy.recipient.unwrap());
        }
    }
    assert_eq!(lost.len(), SENDERS, "one for each sender");
    lost
}

/// Lets the process go on until its two messages have another outcome than `owner_lost`.
async fn go_on(post: &Postbox, child: &mut Dispatching) {
    child.let_go();
    child.signal(Signal::SIGCONT);
    let unknown = "SELECT count(*) FROM attempts WHERE reason = 'owner_lost'";
    until("it says what it saw", async || post.count(unknown).await == 0).await;
}

/// Every notice is sent, with one message.
async fn all_sent_once(post: &Postbox, server: &SmtpServer) {
    assert!(post.copies().await.iter().all(|copy| copy.end() == "sent"));
    agrees(post, server).await;
    let recipients: HashSet<_> = server.accepted().into_iter().map(|message| message.recipient).collect();
    assert_eq!(recipients, (0..NOTICES).map(holder).collect());
    assert_eq!(server.accepted().len(), NOTICES);
}

/// Stopped at `seam`, when each sender has sent `after` messages.
async fn stopped_at(seam: Seam, after: usize) {
    let post = Postbox::open().await;
    due(&post, NOTICES).await;
    large_mails(&post).await;
    let server = SmtpServer::with([]);
    let wait = Some(Wait { seam, after });
    let mut child = Dispatching::start(&Role { lease: LEASE, wait, ..Role::with_server(&post, &server) }).await;
    let mut waiting = child.waits(SENDERS).await;
    let mut lost = stop_and_take_over(&post, &server, &child).await;
    waiting.sort();
    lost.sort();
    assert_eq!(waiting, lost);
    go_on(&post, &mut child).await;
    let reasons: Vec<_> = post.attempts().await.into_iter().filter_map(|attempt| attempt.reason).collect();
    assert_eq!(reasons, ["lease_too_old"; SENDERS]);
    assert!(server.accepted().iter().all(|message| !lost.contains(&message.recipient)), "{seam:?}: no dot was sent");
    assert_eq!(server.count("."), NOTICES - SENDERS);
    agrees(&post, &server).await;
    child.kill();
    finish(&post, &server).await;
    all_sent_once(&post, &server).await;
}

#[tokio::test]
async fn stopped_past_the_gate_it_sends_no_dot_once_its_lease_has_run_out() {
    for after in [0, 1] {
        stopped_at(Seam::PastTheGate, after).await;
    }
}

#[tokio::test]
async fn stopped_inside_the_body_it_sends_no_dot_once_its_lease_has_run_out() {
    for after in [0, 1] {
        stopped_at(Seam::BeforeTheDot, after).await;
    }
}

#[tokio::test]
async fn stopped_after_the_dot_what_it_sees_takes_the_place_of_what_nobody_could_know() {
    let post = Postbox::open().await;
    due(&post, NOTICES).await;
    // One is taken and one is refused, and the answer comes while the process stands still.
    let server = SmtpServer::with([
        Rule::new(At::Dot, Act::Stall).on_connection(0).for_message(1),
        Rule::new(At::Dot, Act::StallThenSay("451 4.3.0 later\r\n")).on_connection(1).for_message(1),
    ]);
    let mut child = Dispatching::start(&Role { lease: LEASE, ..Role::with_server(&post, &server) }).await;
    server.wait_until(|heard| heard.iter().filter(|heard| heard.line == ".").count() == 2 * SENDERS);
    let lost = stop_and_take_over(&post, &server, &child).await;
    let taken = |address: &String| server.accepted().iter().any(|message| message.recipient == *address);
    assert_eq!(lost.iter().filter(|address| taken(address)).count(), 1);
    server.release();
    go_on(&post, &mut child).await;
    for address in &lost {
        let copy = post.copy_to(address).await;
        let (end, outcome) = if taken(address) { ("sent", "accepted") } else { ("pending", "deferred") };
        assert_eq!((copy.end().as_str(), &post.outcomes(copy.id).await[..]), (end, &[outcome.to_owned()][..]));
    }
    assert_eq!(server.accepted().len(), NOTICES - 1, "nothing was sent again");
    agrees(&post, &server).await;
    child.kill();
    finish(&post, &server).await;
    all_sent_once(&post, &server).await;
}
