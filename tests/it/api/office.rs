//! What an administrator sets up: permit types, suppressions, tokens; and scans.

use permit_notifier::domain::scope::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{TestApi, send};

#[tokio::test]
async fn a_permit_type_is_made_changed_under_its_version_and_its_notices_follow() {
    let api = TestApi::open().await;
    let made = send(api.request(Method::PUT, "/permit-types/dogs").json(&json!({ "name": "Dogs" }))).await;
    assert_eq!(
        (made.status.as_u16(), made.etag(), made.header("location")),
        (201, "\"1\"", "/api/v1/permit-types/dogs")
    );
    assert_eq!(made.body["steps"].as_array().unwrap().len(), 10, "the usual schedule");
    let again = send(api.request(Method::PUT, "/permit-types/dogs").json(&json!({ "name": "Dogs" }))).await;
    assert_eq!((again.status.as_u16(), again.kind()), (428, "precondition-required"));

    let mut permit = api.permit("D-1");
    permit["permit_type"] = json!("dogs");
    permit["expires_on"] = json!(api.office.in_days(5));
    let permit = api.post("/permits", &permit).await;
    let pending = format!("/notices?state=pending&permit_id={}", permit.text("id"));
    assert_eq!(api.get(&pending).await.column("notice_type"), ["expires-7d"]);
    let mut changed = made.body.clone();
    changed["steps"] =
        json!([{ "notice_type": "expires-3d", "offset_days": -3 }, { "notice_type": "renewed", "class": "courtesy" }]);
    changed["renewal_url"] = json!("https://example.org/renew");
    let put = api.put("/permit-types/dogs", "\"1\"", &changed).await;
    assert_eq!(
        (put.status.as_u16(), put.etag(), put.text("renewal_url")),
        (200, "\"2\"", "https://example.org/renew"),
        "{put:?}"
    );
    assert_eq!(
        put.body["steps"][0],
        json!({ "notice_type": "expires-3d", "offset_days": -3, "class": "statutory", "late_by_days": 7, "enabled": true })
    );
    assert_eq!(api.get(&pending).await.column("id").len(), 0, "its step is gone");
    let stale = api.put("/permit-types/dogs", "\"1\"", &changed).await;
    assert_eq!((stale.kind(), stale.text("detail").contains("the permit was")), ("stale", false), "{stale:?}");
    let same = api.put("/permit-types/dogs", "\"2\"", &put.body).await;
    assert_eq!((same.status.as_u16(), same.etag()), (200, "\"2\""), "nothing changed");
    let kept = api.put("/permit-types/dogs", "*", &json!({ "name": "Hounds" })).await;
    assert_eq!(
        (kept.etag(), kept.body["steps"].as_array().unwrap().len()),
        ("\"3\"", 2),
        "steps that are not named stay"
    );
    let read = send(api.request(Method::GET, "/permit-types/dogs").header("if-none-match", "\"3\"")).await;
    assert_eq!(read.status, 304);
    assert_eq!(api.get("/permit-types").await.column("code"), ["dogs", "food"]);
    let page = api.get("/permit-types?limit=1").await;
    let rest = api.get(&format!("/permit-types?limit=1&cursor={}", page.text("next_cursor"))).await;
    assert_eq!((page.column("code"), rest.column("code")), (vec!["dogs"], vec!["food"]));
    api.close().await;
}

