//! Who outside hears of scans.

use permit_notifier::{scan::ScanRules, watch::WatchRules};
use tokio_util::sync::CancellationToken;

use super::{Watcher, heartbeat, rules};
use crate::support::{listener::Listener, office::TestOffice, postbox::until};

fn by_hand() -> permit_notifier::scan::ScanRequest {
    let trigger = permit_notifier::store::scans::Trigger::Manual;
    permit_notifier::scan::ScanRequest { scheduled_for: None, trigger, as_of: None }
}

#[tokio::test]
async fn a_scan_that_finds_nothing_is_a_success_and_its_pings_belong_together() {
    let (office, listener) = (TestOffice::new().await, Listener::open().await);
    let scans = ScanRules { heartbeat: heartbeat(&format!("{}/ping/abc", listener.url)), ..office.rules.clone() };
    // Quick ones, which are over before anybody can have heard that they began.
    for number in 1..=10 {
        let report = office.try_scan(&scans, by_hand()).await.unwrap();
        let calls = listener.calls();
        assert_eq!(calls.len(), 2 * number, "{:?}", listener.paths());
        for (call, path) in calls[calls.len() - 2..].iter().zip(["/ping/abc/start", "/ping/abc"]) {
            let rid = format!("rid={}", report.id.unwrap());
            assert_eq!((call.uri.path(), call.uri.query()), (path, Some(&*rid)));
        }
    }
    office.close().await;
}

#[tokio::test]
async fn a_scan_that_takes_a_while_says_that_it_began() {
    let (office, listener) = (TestOffice::new().await, Listener::open().await);
    let scans = ScanRules { heartbeat: heartbeat(&format!("{}/ping?key=1", listener.url)), ..office.rules.clone() };
    // What a scan locks in its first batch.
    let permit = office.permit_expiring_in(30).await;
    let mut holder = office.connection().await;
    sqlx::raw_sql("BEGIN").execute(&mut *holder).await.unwrap();
    sqlx::query("SELECT FROM permits WHERE id = $1 FOR UPDATE").bind(permit).execute(&mut *holder).await.unwrap();
    office.sql("DELETE FROM deliveries; DELETE FROM notices").await;
    #[expect(clippy::disallowed_methods, reason = "ends with the test")]
    let scan = tokio::spawn(async move { permit_notifier::scan::pass::run_once(&scans, by_hand()).await });
    until("somebody outside hears of it", async || !listener.calls().is_empty()).await;
    sqlx::raw_sql("ROLLBACK").execute(&mut *holder).await.unwrap();
    drop(holder);
    scan.await.unwrap().unwrap();
    assert_eq!(listener.paths(), ["/ping/start", "/ping"]);
    assert!(listener.calls().iter().all(|call| call.uri.query().unwrap().starts_with("key=1&rid=")));
    office.close().await;
}

#[tokio::test]
async fn a_scan_that_fails_says_so_and_one_of_another_day_or_a_stopped_one_says_nothing() {
    let (office, listener) = (TestOffice::new().await, Listener::open().await);
    let scans = ScanRules { heartbeat: heartbeat(&listener.url), ..office.rules.clone() };
    office.permit_expiring_in(30).await;
    office.sql("DELETE FROM deliveries; DELETE FROM notices").await;
    let other_day = permit_notifier::scan::ScanRequest { as_of: Some(office.in_days(-1)), ..by_hand() };
    office.try_scan(&scans, other_day).await.unwrap();
    assert_eq!(listener.paths(), Vec::<String>::new());

    let stop = CancellationToken::new();
    stop.cancel();
    let stopped = ScanRules { stop, ..scans.clone() };
    office.permit_expiring_in(60).await;
    office.sql("DELETE FROM deliveries; DELETE FROM notices").await;
    office.try_scan(&stopped, by_hand()).await.unwrap_err();
    assert!(!listener.paths().contains(&"/fail".to_owned()), "{:?}", listener.paths());

    office.sql("ALTER TABLE notices RENAME COLUMN due_on TO gone").await;
    office.try_scan(&scans, by_hand()).await.unwrap_err();
    assert_eq!(listener.paths().last().map(String::as_str), Some("/fail"));
    office.sql("ALTER TABLE notices RENAME COLUMN gone TO due_on").await;
    office.close().await;
}

#[tokio::test]
async fn a_scan_does_not_fail_because_nobody_hears_of_it() {
    let (office, listener) = (TestOffice::new().await, Listener::open().await);
    listener.answers(500);
    let scans = ScanRules { heartbeat: heartbeat(&listener.url), ..office.rules.clone() };
    office.try_scan(&scans, by_hand()).await.unwrap();
    let heard = listener.paths().iter().filter(|path| *path == "/").count();
    assert_eq!(heard, 3, "it is tried again, and then given up");
    office.close().await;
}

#[tokio::test]
async fn a_scan_that_did_not_run_is_a_failure_for_whoever_listens() {
    let (office, listener) = (TestOffice::new().await, Listener::open().await);
    let rules = WatchRules { heartbeat: heartbeat(&listener.url), ..rules(&office) };
    let mut watcher = Watcher::new(rules.clone()).await;
    watcher.look().await;
    office.now_is("2027-03-11T13:00:00Z");
    let stop = CancellationToken::new();
    #[expect(clippy::disallowed_methods, reason = "ends with the test")]
    let running = tokio::spawn(watcher.watch.run(stop.clone()));
    until("somebody outside hears of it", async || !listener.calls().is_empty()).await;
    stop.cancel();
    running.await.unwrap();
    assert_eq!(listener.paths(), ["/fail"]);
    office.close().await;
}

#[tokio::test]
async fn a_scan_that_makes_up_for_it_while_its_absence_is_told_has_the_last_word() {
    let (office, listener) = (TestOffice::new().await, Listener::open().await);
    let rules = WatchRules { heartbeat: heartbeat(&listener.url), ..rules(&office) };
    let mut watcher = Watcher::new(rules.clone()).await;
    watcher.look().await;
    office.now_is("2027-03-11T13:00:00Z");
    // Not heard at first, it is said again a little later.
    listener.answers(500);
    let stop = CancellationToken::new();
    #[expect(clippy::disallowed_methods, reason = "ends with the test")]
    let running = tokio::spawn(watcher.watch.run(stop.clone()));
    until("somebody outside hears of it", async || !listener.calls().is_empty()).await;
    office.scan().await;
    listener.answers(200);
    until("the last word", async || listener.paths().last().is_some_and(|path| path == "/")).await;
    stop.cancel();
    running.await.unwrap();
    assert_eq!(listener.paths(), ["/fail", "/fail", "/"]);
    office.close().await;
}
