//! A database that does not let us do what we must, and ways to the operator that lead nowhere.

use std::net::TcpListener;

use super::broken::{on_a_database, run, says};
use super::lines;
use crate::support::cluster::{cluster, empty_database};
use crate::support::program::Desk;

/// Makes the statement of these words and of the name of the database, and runs it there.
async fn on_database(url: &str, before: &str, after: &str) {
    let statement = format!("DO $$ BEGIN EXECUTE format('{before} %I {after}', current_database()); END $$");
    run(url, &statement).await;
}

#[tokio::test]
async fn a_database_that_can_only_be_read_is_a_fault_and_serve_says_so() {
    let (desk, url) = on_a_database().await;
    assert_eq!(desk.run(&["migrate"]).code, Some(0));
    let (checks, _) = lines(&desk);
    says(&checks, "changes", "ok", "takes them", "");
    on_database(&url, "ALTER DATABASE", "SET default_transaction_read_only = on").await;
    let (checks, _) = lines(&desk);
    says(&checks, "changes", "fault", "the database is read-only", "default_transaction_read_only off");
    for command in ["serve", "scan", "migrate"] {
        let done = desk.run(&[command]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.err.contains("the database is read-only, so nothing can be done with it; switch"), "{done:?}");
    }
}

#[tokio::test]
async fn a_database_that_cannot_keep_every_character_is_a_fault() {
    let url = empty_database().await;
    let name = format!("{}_ascii", url.rsplit('/').next().expect("a name").split('?').next().expect("a name"));
    run(&url, &format!("CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")).await;
    let (checks, _) = lines(&Desk::new().with("DATABASE_URL", cluster().url_for(&name)));
    says(&checks, "encoding", "fault", "SQL_ASCII", "ENCODING 'UTF8'");
}

#[tokio::test]
async fn an_account_that_may_too_little_is_told_what_it_needs() {
    let (desk, url) = on_a_database().await;
    let name = format!("clerk_{}", url.rsplit('/').next().expect("a name").split('?').next().expect("a name"));
    run(&url, &format!("CREATE ROLE {name} LOGIN CONNECTION LIMIT 60; REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
        .await;
    let theirs = url.replacen("permits@", &format!("{name}@"), 1);
    assert_ne!(theirs, url, "the user stands in the URL");
    let desk = desk.with("DATABASE_URL", theirs);
    let (checks, _) = lines(&desk);
    let grant = format!("GRANT USAGE, CREATE ON SCHEMA public TO {name}");
    says(&checks, "rights", "fault", "migrations are pending", &grant);
    says(&checks, "rights", "warning", "database_held", &format!("GRANT pg_read_all_stats TO {name}"));
    says(&checks, "room for connections", "warning", "60 are allowed; one process", "max_connections");
    run(&url, &format!("{grant}; GRANT pg_read_all_stats TO {name}; ALTER ROLE {name} CONNECTION LIMIT 20")).await;
    let (checks, _) = lines(&desk);
    says(&checks, "rights", "ok", "sees other sessions", "");
    says(&checks, "room for connections", "fault", "20 are allowed", "max_connections");
}

#[tokio::test]
async fn alarms_that_nobody_would_hear_of_are_warned_of_in_production() {
    let (desk, url) = on_a_database().await;
    assert_eq!(desk.run(&["migrate"]).code, Some(0));
    for (environment, level) in [("production", "warning"), ("trial", "ok")] {
        let (checks, _) = lines(&desk.again().with("ENVIRONMENT", environment));
        for variable in ["ALERT_EMAIL", "ALERT_WEBHOOK_URL", "HEARTBEAT_URL"] {
            says(
                &checks,
                "alarms",
                level,
                &format!("{variable} is not set"),
                if level == "ok" { "" } else { "set it" },
            );
        }
        says(&checks, "alarms", "ok", "none stands", "");
    }
    let open = TcpListener::bind("127.0.0.1:0").expect("a port");
    let open = format!("http://{}/ping/hunter2", open.local_addr().expect("its address"));
    // Its name leads inside and may not, or nowhere at all.
    for nowhere in ["http://127.0.0.1:1/hunter2", "http://nobody.invalid/hunter2"] {
        let desk = desk.again().with("ALERT_WEBHOOK_URL", nowhere).with("HEARTBEAT_URL", &open);
        let (checks, _) = lines(&desk.with("ALERT_EMAIL", "operator@office.example"));
        says(&checks, "alarms", "warning", "cannot be reached", "correct ALERT_WEBHOOK_URL");
        says(&checks, "alarms", "ok", "HEARTBEAT_URL: something listens", "");
        says(&checks, "alarms", "ok", "ALERT_EMAIL is operator@office.example", "");
        assert!(!format!("{checks:?}").contains("hunter2"));
    }
    run(
        &url,
        "INSERT INTO alarms (id, kind, subject, detail, raised_at, raised_by)
         VALUES ('00000000-0000-7000-8000-000000000001', 'dead_letters', '', '3 mails failed.', now(), gen_random_uuid());
         INSERT INTO alarm_messages (alarm_id, event, surface, last_error)
         VALUES ('00000000-0000-7000-8000-000000000001', 'raised', 'webhook', 'it answered with status 500')",
    )
    .await;
    let (checks, _) = lines(&desk);
    says(&checks, "alarms", "warning", "dead_letters since ", "page Problems");
    says(
        &checks,
        "alarms",
        "warning",
        "webhook has not taken so far: 1; it answered with status 500",
        "ALERT_WEBHOOK_URL",
    );
}
