//! Upcoming: what it says of a day is what the scan of that day does; and what somebody keeps back there stays.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use permit_notifier::{
    domain::{
        notice::NoticeClass,
        permit::PermitStatus,
        role::Role,
        schedule::{Schedule, Step},
    },
    scan::preview::{Would, dry_run},
};
use uuid::Uuid;

use crate::support::{
    api::{Options, TestApi},
    office::{by_hand, step, usual_but},
    pages::Visitor,
};

/// Permit number and step.
type Sendings = BTreeSet<(String, String)>;

/// What the page of a day lists, and how many notices the overview has for it: those to be recorded and those that are.
async fn foreseen(visitor: &Visitor, day: NaiveDate) -> (Sendings, usize) {
    let mut listed = Sendings::new();
    let mut path = format!("/upcoming?day={day}&limit=7");
    loop {
        let page = visitor.get(&path).await;
        assert_eq!(page.status, 200, "{page:?}");
        for row in page.text.split("<th scope=\"row\"><a href=\"/permits/").skip(1) {
            let number = row.split_once('>').unwrap().1.split_once('<').unwrap().0;
            let step = row.split("<td>").nth(2).unwrap().split_once(' ').unwrap().0;
            assert!(listed.insert((number.to_owned(), step.to_owned())), "twice: {number} {step}");
        }
        let Some((_, next)) = page.text.split_once("<a class=\"button\" href=\"") else { break };
        path = next.split_once('"').unwrap().0.replace("&#38;", "&");
    }
    let overview = visitor.get("/upcoming").await;
    let of_day = overview.between(&format!("/upcoming?day={day}\">"), "</tr>");
    let count = of_day.split_once("<td class=\"number\">").unwrap().1.split_once('<').unwrap().0;
    (listed, count.parse().unwrap())
}

/// What a scan would make pending now.
async fn claimed(api: &TestApi) -> Sendings {
    let report = dry_run(&api.office.rules, by_hand(None)).await.expect("a preview");
    let items = report.items.expect("its items").into_iter();
    let going = items.filter(|item| matches!(item.would, Would::Claim | Would::Revive) && !item.comes_back_held);
    going.map(|item| (item.permit_number, item.notice_type)).collect()
}

/// An office with something of everything, and a fortnight before it.
async fn office(window: Option<&'static str>) -> TestApi {
    let api = TestApi::with(Options { window, ..Options::default() }).await;
    let office = &api.office;
    let tips = usual_but(|steps| {
        steps.push(Step { class: NoticeClass::Courtesy, ..step("tip-10", -10) });
        steps.push(Step { class: NoticeClass::Courtesy, ..step("tip-3", -3) });
    });
    office.reschedule("food", tips).await;
    // Two steps on one day, and a step that weekends swallow.
    let dense = [step("long", -20), step("twin", -20), step("brief", -2), step("last", -1), step("after", 2)];
    office.create_type("dense", Schedule::new(dense.to_vec()).unwrap()).await;
    for days in 0..46 {
        office
            .create_permit(|p| {
                (p.permit_number, p.expires_on) = (format!("F-{days}").parse().unwrap(), office.in_days(days));
            })
            .await;
        office
            .create_permit(|p| {
                p.permit_number = format!("D-{days}").parse().unwrap();
                "dense".clone_into(&mut p.permit_type);
                p.expires_on = office.in_days(days - 10);
            })
            .await;
    }
    let special =
        async |number: &str, days: i64, edit: fn(&TestApi, &mut permit_notifier::store::permits::PermitData)| {
            office
                .create_permit(|p| {
                    (p.permit_number, p.expires_on) = (number.parse().unwrap(), office.in_days(days));
                    edit(&api, p);
                })
                .await
        };
    special("paused", 9, |api, p| p.notices_paused_until = Some(api.office.in_days(4))).await;
    special("paused past a step", 18, |api, p| p.notices_paused_until = Some(api.office.in_days(6))).await;
    special("paused for long", 12, |api, p| p.notices_paused_until = Some(api.office.in_days(40))).await;
    special("no address", 15, |_, p| p.holder_email = None).await;
    special("new term", 16, |api, p| p.effective_on = Some(api.office.in_days(5))).await;
    special("from later on", 17, |api, p| p.notices_from = Some(api.office.in_days(8))).await;
    special("suspended", 8, |_, p| p.status = PermitStatus::Suspended).await;
    let archived = special("archived", 8, |_, _| {}).await;
    office.archive(archived).await;
    special("suppressed", 15, |_, p| p.holder_email = Some("su@example.org".parse().unwrap())).await;
    office.suppress("su@example.org", "courtesy").await;
    // What is pending is taken back by a pause; and what was held comes back held.
    for (number, days, until) in
        [("taken back", 13, 5), ("taken back for long", 13, 40), ("held and taken back", 13, 5)]
    {
        let permit = special(number, days, |_, _| {}).await;
        if number.starts_with("held") {
            let notice = office.notice(permit, "expires-14d").await.id;
            let reason = serde_json::json!({ "reason": "wait" });
            assert_eq!(api.post(&format!("/notices/{notice}/hold"), &reason).await.status, 200);
        }
        office.pause(permit, Some(office.in_days(until - 1))).await;
        assert_eq!(office.notice(permit, "expires-14d").await.said(), "expires-14d superseded (paused)");
    }
    // What was due is sent, but of some it was never found.
    send_all(&api).await;
    special("late", 33, |_, _| {}).await;
    office.days_pass(3);
    api
}

