//! Bad input: each its own problem, everything wrong at once, and nothing changed.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{Answered, TestApi, send};

async fn count(api: &TestApi) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM permits").fetch_one(&api.office.pool).await.unwrap()
}

#[tokio::test]
async fn all_fields_that_are_wrong_are_named_at_once() {
    let api = TestApi::open().await;
    let refused = api
        .post(
            "/permits",
            &json!({
                "permit_number": "", "permit_type": 7, "status": "open", "holder_email": "ada@", "holder_language": "english",
                "expires_on": "2027-02-30", "issued_on": "2027-01-01T00:00:00Z", "effective_on": "1.2.2027", "surprise": 1,
                "contacts": [{ "email": "x" }, { "role": "agent" }, 3, { "name": "A", "fax": "1" }], "custom": [],
                "description": "a\u{0}b", "version": 4, "id": "new",
            }),
        )
        .await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (422, "validation-failed"));
    let mut faults = refused.faults();
    faults.sort_unstable();
    assert_eq!(
        faults,
        [
            ("/contacts/0/email", "malformed_address"),
            ("/contacts/0/name", "required"),
            ("/contacts/1/name", "required"),
            ("/contacts/2", "type"),
            ("/contacts/3/fax", "unknown_field"),
            ("/custom", "type"),
            ("/description", "control_character"),
            ("/effective_on", "malformed_date"),
            ("/expires_on", "malformed_date"),
            ("/holder_email", "malformed_address"),
            ("/holder_language", "malformed_language"),
            ("/holder_name", "required"),
            ("/id", "read_only"),
            ("/issued_on", "malformed_date"),
            ("/permit_number", "malformed_number"),
            ("/permit_type", "type"),
            ("/status", "not_allowed"),
            ("/surprise", "unknown_field"),
            ("/version", "read_only"),
        ]
    );
    assert_eq!(count(&api).await, 0);
    api.close().await;
}

#[tokio::test]
async fn a_type_that_nobody_knows_is_named_with_the_other_faults() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let faults = [("/permit_type", "unknown_permit_type"), ("/holder_name", "type"), ("/surprise", "unknown_field")];
    let mut permit = api.permit("F-2");
    for (field, value) in [("permit_type", json!("boats")), ("holder_name", json!(7)), ("surprise", json!(1))] {
        permit[field] = value;
    }
    for refused in [api.post("/permits", &permit).await, api.put(made.path(), made.etag(), &permit).await] {
        assert_eq!(refused.faults(), faults, "{refused:?}");
    }
    api.close().await;
}

#[tokio::test]
async fn one_wrong_field_is_told_in_words() {
    let api = TestApi::open().await;
    let last = api.office.in_days(365);
    let after = api.office.in_days(366);
    for (field, value, code) in [
        ("permit_type", json!("boats"), "unknown_permit_type"),
        ("effective_on", json!(after), "after_expiry"),
        ("issued_on", json!(after), "after_expiry"),
        ("expires_on", json!("2027-2-3"), "malformed_date"),
        ("expires_on", json!("12027-01-01"), "malformed_date"),
        ("expires_on", json!("0000-01-01"), "malformed_date"),
        ("expires_on", json!("1899-12-31"), "malformed_date"),
        ("expires_on", json!(20_270_101), "type"),
        ("permit_number", json!("x".repeat(101)), "malformed_number"),
        ("permit_number", json!("a\nb"), "malformed_number"),
        ("holder_name", json!("  "), "empty"),
        ("holder_name", json!("x".repeat(10_001)), "too_long"),
        ("holder_name", json!("a\u{0}"), "control_character"),
        ("contacts", json!((0..21).map(|_| json!({ "name": "A" })).collect::<Vec<_>>()), "too_many"),
        ("custom", json!({ "a": "x".repeat(20_000) }), "too_long"),
        ("custom", json!({ "a": ["\u{0}"] }), "control_character"),
    ] {
        let mut permit = api.permit("F-1");
        permit[field] = value.clone();
        let refused = api.post("/permits", &permit).await;
        assert_eq!(refused.status, 422, "{field} {value}");
        assert_eq!(refused.faults(), [(format!("/{field}").as_str(), code)], "{last}");
    }
    assert_eq!(count(&api).await, 0);
    api.close().await;
}

