//! Notices: found by filters, shown with every attempt and the very bytes, and seen before they go.

use permit_notifier::domain::role::Role;
use uuid::Uuid;

use super::pending;
use crate::support::{api::TestApi, pages::Visitor};

const HOSTILE: &str = "<script>alert(1)</script>\" onmouseover=\"x";

/// The same with nobody who can be mailed.
async fn pending_letter(api: &TestApi, number: &str) -> Uuid {
    let days = api.office.in_days(5);
    let number = number.parse().unwrap();
    api.office.create_permit(|p| (p.permit_number, p.expires_on, p.holder_email) = (number, days, None)).await
}

/// Numbers of the permits in the list.
async fn listed(visitor: &Visitor, query: &str) -> Vec<String> {
    let page = visitor.get(&format!("/notices{query}")).await;
    assert_eq!(page.status, 200, "{query}: {page:?}");
    let rows = page.text.split("<a href=\"/permits/").skip(1);
    rows.filter_map(|row| Some(row.split_once('>')?.1.split_once('<')?.0.to_owned())).collect()
}

#[tokio::test]
async fn notices_are_found_by_every_filter_page_by_page() {
    let api = TestApi::open().await;
    let viewer = api.signed_in(Role::Viewer).await;
    let (sent, _) = pending(&api, "F-1").await;
    api.office.transport(sent, "accepted").await;
    pending(&api, "F-2").await;
    let unreachable = pending_letter(&api, "F-3").await;
    let due = api.office.in_days(-2);
    for (query, expected) in [
        ("?state=sent".to_owned(), vec!["F-1"]),
        ("?state=pending&notice_type=&due_from=&due_to=".to_owned(), vec!["F-3", "F-2"]),
        ("?state=held".to_owned(), vec![]),
        (format!("?due_from={due}&due_to={due}"), vec!["F-3", "F-2", "F-1"]),
        ("?notice_type=expires-7d".to_owned(), vec!["F-3", "F-2", "F-1"]),
        (format!("?sent_on={}", api.office.today()), vec!["F-1"]),
        (format!("?sent_on={}", api.office.in_days(-1)), vec![]),
        ("?channel=email&state=pending".to_owned(), vec!["F-2"]),
        ("?channel=letter".to_owned(), vec!["F-3"]),
        (format!("?state=sent&permit_id={sent}"), vec!["F-1", "F-1"]),
    ] {
        let mut found = listed(&viewer, &query).await;
        if query.contains("permit_id") {
            // The page says of which permit they are, too.
            assert_eq!(found.remove(0), "one permit");
            found.push("F-1".to_owned());
        }
        assert_eq!(found, expected, "{query}");
    }
    let first = viewer.get("/notices?limit=3&notice_type=").await;
    let next = first.between("<a class=\"button\" href=\"", "\"").replace("&#38;", "&");
    assert!(next.contains("cursor="), "{next}");
    assert_eq!(listed(&viewer, next.strip_prefix("/notices").unwrap()).await.len(), 3);
    for wrong in ["?state=open", "?due_from=soon", "?kind=x", "?cursor=x"] {
        let page = viewer.get(&format!("/notices{wrong}")).await;
        assert_eq!(page.status, 400, "{wrong}");
        page.shows(&["The request cannot be read"]);
    }
    viewer.get("/notices?state=held").await.shows(&["No notice is like that."]);
    viewer.get("/").await.shows(&[&format!("<a href=\"/notices?sent_on={}\">1</a>", api.office.today())]);
    viewer.get("/").await.shows(&["Besides them letters wait to be posted: 1."]);
    let page = viewer.get(&format!("/permits/{unreachable}")).await;
    page.shows(&[
        "Nothing has been sent for the present term.",
        "expires-7d goes by letter: somebody has to post it until",
        "Next: expires-1d on 14 Mar 2027, by letter.",
        "A letter waits to be posted: nobody on the permit can be mailed.",
    ]);
    viewer.get(&format!("/permits/{sent}")).await.shows(&["Sent last: expires-7d", "Next: expires-1d on 14 Mar 2027."]);
    api.close().await;
}

