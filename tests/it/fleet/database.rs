//! The database goes and comes back, and a standby takes over. Nobody restarts ours: every loop of it works again.

use std::time::Duration;

use super::{UNSENT, all_sent_once, land, launch};
use crate::{
    sending::holder,
    support::{
        own_server::{OwnServer, Stop},
        postbox::{Postbox, in_days, until, until_within},
        service::{Service, desk},
        smtp_server::SmtpServer,
    },
};

const PATIENT: Duration = Duration::from_secs(90);

async fn sent(post: &Postbox, count: i64, within: Duration) {
    until_within(within, "they are sent", async || {
        post.count("SELECT count(*) FROM deliveries WHERE state = 'sent'").await == count
            && post.count(UNSENT).await == 0
    })
    .await;
}

async fn readiness(services: &[Service], status: u16) {
    until("all say so", async || services.iter().all(|service| service.status("readyz") == status)).await;
}

/// Every loop of every replica works: it is ready, renews its row under the old name or a new one, listens, and sends.
async fn all_is_well(post: &Postbox, services: &[Service], sent_before: i64) {
    let all = services.len() as i64;
    readiness(services, 200).await;
    let renewed = "SELECT count(*) FROM living_processes JOIN processes USING (boot_id)
                   WHERE renewed_at > (SELECT max(at) FROM marks)";
    post.execute("CREATE TABLE IF NOT EXISTS marks (at timestamptz); INSERT INTO marks VALUES (clock_timestamp())")
        .await;
    until("all renew their rows", async || post.count(renewed).await == all).await;
    let listening = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    until("all listen", async || post.count(listening).await == all).await;
    post.permit(&holder(sent_before as usize)).await;
    sent(post, sent_before + 1, PATIENT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_loop_of_a_replica_works_again_after_the_database_was_away() {
    let mut database = OwnServer::start();
    let post = Postbox::at(database.url.clone()).await;
    let server = SmtpServer::with([]);
    // Rows are renewed every second, and a scan is expected every minute.
    let services =
        launch(&post, &server.url(), 2, |desk| desk.with("LEASE_SECONDS", "6").with("SCAN_SCHEDULE", "0 * * * * *"));
    all_is_well(&post, &services, 0).await;
    for (round, how) in [(1, Stop::Fast), (2, Stop::Crash)] {
        database.stop(how);
        readiness(&services, 503).await;
        // Longer than a lease: every connection is refused, and each is dead when it comes back.
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert!(services.iter().all(|service| service.status("livez") == 200));
        database.start_again();
        all_is_well(&post, &services, round).await;
    }
    post.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await;
    all_is_well(&post, &services, 3).await;

    // Of this one no change tells, and only a scan finds it.
    let permit = post.permit_expiring(&holder(4), in_days(365)).await;
    sqlx::query(
        "WITH sooner AS (UPDATE permits SET expires_on = $2 WHERE id = $1 RETURNING id, expires_on, period_since)
         INSERT INTO expiry_periods SELECT id, expires_on, period_since FROM sooner",
    )
    .bind(permit)
    .bind(in_days(30))
    .execute(&mut post.session().await)
    .await
    .expect("another date");
    sent(&post, 5, PATIENT).await;
    land(services);
    all_sent_once(&post, &server, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_a_replica_sends_nothing_until_it_is_confirmed_and_then_without_a_restart() {
    let mut database = OwnServer::start();
    let post = Postbox::at(database.url.clone()).await;
    let server = SmtpServer::with([]);
    let services = launch(&post, &server.url(), 2, |desk| desk.with("LEASE_SECONDS", "12"));
    post.permit(&holder(0)).await;
    sent(&post, 1, PATIENT).await;

    database.fail_over();
    readiness(&services, 200).await;
    post.permit(&holder(1)).await;
    let alarm = "permit_notifier_alarm{kind=\"memory_went_back\"} 1";
    until("all say so", async || services.iter().all(|service| service.answer("metrics").1.contains(alarm))).await;
    assert_eq!(server.taken(), 1);

    let done = desk(&post, &server.url()).run(&["resume", "--reason", "the standby has everything"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    // What waited is held; what is new goes.
    let released = desk(&post, &server.url()).run(&["release", "--restored", "--reason", "never sent"]);
    assert_eq!(released.code, Some(0), "{released:?}");
    post.permit(&holder(2)).await;
    sent(&post, 3, PATIENT).await;
    land(services);
    all_sent_once(&post, &server, 3).await;
}
