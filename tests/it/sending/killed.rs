//! `kill -9` of a process that sends by SMTP, between any two steps of a message. Another process takes over, and then
//! database and ledger say the same: at most one ambiguous message per sender, nothing lost, nothing twice.

use std::{collections::HashSet, time::Duration};

use chrono::TimeDelta;

use super::{agrees, due, holder};
use crate::support::{
    dispatching::{Dispatching, Role, Seam, Wait},
    postbox::{
        Postbox,
        proxy::{Commits, Proxy},
        until,
        world::Copy,
    },
    smtp_server::{Act, At, Rule, SmtpServer},
};

const SENDERS: usize = 2;
const NOTICES: usize = 9;

/// A process of its own takes over what dead ones left, and sends until nothing is under way or due.
pub(super) async fn take_over(post: &Postbox, server: &SmtpServer) {
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND state LIKE '%transaction%' AND pid <> pg_backend_pid()";
    until("the transactions of the dead are gone", async || post.count(open).await == 0).await;
    post.age_processes().await;
    finish(post, server).await;
}

/// A process of its own sends until nothing is under way or due.
pub(super) async fn finish(post: &Postbox, server: &SmtpServer) {
    post.clock.advance(TimeDelta::minutes(1));
    let another = Dispatching::start(&Role::with_server(post, server)).await;
    let rest = "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending')";
    until("another process has sent the rest", async || post.count(rest).await == 0).await;
    another.end().await;
}

/// What holds whatever was killed, once all is taken over. Says how many are ambiguous.
async fn whole(post: &Postbox, server: &SmtpServer, notices: usize) -> usize {
    agrees(post, server).await;
    let ids: Vec<String> = server.accepted().into_iter().map(|message| message.message_id).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "twice: {ids:?}");
    let copies = post.copies().await;
    assert_eq!(copies.len(), notices);
    let ends: Vec<String> = copies.iter().map(Copy::end).collect();
    assert!(ends.iter().all(|end| end == "sent" || end == "ambiguous"), "lost: {ends:?}");
    for copy in copies.iter().filter(|copy| copy.state == "ambiguous") {
        assert_eq!(post.outcomes(copy.id).await, ["ambiguous owner_lost"]);
    }
    ends.iter().filter(|end| *end == "ambiguous").count()
}

async fn opened() -> (Postbox, SmtpServer) {
    let post = Postbox::open().await;
    due(&post, NOTICES).await;
    (post, SmtpServer::with([]))
}

/// Kills a process whose senders wait at `seam`, each after so many messages; says with whom they were.
async fn kill_at(post: &Postbox, server: &SmtpServer, seam: Seam, after: usize) -> Vec<String> {
    let wait = Some(Wait { seam, after });
    let mut child = Dispatching::start(&Role { wait, ..Role::with_server(post, server) }).await;
    let recipients = child.waits(SENDERS).await;
    child.kill();
    server.wait_until(|heard| heard.iter().filter(|heard| heard.line == "(end)").count() == server.connections());
    recipients
}

/// Makes every mail so large that several blocks of its body are written before the one with the dot.
pub(super) async fn large_mails(post: &Postbox) {
    post.execute(
        "UPDATE permit_types SET office_contact =
             (SELECT string_agg(line || repeat('😀', 190), E'\\n') FROM generate_series(1, 6) AS line);
         UPDATE permits SET description = repeat('😀', 300), site_address = repeat('😀', 300)",
    )
    .await;
}

/// Addresses to which the server took a message, in order.
fn taken_by(server: &SmtpServer) -> Vec<String> {
    let mut taken: Vec<String> = server.accepted().into_iter().map(|message| message.recipient).collect();
    taken.sort();
    taken
}

#[tokio::test]
async fn killed_before_mail_all_is_sent_by_another() {
    let (post, server) = opened().await;
    kill_at(&post, &server, Seam::Leased, 0).await;
    assert!(server.heard().is_empty());
    take_over(&post, &server).await;
    assert_eq!(whole(&post, &server, NOTICES).await, 0);
    assert!(post.count("SELECT sum(lost_owners) FROM deliveries").await >= SENDERS as i64, "they were leased");
    assert_eq!(taken_by(&server), (0..NOTICES).map(holder).collect::<Vec<_>>());
}

#[tokio::test]
async fn killed_past_the_gate_it_is_ambiguous_although_no_byte_of_the_body_was_sent() {
    for after in [0, 2] {
        let (post, server) = opened().await;
        let lost = kill_at(&post, &server, Seam::PastTheGate, after).await;
        assert_eq!(server.count("(BODY)"), SENDERS * after);
        take_over(&post, &server).await;
        assert_eq!(whole(&post, &server, NOTICES).await, SENDERS);
        assert_eq!(server.accepted().len(), NOTICES - SENDERS);
        assert!(lost.iter().all(|address| !taken_by(&server).contains(address)));
    }
}

