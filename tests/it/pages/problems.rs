//! Problems: each kind shown with what is known of it, settled by hand, and written down.

use permit_notifier::domain::role::Role;
use uuid::Uuid;

use super::pending;
use crate::support::{
    api::TestApi,
    pages::{Page, Visitor},
};

/// What was done on pages, oldest first.
async fn log(api: &TestApi) -> Vec<String> {
    let lines =
        "SELECT concat_ws(' ', by, action, label, before->>'state', after->>'state') FROM office_log ORDER BY id";
    api.office.text(lines).await
}

async fn state(api: &TestApi, notice: Uuid) -> String {
    api.office.text(&format!("SELECT state FROM notices WHERE id = '{notice}'")).await.remove(0)
}

async fn act(visitor: &Visitor, notice: Uuid, verb: &str, fields: &[(&str, &str)]) -> Page {
    visitor.post(&format!("/notices/{notice}/{verb}"), fields).await
}

#[tokio::test]
async fn an_ambiguous_copy_is_settled_with_a_reason() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let (arrived, a) = pending(&api, "F-1").await;
    let (lost, b) = pending(&api, "F-2").await;
    for permit in [arrived, lost] {
        api.office.transport(permit, "ambiguous").await;
    }
    let page = clerk.get("/problems").await;
    page.shows(&["Ambiguous: 2", "The whole message was handed over", "phase dot", "F-1", "F-2", "the very bytes"]);
    let back = [("back", "/problems?kind=ambiguous")];
    let bare = act(&clerk, a, "resolve", &[("outcome", "delivered"), back[0]]).await;
    assert_eq!(bare.status, 422, "{bare:?}");
    bare.shows(&["There is a problem", "The reason is needed."]);
    assert_eq!(state(&api, a).await, "ambiguous");

    let done = act(&clerk, a, "resolve", &[("outcome", "delivered"), ("reason", "it is in their log"), back[0]]).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, "/problems?kind=ambiguous&done=resolved"));
    let done = act(&clerk, b, "resolve", &[("outcome", "not_delivered"), ("reason", "it is not")]).await;
    assert_eq!(done.header("location"), format!("/notices/{b}?done=resolved"));
    clerk.get(done.header("location")).await.shows(&["What you found out is recorded.", "not delivered", "it is not"]);
    assert_eq!((state(&api, a).await.as_str(), state(&api, b).await.as_str()), ("sent", "pending"));
    assert_eq!(
        log(&api).await,
        [
            "user:clerk@office.example resolved F-1 expires-7d ambiguous sent",
            "user:clerk@office.example resolved F-2 expires-7d ambiguous pending"
        ]
    );
    // What is settled is refused, and the page says so.
    let again = act(&clerk, a, "resolve", &[("outcome", "delivered"), ("reason", "again")]).await;
    assert_eq!(again.status, 409);
    again.shows(&["There is a problem", "only an ambiguous one can be resolved"]);
    clerk.get("/problems").await.shows(&["Nothing needs a person."]);
    api.close().await;
}

