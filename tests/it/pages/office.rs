//! Suppressions, tokens and the audit: what each page shows and does, for whom, and what is recorded of it.

use permit_notifier::domain::role::Role;
use reqwest::Method;
use serde_json::json;

use crate::support::api::{TestApi, send};

const SCRIPT: &str = "<script>alert(1)</script>";
const SHOWN: &str = "&#60;script&#62;alert(1)&#60;/script&#62;";

/// Who did what, in order.
async fn deeds(api: &TestApi) -> Vec<String> {
    api.office.text("SELECT by || ' ' || action || ' ' || subject || ' ' || label FROM office_log ORDER BY id").await
}

#[tokio::test]
async fn an_address_is_suppressed_found_and_lifted_with_a_reason() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    clerk.get("/suppressions").await.shows(&["No address is suppressed", "Suppress the address"]);
    let wrong = [("address", "ada@example"), ("class", "courtesy"), ("reason", "")];
    let refused = clerk.post("/suppressions", &wrong).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    refused.shows(&[
        "<title>Error: ",
        "href=\"#address\">Address: the domain of an email address needs a dot",
        "href=\"#reason\">Reason is needed.",
        "value=\"ada@example\"",
        "<option selected>courtesy",
    ]);
    let right = [("address", "Ada@Example.org"), ("class", "courtesy"), ("reason", SCRIPT)];
    let added = clerk.post("/suppressions", &right).await;
    assert_eq!((added.status.as_u16(), added.header("location")), (303, "/suppressions?done=suppressed"));
    let again = clerk.post("/suppressions", &right).await;
    assert_eq!(again.header("location"), "/suppressions?done=suppressed-already");
    let page = clerk.get("/suppressions?q=ADA&done=suppressed").await;
    page.shows(&[
        "The address is suppressed.",
        "ada@example.org",
        SHOWN,
        "2027-03-10 09:00",
        "user:clerk@office.example",
    ]);
    assert!(!page.text.contains(SCRIPT), "{page:?}");
    clerk.get("/suppressions?q=%25").await.shows(&["No suppressed address has “%” in it"]);

    let viewer = api.signed_in(Role::Viewer).await;
    let seen = viewer.get("/suppressions").await;
    seen.shows(&["ada@example.org"]);
    assert!(!seen.text.contains("/lift"), "a viewer has no buttons: {seen:?}");
    let id = api.office.text("SELECT id::text FROM suppressions").await.remove(0);
    let lift = format!("/suppressions/{id}/lift");
    assert_eq!(viewer.post(&lift, &[("reason", "x")]).await.status, 403);

    let refused = clerk.post(&lift, &[("reason", " ")]).await;
    assert_eq!(refused.status, 422);
    refused.shows(&["<details open>", "Reason is needed."]);
    assert_eq!(clerk.post(&lift, &[("reason", "She asked for it.")]).await.status, 303);
    assert_eq!(clerk.post(&lift, &[("reason", "twice")]).await.status, 404);
    assert_eq!(
        deeds(&api).await,
        [
            "user:clerk@office.example suppressed suppression ada@example.org",
            "user:clerk@office.example lifted suppression ada@example.org"
        ]
    );
    api.close().await;
}

#[tokio::test]
async fn a_token_is_shown_once_works_and_is_refused_when_it_is_revoked() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let refused = admin.post("/tokens", &[("name", SCRIPT), ("scope", "read"), ("expires_on", "2027-03-09")]).await;
    assert_eq!(refused.status, 422);
    refused.shows(&["Expires on must be today (2027-03-10) or later.", SHOWN]);
    let page = admin.post("/tokens", &[("name", "portal"), ("scope", "read"), ("expires_on", "2027-03-10")]).await;
    assert_eq!(page.status, 201, "{page:?}");
    let token = page.between("readonly value=\"", "\"").to_owned();
    let list = admin.get("/tokens").await;
    list.shows(&["portal", "10 Mar 2027", "by admin@office.example"]);
    assert!(!list.text.contains(&token), "it is shown once");

    let ask = || api.client.get(format!("{}/api/v1/whoami", api.url)).bearer_auth(&token);
    assert_eq!(send(ask()).await.text("name"), "portal");
    let id = api.office.text("SELECT id::text FROM tokens WHERE name = 'portal'").await.remove(0);
    let revoke = format!("/tokens/{id}/revoke");
    for role in [Role::Viewer, Role::Clerk] {
        let other = api.signed_in(role).await;
        assert_eq!(
            (other.get("/tokens").await.status.as_u16(), other.post(&revoke, &[]).await.status.as_u16()),
            (403, 403)
        );
    }
    // Revoking twice is recorded once.
    for _ in 0..2 {
        assert_eq!(admin.post(&revoke, &[]).await.header("location"), "/tokens?done=token-revoked");
    }
    assert_eq!(send(ask()).await.status, 401);
    admin.get("/tokens").await.shows(&["revoked <time"]);
    let by = "user:admin@office.example";
    assert_eq!(deeds(&api).await, [format!("{by} made token portal"), format!("{by} revoked token portal")]);
    api.close().await;
}

