//! Two versions of the program on one database, as during an upgrade without a pause.

use super::{UNSENT, all_sent_once, launch};
use crate::{
    sending::holder,
    support::{
        postbox::{Postbox, until},
        service::{Service, desk},
        smtp_server::SmtpServer,
    },
};

/// What a newer program does at its first start: migrations of which this one knows nothing, and which only add.
const NEWER: &str = "
    INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
    VALUES (20991231000000, 'from the future', true, '', 0);
    DO $$
    DECLARE known regclass;
    BEGIN
        FOR known IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
                                              AND relname <> '_sqlx_migrations' LOOP
            EXECUTE format('ALTER TABLE %s ADD COLUMN of_the_future text NOT NULL DEFAULT ''new''', known);
        END LOOP;
    END $$;
    CREATE TABLE futures (id bigint PRIMARY KEY)";

/// This many are sent.
async fn sent(post: &Postbox, count: i64) {
    until("they are sent", async || {
        post.count("SELECT count(*) FROM deliveries WHERE state = 'sent'").await == count
            && post.count(UNSENT).await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_goes_on_and_others_start_when_a_newer_program_has_added_to_the_database() {
    let post = Postbox::open().await;
    let server = SmtpServer::with([]);
    let mut services = launch(&post, &server.url(), 1, |desk| desk);
    post.permit(&holder(0)).await;
    sent(&post, 1).await;
    post.execute(NEWER).await;
    services.extend(launch(&post, &server.url(), 1, |desk| desk));
    for number in 1..20 {
        post.permit(&holder(number)).await;
    }
    sent(&post, 20).await;
    for service in &services {
        assert_eq!(service.answer("readyz"), (200, "ok\n".to_owned()));
    }
    // The old replica alone, on statements that it prepared before.
    services.pop().into_iter().for_each(|newer| super::land(vec![newer]));
    post.permit(&holder(20)).await;
    sent(&post, 21).await;
    let scans = "SELECT count(*) FROM scans WHERE outcome = 'completed'";
    until("it has scanned", async || post.count(scans).await > 0).await;
    super::land(services);
    all_sent_once(&post, &server, 21).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_too_old_says_so_and_stops_and_no_other_starts() {
    let post = Postbox::open().await;
    let server = SmtpServer::with([]);
    // The longest silence is a sixth of the lease.
    let mut service = Service::start(desk(&post, &server.url()).with("LEASE_SECONDS", "30"));
    post.permit(&holder(0)).await;
    sent(&post, 1).await;
    post.execute("UPDATE installation SET min_binary = '99.0.0'").await;
    assert_eq!(service.answer("readyz"), (503, "version\n".to_owned()));
    assert_eq!(service.status("livez"), 200);
    assert_eq!(service.ended(), Some(1));
    let sentence = format!("this database needs version 99.0.0 of permit-notifier or newer, and this is {OURS}");
    let said = service.said();
    assert!(said.contains(&sentence), "{said}");
    assert_eq!(post.count("SELECT count(*) FROM processes WHERE ended_at IS NULL").await, 0, "it ended in order");
    post.permit(&holder(1)).await;
    let done = desk(&post, &server.url()).run(&["serve"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains(&sentence), "{done:?}");
    assert_eq!(server.accepted().len(), 1);
}

const OURS: &str = env!("CARGO_PKG_VERSION");
