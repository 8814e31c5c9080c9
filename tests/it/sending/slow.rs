//! A mail server that takes its time.

use std::time::Duration;

use super::{agrees, due, patient};
use crate::support::{
    postbox::{Postbox, Replica, until},
    smtp_server::{Act, At, Rule, SmtpServer},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_takes_longer_than_the_lease_is_waited_for_and_nobody_takes_the_message_over() {
    let mut post = Postbox::open().await;
    post.lease = Duration::from_secs(3);
    due(&post, 1).await;
    let server = SmtpServer::with([Rule::new(At::Dot, Act::Stall)]);
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let mut replica = Replica::start(post.rules(patient(&server), 1)).await;
        replica.begin();
        replicas.push(replica);
    }
    until("the dot is sent", async || server.count(".") == 1).await;
    post.execute("CREATE TABLE began AS SELECT clock_timestamp() AS at").await;
    // Two leases go by, and both look for work all the time.
    let renewed = "SELECT count(*) FROM processes, began WHERE renewed_at > at + interval '6 seconds'";
    until("both have outlived the lease", async || {
        for replica in &replicas {
            replica.dispatcher.wake().notify_one();
        }
        post.count(renewed).await == 2
    })
    .await;
    assert_eq!(post.outcomes(post.copies().await[0].id).await, ["sending"], "nobody took it over");
    server.release();
    until("it is sent", async || post.copies().await[0].end() == "sent").await;
    for replica in replicas {
        replica.leave().await;
    }
    assert_eq!(server.accepted().len(), 1);
    assert_eq!(post.outcomes(post.copies().await[0].id).await, ["accepted"]);
    agrees(&post, &server).await;
}
