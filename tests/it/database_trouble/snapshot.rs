//! Somebody keeps a snapshot open: nothing that changes meanwhile can be cleaned away.

use sqlx::Connection as _;

use super::{NOTICES, Scanning, owing, sends_all};
use crate::{
    sending::patient,
    support::{
        postbox::{Postbox, Replica},
        smtp_server::SmtpServer,
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_held_open_stops_neither_scan_nor_dispatch() {
    const DUE: usize = 200;
    let post = Postbox::open().await;
    owing(&post, DUE).await;
    let server = SmtpServer::with([]);
    let mut session = post.session().await;
    let mut held = session.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.expect("a transaction");
    let seen = async |held: &mut sqlx::PgConnection| -> i64 {
        sqlx::query_scalar(NOTICES).fetch_one(held).await.expect("a count")
    };
    assert_eq!(seen(&mut held).await, 0);
    Scanning::start(post.scan_rules(&post.url)).completes(&post, DUE as i64).await;
    let mut replica = Replica::start(post.rules(patient(&server), 8)).await;
    replica.begin();
    sends_all(&post, &server, replica, DUE).await;
    assert_eq!(seen(&mut held).await, 0, "it was held all the time");
}
