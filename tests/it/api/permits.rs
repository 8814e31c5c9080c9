//! Permits: written, read, changed, found, renewed and put away.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{TestApi, send};
use crate::support::office::FOOD;

#[tokio::test]
async fn a_permit_is_created_with_its_notices_and_read_again() {
    let api = TestApi::open().await;
    let mut permit = api.permit(" F  1 ");
    permit["expires_on"] = json!(api.office.in_days(5));
    permit["permit_type"] = json!("FOOD");
    permit["contacts"] = json!([{ "email": "bo@example.org" }]);
    permit["custom"] = json!({ "zone": 7 });
    let made = api.post("/permits", &permit).await;
    assert_eq!((made.status.as_u16(), made.etag()), (201, "\"1\""), "{made:?}");
    assert_eq!(made.text("permit_number"), "F  1");
    assert_eq!((made.text("permit_type"), made.text("status"), made.text("phase")), (FOOD, "active", "expiring"));
    assert_eq!(made.body["contacts"][0]["role"], "contact");
    assert_eq!(made.header("location"), format!("/api/v1/permits/{}", made.text("id")));
    let read = api.get(made.path()).await;
    assert_eq!((read.status.as_u16(), &read.body, read.etag()), (200, &made.body, "\"1\""));
    let notices: i64 = sqlx::query_scalar("SELECT count(*) FROM notices WHERE state = 'pending'")
        .fetch_one(&api.office.pool)
        .await
        .unwrap();
    assert_eq!(notices, 1, "the holder is told at once");
    let known = send(api.request(Method::GET, made.path()).header("if-none-match", "\"1\"")).await;
    assert_eq!((known.status.as_u16(), known.body), (304, Value::Null));
    let other = send(api.request(Method::GET, made.path()).header("if-none-match", "\"2\"")).await;
    assert_eq!(other.status, 200);
    api.close().await;
}

#[tokio::test]
async fn what_was_read_can_be_written_back_and_changes_nothing() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let put = api.put(made.path(), made.etag(), &made.body).await;
    assert_eq!((put.status.as_u16(), &put.body), (200, &made.body), "{put:?}");
    let history = api.get(&format!("{}/history", made.path())).await;
    assert_eq!(history.column("action"), ["created"]);
    api.close().await;
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_a_put_empties_what_it_does_not() {
    let api = TestApi::open().await;
    let mut permit = api.permit("F-1");
    permit["custom"] = json!({ "a": 1, "b": { "c": 2, "d": 3 } });
    permit["site_address"] = json!("1 Main St");
    let made = api.post("/permits", &permit).await;
    let patch = json!({ "holder_name": "Bo", "site_address": null, "custom": { "b": { "c": null } } });
    let patched = send(
        api.request(Method::PATCH, made.path())
            .header("if-match", made.etag())
            .header("content-type", "application/merge-patch+json")
            .body(patch.to_string()),
    )
    .await;
    assert_eq!((patched.status.as_u16(), patched.etag()), (200, "\"2\""), "{patched:?}");
    assert_eq!((patched.text("holder_name"), &patched.body["site_address"]), ("Bo", &Value::Null));
    assert_eq!(patched.body["custom"], json!({ "a": 1, "b": { "d": 3 } }));
    assert_eq!(patched.text("holder_email"), "ada@example.org");
    let put = api.put(made.path(), "\"2\"", &api.permit("F-2")).await;
    assert_eq!((put.etag(), put.text("permit_number")), ("\"3\"", "F-2"));
    assert_eq!(put.body["custom"], json!({}));

    let history = api.get(&format!("{}/history?limit=2", made.path())).await;
    assert_eq!(history.column("by"), ["token:tests", "token:tests"]);
    let changes = &history.body["items"][1]["changes"];
    assert_eq!(changes["holder_name"], json!({ "from": "Ada Holder", "to": "Bo" }));
    assert_eq!(changes.as_object().unwrap().len(), 3, "{changes}");
    let cursor = history.text("next_cursor").to_owned();
    let rest = api.get(&format!("{}/history?limit=2&cursor={cursor}", made.path())).await;
    assert_eq!((rest.column("action"), &rest.body["next_cursor"]), (vec!["created"], &Value::Null));
    api.close().await;
}

#[tokio::test]
async fn a_change_needs_the_version_that_was_read() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let body = json!({ "holder_name": "Bo" });
    let missing = send(api.request(Method::PATCH, made.path()).json(&body)).await;
    assert_eq!((missing.status.as_u16(), missing.kind()), (428, "precondition-required"));
    let missing = send(api.request(Method::DELETE, made.path())).await;
    assert_eq!(missing.status, 428);
    assert_eq!(api.patch(made.path(), "\"1\"", &body).await.status, 200);
    for stale in [api.patch(made.path(), "\"1\"", &body).await, api.delete(made.path(), "\"1\"").await] {
        assert_eq!((stale.status.as_u16(), stale.kind()), (412, "stale"));
        assert_eq!(stale.body["version"], 2);
    }
    for strange in ["1", "W/\"2\"", "\"2\", \"3\"", "\"-2\"", "\"x\""] {
        let refused = api.patch(made.path(), strange, &body).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{strange}");
    }
    let any = api.patch(made.path(), "*", &json!({ "holder_name": "Cy" })).await;
    assert_eq!((any.status.as_u16(), any.etag()), (200, "\"3\""));
    api.close().await;
}

