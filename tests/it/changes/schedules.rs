//! A changed schedule: what is open follows at once, what is newly due waits for the scan.

use crate::support::office::{TestOffice, step, usual_but};

#[tokio::test]
async fn a_step_that_is_gone_or_switched_off_ends_and_comes_back_with_the_step() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let before = office.notice(permit, "expires-30d").await;
    let gone = usual_but(|steps| steps.retain(|step| step.notice_type.as_str() != "expires-30d"));
    let off = usual_but(|steps| steps[2].enabled = false);
    for schedule in [gone, off] {
        office.reschedule("food", schedule).await;
        assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (step_removed)");
        assert_eq!(office.scan().await.counts.revived, 0);
        office.reschedule("food", usual_but(|_| {})).await;
        assert_eq!(office.notice(permit, "expires-30d").await.state, "superseded");
        assert_eq!(office.scan().await.counts.revived, 1);
        assert_eq!(office.notice(permit, "expires-30d").await, before);
    }
    office.close().await;
}

#[tokio::test]
async fn a_moved_step_keeps_its_key_and_takes_its_new_days() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let before = office.notice(permit, "expires-30d").await;
    office.reschedule("food", usual_but(|steps| steps[2].offset_days = Some(-25))).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!((notice.id, notice.due_on, notice.send_by), (before.id, office.in_days(-5), before.send_by));
    office.reschedule("food", usual_but(|steps| steps[3].offset_days = Some(-10))).await;
    assert_eq!(office.notice(permit, "expires-30d").await.send_by, office.in_days(9));
    office.close().await;
}

#[tokio::test]
async fn a_step_moved_to_a_later_day_is_owed_on_that_day() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.reschedule("food", usual_but(|steps| steps[2].offset_days = Some(-18))).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (not_owed)");
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.revived, 0);
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.revived, 1);
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!((notice.state.as_str(), notice.due_on), ("pending", office.today()));
    office.close().await;
}

#[tokio::test]
async fn a_step_that_is_newly_due_waits_for_the_scan_and_its_brake() {
    let mut office = TestOffice::new().await;
    let permits = [office.permit_expiring_in(100).await, office.permit_expiring_in(100).await];
    office.reschedule("food", usual_but(|steps| steps.insert(0, step("early", -120)))).await;
    assert!(office.said(permits[0]).await.is_empty());
    office.rules.claim_limit = 1;
    let counts = office.scan().await.counts;
    assert_eq!((counts.claimed, counts.held), (2, 2));
    assert_eq!(office.notice(permits[1], "early").await.said(), "early held (claim_limit)");
    office.close().await;
}

#[tokio::test]
async fn a_pause_that_ends_after_the_next_step_was_removed_brings_back_what_may_go_until_later_now() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.pause(permit, Some(office.in_days(10))).await;
    office.reschedule("food", usual_but(|steps| steps.retain(|step| step.notice_type.as_str() != "expires-14d"))).await;
    office.days_pass(11);
    assert_eq!(office.scan().await.counts.revived, 1);
    assert_eq!(office.open(permit).await, ["expires-30d"]);
    office.close().await;
}

#[tokio::test]
async fn a_schedule_changed_for_one_type_leaves_the_permits_of_others_alone() {
    let office = TestOffice::new().await;
    office.create_type("signs", usual_but(|_| {})).await;
    let permit = office.permit_expiring_in(20).await;
    office.reschedule("signs", usual_but(Vec::clear)).await;
    assert_eq!(office.open(permit).await, ["expires-30d"]);
    office.close().await;
}
