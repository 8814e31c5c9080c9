//! Many at once, and callers who hang up.

use std::collections::HashSet;

use fastrand::Rng;
use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::Duration;

use crate::support::api::{Answered, TestApi, send};
use crate::support::postbox::until;

/// What one of the crowd was told: the version that its change made, or none.
async fn change(api: &TestApi, path: &str, number: i64) -> Option<String> {
    loop {
        let read = api.get(path).await;
        let etag = read.etag().to_owned();
        let changed = match number % 5 {
            0 => {
                let body = json!({ "expires_on": api.office.in_days(500 + number) });
                send(api.request(Method::POST, &format!("{path}/renew")).header("if-match", &etag).json(&body)).await
            }
            1 => api.delete(path, &etag).await,
            2 => send(api.request(Method::POST, &format!("{path}/restore")).header("if-match", &etag)).await,
            _ => api.patch(path, &etag, &json!({ "external_id": format!("x-{number}") })).await,
        };
        match changed.status.as_u16() {
            412 => {}
            200 => return (changed.etag() != etag).then(|| changed.etag().to_owned()),
            409 | 422 => return None,
            _ => panic!("{changed:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_who_change_one_permit_lose_nothing() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let path = made.path();
    let versions = join_all((0..50).map(|number| change(&api, path, number))).await;
    let made_versions: Vec<String> = versions.into_iter().flatten().collect();
    let distinct: HashSet<&String> = made_versions.iter().collect();
    assert_eq!(distinct.len(), made_versions.len(), "two changes made one version");
    let last = api.get(path).await;
    assert_eq!(last.body["version"], json!(made_versions.len() + 1), "a version without a change");
    let history = api.get(&format!("{path}/history?limit=200")).await;
    let versions: Vec<i64> =
        history.body["items"].as_array().unwrap().iter().map(|item| item["version"].as_i64().unwrap()).collect();
    let expected: Vec<i64> = (1..=made_versions.len() as i64 + 1).rev().collect();
    assert_eq!(versions, expected);
    let terms: i64 = sqlx::query_scalar("SELECT count(*) FROM terms").fetch_one(&api.office.pool).await.unwrap();
    let confirmed: i64 = sqlx::query_scalar("SELECT count(*) FROM notices WHERE notice_type = 'renewed'")
        .fetch_one(&api.office.pool)
        .await
        .unwrap();
    assert_eq!(terms, confirmed + 1, "each new term has one confirmation");
    api.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_any_version_is_never_told_that_it_is_stale() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let path = made.path();
    let changes = (0..12).map(|number| {
        let body = json!({ "custom": { format!("field-{number}"): number } });
        let api = &api;
        async move { api.patch(path, "*", &body).await }
    });
    let answers = join_all(changes).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let versions: HashSet<&str> = answers.iter().map(Answered::etag).collect();
    assert_eq!(versions.len(), 12, "each answer shows what its own change made");
    let last = api.get(path).await;
    assert_eq!(last.body["custom"].as_object().map(serde_json::Map::len), Some(12), "nothing was lost: {last:?}");
    api.close().await;
}

#[tokio::test]
async fn a_request_that_is_sent_again_and_again_takes_no_places_from_others() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let mut lock = api.office.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM permits FOR UPDATE").execute(&mut *lock).await.unwrap();
    let renewals = (0..20).map(|_| {
        let request = api.request(Method::POST, &format!("{}/renew", made.path())).header("idempotency-key", "r");
        send(request.json(&json!({ "expires_on": api.office.in_days(800) })))
    });
    let others = async {
        // One waits for the lock; the rest have had time to come.
        let waits = "SELECT count(*)::text FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("one waits for the lock", async || api.office.text(waits).await == ["1"]).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let other = tokio::time::timeout(Duration::from_secs(3), api.get("/permits")).await;
        lock.rollback().await.unwrap();
        other
    };
    let (renewed, other) = join(join_all(renewals.collect::<Vec<_>>()), others).await;
    assert_eq!(other.expect("an answer while they wait").status, 200);
    assert!(renewed.iter().all(|answer| answer.status == 200), "{renewed:?}");
    let replayed = renewed.iter().filter(|answer| answer.header("idempotency-replayed") == "true").count();
    assert_eq!(replayed, 19);
    api.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_hangs_up_stops_no_work_and_poisons_no_connection() {
    let api = TestApi::open().await;
    let seed = fastrand::u64(..);
    let mut random = Rng::with_seed(seed);
    let host = api.url.strip_prefix("http://").unwrap().to_owned();
    for round in 0..40 {
        let aborted = (0..50).map(|number| {
            let body = api.permit(&format!("A-{round}-{number}")).to_string();
            let key = if number % 2 == 0 { format!("Idempotency-Key: a-{round}-{number}\r\n") } else { String::new() };
            let request = format!(
                "POST /api/v1/permits HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {}\r\n{key}\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                api.token,
                body.len(),
            );
            let sent = if random.u8(0..4) == 0 { random.usize(0..request.len()) } else { request.len() };
            let pause = Duration::from_micros(random.u64(0..30_000));
            let host = host.clone();
            async move {
                let mut stream = TcpStream::connect(host).await.unwrap();
                stream.write_all(&request.as_bytes()[..sent]).await.unwrap();
                tokio::time::sleep(pause).await;
            }
        });
        join_all(aborted.collect::<Vec<_>>()).await;
    }
    let mut kept = Vec::new();
    for number in 0..1000 {
        let made = api.create_permit(&format!("K-{number}")).await;
        kept.push(made.text("id").to_owned());
    }
    let there: i64 = sqlx::query_scalar("SELECT count(*) FROM permits WHERE permit_number LIKE 'K-%'")
        .fetch_one(&api.office.pool)
        .await
        .unwrap();
    assert_eq!((there, kept.len()), (1000, 1000), "seed {seed}");
    let idle: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
    )
    .fetch_one(&api.office.pool)
    .await
    .unwrap();
    assert_eq!(idle, 0, "seed {seed}");
    api.close().await;
}
