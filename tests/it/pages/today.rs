//! Today: the scan, what is due, sent and waiting, what needs a person, and the charts.

use permit_notifier::{domain::role::Role, store::scans::keep_scan_schedule};

use crate::support::{
    api::TestApi,
    pages::{PASSWORD, Visitor},
};

/// Sessions do not last over days.
async fn next_day(api: &TestApi, visitor: &mut Visitor) {
    api.office.days_pass(1);
    visitor.sign_in("clerk@office.example", PASSWORD).await;
    visitor.csrf = visitor.get("/account").await.csrf();
}

#[tokio::test]
async fn an_office_without_anything_says_what_comes_next() {
    let api = TestApi::open().await;
    let viewer = api.signed_in(Role::Viewer).await;
    let page = viewer.get("/").await;
    assert_eq!(page.status, 200);
    page.shows(&["Wednesday, 10 March 2027", "Nothing. Every notice", "None has completed yet.", "2027-03-11 06:00"]);
    assert!(!page.text.contains("A scan is missing"), "none was expected yet");
    for (path, hint) in [
        ("/upcoming", "nothing"),
        ("/problems", "Nothing needs a person."),
        ("/notices", "No notice is recorded yet."),
        ("/scans", "No scan has run yet."),
    ] {
        let page = viewer.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        page.shows(&[hint]);
    }
    api.close().await;
}

#[tokio::test]
async fn a_scan_that_is_missing_is_said_until_one_completes() {
    let api = TestApi::open().await;
    let mut clerk = api.signed_in(Role::Clerk).await;
    let zone = "America/Chicago";
    let now = api.office.clock.now();
    keep_scan_schedule(&mut *api.office.connection().await, "0 0 6 * * *", zone, now).await.unwrap();
    assert!(!clerk.get("/").await.text.contains("A scan is missing"));
    next_day(&api, &mut clerk).await;
    let page = clerk.get("/").await;
    page.shows(&["A scan is missing", "2027-03-11 06:00", "Scan now"]);
    clerk.get("/scans").await.shows(&["missing"]);

    let begun = clerk.post("/scans", &[]).await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let scan = begun.header("location").to_owned();
    loop {
        let page = clerk.get(&scan).await;
        if page.text.contains("completed") {
            page.shows(&["a person", "2027-03-11"]);
            break;
        }
        tokio::task::yield_now().await;
    }
    let page = clerk.get("/").await;
    assert!(!page.text.contains("A scan is missing"));
    page.shows(&["completed"]);
    // Three hours after it was expected.
    clerk.get("/scans").await.shows(&["late", "It ended 180 minutes after"]);
    let log = api.office.text("SELECT concat_ws(' ', by, action, subject) FROM office_log").await;
    assert_eq!(log, ["user:clerk@office.example started scan"]);

    next_day(&api, &mut clerk).await;
    next_day(&api, &mut clerk).await;
    api.office.scan().await;
    clerk.get("/scans").await.shows(&["missed", "late"]);
    api.close().await;
}

#[tokio::test]
async fn what_is_due_sent_and_waiting_is_counted_and_charted() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    for _ in 0..3 {
        let permit = api.office.permit_expiring_in(14).await;
        api.office.transport(permit, "accepted").await;
    }
    api.office.permit_expiring_in(14).await;
    api.office.permit_expiring_in(30).await;
    let page = clerk.get("/").await;
    let day = api.office.today();
    let due = page.between(&format!("due_from={day}&amp;due_to={day}\">"), "<");
    assert_eq!(due, "5", "the steps of 14 and of 30 days before");
    page.shows(&["<li>3 <span class=\"tag good\">sent</span>", "<li>2 <span class=\"tag \">pending</span>"]);
    assert_eq!(page.between(&format!("/notices?sent_on={day}\">"), "<"), "3");
    assert_eq!(page.between("/notices?state=pending&amp;channel=email\">", "<"), "2");
    // This week and the two in which they expire.
    page.shows(&["role=\"img\"", "<title id=\"sent-title\">", "<title id=\"expiring-title\">"]);
    for (week, count) in [("2027-03-08", "3"), ("2027-03-22", "4"), ("2027-04-05", "1")] {
        let (_, rest) = page.text.split_once(&format!("<time datetime=\"{week}\">")).expect("a row of the week");
        let shown = rest.split("<td class=\"number\">").nth(1).and_then(|rest| rest.split('<').next());
        assert_eq!(shown, Some(count), "{week}");
    }
    api.close().await;
}

#[tokio::test]
async fn weeks_that_have_ended_are_counted_once_and_stay_right() {
    let api = TestApi::open().await;
    let mut clerk = api.signed_in(Role::Clerk).await;
    let permit = api.office.permit_expiring_in(14).await;
    api.office.transport(permit, "accepted").await;
    let shown = |text: &str| {
        let (_, rest) = text.split_once("<time datetime=\"2027-03-08\">").expect("the week");
        rest.split("<td class=\"number\">").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or("").to_owned()
    };
    assert_eq!(shown(&clerk.get("/").await.text), "1");
    for _ in 0..6 {
        next_day(&api, &mut clerk).await;
        assert_eq!(shown(&clerk.get("/").await.text), "1");
    }
    api.office.days_pass(13);
    next_day(&api, &mut clerk).await;
    for _ in 0..2 {
        assert_eq!(shown(&clerk.get("/").await.text), "1");
    }
    api.close().await;
}

#[tokio::test]
async fn each_kind_of_problem_stands_on_today_with_what_to_do() {
    let api = TestApi::open().await;
    let viewer = api.signed_in(Role::Viewer).await;
    let ambiguous = api.office.permit_expiring_in(5).await;
    api.office.transport(ambiguous, "ambiguous").await;
    for _ in 0..2 {
        let failed = api.office.permit_expiring_in(5).await;
        api.office.transport(failed, "rejected").await;
    }
    api.office.create_permit(|p| (p.expires_on, p.holder_email) = (api.office.in_days(5), None)).await;
    let page = viewer.get("/").await;
    for (kind, count) in [("ambiguous", 1), ("failed", 2), ("letters", 1)] {
        let row = page.between(&format!("/problems?kind={kind}\">"), "</tr>");
        assert!(row.contains(&format!("<td class=\"number\">{count}</td>")), "{kind}: {row}");
    }
    assert!(!page.text.contains("kind=held"));
    assert!(!page.text.contains("Scan now"), "a viewer scans nothing");
    api.close().await;
}
