//! What is in the way of the watch itself: a lock, a database that is away, processes that tell elsewhere.

use std::time::Duration;

use chrono::TimeDelta;
use permit_notifier::{
    domain::alarm::{AlarmKind, AlarmSurface},
    outgoing::{CallUrl, Caller},
    store::{
        alarms::{list_undelivered, message_delivered, message_failed, take_message},
        connect::{Purpose, connect},
    },
    watch::{DirectCall, Watch, WatchRules, conditions::conditions},
};
use sqlx::{Connection, Executor};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Watcher, heartbeat, outbox, rules};
use crate::support::{listener::Listener, office::TestOffice, postbox::until_within};

const STANDING: &str = "SELECT kind || ' ' || subject FROM alarms WHERE cleared_at IS NULL ORDER BY kind, subject";

#[tokio::test]
async fn an_old_notice_that_is_held_does_not_hide_what_an_import_holds() {
    let office = TestOffice::new().await;
    let mut watcher = Watcher::new(rules(&office)).await;
    for _ in 0..3 {
        office.permit_expiring_in(30).await;
    }
    office.scan().await;
    let hold = |reason: &str, import: &str| {
        format!(
            "WITH one AS (SELECT id FROM notices WHERE state = 'pending' LIMIT 1),
                  copy AS (UPDATE deliveries d SET state = 'held', reason_code = '{reason}' FROM one WHERE d.notice_id = one.id)
             UPDATE notices n SET state = 'held', reason_code = '{reason}', {import} FROM one WHERE n.id = one.id"
        )
    };
    office.sql(&hold("by_person", "held_reason = 'wait'")).await;
    let raised = watcher.look().await;
    assert_eq!(raised.len(), 1);
    assert_eq!(raised[0].detail, "1 notice waits for a person: somebody holds it.");
    let import = Uuid::now_v7();
    office
        .sql(&format!(
            "INSERT INTO imports (id, file_name, started_at, finished_at, report)
             VALUES ('{import}', 'f.csv', now(), now(), '{{}}')"
        ))
        .await;
    office.sql(&hold("claim_limit", &format!("scan_id = NULL, import_id = '{import}'"))).await;
    let raised = watcher.look().await;
    assert_eq!(raised.len(), 1);
    assert!(raised[0].detail.starts_with("1 notice waits for a person: the import"), "{raised:?}");
    assert_eq!(office.text(STANDING).await, ["held by hand".to_owned(), format!("held import {import}")]);
    assert_eq!(outbox(&office).await.len(), 4);
    office.sql("UPDATE deliveries SET state = 'cancelled' WHERE reason_code = 'claim_limit'").await;
    office.sql("UPDATE notices SET state = 'cancelled' WHERE reason_code = 'claim_limit'").await;
    watcher.look().await;
    assert_eq!(office.text(STANDING).await, ["held by hand"]);
    office.sql(&hold("owner_died", "held_reason = NULL")).await;
    let raised = watcher.look().await;
    assert_eq!(raised[0].detail, "1 notice waits for a person: processes died three times in the midst of it.");
    office.close().await;
}

#[tokio::test]
async fn mails_that_failed_on_another_day_are_another_alarm() {
    let office = TestOffice::new().await;
    let mut watcher = Watcher::new(rules(&office)).await;
    office.permit_expiring_in(30).await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    for day in ["2027-03-09", "2027-03-10"] {
        office
            .sql(&format!(
                "WITH one AS (SELECT id, notice_id FROM deliveries WHERE state = 'pending' LIMIT 1),
                      notice AS (UPDATE notices n SET state = 'failed' FROM one WHERE n.id = one.notice_id)
                 UPDATE deliveries d SET state = 'failed', updated_at = '{day}T18:00:00Z' FROM one WHERE d.id = one.id"
            ))
            .await;
        let raised = watcher.look().await;
        assert_eq!(raised.len(), 1);
        assert_eq!(raised[0].detail, format!("1 mail failed for good or came back on {day}."));
    }
    assert_eq!(office.text(STANDING).await, ["dead_letters 2027-03-09", "dead_letters 2027-03-10"]);
    office.days_pass(60);
    office.scan().await;
    watcher.look().await;
    let standing = office.text(STANDING).await;
    assert!(standing.contains(&"dead_letters older".to_owned()), "{standing:?}");
    office.close().await;
}

