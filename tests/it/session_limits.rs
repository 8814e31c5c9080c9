//! Every session of ours in the database has limits, and a name that tells what it is for.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use permit_notifier::store::connect::{Purpose, connect, pool, reading_pool};
use sqlx::{Connection, PgConnection, Row};

use crate::support::cluster::empty_database;
use crate::support::postbox::until_within;
use crate::support::program::{Desk, get};

/// Each purpose with its name in the database, and its limits there in milliseconds: of a statement, of waiting for a
/// lock, of a transaction in which nothing happens.
const TABLE: [(Purpose, &str, [i64; 3]); 8] = [
    (Purpose::Work, "permit-notifier", [30_000, 10_000, 15_000]),
    (Purpose::Reading, "permit-notifier reading", [30_000, 10_000, 15_000]),
    (Purpose::Rounds, "permit-notifier rounds", [20_000, 10_000, 15_000]),
    (Purpose::Scan, "permit-notifier scan", [300_000, 30_000, 30_000]),
    (Purpose::Bulk, "permit-notifier bulk", [1_800_000, 30_000, 300_000]),
    (Purpose::Purge, "permit-notifier purge", [300_000, 5_000, 30_000]),
    (Purpose::Listen, "permit-notifier listen", [30_000, 10_000, 15_000]),
    (Purpose::Watch, "permit-notifier watch", [10_000, 5_000, 15_000]),
];

/// A new purpose must come into the table.
fn row_of(purpose: Purpose) -> usize {
    match purpose {
        Purpose::Work => 0,
        Purpose::Reading => 1,
        Purpose::Rounds => 2,
        Purpose::Scan => 3,
        Purpose::Bulk => 4,
        Purpose::Purge => 5,
        Purpose::Listen => 6,
        Purpose::Watch => 7,
    }
}

/// What the session itself shows.
async fn shown(session: &mut PgConnection) -> (String, [i64; 3]) {
    let row = sqlx::query(
        "SELECT current_setting('application_name'),
                array(SELECT setting::bigint FROM pg_settings
                      JOIN unnest(ARRAY['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'])
                           WITH ORDINALITY AS wanted (name, place) USING (name) ORDER BY place)",
    )
    .fetch_one(session)
    .await
    .expect("its settings");
    (row.get(0), row.get::<Vec<i64>, _>(1).try_into().expect("three limits"))
}

#[tokio::test]
async fn each_purpose_has_its_own_name_and_limits() {
    let url = empty_database().await;
    for (place, (purpose, name, limits)) in TABLE.into_iter().enumerate() {
        assert_eq!(row_of(purpose), place);
        let mut session = connect(&url, purpose).await.expect("a connection");
        assert_eq!(shown(&mut session).await, (name.to_owned(), limits), "{purpose:?}");
        session.close().await.expect("its end");
    }
    let names: BTreeSet<&str> = TABLE.iter().map(|(_, name, _)| *name).collect();
    assert_eq!(names.len(), TABLE.len(), "each name tells one purpose");
    for (pool, purpose) in [(pool(&url, 1), Purpose::Work), (reading_pool(&url, 1), Purpose::Reading)] {
        let pool = pool.expect("a pool");
        let (_, name, limits) = TABLE[row_of(purpose)];
        assert_eq!(shown(&mut pool.acquire().await.expect("a connection")).await, (name.to_owned(), limits));
    }
}

/// What a session began with, of whatever kind its socket is.
async fn began_with(url: &str, purpose: Purpose, setting: &str) -> String {
    let mut session = connect(url, purpose).await.expect("a connection");
    let value = sqlx::query_scalar("SELECT reset_val FROM pg_settings WHERE name = $1").bind(setting);
    value.fetch_one(&mut session).await.expect("its setting")
}

#[tokio::test]
async fn what_else_a_purpose_needs_is_set_and_the_url_has_the_last_word() {
    let url = empty_database().await;
    for (purpose, setting, value) in [
        (Purpose::Reading, "default_transaction_read_only", "on"),
        (Purpose::Work, "default_transaction_read_only", "off"),
        (Purpose::Rounds, "plan_cache_mode", "force_generic_plan"),
        (Purpose::Rounds, "enable_seqscan", "off"),
        (Purpose::Scan, "idle_session_timeout", "60000"),
        (Purpose::Work, "tcp_keepalives_idle", "30"),
        (Purpose::Watch, "tcp_user_timeout", "30000"),
    ] {
        assert_eq!(began_with(&url, purpose, setting).await, value, "{purpose:?} {setting}");
    }
    let own = format!("{url}{}options=-c%20idle_session_timeout%3D5s", if url.contains('?') { '&' } else { '?' });
    assert_eq!(began_with(&own, Purpose::Scan, "idle_session_timeout").await, "5000");
    assert_eq!(began_with(&own, Purpose::Scan, "lock_timeout").await, "30000");
}

#[tokio::test]
async fn every_session_of_a_service_is_named_after_its_use() {
    let url = empty_database().await;
    let desk = Desk::new().with("DATABASE_URL", &url).with("LOG_FORMAT", "json");
    let mut serve = desk.start(&["serve"]);
    let line = serve.wait_for("Listening on http://");
    let address = line.split_whitespace().last().expect("an address").to_owned();
    serve.find("scan completed");
    for path in ["readyz", "metrics", "sign-in"] {
        assert_eq!(get(&format!("{address}{path}")).0, 200, "{path}");
    }
    let mut watch = PgConnection::connect(&url).await.expect("a connection");
    let mut names: BTreeSet<String> = BTreeSet::new();
    until_within(Duration::from_mins(1), "one of each is seen", async || {
        let found: Vec<String> = sqlx::query_scalar(
            "SELECT application_name FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )
        .fetch_all(&mut watch)
        .await
        .expect("the sessions");
        names.extend(found);
        names.contains("permit-notifier listen")
    })
    .await;
    assert!(names.contains("permit-notifier"), "{names:?}");
    let known: BTreeSet<&str> = TABLE.iter().map(|(_, name, _)| *name).collect();
    let strangers: Vec<_> = names.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(strangers.is_empty(), "sessions without limits of ours: {strangers:?}");
    serve.signal(Signal::SIGTERM);
    assert_eq!(serve.wait(), Some(0));
}