#[tokio::test]
async fn a_permit_that_is_put_away_keeps_its_number_and_comes_back() {
    let api = TestApi::open().await;
    let made = api.create_permit("F-1").await;
    let gone = api.delete(made.path(), made.etag()).await;
    assert_eq!((gone.status.as_u16(), gone.etag()), (200, "\"2\""));
    assert!(gone.body["archived_at"].is_string());
    let taken = api.post("/permits", &api.permit("f- 1")).await;
    assert_eq!((taken.status.as_u16(), taken.kind()), (409, "permit-number-taken"));
    assert_eq!(taken.text("permit_id"), made.text("id"));
    let renewed = api.post(&format!("{}/renew", made.path()), &json!({ "nonsense": 1 })).await;
    assert_eq!((renewed.status.as_u16(), renewed.kind(), renewed.text("state")), (409, "wrong-state", "archived"));
    assert_eq!(api.get("/permits?archived=false").await.column("id").len(), 0);
    assert_eq!(api.get("/permits?archived=true").await.column("id").len(), 1);
    let back = send(api.request(Method::POST, &format!("{}/restore", made.path()))).await;
    assert_eq!((back.status.as_u16(), &back.body["archived_at"]), (200, &Value::Null));
    api.close().await;
}

#[tokio::test]
async fn a_renewal_opens_a_term_and_its_repetition_changes_nothing() {
    let api = TestApi::open().await;
    let mut permit = api.permit("F-1");
    permit["expires_on"] = json!(api.office.in_days(20));
    let made = api.post("/permits", &permit).await;
    let renew = format!("{}/renew", made.path());
    let next = json!({ "expires_on": api.office.in_days(400) });
    for _ in 0..2 {
        let renewed = api.post(&renew, &next).await;
        assert_eq!((renewed.status.as_u16(), renewed.etag()), (200, "\"2\""), "{renewed:?}");
    }
    let terms = api.get(&format!("{}/terms", made.path())).await;
    assert_eq!(terms.column("expires_on"), [api.office.in_days(400).to_string(), api.office.in_days(20).to_string()]);
    let confirmations: i64 = sqlx::query_scalar("SELECT count(*) FROM notices WHERE notice_type = 'renewed'")
        .fetch_one(&api.office.pool)
        .await
        .unwrap();
    assert_eq!(confirmations, 1);
    for (date, kind, code) in [
        (api.office.in_days(-1), "validation-failed", "not_allowed"),
        (api.office.in_days(399), "not-later", "not_later"),
    ] {
        let refused = api.post(&renew, &json!({ "expires_on": date })).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (422, kind), "{date}");
        assert_eq!(refused.faults(), [("/expires_on", code)]);
    }
    let stale = send(api.request(Method::POST, &renew).header("if-match", "\"1\"").json(&next)).await;
    assert_eq!(stale.status, 412);
    api.close().await;
}

#[tokio::test]
async fn permits_are_found_by_any_part_and_every_filter() {
    let api = TestApi::open().await;
    for (number, edit) in [
        ("A-100%", json!({ "holder_name": "Zoë Žižek", "expires_on": api.office.in_days(10) })),
        ("A-101", json!({ "site_address": "12 Elm_Street", "expires_on": api.office.in_days(-3) })),
        ("B-200", json!({ "external_id": "sap-77", "status": "suspended", "expires_on": api.office.in_days(200) })),
        ("B-201", json!({ "effective_on": api.office.in_days(2), "holder_email": "bo@old.example.org" })),
    ] {
        let mut permit = api.permit(number);
        permit.as_object_mut().unwrap().extend(edit.as_object().unwrap().clone());
        assert_eq!(api.post("/permits", &permit).await.status, 201);
    }
    let day = |days| api.office.in_days(days);
    for (query, found) in [
        (String::new(), vec!["A-101", "A-100%", "B-200", "B-201"]),
        ("q=ZOË".to_owned(), vec!["A-100%"]),
        ("q=0%25".to_owned(), vec!["A-100%"]),
        ("q=elm_s".to_owned(), vec!["A-101"]),
        ("q=a+10".to_owned(), vec!["A-101", "A-100%"]),
        ("q=old.example".to_owned(), vec!["B-201"]),
        ("q=sap-7".to_owned(), vec!["B-200"]),
        ("status=suspended".to_owned(), vec!["B-200"]),
        ("permit_type=Food&q=b-2".to_owned(), vec!["B-200", "B-201"]),
        (format!("expires_from={}&expires_to={}", day(10), day(200)), vec!["A-100%", "B-200"]),
        ("phase=expiring".to_owned(), vec!["A-100%"]),
        ("phase=active".to_owned(), vec!["B-200"]),
        ("phase=expired".to_owned(), vec!["A-101"]),
        ("phase=grace".to_owned(), vec![]),
        ("phase=not_yet_effective".to_owned(), vec!["B-201"]),
        ("updated_since=2027-03-10T15:00:00Z".to_owned(), vec!["A-101", "A-100%", "B-200", "B-201"]),
        ("updated_since=2027-03-10T15:00:01Z".to_owned(), vec![]),
    ] {
        let listed = api.get(&format!("/permits?{query}")).await;
        assert_eq!(listed.status, 200, "{query}: {listed:?}");
        assert_eq!(listed.column("permit_number"), found, "{query}");
        for item in listed.body["items"].as_array().unwrap() {
            let alone = api.get(&format!("/permits/{}", item["id"].as_str().unwrap())).await;
            assert_eq!(&alone.body, item);
        }
    }
    api.close().await;
}