#[tokio::test]
async fn a_permit_type_that_is_not_right_is_refused_by_field() {
    let api = TestApi::open().await;
    let step = |more: Value| {
        let mut step = json!({ "notice_type": "a", "offset_days": 1 });
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([step])
    };
    for (field, value, pointer, code) in [
        ("name", json!(""), "/name", "empty"),
        ("name", json!("food"), "/name", "not_allowed"),
        ("renewal_url", json!("javascript:alert(1)"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https://a:b@example.org"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https://"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https://a.example/x y"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("file:///etc/passwd"), "/renewal_url", "malformed_url"),
        // They do not lead where they seem to, or are read in two ways.
        ("renewal_url", json!("https:a.example"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https:///a.example"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https://a.example\\@b.example"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https://@a.example"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https://a.example%2eb.example"), "/renewal_url", "malformed_url"),
        ("renewal_url", json!("https://a.example/\u{202e}gro.b"), "/renewal_url", "malformed_url"),
        // Written in ASCII, as a mail shows it, it is too long.
        ("renewal_url", json!(format!("https://a.example/{}", "ü".repeat(400))), "/renewal_url", "malformed_url"),
        ("renewal_url", json!(format!("https://a.example/{}", "u".repeat(990))), "/renewal_url", "too_long"),
        ("grace_days", json!(3651), "/grace_days", "out_of_range"),
        ("grace_days", json!(1.5), "/grace_days", "out_of_range"),
        ("steps", step(json!({ "offset_days": 3651 })), "/steps/0/offset_days", "out_of_range"),
        ("steps", step(json!({ "notice_type": "A b" })), "/steps/0/notice_type", "malformed_notice_type"),
        ("steps", step(json!({ "class": "kind" })), "/steps/0/class", "not_allowed"),
        ("steps", step(json!({ "enabled": "yes" })), "/steps/0/enabled", "type"),
        ("steps", step(json!({ "color": "red" })), "/steps/0/color", "unknown_field"),
        ("steps", json!([{ "notice_type": "a" }]), "/steps", "not_allowed"),
        (
            "steps",
            json!([{ "notice_type": "a", "offset_days": 1 }, { "notice_type": "a", "offset_days": 2 }]),
            "/steps",
            "not_allowed",
        ),
        ("steps", json!({}), "/steps", "type"),
    ] {
        let mut body = json!({ "name": "Boats" });
        body[field] = value.clone();
        let refused = send(api.request(Method::PUT, "/permit-types/boats").json(&body)).await;
        assert_eq!(refused.status, 422, "{field} {value}: {refused:?}");
        assert_eq!(refused.faults(), [(pointer, code)], "{field} {value}");
    }
    let code = send(api.request(Method::PUT, "/permit-types/Big%20Boats").json(&json!({ "name": "B" }))).await;
    assert_eq!((code.status.as_u16(), code.kind()), (400, "malformed"));
    assert_eq!(api.get("/permit-types/boats").await.status, 404, "nothing was made");
    api.close().await;
}

#[tokio::test]
async fn an_address_is_suppressed_once_and_let_go() {
    let api = TestApi::open().await;
    let body = json!({ "address": "Ada@Example.org", "reason": "asked for it" });
    let made = api.post("/suppressions", &body).await;
    assert_eq!((made.status.as_u16(), made.text("address"), made.text("class")), (201, "ada@example.org", "all"));
    assert_eq!(made.text("source"), "token:tests");
    let again = api.post("/suppressions", &body).await;
    assert_eq!((again.status.as_u16(), again.text("id")), (200, made.text("id")));
    let mut permit = api.permit("F-1");
    permit["expires_on"] = json!(api.office.in_days(5));
    let permit = api.post("/permits", &permit).await;
    let notices = api.get(&format!("/notices?state=pending&permit_id={}", permit.text("id"))).await;
    let copies: Vec<(&Value, &Value)> = notices.body["items"][0]["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|copy| (&copy["channel"], &copy["state"]))
        .collect();
    assert_eq!(copies.len(), 2, "{notices:?}");
    assert!(
        copies.contains(&(&json!("email"), &json!("suppressed")))
            && copies.contains(&(&json!("letter"), &json!("pending")))
    );
    assert_eq!(api.get("/suppressions").await.column("address"), ["ada@example.org"]);
    let gone = send(api.request(Method::DELETE, made.path())).await;
    assert_eq!((gone.status.as_u16(), gone.body), (204, Value::Null));
    assert_eq!(send(api.request(Method::DELETE, made.path())).await.kind(), "not-found");
    let refused = api.post("/suppressions", &json!({ "address": "x", "class": "some" })).await;
    assert_eq!(
        refused.faults(),
        [("/address", "malformed_address"), ("/class", "not_allowed"), ("/reason", "required")]
    );
    api.close().await;
}

#[tokio::test]
async fn a_token_is_shown_once_used_and_ended_at_once() {
    let api = TestApi::open().await;
    let body = json!({ "name": "portal", "scope": "read", "expires_on": api.office.in_days(30) });
    let create = || send(api.request(Method::POST, "/tokens").header("idempotency-key", "t").json(&body));
    let made = create().await;
    assert_eq!(made.status, 201, "{made:?}");
    let token = made.text("token").to_owned();
    assert!(token.starts_with("pnt_") && token.ends_with(made.text("hint")), "{made:?}");
    let replayed = create().await;
    assert_eq!((replayed.status.as_u16(), replayed.header("idempotency-replayed")), (201, "true"));
    assert_eq!((replayed.text("id"), replayed.body.get("token")), (made.text("id"), None), "a secret is not kept");
    let stored: String = sqlx::query_scalar(
        "SELECT concat((SELECT string_agg(tokens::text, '') FROM tokens),
                       (SELECT string_agg(convert_from(body, 'UTF8'), '') FROM idempotency_keys))",
    )
    .fetch_one(&api.office.pool)
    .await
    .unwrap();
    assert!(!stored.contains(&token), "a token is stored");

    let as_portal =
        |method, path: &str| api.client.request(method, format!("{}/api/v1{path}", api.url)).bearer_auth(&token);
    let me = send(as_portal(Method::GET, "/whoami")).await;
    assert_eq!((me.text("name"), me.text("scope"), me.body.get("token")), ("portal", "read", None));
    assert_eq!(api.get("/tokens").await.column("name"), ["portal", "tests"]);
    let ended = send(api.request(Method::DELETE, made.path())).await;
    assert_eq!((ended.status.as_u16(), ended.body["revoked_at"].is_string()), (200, true));
    assert_eq!(send(as_portal(Method::GET, "/whoami")).await.status, 401, "at once");
    for (body, fault) in [
        (json!({ "name": "x", "scope": "root" }), ("/scope", "not_allowed")),
        (json!({ "name": "", "scope": "read" }), ("/name", "empty")),
        (json!({ "name": "x", "scope": "read", "expires_on": api.office.in_days(-1) }), ("/expires_on", "not_allowed")),
    ] {
        assert_eq!(api.post("/tokens", &body).await.faults(), [fault], "{body}");
    }
    api.close().await;
}

#[tokio::test]
async fn a_scan_is_asked_for_looked_at_and_what_it_held_is_let_go() {
    let api = TestApi::open().await;
    let permit = api.create_permit("F-1").await;
    api.office.days_pass(358);
    let preview = send(api.request(Method::POST, "/scans/preview")).await;
    assert_eq!(
        (preview.body["dry_run"].clone(), preview.body["claimed"].clone()),
        (json!(true), json!(1)),
        "{preview:?}"
    );
    assert_eq!(preview.body["items"][0]["permit_number"], "F-1");
    let earlier = api.post("/scans/preview", &json!({ "as_of": api.office.in_days(-300) })).await;
    assert_eq!(earlier.body["claimed"], 0);
    assert_eq!(api.get(&format!("{}/notices", permit.path())).await.column("id").len(), 0, "nothing was written");
    let begun = send(api.request(Method::POST, "/scans")).await;
    assert_eq!((begun.status.as_u16(), begun.text("trigger")), (202, "manual"), "{begun:?}");
    let path = format!("/scans/{}", begun.text("id"));
    assert_eq!(begun.header("location"), format!("/api/v1{path}"));
    let ended = loop {
        let scan = api.get(&path).await;
        if scan.text("outcome") != "running" {
            break scan;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!((ended.text("outcome"), &ended.body["claimed"]), ("completed", &json!(1)));
    assert_eq!(api.get("/scans").await.column("id"), [begun.text("id")]);

    sqlx::raw_sql(
        "UPDATE deliveries SET state = 'held', reason_code = 'claim_limit' WHERE state = 'pending';
                   UPDATE notices SET state = 'held', reason_code = 'claim_limit' WHERE state = 'pending'",
    )
    .execute(&api.office.pool)
    .await
    .unwrap();
    let missing = api.post(&format!("{path}/release"), &json!({})).await;
    assert_eq!(missing.faults(), [("/reason", "required")]);
    let released = api.post(&format!("{path}/release"), &json!({ "reason": "all right" })).await;
    assert_eq!((released.status.as_u16(), &released.body["released"]), (200, &json!(1)), "{released:?}");
    let cancelled = api.post(&format!("{path}/cancel"), &json!({ "reason": "none left" })).await;
    assert_eq!(cancelled.body, json!({ "released": 0, "superseded": 0, "skipped": 0, "cancelled": 0 }));
    api.close().await;
}

#[tokio::test]
async fn a_second_scan_is_refused_while_one_runs() {
    let api = TestApi::open().await;
    let mut lock = permit_notifier::store::scan_lock::ScanLock::try_take(&api.office.url).await.unwrap();
    assert!(lock.is_some());
    let refused = send(api.request(Method::POST, "/scans")).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (409, "still-running"));
    lock.take().unwrap().release().await;
    assert_eq!(send(api.request(Method::POST, "/scans")).await.status, 202);
    api.close().await;
}

/// Every route with what it needs, and a body that would be right for nothing.
#[tokio::test]
async fn every_route_asks_for_its_scope() {
    let api = TestApi::open().await;
    let description = permit_notifier::web::api::description::description();
    let tokens = [
        ("", String::new()),
        ("read", api.create_token("r", Scope::Read, None).await),
        ("write", api.create_token("w", Scope::Write, None).await),
    ];
    let mut routes = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let needed = operation["security"][0]["token"][0].as_str().unwrap();
            let expected = match (method.as_str(), path.as_str()) {
                ("get", _) => "read",
                (_, path) if path.starts_with("/api/v1/permit-types") || path.starts_with("/api/v1/tokens") => "admin",
                _ => "write",
            };
            assert_eq!(needed, expected, "{method} {path}");
            let url =
                format!("{}{}", api.url, path.replace("{id}", &uuid::Uuid::nil().to_string()).replace("{code}", "x"));
            for (scope, token) in &tokens {
                let method: Method = method.to_uppercase().parse().unwrap();
                let mut request = api.client.request(method.clone(), &url).json(&json!({ "surprise": 1 }));
                if !token.is_empty() {
                    request = request.bearer_auth(token);
                }
                let status = send(request).await.status.as_u16();
                match (*scope, needed) {
                    ("", _) => assert_eq!(status, 401, "{method} {path}"),
                    ("read", "write" | "admin") | ("write", "admin") => {
                        assert_eq!(status, 403, "{scope} {method} {path}");
                    }
                    _ => assert!(![401, 403].contains(&status), "{scope} {method} {path}: {status}"),
                }
            }
            routes += 1;
        }
    }
    assert!(routes > 30, "{routes}");
    api.close().await;
}
