//! What a scan claims, holds and records.

use permit_notifier::domain::notice::NoticeClass;

use crate::support::office::{TestOffice, contact, step, usual_but};

#[tokio::test]
async fn what_is_due_is_claimed_once() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(91).await;
    office.days_pass(1);
    let first = office.scan().await;
    assert_eq!((first.counts.claimed, first.counts.already_claimed), (1, 0));
    let notice = office.notice(permit, "expires-90d").await;
    assert_eq!((notice.said().as_str(), notice.scan_id), ("expires-90d pending", first.id));
    for _ in 0..2 {
        let again = office.scan().await;
        assert_eq!((again.counts.claimed, again.counts.already_claimed), (0, 1));
    }
    assert_eq!(office.said(permit).await, ["expires-90d pending"]);
    office.close().await;
}

#[tokio::test]
async fn after_three_weeks_without_a_scan_one_notice_of_each_class_goes_and_the_rest_is_recorded() {
    let office = TestOffice::new().await;
    let kind = usual_but(|steps| {
        for days in [-25, -20] {
            let name = format!("tip{days}");
            steps.push(permit_notifier::domain::schedule::Step { class: NoticeClass::Courtesy, ..step(&name, days) });
        }
    });
    office.reschedule("food", kind).await;
    let permit = office.permit_expiring_in(31).await;
    office.transport(permit, "accepted").await;
    office.scan().await;
    office.days_pass(21);
    let counts = office.scan().await.counts;
    assert_eq!((counts.claimed, counts.superseded), (2, 2));
    let said = office.said(permit).await;
    assert_eq!(
        said[1..],
        [
            "expires-60d sent",
            "expires-30d superseded (more_urgent_step)",
            "tip-25 superseded (more_urgent_step)",
            "tip-20 pending",
            "expires-14d pending"
        ]
    );
    office.close().await;
}

#[tokio::test]
async fn a_later_step_takes_the_place_of_one_that_still_waits() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(31).await;
    office.days_pass(1);
    office.scan().await;
    assert_eq!(office.open(permit).await, ["expires-30d"]);
    // Its last day has passed, so it is not merely less urgent.
    office.days_pass(16);
    let counts = office.scan().await.counts;
    assert_eq!((counts.claimed, counts.skipped), (1, 1));
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.said(), "expires-30d skipped (too_late)");
    assert_eq!(notice.copies(), ["ada@example.org skipped (too_late)"]);
    office.close().await;
}

#[tokio::test]
async fn what_is_found_after_its_last_day_is_recorded_as_skipped() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(95).await;
    office.scan().await;
    office.days_pass(95 + 30 + 8);
    let counts = office.scan().await.counts;
    assert_eq!((counts.claimed, counts.skipped, counts.superseded), (0, 1, 8));
    let said = office.said(permit).await;
    assert_eq!(said[8], "expired-30d skipped (too_late)");
    office.close().await;
}

#[tokio::test]
async fn what_waits_past_its_last_day_is_skipped_though_nothing_else_is_due() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(-30).await;
    assert_eq!(office.open(permit).await, ["expired-30d"]);
    office.days_pass(7);
    assert_eq!(office.scan().await.counts.skipped, 0);
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.skipped, 1);
    assert_eq!(office.notice(permit, "expired-30d").await.said(), "expired-30d skipped (too_late)");
    office.close().await;
}

#[tokio::test]
async fn a_copy_in_flight_on_its_last_day_is_not_called_late() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.transport(permit, "sending").await;
    office.days_pass(6);
    assert_eq!(office.scan().await.counts.skipped, 0);
    let notice = office.notice(permit, "expires-30d").await;
    assert!(notice.copies().contains(&"ada@example.org sending".to_owned()));
    office.close().await;
}

#[tokio::test]
async fn more_than_the_limit_is_held_and_no_more_than_it_is_not() {
    for (limit, held) in [(2, true), (3, false), (0, false)] {
        let mut office = TestOffice::new().await;
        office.rules.claim_limit = limit;
        for _ in 0..3 {
            office.permit_expiring_in(31).await;
        }
        office.days_pass(1);
        let counts = office.scan().await.counts;
        assert_eq!((counts.claimed, counts.held), (3, if held { 3 } else { 0 }), "{limit}");
        let states = office.text(
            "SELECT DISTINCT concat(n.state, ' ', n.reason_code, ' ', d.state, ' ', d.reason_code)
             FROM notices n JOIN deliveries d ON d.notice_id = n.id WHERE n.notice_type = 'expires-30d'",
        );
        let expected = if held { "held claim_limit held claim_limit" } else { "pending  pending " };
        assert_eq!(states.await, [expected], "{limit}");
        office.close().await;
    }
}