#[tokio::test]
async fn pages_follow_each_other_and_a_cursor_belongs_to_its_list() {
    let api = TestApi::open().await;
    for number in 0..7 {
        api.create_permit(&format!("F-{number}")).await;
    }
    let whole = api.get("/permits").await;
    assert_eq!(whole.header("link"), "");
    let (mut path, mut seen) = ("/permits?limit=3".to_owned(), Vec::new());
    loop {
        let page = api.get(&path).await;
        assert!(page.body["items"].as_array().unwrap().len() <= 3);
        seen.extend(page.column("id").into_iter().map(str::to_owned));
        let Some(link) =
            page.header("link").strip_prefix("</api/v1").and_then(|link| link.strip_suffix(">; rel=\"next\""))
        else {
            assert!(page.body["next_cursor"].is_null());
            break;
        };
        assert!(link.ends_with(page.text("next_cursor")));
        link.clone_into(&mut path);
    }
    assert_eq!(seen, whole.column("id"));
    let cursor = api.get("/permits?limit=3").await.text("next_cursor").to_owned();
    assert_eq!(api.get(&format!("/permits?limit=5&cursor={cursor}")).await.status, 200);
    let made = whole.column("id")[0].to_owned();
    for wrong in [
        format!("/permits?status=active&cursor={cursor}"),
        format!("/permits/{made}/history?cursor={cursor}"),
        format!("/permits?cursor={}", &cursor[1..]),
        "/permits?cursor=".to_owned(),
        "/permits?cursor=%00".to_owned(),
    ] {
        let refused = api.get(&wrong).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{wrong}");
        assert_eq!(refused.text("parameter"), "cursor", "{wrong}");
    }
    api.close().await;
}

#[tokio::test]
async fn a_cursor_that_somebody_has_made_up_is_none_of_ours() {
    let api = TestApi::open().await;
    for number in 0..2 {
        api.create_permit(&format!("F-{number}")).await;
        let made = json!({ "name": format!("Type {number}") });
        let request = api.request(Method::PUT, &format!("/permit-types/type-{number}"));
        assert_eq!(send(request.json(&made)).await.status, 201);
    }
    let id = api.get("/permits").await.column("id")[0].to_owned();
    for (list, after) in [
        ("/permit-types?limit=1", json!("a\u{0}b")),
        ("/permits?limit=1", json!(["-262143-01-01", id])),
        ("/permits?limit=1", json!(["+262142-12-31", id])),
    ] {
        let given = api.get(list).await.text("next_cursor").to_owned();
        let mut cursor: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(given).unwrap()).unwrap();
        cursor["after"] = after;
        let refused = api.get(&format!("{list}&cursor={}", URL_SAFE_NO_PAD.encode(cursor.to_string()))).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (400, "malformed"), "{list} {cursor}");
        assert_eq!(refused.text("parameter"), "cursor");
    }
    api.close().await;
}

#[tokio::test]
async fn what_is_looked_for_may_be_written_in_capitals_of_any_language() {
    let api = TestApi::open().await;
    let mut permit = api.permit("F-1");
    permit["holder_name"] = json!("\u{130}STANBUL \u{c7}ar\u{15f}\u{131}");
    assert_eq!(api.post("/permits", &permit).await.status, 201);
    for words in ["\u{130}STANBUL", "\u{e7}ar\u{15f}\u{131}", "\u{c7}AR\u{15e}\u{131}"] {
        let found = api.request(Method::GET, "/permits").query(&[("q", words)]);
        assert_eq!(send(found).await.column("permit_number"), ["F-1"], "{words}");
    }
    api.close().await;
}
