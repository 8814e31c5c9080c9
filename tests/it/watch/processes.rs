//! Three processes on one database, and the loop that scans in none of them.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::support::{
    cluster::empty_database,
    listener::Listener,
    program::{Desk, Running, get},
    smtp_server::SmtpServer,
};

const PATIENCE: Duration = Duration::from_mins(1);

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn scraped(url: &str) -> String {
    let url = format!("{url}metrics");
    tokio::task::spawn_blocking(move || get(&url).1).await.expect("an answer")
}

fn start(desk: &Desk) -> (Running, String) {
    let mut serve = desk.start(&["serve", "--roles", "web,dispatch"]);
    // What it prints is PUBLIC_URL; the log says where it listens.
    let line: serde_json::Value = serde_json::from_str(&serve.wait_for("\"listening\"")).expect("a JSON line");
    let url = format!("http://{}/", line["address"].as_str().expect("an address"));
    (serve, url)
}

/// Today as an administrator sees it.
async fn today(url: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().cookie_store(true).build().expect("a client");
    let page = client.get(format!("{url}sign-in")).send().await.expect("a page").text().await.expect("a text");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    let form = [("email", "ada@office.example"), ("password", "a long enough password"), ("csrf", csrf)];
    let signed_in = client.post(format!("{url}sign-in")).form(&form).send().await.expect("a page");
    signed_in.text().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_no_process_runs_is_told_once_on_each_surface_and_is_over_when_one_does() {
    let (database, listener, server) = (empty_database().await, Listener::open().await, SmtpServer::with([]));
    let desk = Desk::new()
        .with("DATABASE_URL", &database)
        .with("CLOCK", "2027-03-10T12:00:00Z")
        .with("SCAN_GRACE_MINUTES", "1")
        .with("SMTP_URL", format!("{}?tls=none", server.url()))
        .with("MAIL_FROM", "office@permits.example")
        .with("ENVIRONMENT", "test")
        .with("PUBLIC_URL", "http://permits.example")
        .with("ALERT_EMAIL", "operator@example.org")
        .with("ALERT_WEBHOOK_URL", format!("{}/hook", listener.url))
        .with("HEARTBEAT_URL", format!("{}/beat", listener.url))
        .with("ADMIN_EMAIL", "ada@office.example")
        .with("ADMIN_PASSWORD", "a long enough password")
        .with("LOG_FORMAT", "json");
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(tokio::task::block_in_place(|| start(&desk)));
    }
    // As if they had run since yesterday: a scan was expected at six.
    let mut session = PgConnection::connect(&database).await.expect("a session");
    let kept = async |session: &mut PgConnection| -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM scan_schedules").fetch_one(session).await.expect("a number")
    };
    let end = Instant::now() + PATIENCE;
    while kept(&mut session).await == 0 {
        assert!(Instant::now() < end, "nobody keeps the schedule");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    sqlx::raw_sql("UPDATE scan_schedules SET since = since - interval '1 day'")
        .execute(&mut session)
        .await
        .expect("yesterday");

    let hooks = |event: &str| {
        let told = listener.calls().into_iter().filter(|call| call.uri.path() == "/hook").map(|call| call.json());
        told.filter(|told| told["event"] == event && told["alarm"] == "missing_run").count()
    };
    until("the webhook", async || hooks("raised") == 1).await;
    until("the mail", async || server.accepted().len() == 1).await;
    assert_eq!(server.accepted()[0].recipient, "operator@example.org");
    for (replica, url) in &mut replicas {
        until("the metric", async || scraped(url).await.contains("permit_notifier_alarm{kind=\"missing_run\"} 1"))
            .await;
        let line = tokio::task::block_in_place(|| replica.find("alarm: A scan did not run"));
        assert!(line.contains("\"alarm\":\"missing_run\""), "{line}");
        let page = today(url).await;
        assert!(page.contains("A scan did not run") && page.contains("The scan expected at 06:00 UTC"), "{page}");
    }
    until("the ping", async || listener.paths().contains(&"/beat/fail".to_owned())).await;
    // Two more looks of each, and nobody is told again.
    tokio::time::sleep(Duration::from_secs(22)).await;
    assert_eq!((hooks("raised"), server.accepted().len()), (1, 1));
    let pings = |path: &str| listener.paths().iter().filter(|called| *called == path).count();
    assert_eq!((pings("/beat/fail"), pings("/beat")), (1, 0));

    let mut scanner = desk.start(&["serve", "--roles", "scan"]);
    tokio::task::block_in_place(|| scanner.find("scan completed"));
    until("the end by webhook", async || hooks("cleared") == 1).await;
    until("the end by mail", async || server.accepted().len() == 2).await;
    for (_, url) in &replicas {
        until("the metric", async || scraped(url).await.contains("permit_notifier_alarm{kind=\"missing_run\"} 0"))
            .await;
    }
    assert_eq!(pings("/beat"), 1, "the scan was heard outside");
    assert_eq!(hooks("raised"), 1);

    // All killed: from now on only the silence of the heartbeat tells.
    for replica in replicas.iter().map(|(replica, _)| replica).chain([&scanner]) {
        replica.signal(Signal::SIGKILL);
    }
    for replica in replicas.iter_mut().map(|(replica, _)| replica).chain([&mut scanner]) {
        tokio::task::block_in_place(|| replica.wait());
    }
    let heard = listener.calls().len();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(listener.calls().len(), heard);
    let standing: i64 = sqlx::query_scalar(AssertSqlSafe("SELECT count(*) FROM alarms WHERE cleared_at IS NULL"))
        .fetch_one(&mut session)
        .await
        .expect("a number");
    assert_eq!(standing, 0);
}