#[tokio::test]
async fn what_failed_goes_again_or_is_given_up_many_at_once() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let mut notices = Vec::new();
    for number in ["F-1", "F-2", "F-3"] {
        let (permit, notice) = pending(&api, number).await;
        api.office.transport(permit, "rejected").await;
        notices.push(notice);
    }
    api.office.sql("UPDATE deliveries SET last_error = '550 no such <b>user</b>' WHERE state = 'failed'").await;
    let page = clerk.get("/problems?kind=failed").await;
    page.shows(&["Could not be sent: 3", "550 no such &#60;b&#62;user&#60;/b&#62;"]);
    let ids: Vec<String> = notices.iter().map(Uuid::to_string).collect();
    let back = ("back", "/problems?kind=failed");

    let nothing = clerk.post("/problems/actions", &[("action", "retry"), back]).await;
    assert_eq!(nothing.status, 422);
    nothing.shows(&["Tick the notices that are meant."]);
    let bare = clerk.post("/problems/actions", &[("action", "cancel"), ("notice", &ids[0]), back]).await;
    assert_eq!(bare.status, 422);
    bare.shows(&["Give the reason."]);

    let again = [("action", "retry"), ("notice", &ids[0]), ("notice", &ids[1]), back];
    let done = clerk.post("/problems/actions", &again).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, "/problems?kind=failed&done=many-done"));
    assert_eq!(
        (state(&api, notices[0]).await.as_str(), state(&api, notices[1]).await.as_str()),
        ("pending", "pending")
    );

    let many: Vec<_> = (0..201).map(|_| ("notice", ids[2].as_str())).chain([("action", "retry")]).collect();
    let refused = clerk.post("/problems/actions", &many).await;
    assert_eq!(refused.status, 422);
    refused.shows(&["Tick at most 200 notices at once; nothing was done."]);

    // One of two does not allow it any more: the other is done, and the page names the one.
    let body = serde_json::json!({ "reason": "no", "failed_only": false });
    let api_cancelled = api.post(&format!("/notices/{}/cancel", ids[0]), &body).await;
    assert_eq!(api_cancelled.status, 200);
    let fields = [("action", "cancel"), ("notice", &ids[0]), ("notice", &ids[2]), ("reason", "left town"), back];
    let partly = clerk.post("/problems/actions", &fields).await;
    assert_eq!(partly.status, 409, "{partly:?}");
    partly.shows(&["It was done with 1 of 2 notices.", "F-1 expires-7d: Not possible"]);
    assert_eq!(state(&api, notices[2]).await, "cancelled");
    let lines = log(&api).await;
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[3], "user:clerk@office.example cancelled F-3 expires-7d failed cancelled");
    api.close().await;
}

#[tokio::test]
async fn giving_up_an_address_leaves_the_mail_to_the_one_that_was_recorded_since() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let (permit, notice) = pending(&api, "F-1").await;
    api.office.transport(permit, "rejected").await;
    let path = format!("/permits/{permit}");
    let etag = api.get(&path).await.etag().to_owned();
    let corrected = api.patch(&path, &etag, &serde_json::json!({ "holder_email": "new@example.org" })).await;
    assert_eq!(corrected.status, 200, "{corrected:?}");
    clerk.get(&format!("/notices/{notice}")).await.shows(&["Give up what failed", "Cancel all of it"]);
    let page = clerk.get("/problems?kind=failed").await;
    page.shows(&["<input type=\"hidden\" name=\"failed_only\" value=\"yes\">"]);
    let id = notice.to_string();
    let fields = [
        ("action", "cancel"),
        ("failed_only", "yes"),
        ("notice", &id),
        ("reason", "a new address"),
        ("back", "/problems?kind=failed"),
    ];
    assert_eq!(clerk.post("/problems/actions", &fields).await.status, 303);
    let copies = "SELECT recipient || ' ' || state FROM deliveries ORDER BY id";
    assert_eq!(api.office.text(copies).await[1], "new@example.org pending");
    assert!(log(&api).await.last().unwrap().contains("given-up F-1 expires-7d"), "{:?}", log(&api).await);
    api.close().await;
}

#[tokio::test]
async fn a_suppressed_address_leads_to_the_suppressions() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let (permit, notice) = pending(&api, "F-1").await;
    api.office.transport(permit, "rejected").await;
    api.office
        .sql(
            "UPDATE deliveries SET state = 'suppressed', reason_code = 'suppressed';
             INSERT INTO suppressions (id, address, class, reason, source, created_at)
             SELECT gen_random_uuid(), recipient, 'all', 'x', 'person', now() FROM deliveries",
        )
        .await;
    let id = notice.to_string();
    let many = [("action", "retry"), ("notice", &id), ("back", "/problems?kind=failed")];
    for page in [clerk.post("/problems/actions", &many).await, clerk.post(&format!("/notices/{id}/retry"), &[]).await] {
        assert_eq!(page.status, 409, "{page:?}");
        page.shows(&["<a href=\"/suppressions\">", "The address is suppressed. Lift that under Suppressions"]);
    }
    api.close().await;
}

