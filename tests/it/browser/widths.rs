//! Every page on a telephone and on a desk: none is to be moved sideways.

use permit_notifier::domain::role::Role;
use uuid::Uuid;

use super::{office, permit};
use crate::support::{
    api::TestApi,
    browser::{Browser, NARROW, Way},
};

const LONG: &str = "The-very-long-name-of-something-that-nobody-thought-of-breaking-anywhere-at-all-in-any-line";

#[ignore = "wants a browser"]
#[tokio::test]
async fn no_page_is_wider_than_its_window() {
    let api = office().await;
    let paths = everything(&api).await;
    let browser = Browser::used(Way::Usual, &api.url).await;
    for width in [NARROW, 1280] {
        browser.be_wide(width).await;
        browser.goto("/sign-in").await;
        browser.fits().await;
    }
    browser.sign_in(&format!("{}@office.example", &LONG[..50])).await;
    for path in paths {
        browser.goto(&path).await;
        let opened = "for (const one of document.querySelectorAll('details')) one.open = true; return document.title";
        let title = browser.script(opened).await;
        assert!(title.as_str().is_some_and(|title| title.ends_with("Permit Notifier")), "{path}: {title}");
        for width in [NARROW, 1280] {
            browser.be_wide(width).await;
            browser.fits().await;
        }
    }
    browser.close().await;
    api.close().await;
}

/// An office in which every page shows something, and it is long; the addresses of its pages.
async fn everything(api: &TestApi) -> Vec<String> {
    api.add_user(&format!("{}@office.example", &LONG[..50]), Role::Admin).await;
    let admin = api.signed_in(Role::Admin).await;
    let office = &api.office;
    let long = office
        .create_permit(|p| {
            (p.permit_number, p.expires_on) = (LONG[..64].parse().unwrap(), office.in_days(5));
            LONG.clone_into(&mut p.holder_name);
            p.holder_email = Some(format!("{}@example.org", &LONG[..60]).parse().unwrap());
            p.site_address = Some(LONG.to_owned());
            p.description = Some(LONG.to_owned());
        })
        .await;
    let failed = permit(api, "FAILED", 5, false).await;
    for (permit, outcome) in [(long, "ambiguous"), (failed, "rejected")] {
        office.transport(permit, outcome).await;
    }
    office.sql(&format!("UPDATE attempts SET response = '{LONG}'; UPDATE deliveries SET last_error = '{LONG}' WHERE state = 'failed'")).await;
    let notice = office.notice(long, "expires-7d").await.id;
    office
        .create_permit(|p| {
            (p.holder_email, p.expires_on) = (None, office.in_days(5));
            (p.holder_name, p.site_address) = (LONG.to_owned(), Some(LONG.to_owned()));
        })
        .await;
    let held = permit(api, "HELD", 5, false).await;
    let held = office.notice(held, "expires-7d").await.id;
    assert_eq!(admin.post(&format!("/notices/{held}/hold"), &[("reason", LONG)]).await.status, 303);
    let scan = office.scan().await.id.expect("a scan");
    let address = format!("{}@example.org", &LONG[..60]);
    let suppressed = [("address", address.as_str()), ("class", "all"), ("reason", LONG)];
    assert_eq!(admin.post("/suppressions", &suppressed).await.status, 303);
    assert_eq!(admin.post("/tokens", &[("name", LONG), ("scope", "read")]).await.status, 201);
    let file = format!("Number,Type,Holder,{LONG},Expires\nI-1,Food,{LONG},{LONG},{LONG}\nI-2,Food,Bo,x,2031-01-31\n");
    let sent = admin.upload("/import", &format!("{LONG}.csv"), file).await;
    let wizard = sent.header("location").to_owned();
    let report = admin.get(&wizard).await.between("href=\"/import/", "/errors.csv").to_owned();
    let day = office.in_days(6 - 2);
    [
        "/",
        "/upcoming",
        &format!("/upcoming?day={day}"),
        &format!("/upcoming/{long}/expires-1d"),
        "/permits",
        "/permits/new",
        &format!("/permits/{long}"),
        &format!("/permits/{long}/edit"),
        "/problems",
        "/problems?kind=held",
        "/problems?kind=letters",
        "/notices",
        &format!("/notices?permit_id={long}"),
        &format!("/notices/{notice}"),
        &format!("/notices/{notice}/preview"),
        &format!("/notices/{}", Uuid::nil()),
        "/import",
        "/import?checks=1",
        &wizard,
        &format!("/import/{report}"),
        "/scans",
        &format!("/scans/{scan}"),
        "/scans/preview?as_of=2027-03-14",
        "/permit-types",
        "/permit-types/food",
        "/suppressions",
        "/users",
        "/tokens",
        "/audit",
        "/account",
    ]
    .map(str::to_owned)
    .to_vec()
}
