//! A dry run says what a scan would do, and why, and writes nothing.

use permit_notifier::{
    domain::notice::NoticeClass,
    scan::{
        ScanReport,
        preview::{Would, dry_run},
    },
    store::claims::Counts,
};

use crate::support::office::{TestOffice, by_hand, step, usual_but};

async fn preview(office: &TestOffice) -> ScanReport {
    let before = office.dump().await;
    let report = dry_run(&office.rules, by_hand(None)).await.expect("a dry run");
    assert_eq!(office.dump().await, before, "it wrote");
    assert!(report.dry_run && report.id.is_none());
    report
}

/// An office in which the next scan does a little of everything.
async fn busy_office() -> TestOffice {
    let office = TestOffice::new().await;
    let tip = permit_notifier::domain::schedule::Step { class: NoticeClass::Courtesy, ..step("tip", -92) };
    office.create_type("kind", usual_but(|steps| steps.push(tip))).await;
    let number = |text: &str| text.parse().expect("a number");
    let due = office.create_permit(|p| {
        p.permit_number = number("DUE");
        p.expires_on = office.in_days(31);
    });
    due.await;
    let late = office.create_permit(|p| {
        p.permit_number = number("LATE");
        p.expires_on = office.in_days(-29);
        p.notices_paused_until = Some(office.in_days(9));
    });
    late.await;
    let paused = office.create_permit(|p| {
        p.permit_number = number("PAUSED");
        p.expires_on = office.in_days(80);
    });
    office.pause(paused.await, Some(office.in_days(9))).await;
    let silent = office.create_permit(|p| {
        p.permit_number = number("SILENT");
        p.permit_type = "kind".into();
        p.holder_email = None;
        p.expires_on = office.in_days(93);
    });
    silent.await;
    office.days_pass(10);
    office
}

#[tokio::test]
async fn it_names_each_notice_with_what_would_become_of_it_and_why() {
    let office = busy_office().await;
    let items = preview(&office).await.items.expect("items");
    let said = |number: &str, notice_type: &str| {
        let item = items.iter().find(|item| item.permit_number == number && item.notice_type == notice_type);
        let item = item.unwrap_or_else(|| panic!("no {notice_type} of {number}: {items:#?}"));
        assert!(item.notice_key.contains(&format!(":{notice_type}:")));
        (item.would, item.why.clone())
    };
    let (would, why) = said("DUE", "expires-30d");
    assert_eq!((would, why.as_str()), (Would::Claim, "Due on 2027-03-11; it may go until 2027-03-26."));
    let (would, why) = said("DUE", "expires-60d");
    assert_eq!((would, why.as_str()), (Would::Skip, "Its last day for sending has passed."));
    assert_eq!(said("LATE", "expired-30d").0, Would::Skip);
    let (would, why) = said("LATE", "expires-7d");
    assert_eq!((would, why.as_str()), (Would::Supersede, "A later step took its place."));
    let (would, why) = said("PAUSED", "expires-90d");
    assert_eq!(would, Would::Revive);
    assert!(why.starts_with("It is owed again: what kept it back has ended."), "{why}");
    let (would, why) = said("SILENT", "tip");
    assert_eq!((would, why.as_str()), (Would::Skip, "Nobody on the permit may be mailed."));
    office.close().await;
}

#[tokio::test]
async fn it_counts_what_the_scan_then_does() {
    for limit in [0, 1, 2, 3] {
        let mut office = busy_office().await;
        office.rules.claim_limit = limit;
        let would = preview(&office).await.counts;
        let done = office.scan().await.counts;
        assert_eq!(would, done, "{limit}");
        assert_eq!(done.held > 0, limit == 1 || limit == 2, "{done:?}");
        let nothing = Counts { already_claimed: preview(&office).await.counts.already_claimed, ..Counts::default() };
        assert_eq!(preview(&office).await.counts, nothing);
        office.close().await;
    }
}