#[tokio::test]
async fn what_a_scan_held_is_released_or_cancelled_together() {
    let mut api = TestApi::open().await;
    let permits = [api.office.permit_expiring_in(31).await, api.office.permit_expiring_in(31).await];
    api.office.days_pass(1);
    api.office.rules.claim_limit = 1;
    let scan = api.office.scan().await;
    assert_eq!(scan.counts.held, 2);
    let clerk = api.signed_in(Role::Clerk).await;
    let page = clerk.get("/problems").await;
    page.shows(&["Held: 2", "2 held", "Release all 2", "More was due at once"]);
    let id = scan.id.unwrap().to_string();
    clerk.get(&format!("/scans/{id}")).await.shows(&["still held"]);
    let bare = clerk.post("/problems/held", &[("action", "release"), ("scan", &id), ("field", "scan-x")]).await;
    assert_eq!(bare.status, 422, "{bare:?}");
    bare.shows(&["The reason must have 1 to 1000 characters."]);
    let fields = [("action", "release"), ("scan", id.as_str()), ("reason", "looked through"), ("back", "/problems")];
    let done = clerk.post("/problems/held", &fields).await;
    assert_eq!(done.header("location"), "/problems?done=held-released", "{done:?}");
    for permit in permits {
        assert_eq!(api.office.open(permit).await, ["expires-30d"]);
    }
    // One alone is not "all".
    let one = api.office.text("SELECT min(id::text) FROM notices WHERE state = 'pending'").await.remove(0);
    for (table, id) in [("deliveries", "notice_id"), ("notices", "id")] {
        let held = "SET state = 'held', reason_code = 'claim_limit'";
        api.office.sql(&format!("UPDATE {table} {held} WHERE {id} = '{one}'")).await;
    }
    let page = clerk.get("/problems").await;
    page.shows(&["1 held", ">Release it</button>", ">Cancel it</button>"]);
    let kept = "SELECT concat_ws(' ', by, action, subject, subject_id, after->>'reason', after->>'released')
                FROM office_log";
    let line = format!("user:clerk@office.example released-held scan {id} looked through 2");
    assert_eq!(api.office.text(kept).await, [line]);
    api.close().await;
}

#[tokio::test]
async fn what_a_person_holds_is_listed_one_by_one() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let (_, notice) = pending(&api, "F-1").await;
    let bare = act(&clerk, notice, "hold", &[]).await;
    assert_eq!(bare.status, 422);
    bare.shows(&["<a href=\"#hold-reason\">The reason is needed.</a>"]);
    assert_eq!(act(&clerk, notice, "hold", &[("reason", "the holder called")]).await.status, 303);
    let page = clerk.get("/problems?kind=held").await;
    page.shows(&["One by one", "the holder called", "F-1"]);
    let id = notice.to_string();
    let done = clerk.post("/problems/actions", &[("action", "release"), ("notice", &id)]).await;
    assert_eq!(done.status, 303, "{done:?}");
    assert_eq!(state(&api, notice).await, "pending");
    api.close().await;
}