#[tokio::test]
async fn a_notice_that_nobody_can_be_mailed_does_not_count_against_the_limit() {
    let mut office = TestOffice::new().await;
    office.rules.claim_limit = 1;
    let courtesies = |steps: &mut Vec<permit_notifier::domain::schedule::Step>| {
        for step in steps.iter_mut() {
            step.class = NoticeClass::Courtesy;
        }
    };
    office.reschedule("food", usual_but(courtesies)).await;
    let permit = office.permit_expiring_in(91).await;
    for _ in 0..2 {
        office
            .create_permit(|p| {
                p.expires_on = office.in_days(91);
                p.holder_email = None;
            })
            .await;
    }
    office.days_pass(1);
    let counts = office.scan().await.counts;
    assert_eq!((counts.claimed, counts.skipped, counts.held), (1, 2, 0));
    assert_eq!(office.said(permit).await, ["expires-90d pending"]);
    office.close().await;
}

#[tokio::test]
async fn a_change_that_makes_more_pending_than_its_limit_is_held_and_one_that_does_not_is_not() {
    let mut office = TestOffice::new().await;
    office.claim_limit = 1;
    office.permit_expiring_in(20).await;
    assert_eq!(office.text("SELECT state FROM notices WHERE state IN ('held', 'pending')").await, ["pending"]);
    let kind = usual_but(|steps| {
        let tip = step("tip", -25);
        steps.push(permit_notifier::domain::schedule::Step { class: NoticeClass::Courtesy, ..tip });
    });
    office.create_type("two", kind).await;
    let permit = office.create_permit(|p| {
        p.permit_type = "two".to_owned();
        p.expires_on = office.in_days(20);
    });
    let permit = permit.await;
    assert_eq!(office.notice(permit, "tip").await.said(), "tip held (claim_limit)");
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d held (claim_limit)");
    office.set_status(permit, permit_notifier::domain::permit::PermitStatus::Revoked).await;
    assert_eq!(office.notice(permit, "tip").await.said(), "tip superseded (not_active)");
    office.close().await;
}

#[tokio::test]
async fn a_held_notice_gives_way_like_any_other() {
    let mut office = TestOffice::new().await;
    office.rules.claim_limit = 1;
    let permits = [office.permit_expiring_in(31).await, office.permit_expiring_in(31).await];
    office.days_pass(1);
    office.scan().await;
    office.renew(permits[0], office.in_days(400)).await;
    assert_eq!(office.notice(permits[0], "expires-30d").await.said(), "expires-30d superseded (period_changed)");
    office.days_pass(23);
    office.scan().await;
    assert_eq!(office.notice(permits[1], "expires-30d").await.said(), "expires-30d skipped (too_late)");
    office.close().await;
}

#[tokio::test]
async fn as_of_moves_the_day_and_never_the_instants() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(200).await;
    let report = office.scan_as_of(office.in_days(171)).await;
    assert_eq!((report.as_of, report.counts.claimed), (office.in_days(171), 1));
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.deliveries[0].next_attempt_at, office.clock.now());
    // By today's lights it is not due, but a scan claims and does not take back what another day claimed.
    assert_eq!(office.scan().await.counts.claimed, 0);
    office.close().await;
}

#[tokio::test]
async fn a_scan_of_an_earlier_day_looks_back_as_far_as_that_day() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(100);
        p.notices_paused_until = Some(office.in_days(100));
    });
    let permit = permit.await;
    office.days_pass(300);
    office.scan().await;
    assert_eq!(office.said(permit).await.len(), 9);
    let report = office.scan_as_of(office.in_days(-199)).await;
    assert_eq!(report.counts.claimed, 0);
    office.close().await;
}

#[tokio::test]
async fn every_copy_of_a_claimed_notice_is_made_with_it() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(91);
        p.contacts = vec![contact("agent", "bo@example.org"), contact("owner", "ada@example.org")];
    });
    let permit = permit.await;
    let silent = office.create_permit(|p| {
        p.expires_on = office.in_days(91);
        p.holder_email = None;
    });
    let silent = silent.await;
    office.days_pass(1);
    office.scan().await;
    let copies = office.notice(permit, "expires-90d").await.copies();
    assert_eq!(copies, ["ada@example.org pending", "bo@example.org pending"]);
    assert_eq!(office.notice(silent, "expires-90d").await.copies(), ["letter pending"]);
    office.close().await;
}

#[tokio::test]
async fn a_sunday_expiry_brings_one_mail_on_friday_when_mail_goes_on_weekdays() {
    let mut office = TestOffice::new().await;
    office.set_window("Mon-Fri 08:00-18:00");
    // A Wednesday; the permit expires on Sunday.
    let permit = office.permit_expiring_in(4).await;
    office.transport(permit, "accepted").await;
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.claimed, 0);
    office.days_pass(1);
    let counts = office.scan().await.counts;
    assert_eq!((counts.claimed, counts.superseded), (1, 1));
    let notice = office.notice(permit, "expires-today").await;
    assert_eq!((notice.state.as_str(), notice.brought_forward), ("pending", true));
    assert_eq!((notice.due_on, notice.send_by), (office.in_days(2), office.in_days(2)));
    assert_eq!(office.notice(permit, "expires-1d").await.said(), "expires-1d superseded (more_urgent_step)");
    office.transport(permit, "accepted").await;
    for _ in 0..2 {
        office.days_pass(1);
        assert_eq!(office.scan().await.counts.claimed, 0);
    }
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.claimed, 1);
    assert_eq!(office.open(permit).await, ["expired-1d"]);
    office.close().await;
}