#[tokio::test]
async fn killed_inside_the_body_it_is_ambiguous_and_the_server_has_nothing_of_it() {
    for after in [0, 2] {
        let (post, server) = opened().await;
        large_mails(&post).await;
        let lost = kill_at(&post, &server, Seam::BeforeTheDot, after).await;
        assert_eq!((server.count("(BODY)"), server.count(".")), (SENDERS * (after + 1), SENDERS * after));
        take_over(&post, &server).await;
        assert_eq!(whole(&post, &server, NOTICES).await, SENDERS);
        assert_eq!(server.accepted().len(), NOTICES - SENDERS);
        assert!(lost.iter().all(|address| !taken_by(&server).contains(address)));
    }
}

#[tokio::test]
async fn killed_after_the_dot_it_is_ambiguous_whatever_the_server_made_of_it() {
    for (act, taken) in [(Act::Stall, SENDERS), (Act::StallThenSay("451 4.3.0 later\r\n"), 0)] {
        let (post, server) = opened().await;
        let third = |connection| Rule::new(At::Dot, act.clone()).on_connection(connection).for_message(2);
        server.behave((0..SENDERS).map(third));
        let child = Dispatching::start(&Role::with_server(&post, &server)).await;
        let dots = SENDERS * 3;
        server.wait_until(|heard| heard.iter().filter(|heard| heard.line == ".").count() == dots);
        child.kill();
        server.release();
        take_over(&post, &server).await;
        assert_eq!(whole(&post, &server, NOTICES).await, SENDERS);
        assert_eq!(server.accepted().len(), NOTICES - SENDERS + taken, "{act:?}");
    }
}

#[tokio::test]
async fn killed_between_the_reply_and_the_settle_it_is_ambiguous_and_not_sent_again() {
    for after in [0, 2] {
        let (post, server) = opened().await;
        let lost = kill_at(&post, &server, Seam::Answered, after).await;
        assert_eq!(server.accepted().len(), SENDERS * (after + 1));
        assert!(lost.iter().all(|address| taken_by(&server).contains(address)));
        take_over(&post, &server).await;
        assert_eq!(whole(&post, &server, NOTICES).await, SENDERS);
        assert_eq!(server.accepted().len(), NOTICES, "they are in the ledger, each once");
    }
}

/// Kills a process while it settles the second message of each sender, when COMMITs do as they are told.
async fn kill_in_settle(post: &Postbox, server: &SmtpServer, commits: Commits) -> Vec<String> {
    let proxy = Proxy::to(&post.url);
    let wait = Some(Wait { seam: Seam::Answered, after: 1 });
    let role = Role { way: proxy.url.clone(), wait, ..Role::with_server(post, server) };
    let mut child = Dispatching::start(&role).await;
    let recipients = child.waits(SENDERS).await;
    proxy.let_commits(commits);
    child.let_go();
    until("a settle commits", async || proxy.caught() > 0).await;
    if commits == Commits::KeepAnswersBack {
        let settled = "SELECT count(*) FROM attempts WHERE outcome = 'accepted'";
        until("a COMMIT is done", async || post.count(settled).await > SENDERS as i64).await;
    }
    child.kill();
    recipients
}

#[tokio::test]
async fn killed_before_the_commit_of_the_settle_it_is_ambiguous_and_not_sent_again() {
    let (post, server) = opened().await;
    let lost = kill_in_settle(&post, &server, Commits::KeepBack).await;
    take_over(&post, &server).await;
    assert_eq!(whole(&post, &server, NOTICES).await, SENDERS);
    for address in lost {
        assert_eq!(post.copy_to(&address).await.end(), "ambiguous");
    }
    assert_eq!(server.accepted().len(), NOTICES, "they are in the ledger, each once");
}

#[tokio::test]
async fn killed_after_the_commit_of_the_settle_what_it_settled_stands() {
    let (post, server) = opened().await;
    let settled = kill_in_settle(&post, &server, Commits::KeepAnswersBack).await;
    take_over(&post, &server).await;
    // What was not in that COMMIT, or had its gate in it, is nobody's to know.
    assert!(whole(&post, &server, NOTICES).await <= SENDERS);
    let mut ends = Vec::new();
    for address in settled {
        ends.push(post.copy_to(&address).await.end());
    }
    assert!(ends.contains(&"sent".to_owned()), "{ends:?}");
}

#[tokio::test]
async fn killed_at_any_moment_nothing_is_lost_and_nothing_goes_twice() {
    const KILLS: usize = 10;
    let post = Postbox::open().await;
    due(&post, 60).await;
    let server = SmtpServer::with([]);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..KILLS {
        let before = server.accepted().len();
        let child = Dispatching::start(&Role { senders: 4, ..Role::with_server(&post, &server) }).await;
        let more = before + random.usize(0..5);
        until("it has sent some", async || server.accepted().len() >= more).await;
        tokio::time::sleep(Duration::from_micros(random.u64(0..5000))).await;
        child.kill();
        post.age_processes().await;
        // Deliveries that lost three owners would wait for a person.
        post.execute("UPDATE deliveries SET lost_owners = 0").await;
    }
    take_over(&post, &server).await;
    let ambiguous = whole(&post, &server, 60).await;
    assert!(ambiguous <= KILLS * 4, "{ambiguous} ambiguous");
}
