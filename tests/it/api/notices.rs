//! Notices: listed, shown with every attempt, acted upon, and their very bytes.

use permit_notifier::store::PgConnection;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::support::api::{Answered, TestApi, send};
use reqwest::Method;

/// A permit that expires in five days, and its pending notice.
async fn noticed(api: &TestApi, number: &str) -> (Answered, String) {
    let mut permit = api.permit(number);
    permit["expires_on"] = json!(api.office.in_days(5));
    let made = api.post("/permits", &permit).await;
    assert_eq!(made.status, 201, "{made:?}");
    let listed = api.get(&format!("{}/notices", made.path())).await;
    let pending = listed.body["items"].as_array().unwrap().iter().find(|item| item["state"] == "pending").unwrap();
    let path = format!("/notices/{}", pending["id"].as_str().unwrap());
    (made, path)
}

async fn run(api: &TestApi, statements: &str) {
    let connection: &mut PgConnection = &mut *api.office.connection().await;
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(connection).await.expect(statements);
}

/// One attempt of every copy of the notice, with this outcome.
async fn attempted(api: &TestApi, notice: &str, outcome: &str, state: &str) {
    let id = notice.strip_prefix("/notices/").unwrap();
    let message = "Subject: x\r\n\r\nhello\r\n";
    run(
        api,
        &format!(
            "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, phase, smtp_code,
                                   response, payload_sha256, started_at, finished_at)
             SELECT gen_random_uuid(), d.id, 1, n.notice_key, gen_random_uuid(), 'smtp', '{outcome}', 'dot',
                    CASE '{outcome}' WHEN 'accepted' THEN 250 WHEN 'rejected' THEN 550 END, 'said so', sha256('{message}'),
                    now(), now()
             FROM deliveries d JOIN notices n ON n.id = d.notice_id WHERE n.id = '{id}';
             INSERT INTO attempt_messages SELECT a.id, convert_to(E'{escaped}', 'UTF8') FROM attempts a
             JOIN deliveries d ON d.id = a.delivery_id WHERE d.notice_id = '{id}';
             UPDATE deliveries SET state = '{state}', attempt_count = 1, last_error = 'said so' WHERE notice_id = '{id}';
             UPDATE notices SET state = CASE '{state}' WHEN 'failed' THEN 'failed' ELSE '{state}' END WHERE id = '{id}'",
            escaped = message.replace('\r', "\\r").replace('\n', "\\n"),
        ),
    )
    .await;
}

#[tokio::test]
async fn a_notice_is_shown_with_its_copies_and_attempts_and_found_by_every_filter() {
    let api = TestApi::open().await;
    let (permit, path) = noticed(&api, "F-1").await;
    noticed(&api, "F-2").await;
    attempted(&api, &path, "accepted", "sent").await;
    let shown = api.get(&path).await;
    assert_eq!((shown.status.as_u16(), shown.text("state")), (200, "sent"), "{shown:?}");
    let expires_on = api.office.in_days(5);
    assert_eq!(shown.text("notice_key"), format!("{}:expires-7d:{expires_on}", permit.text("id")));
    assert_eq!((shown.text("permit_number"), shown.text("class")), ("F-1", "statutory"));
    let copy = &shown.body["deliveries"][0];
    assert_eq!(
        (&copy["recipient"], &copy["role"], &copy["channel"]),
        (&json!("ada@example.org"), &json!("holder"), &json!("email"))
    );
    let attempt = &copy["attempts"][0];
    assert_eq!(
        (&attempt["outcome"], &attempt["smtp_code"], &attempt["phase"]),
        (&json!("accepted"), &json!(250), &json!("dot"))
    );
    assert_eq!(attempt["payload_sha256"].as_str().map(str::len), Some(64));
    let due = api.office.in_days(-2);
    for (query, count) in [
        ("state=sent".to_owned(), 1),
        ("state=pending".to_owned(), 1),
        ("state=held".to_owned(), 0),
        (format!("permit_id={}", permit.text("id")), 5),
        ("notice_type=expires-7d".to_owned(), 2),
        (format!("due_from={due}&due_to={due}"), 2),
        (format!("notice_type=expires-7d&due_to={}", api.office.in_days(-3)), 0),
    ] {
        let listed = api.get(&format!("/notices?{query}")).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), count, "{query}");
        for item in listed.body["items"].as_array().unwrap() {
            assert!(item["deliveries"].as_array().unwrap().iter().all(|copy| copy.get("attempts").is_none()));
        }
    }
    for wrong in ["state=open", "permit_id=1", "due_from=soon", "kind=x"] {
        assert_eq!(api.get(&format!("/notices?{wrong}")).await.kind(), "malformed", "{wrong}");
    }
    api.close().await;
}

