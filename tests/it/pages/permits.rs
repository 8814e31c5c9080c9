//! Permits on pages: found, written, changed, two people at once, and many together.

use chrono::{Days, NaiveDate};
use permit_notifier::domain::role::Role;
use serde_json::{Value, json};

use crate::support::{
    api::TestApi,
    office::FOOD,
    pages::{Page, Visitor},
};

/// The fields of the form, as a browser sends them.
fn fields<'f>(number: &'f str, expires_on: &'f str) -> Vec<(&'f str, &'f str)> {
    vec![
        ("permit_number", number),
        ("permit_type", FOOD),
        ("status", "active"),
        ("holder_name", "Ada Holder"),
        ("holder_email", "ada@example.org"),
        ("holder_language", ""),
        ("contact_name", "Bo Agent"),
        ("contact_email", "bo@example.org"),
        ("contact_role", "agent"),
        ("contact_language", ""),
        ("contact_name", ""),
        ("contact_email", ""),
        ("contact_role", ""),
        ("contact_language", ""),
        ("expires_on", expires_on),
        ("description", "Two lines\r\nof text"),
    ]
}

fn with<'f>(mut fields: Vec<(&'f str, &'f str)>, name: &str, value: &'f str) -> Vec<(&'f str, &'f str)> {
    for field in &mut fields {
        if field.0 == name {
            field.1 = value;
        }
    }
    fields
}

async fn create(visitor: &Visitor, number: &str, expires_on: NaiveDate) -> String {
    let page = visitor.post("/permits/new", &fields(number, &expires_on.to_string())).await;
    assert_eq!(page.status, 303, "{page:?}");
    page.header("location").split('?').next().unwrap().to_owned()
}

async fn stored(api: &TestApi, path: &str) -> Value {
    api.get(path).await.body
}

#[tokio::test]
async fn a_permit_is_recorded_shown_and_changed() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let path = create(&clerk, "F-1", api.office.in_days(365)).await;
    let permit = stored(&api, &path).await;
    assert_eq!(
        permit["contacts"],
        json!([{ "name": "Bo Agent", "email": "bo@example.org", "role": "agent", "language": "en" }])
    );
    assert_eq!(permit["description"], "Two lines\nof text");
    let page = clerk.get(&path).await;
    page.shows(&["Permit F-1", "ada@example.org", "Bo Agent", ">by clerk@office.example<", "expires-30d"]);

    let form = clerk.get(&format!("{path}/edit")).await;
    form.shows(&["value=\"F-1\"", "value=\"bo@example.org\"", "name=\"version\" value=\"1\""]);
    let date = api.office.in_days(365).to_string();
    let mut change = with(fields("F-1", &date), "holder_name", "Grace Holder");
    change.push(("version", "1"));
    assert_eq!(clerk.post(&format!("{path}/edit"), &change).await.status, 303);
    clerk.get(&path).await.shows(&["Grace Holder", "Holder: Ada Holder → Grace Holder"]);
    api.close().await;
}

#[tokio::test]
async fn what_another_system_keeps_with_a_permit_outlives_the_form() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let mut body = api.permit("F-1");
    body["custom"] = json!({ "district": 7 });
    let made = api.post("/permits", &body).await;
    let path = made.path().to_owned();
    let date = api.office.in_days(365).to_string();
    let mut change = fields("F-1", &date);
    change.push(("version", "1"));
    assert_eq!(clerk.post(&format!("{path}/edit"), &change).await.status, 303);
    assert_eq!(stored(&api, &path).await["custom"], json!({ "district": 7 }));
    api.close().await;
}