/// Everything that is pending is accepted, unless it waits for its day.
async fn send_all(api: &TestApi) {
    let now = api.office.clock.now().to_rfc3339();
    let due = format!(
        "SELECT DISTINCT n.permit_id::text FROM notices n JOIN deliveries d ON d.notice_id = n.id
         WHERE d.state = 'pending' AND d.channel = 'email' AND d.next_attempt_at <= '{now}'"
    );
    for permit in api.office.text(&due).await {
        api.office.transport(permit.parse::<Uuid>().unwrap(), "accepted").await;
    }
}

async fn the_forecast_comes_true(window: Option<&'static str>) {
    let api = office(window).await;
    let clerk = api.signed_in(Role::Clerk).await;
    let decide = async |number: &str, step: &str, action: &str| {
        let id =
            api.office.text(&format!("SELECT id::text FROM permits WHERE permit_number = '{number}'")).await.remove(0);
        let done = clerk.post(&format!("/upcoming/{id}/{step}"), &[("action", action), ("reason", "x")]).await;
        assert_eq!(done.status, 303, "{number} {step}: {done:?}");
        done.header("location").split('?').next().unwrap().to_owned()
    };
    decide("F-21", "expires-14d", "hold").await;
    decide("F-22", "expires-14d", "cancel").await;
    let released = decide("F-23", "expires-14d", "hold").await;
    assert_eq!(clerk.post(&format!("{released}/release"), &[]).await.status, 303);

    let mut forecast = Vec::new();
    for ahead in 0..14 {
        forecast.push(foreseen(&clerk, api.office.in_days(ahead)).await);
    }
    assert!(forecast.iter().map(|(listed, _)| listed.len()).sum::<usize>() > 60, "{forecast:?}");
    let mut came_back = false;
    let mut waiting: Sendings = [("F-23".to_owned(), "expires-14d".to_owned())].into();
    for (ahead, (listed, count)) in forecast.into_iter().enumerate() {
        let day = api.office.today();
        assert_eq!(listed.len(), count, "the overview of {day} and its list, {ahead} days ahead");
        let (recorded, new): (Sendings, Sendings) = listed.into_iter().partition(|sending| waiting.contains(sending));
        waiting.retain(|sending| !recorded.contains(sending));
        assert_eq!(new, claimed(&api).await, "{day}, {ahead} days ahead");
        came_back |= new.contains(&("taken back".to_owned(), "expires-14d".to_owned()));
        api.office.scan().await;
        send_all(&api).await;
        api.office.days_pass(1);
    }
    assert!(came_back, "what a pause took back is foreseen for its end");
    assert!(waiting.is_empty(), "what was released in advance waits for its day: {waiting:?}");
    api.close().await;
}

#[tokio::test]
async fn each_day_brings_what_was_foreseen() {
    the_forecast_comes_true(None).await;
}

#[tokio::test]
async fn each_day_brings_what_was_foreseen_where_mail_goes_on_some_days_only() {
    the_forecast_comes_true(Some("Mon,Thu 08:00-18:00")).await;
}

#[tokio::test]
async fn a_single_mail_is_seen_and_kept_back_with_a_reason() {
    let api = TestApi::open().await;
    let clerk = api.signed_in(Role::Clerk).await;
    let permit = api
        .office
        .create_permit(|p| (p.permit_number, p.expires_on) = ("F-1".parse().unwrap(), api.office.in_days(31)))
        .await;
    api.office.transport(permit, "accepted").await;
    let day = api.office.in_days(1);
    let path = format!("/upcoming?day={day}");
    let page = clerk.get(&path).await;
    page.shows(&["F-1", "Ada Holder", "ada@example.org", "expires-30d", "Hold or skip"]);
    let mail = clerk.get(&format!("/upcoming/{permit}/expires-30d")).await;
    mail.shows(&["ada@example.org", "F-1", "As plain text", "Saturday, 10 April 2027"]);
    let html = clerk.get(mail.between("sandbox src=\"", "\"")).await;
    assert_eq!(html.status, 200, "{html:?}");
    assert!(html.header("content-security-policy").contains("sandbox;"));
    assert_eq!(clerk.get(&format!("/upcoming/{permit}/expires-30d/7")).await.status, 404);
    assert_eq!(clerk.get(&format!("/upcoming/{permit}/nonsense")).await.status, 404);

    let act = format!("/upcoming/{permit}/expires-30d");
    let back = ("back", path.as_str());
    let bare = clerk.post(&act, &[("action", "hold"), back]).await;
    assert_eq!(bare.status, 422, "{bare:?}");
    bare.shows(&["There is a problem", "The reason must have", "F-1"]);
    let done = clerk.post(&act, &[("action", "hold"), ("reason", "the office is closed"), back]).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, format!("{path}&done=notice-held").as_str()));
    let page = clerk.get(&path).await;
    page.shows(&["1 held", "Nothing goes on this day."]);
    let again = clerk.post(&act, &[("action", "cancel"), ("reason", "x"), back]).await;
    assert_eq!(again.status, 409);
    again.shows(&["the step has a notice already"]);
    let log = "SELECT concat_ws(' ', by, action, label, after->>'state', after->>'reason') FROM office_log";
    assert_eq!(
        api.office.text(log).await,
        ["user:clerk@office.example decided-in-advance F-1 expires-30d held the office is closed"]
    );
    for wrong in ["?day=soon", "?day=2020-01-01", "?from=9999-01-01", "?from=2027-03-11&x=1"] {
        assert_eq!(clerk.get(&format!("/upcoming{wrong}")).await.status, 400, "{wrong}");
    }
    let later = clerk.get("/upcoming?from=2027-03-25").await;
    later.shows(&["Two weeks earlier", "1 × expires-14d"]);
    api.close().await;
}