#[tokio::test]
async fn a_lock_on_one_table_hides_no_more_than_what_stands_in_it() {
    let office = TestOffice::new().await;
    let mut watcher = Watcher::new(rules(&office)).await;
    office.permit_expiring_in(30).await;
    office.scan().await;
    watcher.look().await;
    office
        .sql("UPDATE deliveries SET state = 'failed'; UPDATE notices SET state = 'failed' WHERE state = 'pending'")
        .await;
    assert_eq!(watcher.look().await.len(), 1, "a dead letter");
    let mut other = connect(&office.url, Purpose::Work).await.unwrap();
    let mut lock = other.begin().await.unwrap();
    lock.execute("LOCK TABLE notices IN ACCESS EXCLUSIVE MODE").await.unwrap();
    office.now_is("2027-03-11T13:00:00Z");
    let kinds: Vec<_> = watcher.look().await.into_iter().map(|alarm| alarm.kind).collect();
    assert_eq!(kinds, [AlarmKind::MissingRun]);
    let standing = office.text(STANDING).await;
    assert!(standing[0].starts_with("dead_letters "), "nobody knows whether it is over: {standing:?}");
    let mut connection = connect(&office.url, Purpose::Watch).await.unwrap();
    let seen = conditions(&rules(&office), &mut connection, office.moment()).await.unwrap();
    assert!(seen.unanswered.contains(&AlarmKind::Held) && !seen.unanswered.contains(&AlarmKind::DatabaseHeld));
    lock.rollback().await.unwrap();
    office.close().await;
}

#[tokio::test]
async fn that_it_is_over_is_told_after_that_it_began_or_alone() {
    let office = TestOffice::new().await;
    let mut watcher = Watcher::new(rules(&office)).await;
    watcher.look().await;
    office.now_is("2027-03-11T13:00:00Z");
    assert_eq!(watcher.look().await.len(), 1);
    let mut connection = connect(&office.url, Purpose::Watch).await.unwrap();
    let (mail, call) = ([AlarmSurface::Email], [AlarmSurface::Webhook]);
    let minute = Duration::from_mins(1);
    let begun = take_message(&mut connection, &mail, minute).await.unwrap().expect("that it began");
    take_message(&mut connection, &call, minute).await.unwrap().expect("the same by webhook");
    office.scan().await;
    watcher.look().await;
    assert_eq!(take_message(&mut connection, &mail, minute).await.unwrap(), None, "the first one is on its way");
    message_delivered(&mut connection, begun.id).await.unwrap();
    let over = take_message(&mut connection, &mail, minute).await.unwrap().expect("that it is over");
    assert!(over.alarm.cleared_at.is_some());
    // What could not be told of an alarm that is over is not told later, nor said to wait.
    office.sql("UPDATE alarm_messages SET delivered_at = NULL WHERE surface = 'email' AND event = 'raised'").await;
    message_failed(&mut connection, begun.id, "it answered with status 500").await.unwrap();
    assert_eq!(list_undelivered(&mut connection).await.unwrap(), []);
    // The process that had the call died with it.
    office.sql("UPDATE alarm_messages SET taken_until = now() - interval '1 s' WHERE surface = 'webhook'").await;
    let over = take_message(&mut connection, &call, minute).await.unwrap().expect("that it is over");
    assert_eq!(over.event.as_str(), "cleared");
    message_delivered(&mut connection, over.id).await.unwrap();
    assert_eq!(take_message(&mut connection, &call, minute).await.unwrap(), None, "that it began is old news");
    office.close().await;
}

#[tokio::test]
async fn it_is_told_wherever_any_process_tells() {
    let office = TestOffice::new().await;
    let silent = WatchRules { surfaces: Vec::new(), ..rules(&office) };
    let mut first = Watcher::new(silent).await;
    first.look().await;
    office.now_is("2027-03-11T13:00:00Z");
    assert_eq!(first.look().await.len(), 1);
    assert_eq!(outbox(&office).await, Vec::<String>::new());
    let mut second = Watcher::new(rules(&office)).await;
    assert_eq!(second.look().await, [], "it stands already");
    assert_eq!(outbox(&office).await, ["missing_run raised email waits", "missing_run raised webhook waits"]);
    first.look().await;
    second.look().await;
    assert_eq!(outbox(&office).await.len(), 2);
    office.close().await;
}