#[tokio::test]
async fn the_very_bytes_are_shown_for_the_copy_that_is_meant() {
    let api = TestApi::open().await;
    let (_, path) = noticed(&api, "F-1").await;
    let early = api.get(&format!("{path}/message")).await;
    assert_eq!((early.status.as_u16(), early.kind()), (404, "not-found"));
    attempted(&api, &path, "accepted", "sent").await;
    let response = api.request(Method::GET, &format!("{path}/message")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "message/rfc822");
    assert_eq!(response.headers()["content-disposition"], "attachment");
    assert_eq!(response.bytes().await.unwrap().as_ref(), b"Subject: x\r\n\r\nhello\r\n");
    let copied =
        api.post(&format!("{path}/copies"), &json!({ "recipient": "bo@example.org", "reason": "asked" })).await;
    assert_eq!(copied.status, 200, "{copied:?}");
    let several = api.get(&format!("{path}/message")).await;
    assert_eq!((several.status.as_u16(), several.kind()), (409, "wrong-state"));
    assert_eq!(several.body["deliveries"].as_array().unwrap().len(), 2);
    let first = several.body["deliveries"][0]["id"].as_str().unwrap();
    let of_delivery = |query: &str| api.request(Method::GET, &format!("/deliveries/{first}/message{query}"));
    assert_eq!(of_delivery("").send().await.unwrap().status(), 200);
    assert_eq!(of_delivery("?attempt=1").send().await.unwrap().status(), 200);
    assert_eq!(of_delivery("?attempt=2").send().await.unwrap().status(), 404);
    for wrong in ["?attempt=0", "?attempt=x", "?number=1"] {
        assert_eq!(send(of_delivery(wrong)).await.kind(), "malformed", "{wrong}");
    }
    let unknown = api.get(&format!("/deliveries/{}/message", Uuid::nil())).await;
    assert_eq!((unknown.status.as_u16(), unknown.text("detail")), (404, "there is no such delivery"));
    api.close().await;
}

#[tokio::test]
async fn each_action_does_its_work_where_the_state_allows_it() {
    let api = TestApi::open().await;
    let (_, path) = noticed(&api, "F-1").await;
    let reason = json!({ "reason": "somebody called" });
    let act = async |action: &str, body: &Value| api.post(&format!("{path}/{action}"), body).await;
    let held = act("hold", &reason).await;
    assert_eq!((held.text("state"), held.text("reason")), ("held", "somebody called"));
    assert_eq!(act("hold", &reason).await.text("state"), "held");
    let released = send(api.request(Method::POST, &format!("{path}/release"))).await;
    assert_eq!((released.status.as_u16(), released.text("state")), (200, "pending"));
    assert_eq!(act("cancel", &reason).await.text("state"), "cancelled");
    let refused = act("cancel", &reason).await;
    assert_eq!((refused.status.as_u16(), refused.kind(), refused.text("state")), (409, "wrong-state", "cancelled"));
    let copied = act("copies", &reason).await;
    assert_eq!(copied.body["deliveries"].as_array().unwrap().len(), 2);

    let (_, failed) = noticed(&api, "F-2").await;
    attempted(&api, &failed, "rejected", "failed").await;
    let again = send(api.request(Method::POST, &format!("{failed}/retry"))).await;
    assert_eq!((again.status.as_u16(), again.text("state")), (200, "pending"), "{again:?}");

    let (_, unknown) = noticed(&api, "F-3").await;
    attempted(&api, &unknown, "ambiguous", "ambiguous").await;
    let found = json!({ "outcome": "delivered", "reason": "it is in their log" });
    let resolved = api.post(&format!("{unknown}/resolve"), &found).await;
    assert_eq!((resolved.text("state"), resolved.status.as_u16()), ("sent", 200), "{resolved:?}");
    let attempt = &resolved.body["deliveries"][0]["attempts"][0];
    assert_eq!((&attempt["resolved_by"], &attempt["resolution"]), (&json!("token:tests"), &json!("delivered")));

    let mut letter = api.permit("F-4");
    letter["holder_email"] = Value::Null;
    letter["expires_on"] = json!(api.office.in_days(5));
    let made = api.post("/permits", &letter).await;
    let notices = api.get(&format!("/notices?state=pending&permit_id={}", made.text("id"))).await;
    let posted = api
        .post(
            &format!("/notices/{}/posted", notices.column("id")[0]),
            &json!({ "posted_on": api.office.today(), "tracking": "RR 1" }),
        )
        .await;
    assert_eq!((posted.status.as_u16(), posted.text("state")), (200, "sent"), "{posted:?}");
    assert_eq!(posted.body["deliveries"][0]["attempts"][0]["transport"], "letter");
    api.close().await;
}

