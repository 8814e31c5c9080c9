//! `Idempotency-Key`: the work once, the answer as often as it is asked for.

use std::collections::HashSet;

use futures_util::future::join_all;
use permit_notifier::domain::scope::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{Answered, TestApi, send};

async fn post(api: &TestApi, token: &str, key: &str, body: &Value) -> Answered {
    let request = api.client.post(format!("{}/api/v1/permits", api.url)).bearer_auth(token);
    send(request.header("idempotency-key", key).json(body)).await
}

#[tokio::test]
async fn twenty_who_send_the_same_make_one_permit() {
    let api = TestApi::open().await;
    let body = api.permit("F-1");
    let answers = join_all((0..20).map(|_| post(&api, &api.token, "k-1", &body))).await;
    assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
    let replayed = answers.iter().filter(|answer| answer.header("idempotency-replayed") == "true").count();
    assert_eq!(replayed, 19);
    let ids: HashSet<&str> = answers.iter().map(|answer| answer.text("id")).collect();
    assert_eq!(ids.len(), 1);
    let places: HashSet<(&str, &str, &str)> = answers
        .iter()
        .map(|answer| (answer.header("location"), answer.etag(), answer.header("content-type")))
        .collect();
    assert_eq!(places.len(), 1, "{places:?}");
    assert_eq!(api.get("/permits").await.column("id").len(), 1);
    api.close().await;
}

#[tokio::test]
async fn a_key_belongs_to_one_request_of_one_token_for_seven_days() {
    let api = TestApi::open().await;
    let body = api.permit("F-1");
    assert_eq!(post(&api, &api.token, "\"k\"", &body).await.status, 201);
    let other = post(&api, &api.token, "k", &api.permit("F-2")).await;
    assert_eq!((other.status.as_u16(), other.kind()), (422, "key-reused"));
    let somebody = api.create_token("somebody", Scope::Write, None).await;
    let taken = post(&api, &somebody, "k", &body).await;
    assert_eq!((taken.status.as_u16(), taken.kind()), (409, "permit-number-taken"), "another token, another key");
    api.office.days_pass(6);
    assert_eq!(post(&api, &api.token, "k", &body).await.header("idempotency-replayed"), "true");
    api.office.days_pass(2);
    let late = post(&api, &api.token, "k", &body).await;
    assert_eq!((late.status.as_u16(), late.header("idempotency-replayed")), (409, ""));
    for wrong in ["", "\"\"", &"k".repeat(256), "kä"] {
        let refused = post(&api, &api.token, wrong, &body).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{wrong}");
    }
    api.close().await;
}

#[tokio::test]
async fn a_refusal_is_kept_too_and_leaves_nothing_behind() {
    let api = TestApi::open().await;
    api.create_permit("F-1").await;
    let refused = post(&api, &api.token, "k", &api.permit("f-1")).await;
    assert_eq!(refused.status, 409);
    let again = post(&api, &api.token, "k", &api.permit("f-1")).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (409, "true"));
    assert_eq!((again.kind(), again.text("permit_id")), ("permit-number-taken", refused.text("permit_id")));
    api.close().await;
}

#[tokio::test]
async fn a_fault_of_ours_is_not_kept_and_takes_back_what_was_written() {
    let api = TestApi::open().await;
    let broken = "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                      RAISE EXCEPTION 'broken' USING ERRCODE = 'XX000'; END $$;
                  CREATE TRIGGER broken AFTER INSERT ON permit_history FOR EACH ROW EXECUTE FUNCTION broken()";
    sqlx::raw_sql(broken).execute(&api.office.pool).await.unwrap();
    let body = api.permit("F-1");
    let failed = post(&api, &api.token, "k", &body).await;
    assert_eq!((failed.status.as_u16(), failed.kind()), (500, "internal-error"));
    assert!(!failed.body.to_string().contains("broken"), "nothing of the inside is shown");
    sqlx::raw_sql("DROP TRIGGER broken ON permit_history").execute(&api.office.pool).await.unwrap();
    let done = post(&api, &api.token, "k", &body).await;
    assert_eq!((done.status.as_u16(), done.header("idempotency-replayed")), (201, ""));
    api.close().await;
}

#[tokio::test]
async fn the_answer_is_recorded_with_the_work_or_not_at_all() {
    let api = TestApi::open().await;
    let broken = "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                      RAISE EXCEPTION 'broken' USING ERRCODE = 'XX000'; END $$;
                  CREATE TRIGGER broken BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION broken()";
    sqlx::raw_sql(broken).execute(&api.office.pool).await.unwrap();
    let failed = post(&api, &api.token, "k", &api.permit("F-1")).await;
    assert_eq!(failed.status, 500);
    assert_eq!(api.get("/permits").await.column("id").len(), 0);
    api.close().await;
}

#[tokio::test]
async fn a_renewal_under_a_key_is_replayed_with_its_version() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let renew = async |days: i64| {
        let request = api.request(Method::POST, &format!("{}/renew", made.path())).header("idempotency-key", "r");
        send(request.json(&json!({ "expires_on": api.office.in_days(days) }))).await
    };
    let first = renew(800).await;
    assert_eq!((first.status.as_u16(), first.etag()), (200, "\"2\""), "{first:?}");
    api.patch(made.path(), "\"2\"", &json!({ "holder_name": "Bo" })).await;
    let again = renew(800).await;
    assert_eq!((again.etag(), again.body == first.body), ("\"2\"", true));
    assert_eq!(renew(900).await.kind(), "key-reused");
    api.close().await;
}