#[tokio::test]
async fn a_mail_server_that_comes_and_goes_is_one_alarm() {
    let office = TestOffice::new().await;
    let mut watcher = Watcher::new(rules(&office)).await;
    let open = "UPDATE transport SET paused_until = now(), opened_at = now(), closed_at = NULL, fault = '421 later'";
    let close = |seconds: u32| {
        format!(
            "UPDATE transport SET paused_until = NULL, opened_at = NULL, fault = NULL,
                    closed_at = clock_timestamp() - interval '{seconds} seconds'"
        )
    };
    office.sql(&close(5)).await;
    assert_eq!(watcher.look().await, [], "it was none");
    office.sql(open).await;
    assert_eq!(watcher.look().await.len(), 1);
    for _ in 0..3 {
        office.sql(&close(5)).await;
        watcher.look().await;
        office.sql(open).await;
        assert_eq!(watcher.look().await, []);
    }
    office.sql(&close(31)).await;
    watcher.look().await;
    assert_eq!(office.text("SELECT count(*) || ' ' || count(cleared_at) FROM alarms").await, ["1 1"]);
    office.close().await;
}

#[tokio::test]
async fn without_a_database_each_process_tells_by_itself_when_a_scan_was_expected_meanwhile() {
    let office = TestOffice::new().await;
    let listener = Listener::open().await;
    let url = CallUrl::parse(&format!("{}/hook", listener.url)).unwrap();
    let pages = "https://permits.example.org/".parse().unwrap();
    let away = WatchRules {
        direct_url: "postgres://nobody@127.0.0.1:1/nothing".to_owned(),
        heartbeat: heartbeat(&listener.url),
        webhook: Some(DirectCall { caller: Caller::new(), url, pages }),
        ..rules(&office)
    };
    let stop = CancellationToken::new();
    let mut watch = JoinSet::new();
    watch.spawn(Watch::new(away, Uuid::now_v7(), Vec::new()).run(stop.clone()));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(listener.calls().len(), 0, "nothing was expected yet");
    office.clock.advance(TimeDelta::days(1));
    // It looks every ten seconds.
    for _ in 0..300 {
        if listener.calls().len() >= 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.cancel();
    watch.join_all().await;
    let calls = listener.calls();
    assert_eq!(calls.iter().map(|call| call.uri.path().to_owned()).collect::<Vec<_>>(), ["/fail", "/hook"]);
    let told = calls[1].json();
    assert_eq!((&told["alarm"], &told["event"]), (&"missing_run".into(), &"raised".into()), "{told}");
    assert!(told["detail"].as_str().unwrap().contains("the database could not be used"), "{told}");
    assert_eq!(calls[1].headers["idempotency-key"], format!("unseen-{}", told["subject"].as_str().unwrap()).as_str());
    office.close().await;
}

/// Whether new sessions may begin in the office's database; those that are there go on.
async fn sessions_may_begin(office: &TestOffice, may: bool) {
    let name = office.text("SELECT current_database()::text").await.remove(0);
    let options: sqlx::postgres::PgConnectOptions = office.url.parse().unwrap();
    let mut elsewhere = sqlx::PgConnection::connect_with(&options.database("postgres")).await.unwrap();
    let statement = format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS {may}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut elsewhere).await.unwrap();
}

#[tokio::test]
async fn what_a_process_told_while_it_could_not_look_is_over_when_it_can() {
    let office = TestOffice::new().await;
    let listener = Listener::open().await;
    let url = CallUrl::parse(&format!("{}/hook", listener.url)).unwrap();
    let pages = "https://permits.example.org/".parse().unwrap();
    let rules = WatchRules { webhook: Some(DirectCall { caller: Caller::new(), url, pages }), ..rules(&office) };
    sessions_may_begin(&office, false).await;
    let stop = CancellationToken::new();
    let mut watch = JoinSet::new();
    watch.spawn(Watch::new(rules, Uuid::now_v7(), Vec::new()).run(stop.clone()));
    tokio::time::sleep(Duration::from_millis(500)).await;
    office.clock.advance(TimeDelta::days(1));
    // It looks every ten seconds.
    until_within(Duration::from_secs(40), "it is told", async || listener.calls().len() == 1).await;
    sessions_may_begin(&office, true).await;
    until_within(Duration::from_secs(40), "it is over", async || listener.calls().len() == 2).await;
    stop.cancel();
    watch.join_all().await;
    let [begun, over] = &listener.calls()[..] else { panic!("{:?}", listener.paths()) };
    let (begun_as, over_as) = (begun.json(), over.json());
    assert_eq!((&begun_as["event"], &over_as["event"]), (&"raised".into(), &"cleared".into()), "{over_as}");
    assert_eq!((&begun_as["alarm"], &begun_as["id"]), (&over_as["alarm"], &over_as["id"]), "{over_as}");
    let key = |call: &crate::support::listener::Call| call.headers["idempotency-key"].to_str().unwrap().to_owned();
    assert_eq!(key(over), format!("{}-over", key(begun)));
    office.close().await;
}