#[tokio::test]
async fn the_audit_has_what_programs_and_people_did_and_shows_what_differs() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    admin.get("/audit").await.shows(&["Nobody has done anything yet."]);
    let mut permit = api.permit("F-1");
    permit["expires_on"] = json!(api.office.in_days(5));
    let permit = api.post("/permits", &permit).await;
    let changed = api.patch(permit.path(), permit.etag(), &json!({ "holder_name": SCRIPT })).await;
    assert_eq!(changed.status, 200);
    let notice = api.get("/notices?state=pending").await.column("id")[0].to_owned();
    assert_eq!(api.post(&format!("/notices/{notice}/hold"), &json!({ "reason": "a question" })).await.status, 200);
    assert_eq!(api.post(&format!("/notices/{notice}/hold"), &json!({ "reason": "twice" })).await.status, 409);
    let many = json!({ "action": "release", "ids": [notice], "reason": "answered" });
    assert_eq!(api.post("/notices/actions", &many).await.body["done"], json!([notice]));
    let ahead = json!({ "notice_type": "expires-1d", "action": "cancel", "reason": "not this one" });
    assert_eq!(api.post(&format!("{}/notices", permit.path()), &ahead).await.status, 200);
    let food = api.get("/permit-types/food").await;
    let mut body = food.body.clone();
    body["grace_days"] = json!(14);
    assert_eq!(api.put("/permit-types/food", food.etag(), &body).await.status, 200);
    assert_eq!(api.put("/permit-types/food", "\"2\"", &body).await.status, 200, "nothing differs");
    let suppressed = json!({ "address": "bo@example.org", "reason": "x" });
    let suppressed = api.post("/suppressions", &suppressed).await;
    send(api.request(Method::DELETE, suppressed.path())).await;
    let token = api.post("/tokens", &json!({ "name": "other", "scope": "read" })).await;
    send(api.request(Method::DELETE, token.path())).await;
    let expected = [
        "held notice F-1 expires-7d",
        "released notice F-1 expires-7d",
        "decided-in-advance notice F-1 expires-1d",
        "changed permit-type food",
        "suppressed suppression bo@example.org",
        "lifted suppression bo@example.org",
        "made token other",
        "revoked token other",
    ];
    assert_eq!(deeds(&api).await, expected.map(|deed| format!("token:tests {deed}")));

    let page = admin.get("/audit").await;
    page.shows(&[
        "<dt>grace days</dt>",
        "<del><span class=\"unseen\">was </span>0</del> <ins><span class=\"unseen\">is </span>14</ins>",
        "<dt>state</dt>",
        "a question",
        SHOWN,
        &format!("<a href=\"/notices/{notice}\">F-1 expires-7d</a>"),
        "decided in advance",
    ]);
    assert!(!page.text.contains(SCRIPT));
    let types = admin.get("/audit?by=token%3Atests&subject=permit-type").await;
    types.shows(&[
        "<a href=\"/permit-types/food\">food</a>",
        "<option value=\"token:tests\" selected>the token tests</option>",
    ]);
    assert!(!types.text.contains("F-1"), "{types:?}");
    admin.get("/audit?subject=permit").await.shows(&["holder name", "corrected"]);
    admin.get("/audit?by=nobody").await.shows(&["Nothing fits."]);
    let first = admin.get("/audit?limit=3").await;
    let next = first.between("<a class=\"button\" href=\"", "\"").replace("&amp;", "&").replace("&#38;", "&");
    let second = admin.get(&next).await;
    second.shows(&["suppressed", "First page"]);
    assert!(!second.text.contains("revoked"), "{second:?}");
    for role in [Role::Viewer, Role::Clerk] {
        assert_eq!(api.signed_in(role).await.get("/audit").await.status, 403);
    }
    api.close().await;
}