#[tokio::test]
async fn everything_that_is_wrong_is_said_beside_its_field_and_nothing_is_lost() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let mut form = with(fields("", "2027-02-30"), "holder_email", "no address");
    form = with(form, "contact_email", "neither");
    form = with(form, "permit_type", "");
    let page = clerk.post("/permits/new", &form).await;
    assert_eq!(page.status, 422);
    page.shows(&[
        "<title>Error: New permit",
        "<a href=\"#permit_number\">Permit number is needed.</a>",
        "<a href=\"#permit_type\">Permit type is needed.</a>",
        "<a href=\"#expires_on\">Last valid day must be a date that exists, from 1900 on, written YYYY-MM-DD.</a>",
        "<a href=\"#holder_email\">Email address of the holder must be a well-formed email address",
        "<a href=\"#contact-1-email\">Contact 1, email must be a well-formed email address",
        "value=\"no address\"",
        "value=\"2027-02-30\"",
        "value=\"Bo Agent\"",
    ]);
    let path = create(&clerk, "F-1", api.office.in_days(365)).await;
    let date = api.office.in_days(365).to_string();
    let taken = clerk.post("/permits/new", &fields("f 1", &date)).await;
    let taken_exactly = clerk.post("/permits/new", &fields("f-1", &date)).await;
    assert!(taken.status == 303 || taken.status == 409, "{taken:?}");
    assert_eq!(taken_exactly.status, 409);
    taken_exactly
        .shows(&["<a href=\"#permit_number\">The permit number is taken.</a>", &format!("<a href=\"{path}\">F-1 of ")]);
    let later = api.office.in_days(366).to_string();
    let turned = clerk.post("/permits/new", &[fields("F-2", &date), vec![("effective_on", &later)]].concat()).await;
    turned.shows(&[&format!("Effective on must not be after Last valid day ({date}).")]);
    api.close().await;
}

#[tokio::test]
async fn a_second_person_sees_both_versions_and_neither_is_lost() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let admin = api.signed_in(Role::Admin).await;
    let path = create(&clerk, "F-1", api.office.in_days(365)).await;
    let date = api.office.in_days(365).to_string();
    let change = |name: &'static str, value: &'static str, version: &'static str| {
        let mut form = with(fields("F-1", &date), name, value);
        form.push(("version", version));
        form
    };
    assert_eq!(admin.post(&format!("{path}/edit"), &change("holder_name", "Hers", "1")).await.status, 303);
    let page = clerk.post(&format!("{path}/edit"), &change("holder_name", "His <b>own</b>", "1")).await;
    assert_eq!(page.status, 409);
    page.shows(&[
        "Somebody else changed this permit meanwhile",
        "It was admin@office.example.",
        "<td>His &#60;b&#62;own&#60;/b&#62;</td><td>Hers</td>",
        "name=\"version\" value=\"2\"",
    ]);
    assert_eq!(stored(&api, &path).await["holder_name"], "Hers");
    assert_eq!(clerk.post(&format!("{path}/edit"), &change("holder_name", "Ours", "2")).await.status, 303);
    assert_eq!(stored(&api, &path).await["holder_name"], "Ours");
    api.close().await;
}

async fn refused(visitor: &Visitor, path: &str, form: &[(&str, &str)]) -> Page {
    let page = visitor.post(path, form).await;
    assert!(page.status.is_client_error(), "{page:?}");
    page
}

#[tokio::test]
async fn a_permit_is_renewed_paused_archived_and_restored() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let expires = api.office.in_days(100);
    let path = create(&clerk, "F-1", expires).await;
    let renew = format!("{path}/renew");
    refused(&clerk, &renew, &[("expires_on", "")]).await.shows(&["Last valid day is needed."]);
    let past = (expires - Days::new(1)).to_string();
    refused(&clerk, &renew, &[("expires_on", &past)]).await.shows(&["must be later than the present date"]);
    let next = api.office.in_days(465).to_string();
    assert_eq!(clerk.post(&renew, &[("expires_on", &next)]).await.status, 303);
    assert_eq!(stored(&api, &path).await["expires_on"], next);

    let pause = format!("{path}/pause");
    let yesterday = api.office.in_days(-1).to_string();
    refused(&clerk, &pause, &[("notices_paused_until", &yesterday)]).await.shows(&["must be today"]);
    let until = api.office.in_days(10).to_string();
    assert_eq!(clerk.post(&pause, &[("notices_paused_until", &until)]).await.status, 303);
    clerk.get(&path).await.shows(&[&format!("notices paused until {until}")]);
    assert_eq!(clerk.post(&pause, &[("notices_paused_until", "")]).await.status, 303);
    assert_eq!(stored(&api, &path).await["notices_paused_until"], Value::Null);

    // A form that was opened before the last change does not undo it.
    refused(&clerk, &format!("{path}/archive"), &[("version", "1")]).await.shows(&["Somebody else has changed it"]);
    assert_eq!(clerk.post(&format!("{path}/archive"), &[]).await.status, 303);
    clerk.get(&path).await.shows(&["archived", "Restore"]);
    assert!(!clerk.get("/permits").await.text.contains("F-1"));
    clerk.get("/permits?archived=only").await.shows(&["F-1"]);
    assert_eq!(clerk.post(&format!("{path}/restore"), &[]).await.status, 303);
    clerk.get("/permits").await.shows(&["F-1"]);
    api.close().await;
}