#[tokio::test]
async fn a_mail_is_seen_before_it_goes_and_nothing_is_written() {
    let api = TestApi::open().await;
    let mut permit = api.permit("F-1");
    permit["expires_on"] = json!(api.office.in_days(5));
    permit["holder_name"] = json!("Ada <b>Holder</b>");
    permit["contacts"] = json!([{ "email": "bo@example.org" }]);
    let made = api.post("/permits", &permit).await;
    let pending = api.get(&format!("/notices?state=pending&permit_id={}", made.text("id"))).await;
    let path = format!("/notices/{}", pending.column("id")[0]);
    let before = api.get(&path).await;
    let seen = send(api.request(Method::POST, &format!("{path}/preview"))).await;
    assert_eq!(seen.status, 200, "{seen:?}");
    let previews = seen.body["previews"].as_array().unwrap();
    assert_eq!(previews.len(), 2);
    for preview in previews {
        let text = preview["text"].as_str().unwrap();
        assert!(preview["subject"].as_str().unwrap().contains("F-1"), "{preview}");
        assert!(
            text.contains(&api.office.in_days(5).to_string()) && text.lines().all(|line| line.len() <= 76),
            "{text}"
        );
        assert!(preview["html"].as_str().unwrap().contains("Ada &#60;b&#62;Holder"), "{preview}");
        assert_eq!(preview["fault"], Value::Null);
    }
    assert_eq!(api.get(&path).await.body, before.body);
    let refused = api.post(&format!("{path}/preview"), &json!({ "as": "pdf" })).await;
    assert_eq!(refused.faults(), [("/as", "unknown_field")]);
    let unknown = send(api.request(Method::POST, &format!("/notices/{}/preview", Uuid::nil()))).await;
    assert_eq!(unknown.status, 404);
    api.close().await;
}

#[tokio::test]
async fn the_state_is_looked_at_before_the_body() {
    let api = TestApi::open().await;
    let (_, path) = noticed(&api, "F-1").await;
    let nonsense = json!({ "reason": 7, "surprise": true });
    for action in ["hold", "cancel", "copies"] {
        let refused = api.post(&format!("{path}/{action}"), &nonsense).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (422, "validation-failed"), "{action}");
        assert_eq!(refused.faults(), [("/reason", "type"), ("/surprise", "unknown_field")], "{action}");
    }
    for action in ["retry", "resolve", "posted", "release"] {
        let refused = api.post(&format!("{path}/{action}"), &nonsense).await;
        assert_eq!((refused.status.as_u16(), refused.kind()), (409, "wrong-state"), "{action}: {refused:?}");
        assert_eq!(refused.text("state"), "pending");
    }
    assert_eq!(api.get(&path).await.text("state"), "pending", "a look changes nothing");
    let unknown = api.post(&format!("/notices/{}/hold", Uuid::nil()), &nonsense).await;
    assert_eq!(unknown.status, 404);
    api.close().await;
}

#[tokio::test]
async fn many_are_done_one_by_one_and_each_refusal_is_told() {
    let api = TestApi::open().await;
    let mut paths = Vec::new();
    for number in 0..3 {
        paths.push(noticed(&api, &format!("F-{number}")).await.1);
    }
    let ids: Vec<&str> = paths.iter().map(|path| path.strip_prefix("/notices/").unwrap()).collect();
    let one = api.post(&format!("{}/cancel", paths[1]), &json!({ "reason": "no" })).await;
    assert_eq!(one.status, 200);
    let unknown = Uuid::nil().to_string();
    let body = json!({ "action": "hold", "ids": [ids[2], ids[1], unknown, ids[0], ids[0]], "reason": "wait" });
    let done = api.post("/notices/actions", &body).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.body["done"].as_array().unwrap().len(), 2);
    let failed = done.body["failed"].as_array().unwrap();
    let of = |id: &str| failed.iter().find(|one| one["id"] == id).unwrap()["problem"]["type"].clone();
    assert_eq!(
        (failed.len(), of(ids[1]), of(&unknown)),
        (2, json!("/problems/wrong-state"), json!("/problems/not-found"))
    );
    let retried = json!({ "action": "retry", "filter": { "state": "failed" }, "reason": "the server is back" });
    assert_eq!(api.post("/notices/actions", &retried).await.status, 200, "a reason may be given for each of them");
    let released = json!({ "action": "release", "filter": { "state": "held" } });
    let done = api.post("/notices/actions", &released).await;
    assert_eq!((done.body["done"].as_array().unwrap().len(), &done.body["more"]), (2, &json!(false)));
    for (body, faults) in [
        (json!({ "action": "hold", "reason": "x" }), vec![("/ids", "required")]),
        (json!({ "action": "copies", "ids": [ids[0]], "reason": "x" }), vec![("/action", "not_allowed")]),
        (json!({ "action": "hold", "ids": [], "reason": "x" }), vec![("/ids", "malformed_id")]),
        (
            json!({ "action": "hold", "ids": [ids[0]], "filter": { "state": "held" }, "reason": "x" }),
            vec![("/filter", "not_allowed")],
        ),
        (json!({ "action": "hold", "filter": {}, "reason": "x" }), vec![("/filter/state", "required")]),
    ] {
        let refused = api.post("/notices/actions", &body).await;
        assert_eq!(refused.status, 422, "{body}");
        assert_eq!(refused.faults(), faults, "{body}: {refused:?}");
    }
    api.close().await;
}