#[tokio::test]
async fn a_notice_shows_its_attempts_with_the_servers_words_and_the_very_bytes() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let (permit, notice) = pending(&api, "F-1").await;
    api.office.transport(permit, "rejected").await;
    api.office
        .sql(
            "UPDATE attempts SET response = 'no <b>such</b> user', smtp_code = 550, enhanced_code = '5.1.1';
             INSERT INTO attempt_messages SELECT id, 'Subject: x' FROM attempts",
        )
        .await;
    let path = format!("/notices/{notice}");
    let page = clerk.get(&path).await;
    page.shows(&[
        "<td>550 5.1.1 no &#60;b&#62;such&#60;/b&#62; user</td>",
        "smtp, dot",
        "Send again",
        "Give up",
        "Send one more copy",
        "the very bytes",
    ]);
    assert!(!page.text.contains("/hold\""), "what failed is not held");
    // The words of a server begin with its codes.
    api.office.sql("UPDATE attempts SET response = '550 5.1.1 no ' || '<b>such</b> user'").await;
    let page = clerk.get(&path).await;
    page.shows(&["<td>550 5.1.1 no &#60;b&#62;such&#60;/b&#62; user</td>"]);
    let of_permit = clerk.get(&format!("/permits/{permit}")).await;
    of_permit.shows(&["The server said: 550 5.1.1 no &#60;b&#62;"]);
    let link = page.between("<td><a href=\"", "\"").to_owned();
    let bytes = clerk.get(&link).await;
    assert_eq!((bytes.header("content-type"), bytes.text.as_str()), ("message/rfc822", "Subject: x"));
    assert_eq!(bytes.header("content-disposition"), "attachment");
    assert_eq!(clerk.get(&link.replace("attempt=1", "attempt=2")).await.status, 404);
    assert_eq!(clerk.get(&link.replace("attempt=1", "attempt=x")).await.status, 400);
    assert_eq!(clerk.get(&format!("{path}/message/{}", Uuid::nil())).await.status, 404);
    assert_eq!(clerk.get(&format!("/notices/{}", Uuid::nil())).await.status, 404);

    assert_eq!(clerk.post(&format!("{path}/retry"), &[]).await.status, 303);
    let refused = clerk.post(&format!("{path}/retry"), &[]).await;
    assert_eq!(refused.status, 409);
    refused.shows(&["There is a problem", "only one that failed"]);
    let fields = [("recipient", "not an address"), ("reason", "asked")];
    let wrong = clerk.post(&format!("{path}/copies"), &fields).await;
    assert_eq!(wrong.status, 422);
    wrong.shows(&[
        "href=\"#copies-recipient\"",
        "value=\"not an address\"",
        "value=\"asked\"",
        "The address must be a well-formed",
    ]);
    let fields = [("recipient", "bo@example.org"), ("reason", "asked")];
    assert_eq!(clerk.post(&format!("{path}/copies"), &fields).await.status, 303);
    clerk.get(&path).await.shows(&["bo@example.org"]);
    api.close().await;
}