#[tokio::test]
async fn a_letter_is_posted_with_day_and_tracking_number() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let permit = api
        .office
        .create_permit(|p| {
            (p.expires_on, p.holder_email) = (api.office.in_days(5), None);
            p.holder_name = "Bo <i>Holder</i>".to_owned();
            p.site_address = Some("1 Main St".to_owned());
        })
        .await;
    let notice = api.office.notice(permit, "expires-7d").await;
    let delivery = notice.deliveries[0].id.to_string();
    let page = clerk.get("/problems").await;
    page.shows(&["Letters to post: 1", "Bo &#60;i&#62;Holder&#60;/i&#62;", "1 Main St", "It is posted"]);
    let tomorrow = api.office.in_days(1).to_string();
    let early = act(&clerk, notice.id, "posted", &[("delivery_id", &delivery), ("posted_on", &tomorrow)]).await;
    assert_eq!(early.status, 422);
    early.shows(&["The day of posting must be from"]);
    let today = api.office.today().to_string();
    let fields =
        [("delivery_id", delivery.as_str()), ("posted_on", &today), ("tracking", "RR 1"), ("back", "/problems")];
    let done = act(&clerk, notice.id, "posted", &fields).await;
    assert_eq!(done.header("location"), "/problems?done=letter-posted");
    clerk.get(&format!("/notices/{}", notice.id)).await.shows(&["tracking number RR 1", "clerk@office.example"]);
    assert_eq!(state(&api, notice.id).await, "sent");
    api.close().await;
}

#[tokio::test]
async fn a_viewer_sees_everything_and_may_do_nothing_of_it() {
    let api = TestApi::open().await;
    let viewer = api.signed_in(Role::Viewer).await;
    let (permit, notice) = pending(&api, "F-1").await;
    api.office.transport(permit, "ambiguous").await;
    let (held, other) = pending(&api, "F-2").await;
    api.office.transport(held, "rejected").await;
    for path in ["/problems".to_owned(), format!("/notices/{notice}"), "/upcoming".to_owned(), "/scans".to_owned()] {
        let page = viewer.get(&path).await;
        assert_eq!(page.status, 200, "{path}");
        let forms = page.text.matches("method=\"post\"").count();
        assert_eq!(forms, 1, "only to sign out: {path}");
    }
    let before = api.office.dump().await;
    let (id, reason) = (other.to_string(), ("reason", "x"));
    let step = format!("/upcoming/{permit}/expires-1d");
    for (path, fields) in [
        (format!("/notices/{notice}/resolve"), vec![("outcome", "delivered"), reason]),
        (format!("/notices/{other}/retry"), vec![]),
        (format!("/notices/{other}/cancel"), vec![reason]),
        (format!("/notices/{other}/copies"), vec![reason]),
        ("/problems/actions".to_owned(), vec![("action", "retry"), ("notice", id.as_str())]),
        ("/problems/held".to_owned(), vec![("action", "release"), ("scan", id.as_str()), reason]),
        ("/scans".to_owned(), vec![]),
        (step, vec![("action", "hold"), reason]),
    ] {
        assert_eq!(viewer.post(&path, &fields).await.status, 403, "{path}");
        let nobody = api.visitor();
        assert_eq!(nobody.post(&path, &fields).await.status, 401, "{path}");
    }
    assert_eq!(api.office.dump().await, before);
    // Nor does a clerk whose form is not ours.
    let clerk = api.signed_in(Role::Clerk).await;
    assert_eq!(clerk.send(&format!("/notices/{other}/retry"), &[]).await.status, 403);
    assert_eq!(act(&clerk, other, "explode", &[]).await.status, 404);
    assert_eq!(act(&clerk, Uuid::nil(), "retry", &[]).await.status, 404);
    api.close().await;
}

#[tokio::test]
async fn forms_lead_back_to_our_pages_only() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let (_, notice) = pending(&api, "F-1").await;
    let usual = format!("/notices/{notice}?done=notice-held");
    for back in
        ["https://evil.example/problems", "//evil.example", "/problemsx", "/permits", "/problems\\x", "/problems#x"]
    {
        let done = act(&clerk, notice, "hold", &[("reason", "x"), ("back", back)]).await;
        assert_eq!(done.header("location"), usual, "{back}");
        assert_eq!(act(&clerk, notice, "release", &[]).await.status, 303);
    }
    api.close().await;
}