#[tokio::test]
async fn a_fault_in_the_middle_of_many_is_told_with_what_was_done() {
    let api = TestApi::open().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(noticed(&api, &format!("F-{number}")).await.1.strip_prefix("/notices/").unwrap().to_owned());
    }
    let busy = format!(
        "CREATE FUNCTION busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'busy' USING ERRCODE = '55P03'; END $$;
         CREATE TRIGGER busy BEFORE UPDATE ON deliveries FOR EACH ROW WHEN (OLD.notice_id = '{}')
             EXECUTE FUNCTION busy()",
        ids[1]
    );
    api.office.sql(&busy).await;
    let states = async || api.office.text("SELECT state FROM notices WHERE state <> 'superseded' ORDER BY id").await;
    let body = json!({ "action": "hold", "ids": ids, "reason": "wait" });
    let keyed = api.request(Method::POST, "/notices/actions").header("idempotency-key", "k").json(&body);
    let refused = send(keyed).await;
    assert_eq!((refused.status.as_u16(), refused.kind()), (503, "unavailable"), "{refused:?}");
    assert_eq!(states().await, ["pending"; 3], "under a key all of it is done or nothing");
    let told = api.post("/notices/actions", &body).await;
    assert_eq!(told.status, 200, "{told:?}");
    assert_eq!(told.body["done"], json!([ids[0], ids[2]]));
    let failed = &told.body["failed"][0];
    assert_eq!((&failed["id"], &failed["problem"]["status"]), (&json!(ids[1]), &json!(503)));
    assert_eq!(states().await, ["held", "pending", "held"]);
    api.close().await;
}

#[tokio::test]
async fn the_outlook_promises_no_courtesy_to_somebody_whom_nobody_may_mail() {
    let api = TestApi::open().await;
    let steps = json!([
        { "notice_type": "early", "offset_days": -20, "class": "courtesy" },
        { "notice_type": "late", "offset_days": -10, "class": "statutory" },
    ]);
    let made = api.request(Method::PUT, "/permit-types/dogs").json(&json!({ "name": "Dogs", "steps": steps }));
    assert_eq!(send(made).await.status, 201);
    api.post("/suppressions", &json!({ "address": "bo@example.org", "reason": "moved" })).await;
    for (number, email) in [("D-1", Value::Null), ("D-2", json!("bo@example.org"))] {
        let mut permit = api.permit(number);
        permit["permit_type"] = json!("dogs");
        permit["holder_email"] = email;
        permit["expires_on"] = json!(api.office.in_days(40));
        let made = api.post("/permits", &permit).await;
        let told = api.get(&format!("{}/outlook", made.path())).await;
        assert_eq!(
            (&told.body["steps"][0]["will"], &told.body["steps"][1]["will"]),
            (&json!("nothing"), &json!("send"))
        );
        assert_eq!(told.body["steps"][0]["why"], "Nobody on the permit may be mailed.");
        let body = json!({ "as_of": api.office.in_days(20) });
        let scan = api.post("/scans/preview", &body).await;
        let item = scan.body["items"].as_array().unwrap().iter().find(|item| item["permit_number"] == number).unwrap();
        assert_eq!((&item["would"], &item["why"]), (&json!("skip"), &told.body["steps"][0]["why"]));
    }
    api.close().await;
}