#[tokio::test]
async fn what_is_no_json_object_is_refused_before_it_is_read() {
    let api = TestApi::open().await;
    let post = async |content_type: &str, body: Vec<u8>| -> Answered {
        let request = api.request(Method::POST, "/permits").header("content-type", content_type);
        send(request.body(body)).await
    };
    let json = "application/json";
    let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    for (content_type, body, status, kind) in [
        (json, b"{".to_vec(), 400, "malformed"),
        (json, Vec::new(), 400, "malformed"),
        (json, b"{\"permit_number\": \"\xff\"}".to_vec(), 400, "malformed"),
        (json, b"{\"permit_number\": \"\\ud800\"}".to_vec(), 400, "malformed"),
        (json, deep.into_bytes(), 400, "malformed"),
        (json, b"[]".to_vec(), 422, "validation-failed"),
        (json, b"null".to_vec(), 422, "validation-failed"),
        ("text/plain", b"{}".to_vec(), 415, "unsupported-media-type"),
        ("application/merge-patch+json", b"{}".to_vec(), 415, "unsupported-media-type"),
        ("", b"{}".to_vec(), 415, "unsupported-media-type"),
        (json, vec![b' '; 10 << 20], 413, "too-large"),
    ] {
        let start = String::from_utf8_lossy(&body[..body.len().min(20)]).into_owned();
        let refused = post(content_type, body).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (status, kind), "{content_type} {start}");
    }
    assert_eq!(count(&api).await, 0);
    api.close().await;
}

#[tokio::test]
async fn a_body_without_a_length_is_limited_too() {
    let api = TestApi::open().await;
    let pieces = (0..400).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1024]));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let request = api.request(Method::POST, "/permits").header("content-type", "application/json").body(body);
    let refused = send(request).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (413, "too-large"));
    api.close().await;
}

#[tokio::test]
async fn query_parameters_are_known_or_named() {
    let api = TestApi::open().await;
    for (query, parameter) in [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", "limit"),
        ("sort=name", "sort"),
        ("status=open", "status"),
        ("phase=old", "phase"),
        ("permit_type=boats", "permit_type"),
        ("expires_from=2027-02-30", "expires_from"),
        ("expires_to=tomorrow", "expires_to"),
        ("updated_since=2027-01-01", "updated_since"),
        ("archived=yes", "archived"),
        ("q=a%00", "q"),
        ("q=a+b+c+d+e+f+g+h+i+j+k", "q"),
    ] {
        let refused = api.get(&format!("/permits?{query}")).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{query}");
        assert_eq!(refused.text("parameter"), parameter, "{query}");
    }
    api.close().await;
}

#[tokio::test]
async fn ids_addresses_and_methods_that_do_not_exist_are_told_apart() {
    let api = TestApi::open().await;
    for (method, path, status, kind) in [
        (Method::GET, "/permits/1", 400, "malformed"),
        (Method::GET, "/permit-types/%ff", 400, "malformed"),
        (Method::GET, "/permits/019e0000-0000-7000-8000-000000000000", 404, "not-found"),
        (Method::GET, "/permits/019e0000-0000-7000-8000-000000000000/terms", 404, "not-found"),
        (Method::GET, "/boats", 404, "not-found"),
        (Method::GET, "/", 404, "not-found"),
        (Method::POST, "/permits/019e0000-0000-7000-8000-000000000000", 405, "method-not-allowed"),
        (Method::DELETE, "/permits", 405, "method-not-allowed"),
    ] {
        let refused = send(api.request(method.clone(), path)).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (status, kind), "{method} {path}");
        assert_eq!(refused.header("allow").is_empty(), status != 405, "{method} {path}");
    }
    assert_eq!(api.get("").await.body["status"], Value::from(404));
    api.close().await;
}