#[tokio::test]
async fn a_step_is_held_before_it_is_due_and_the_deed_is_recorded() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let path = create(&clerk, "F-1", api.office.in_days(200)).await;
    let step = |reason: &'static str| [("notice_type", "expires-30d"), ("action", "hold"), ("reason", reason)];
    refused(&clerk, &format!("{path}/steps"), &step("")).await.shows(&["Reason must have 1 to 1000"]);
    assert_eq!(clerk.post(&format!("{path}/steps"), &step("The office is closed then.")).await.status, 303);
    clerk.get(&path).await.shows(&["The office is closed then.", ">held<"]);
    let (by, action): (String, String) =
        sqlx::query_as("SELECT by, action FROM office_log").fetch_one(&api.office.pool).await.expect("one line");
    assert_eq!((by.as_str(), action.as_str()), ("user:clerk@office.example", "decided-in-advance"));
    api.close().await;
}

#[tokio::test]
async fn the_list_finds_sorts_and_goes_on() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    for number in 0..60 {
        let mut body = api.permit(&format!("N-{number:02}"));
        body["holder_name"] = json!(format!("Holder {:02}", 59 - number));
        body["expires_on"] = json!(api.office.in_days(300 + number));
        assert_eq!(api.post("/permits", &body).await.status, 201);
    }
    let numbers = |page: &Page| {
        let rows = page.text.split("<th scope=\"row\">").skip(1);
        rows.map(|row| row.split("\">").nth(1).unwrap().split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (sort, first, last) in [
        ("", "N-00", "N-59"),
        ("sort=-expires_on", "N-59", "N-00"),
        ("sort=permit_number", "N-00", "N-59"),
        ("sort=-permit_number", "N-59", "N-00"),
        ("sort=holder_name", "N-59", "N-00"),
        ("sort=-holder_name", "N-00", "N-59"),
        ("sort=updated_at", "N-00", "N-59"),
        ("sort=-updated_at", "N-59", "N-00"),
    ] {
        let page = clerk.get(&format!("/permits?{sort}")).await;
        page.shows(&["60 permits", "Next page"]);
        let mut seen = numbers(&page);
        let next = page.between("href=\"/permits?", "\" rel=\"next\"").replace("&#38;", "&");
        let next = next.rsplit("href=\"/permits?").next().unwrap().to_owned();
        let second = clerk.get(&format!("/permits?{next}")).await;
        seen.extend(numbers(&second));
        assert_eq!((seen.len(), seen[0].as_str(), seen[59].as_str()), (60, first, last), "{sort}");
    }
    let found = clerk.get("/permits?q=+n-17++holder&status=&expires_from=").await;
    found.shows(&["1 permit<", "N-17"]);
    clerk.get("/permits?q=nobody").await.shows(&["No permit fits.", "Clear the filter"]);
    assert_eq!(clerk.get("/permits?sort=id").await.status, 400);
    assert_eq!(clerk.get("/permits?colour=red").await.status, 400);
    let text = clerk.get("/permits?q=%3Cscript%3Ealert(1)%3C/script%3E").await;
    assert!(!text.text.contains("<script>alert"), "{text:?}");
    api.close().await;
}

#[tokio::test]
async fn many_permits_are_paused_or_archived_after_a_look_at_them() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let path = create(&clerk, &format!("N-{number}"), api.office.in_days(300)).await;
        ids.push(path.rsplit('/').next().unwrap().to_owned());
    }
    let until = api.office.in_days(20).to_string();
    let chosen = [("action", "pause"), ("until", &until), ("ids", &ids[0]), ("ids", &ids[1])];
    let look = clerk.post("/permits/bulk", &chosen).await;
    look.shows(&["No notice of 2 permits will be sent until", "N-0", "N-1"]);
    let paused = "SELECT count(*) FROM permits WHERE notices_paused_until IS NOT NULL";
    let count = async |sql: &'static str| sqlx::query_scalar::<_, i64>(sql).fetch_one(&api.office.pool).await.unwrap();
    assert_eq!(count(paused).await, 0);
    look.shows(&["<a class=\"button quiet\" href=\"/permits\">No, go back</a>"]);
    let filtered = [&chosen[..], &[("here", "/permits?q=n-&sort=-expires_on")]].concat();
    let back = "href=\"/permits?q=n-&#38;sort=-expires_on\">";
    clerk.post("/permits/bulk", &filtered).await.shows(&[&format!("{back}No, go back</a>")]);
    let elsewhere = [&chosen[..], &[("here", "//evil.example/")]].concat();
    let page = clerk.post("/permits/bulk", &elsewhere).await;
    assert!(!page.text.contains("evil"), "{page:?}");
    let meant = [&chosen[..], &[("confirm", "yes")]].concat();
    clerk.post("/permits/bulk", &meant).await.shows(&["Done with 2 of 2 permits."]);
    assert_eq!(count(paused).await, 2);

    let all = [("action", "archive"), ("scope", "all"), ("query", "q=n-"), ("confirm", "yes")];
    clerk.post("/permits/bulk", &all).await.shows(&["Done with 5 of 5 permits."]);
    assert_eq!(count("SELECT count(*) FROM permits WHERE archived_at IS NOT NULL").await, 5);
    refused(&clerk, "/permits/bulk", &[("action", "archive")])
        .await
        .shows(&["Tick at least one permit", "There is a problem"]);
    // Filter, ticks and what was chosen stay.
    let here = ("here", "/permits?archived=any&q=n-");
    let again = refused(&clerk, "/permits/bulk", &[("action", "pause"), ("ids", &ids[0]), here]).await;
    let ticked = format!("value=\"{}\" checked", ids[0]);
    again.shows(&[
        "<a href=\"#until\">Say until when",
        &ticked,
        "value=\"n-\"",
        "<option value=\"any\" selected>With<",
    ]);
    let again = refused(&clerk, "/permits/bulk", &[("action", "archive"), ("here", "//evil.example/")]).await;
    again.shows(&["There is a problem"]);

    let file = clerk.post("/permits/export", &[("format", "csv"), ("query", "archived=only")]).await;
    assert_eq!(file.text.matches("\nN-").count() + file.text.matches(",N-").count(), 5, "{file:?}");
    api.close().await;
}

#[tokio::test]
async fn a_viewer_reads_and_changes_nothing() {
    let api = TestApi::open().await;
    let viewer = api.signed_in(Role::Viewer).await;
    let made = api.create_permit("F-1").await;
    let path = made.path().to_owned();
    let page = viewer.get(&path).await;
    page.shows(&["Permit F-1"]);
    assert!(!page.text.contains("action=\"/permits"), "{page:?}");
    for action in ["edit", "renew", "pause", "archive", "restore", "steps"] {
        assert_eq!(viewer.post(&format!("{path}/{action}"), &[("version", "1")]).await.status, 403, "{action}");
    }
    for other in ["/permits/new", "/permits/bulk", "/permits/export"] {
        assert_eq!(viewer.post(other, &[]).await.status, 403, "{other}");
    }
    assert_eq!(stored(&api, &path).await["version"], 1);
    api.close().await;
}