#[tokio::test]
async fn the_outlook_of_a_permit_that_never_expires_has_only_days_that_can_be_written() {
    let api = TestApi::open().await;
    let mut permit = api.permit("F-1");
    permit["expires_on"] = json!("9999-12-31");
    let made = api.post("/permits", &permit).await;
    let told = api.get(&format!("{}/outlook", made.path())).await;
    let steps = told.body["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 10);
    assert!(!told.body.to_string().contains("10000"), "{told:?}");
    let last = steps.iter().find(|step| step["notice_type"] == "expired-1d").unwrap();
    assert_eq!((&last["due_on"], &last["will"]), (&Value::Null, &json!("nothing")));
    api.close().await;
}

#[tokio::test]
async fn the_outlook_says_of_each_step_what_will_be_and_why() {
    let api = TestApi::open().await;
    let mut permit = api.permit("F-1");
    permit["expires_on"] = json!(api.office.in_days(20));
    let made = api.post("/permits", &permit).await;
    let outlook = async || api.get(&format!("{}/outlook", made.path())).await;
    let step = |outlook: &Answered, name: &str| {
        outlook.body["steps"].as_array().unwrap().iter().find(|step| step["notice_type"] == name).unwrap().clone()
    };
    let first = outlook().await;
    assert_eq!(first.text("as_of"), api.office.today().to_string());
    assert_eq!(first.body["steps"].as_array().unwrap().len(), 10);
    let (old, now, next) = (step(&first, "expires-60d"), step(&first, "expires-30d"), step(&first, "expires-14d"));
    assert_eq!((&old["will"], &old["state"]), (&json!("nothing"), &json!("superseded")));
    assert_eq!((&now["will"], &now["state"]), (&json!("send"), &json!("pending")));
    assert_eq!(
        (&next["will"], &next["state"], &next["due_on"]),
        (&json!("send"), &Value::Null, &json!(api.office.in_days(6)))
    );
    assert_eq!(step(&first, "renewed")["will"], "nothing");
    assert_eq!(old["why"], "It was not sent: A later step took its place.");

    let body = json!({ "notice_type": "expires-14d", "action": "cancel", "reason": "told in person" });
    let cancelled = api.post(&format!("{}/notices", made.path()), &body).await;
    assert_eq!((cancelled.status.as_u16(), cancelled.text("state")), (200, "cancelled"), "{cancelled:?}");
    let told = step(&outlook().await, "expires-14d");
    assert_eq!((&told["will"], &told["why"]), (&json!("nothing"), &json!("It is cancelled: told in person")));
    let again = api.post(&format!("{}/notices", made.path()), &body).await;
    assert_eq!((again.status.as_u16(), again.text("state")), (409, "cancelled"));
    let due = json!({ "notice_type": "expires-30d", "action": "hold", "reason": "x" });
    assert_eq!(api.post(&format!("{}/notices", made.path()), &due).await.kind(), "wrong-state");
    let unknown = json!({ "notice_type": "expires-31d", "action": "burn", "reason": "x" });
    let refused = api.post(&format!("{}/notices", made.path()), &unknown).await;
    assert_eq!(refused.faults(), [("/action", "not_allowed")]);

    let paused = json!({ "notices_paused_until": api.office.in_days(14) });
    assert_eq!(api.patch(made.path(), "*", &paused).await.status, 200);
    let during = outlook().await;
    assert_eq!(
        (step(&during, "expires-7d")["will"].clone(), step(&during, "expires-1d")["will"].clone()),
        (json!("send"), json!("send"))
    );
    let revoked = json!({ "status": "revoked", "notices_paused_until": null });
    api.patch(made.path(), "*", &revoked).await;
    let none = outlook().await;
    assert!(none.body["steps"].as_array().unwrap().iter().all(|step| step["will"] == "nothing"), "{none:?}");
    assert!(step(&none, "expires-7d")["why"].as_str().unwrap().contains("revoked"));
    api.close().await;
}

#[tokio::test]
async fn a_notice_never_contradicts_its_copies_while_it_changes() {
    let api = TestApi::open().await;
    let (_, path) = noticed(&api, "F-1").await;
    let reason = json!({ "reason": "to and fro" });
    let changing = async {
        for _ in 0..40 {
            for verb in ["hold", "release"] {
                assert_eq!(api.post(&format!("{path}/{verb}"), &reason).await.status, 200);
            }
        }
    };
    let agrees = |notice: &Value| {
        let copies = notice["deliveries"].as_array().expect("copies");
        assert!(copies.iter().all(|copy| copy["state"] == notice["state"]), "{notice:#}");
    };
    let looking = async {
        loop {
            agrees(&api.get(&path).await.body);
            let listed = api.get("/notices?notice_type=expires-7d").await;
            listed.body["items"].as_array().expect("notices").iter().for_each(agrees);
        }
    };
    tokio::select! {
        () = changing => {}
        () = looking => {}
    }
    api.close().await;
}