#[tokio::test]
async fn a_mail_is_seen_as_it_will_look_and_nothing_in_it_runs() {
    let api = TestApi::open().await;
    let viewer = api.signed_in(Role::Viewer).await;
    let permit = api
        .office
        .create_permit(|p| {
            p.expires_on = api.office.in_days(5);
            p.holder_name = HOSTILE.to_owned();
            p.site_address = Some(HOSTILE.to_owned());
            p.description = Some("x\" style=\"background:url(https://evil.example)".to_owned());
        })
        .await;
    let notice = api.office.notice(permit, "expires-7d").await.id;
    let before = api.office.dump().await;
    let page = viewer.get(&format!("/notices/{notice}/preview")).await;
    page.shows(&["ada@example.org", "Subject", "<iframe class=\"mail\" sandbox", "Monday, 15 March 2027"]);
    assert!(!page.text.contains("<script>alert"));
    let html = viewer.get(page.between("sandbox src=\"", "\"")).await;
    assert_eq!(html.status, 200);
    assert!(!html.text.contains("<script>alert") && html.text.contains("&#60;script&#62;"), "{html:?}");
    let policy = html.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none';") && policy.contains("sandbox;"), "{policy}");
    assert!(!policy.contains("unsafe-inline") && policy.contains("'sha256-"), "{policy}");
    // The styles of the template, and none that somebody smuggled in.
    let plain = api.office.permit_expiring_in(5).await;
    let plain = api.office.notice(plain, "expires-7d").await.id;
    let other = viewer.get(&format!("/notices/{plain}/preview")).await;
    let other = viewer.get(other.between("sandbox src=\"", "\"")).await;
    assert_eq!(other.header("content-security-policy"), policy);
    let parent = page.header("content-security-policy");
    assert!(parent.contains("frame-src 'self'") && !parent.contains("unsafe"), "{parent}");
    assert_eq!(api.office.text("SELECT 'x' FROM attempts").await.len(), 0);
    let after = api.office.dump().await;
    assert_eq!(after.iter().filter(|row| row.starts_with("deliveries")).count(), 2, "{}", before.len());
    api.close().await;
}

#[tokio::test]
async fn what_people_wrote_is_text_everywhere() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let permit = api
        .office
        .create_permit(|p| {
            p.expires_on = api.office.in_days(8);
            p.permit_number = HOSTILE.parse().unwrap();
            p.holder_name = HOSTILE.to_owned();
            p.site_address = Some(HOSTILE.to_owned());
        })
        .await;
    let notice = api.office.notice(permit, "expires-14d").await.id;
    let day = api.office.in_days(1);
    let upcoming = format!("/upcoming?day={day}");
    clerk.get(&upcoming).await.shows(&["&#60;script&#62;"]);
    let held = clerk.post(&format!("/notices/{notice}/hold"), &[("reason", HOSTILE)]).await;
    assert_eq!(held.status, 303);
    let refused = clerk.post(&format!("/notices/{notice}/hold"), &[("reason", HOSTILE)]).await;
    let refused = if refused.status == 303 { clerk.get("/problems").await } else { refused };
    assert!(!refused.text.contains("<script>alert"));
    let query = HOSTILE.replace('<', "%3C").replace('>', "%3E").replace('"', "%22").replace(' ', "+");
    for path in [
        "/problems".to_owned(),
        "/notices".to_owned(),
        format!("/notices/{notice}"),
        upcoming,
        format!("/upcoming/{permit}/expires-7d"),
        format!("/scans/preview?as_of={day}"),
        format!("/notices?notice_type={query}"),
        format!("/notices?state={query}"),
        format!("/upcoming?from={query}"),
        format!("/problems?kind={query}"),
        format!("/scans?{query}={query}"),
    ] {
        let page = clerk.get(&path).await;
        assert!(!page.text.contains("<script>alert"), "{path}");
        assert!(!page.text.contains("\" onmouseover=\"x"), "{path}");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{path}: {policy}");
    }
    api.close().await;
}

#[tokio::test]
async fn looking_changes_nothing() {
    let api = TestApi::open().await;
    let admin = api.signed_in(Role::Admin).await;
    let (permit, notice) = pending(&api, "F-1").await;
    api.office.transport(permit, "ambiguous").await;
    let before = api.office.dump().await;
    for path in [
        "/".to_owned(),
        "/upcoming".to_owned(),
        format!("/upcoming?day={}", api.office.in_days(1)),
        format!("/upcoming/{permit}/expires-1d"),
        format!("/upcoming/{permit}/expires-1d/0"),
        "/problems".to_owned(),
        "/problems?kind=held".to_owned(),
        "/problems?kind=letters".to_owned(),
        "/notices".to_owned(),
        format!("/notices/{notice}"),
        format!("/notices/{notice}/preview"),
        "/scans".to_owned(),
        "/scans/preview".to_owned(),
    ] {
        assert_eq!(admin.get(&path).await.status, 200, "{path}");
    }
    assert_eq!(api.office.dump().await, before);
    api.close().await;
}
