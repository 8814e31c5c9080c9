//! Creating, revoking, pausing, archiving, and what ends and comes back with each.

use permit_notifier::domain::permit::PermitStatus;

use crate::support::office::{TestOffice, step, usual_but};

#[tokio::test]
async fn a_permit_created_inside_a_window_is_told_at_once() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let said = office.said(permit).await;
    assert_eq!(
        said,
        [
            "expires-90d superseded (more_urgent_step)",
            "expires-60d superseded (more_urgent_step)",
            "expires-30d pending"
        ]
    );
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.send_by, office.in_days(5));
    assert_eq!(notice.copies(), ["ada@example.org pending"]);
    assert_eq!(notice.deliveries[0].next_attempt_at, office.clock.now());
    office.close().await;
}

#[tokio::test]
async fn a_permit_created_long_before_its_first_window_is_told_nothing() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(91).await;
    assert!(office.said(permit).await.is_empty());
    office.close().await;
}

#[tokio::test]
async fn what_a_page_changes_waits_before_its_notices_go() {
    let mut office = TestOffice::new().await;
    office.delay = chrono::TimeDelta::minutes(5);
    let permit = office.permit_expiring_in(20).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.deliveries[0].next_attempt_at, office.clock.now() + office.delay);
    office.close().await;
}

#[tokio::test]
async fn a_revoked_permit_is_told_nothing_until_it_is_active_again() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let before = office.notice(permit, "expires-30d").await;
    office.set_status(permit, PermitStatus::Revoked).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.said(), "expires-30d superseded (not_active)");
    assert_eq!(notice.copies(), ["ada@example.org superseded (not_active)"]);
    assert_eq!(office.scan().await.counts.revived, 0);

    office.set_status(permit, PermitStatus::Active).await;
    assert_eq!(office.notice(permit, "expires-30d").await, before);
    office.close().await;
}

#[tokio::test]
async fn a_paused_permit_is_told_nothing_until_the_pause_is_lifted() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.pause(permit, Some(office.today())).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (paused)");
    office.pause(permit, None).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d pending");
    office.close().await;
}

#[tokio::test]
async fn a_pause_that_ends_by_time_ends_with_the_next_scan() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.pause(permit, Some(office.in_days(2))).await;
    office.days_pass(2);
    assert_eq!(office.scan().await.counts.revived, 0);
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (paused)");
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.revived, 1);
    assert_eq!(office.open(permit).await, ["expires-30d"]);
    office.close().await;
}

#[tokio::test]
async fn after_a_pause_only_the_latest_step_comes_back() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.pause(permit, Some(office.in_days(6))).await;
    office.days_pass(7);
    let counts = office.scan().await.counts;
    assert_eq!((counts.claimed, counts.revived), (1, 0));
    assert_eq!(office.open(permit).await, ["expires-14d"]);
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (paused)");
    office.close().await;
}

#[tokio::test]
async fn a_pause_that_ended_long_after_expiry_leaves_every_step_with_a_word_of_what_became_of_it() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(100);
        p.notices_paused_until = Some(office.in_days(199));
    });
    let permit = permit.await;
    for days in [1, 99, 99] {
        office.days_pass(days);
        office.scan().await;
        assert!(office.said(permit).await.is_empty());
    }
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.skipped, 1);
    let said = office.said(permit).await;
    assert_eq!(said.len(), 9);
    assert_eq!(said[8], "expired-30d skipped (too_late)");
    office.close().await;
}

#[tokio::test]
async fn a_pause_leaves_what_was_sent_as_it_is() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.transport(permit, "accepted").await;
    office.pause(permit, Some(office.today())).await;
    office.pause(permit, None).await;
    office.archive(permit).await;
    office.restore(permit).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!((notice.said().as_str(), notice.is_superseded), ("expires-30d sent", false));
    office.close().await;
}

#[tokio::test]
async fn a_pause_stamps_what_is_in_flight_and_its_end_clears_the_stamp() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.transport(permit, "sending").await;
    office.pause(permit, Some(office.today())).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert!(notice.is_superseded);
    assert_eq!(notice.said(), "expires-30d pending (paused)");
    assert_eq!(notice.copies(), ["ada@example.org sending"]);
    office.pause(permit, None).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert!(!notice.is_superseded);
    assert_eq!(notice.copies(), ["ada@example.org sending"]);
    office.close().await;
}

#[tokio::test]
async fn a_suppressed_copy_does_not_keep_a_pause_from_ending() {
    let office = TestOffice::new().await;
    office.suppress("ada@example.org", "all").await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(20);
        p.contacts = vec![crate::support::office::contact("agent", "bo@example.org")];
    });
    let permit = permit.await;
    let before = office.notice(permit, "expires-30d").await;
    assert_eq!(before.copies(), ["ada@example.org suppressed (suppressed)", "bo@example.org pending"]);
    office.pause(permit, Some(office.today())).await;
    assert_eq!(office.notice(permit, "expires-30d").await.state, "superseded");
    office.pause(permit, None).await;
    assert_eq!(office.notice(permit, "expires-30d").await, before);
    office.close().await;
}

#[tokio::test]
async fn an_address_that_may_be_mailed_again_after_a_pause_is_mailed_and_no_letter_is_owed() {
    let office = TestOffice::new().await;
    office.suppress("ada@example.org", "all").await;
    let permit = office.permit_expiring_in(20).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org suppressed (suppressed)", "letter pending"]);
    office.pause(permit, Some(office.today())).await;
    office.sql("DELETE FROM suppressions").await;
    office.pause(permit, None).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies[0], "ada@example.org pending");
    assert!(copies[1].starts_with("letter superseded"), "{copies:?}");
    office.close().await;
}

#[tokio::test]
async fn an_archived_permit_is_told_nothing_until_it_is_restored() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let version = office.permit(permit).await.version;
    let archived = office.archive(permit).await;
    assert_eq!(archived.version, version + 1);
    assert_eq!(office.archive(permit).await, archived);
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (archived)");
    office.days_pass(1);
    assert_eq!(office.scan().await.counts.revived, 0);
    office.restore(permit).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d pending");
    office.close().await;
}

#[tokio::test]
async fn a_permit_of_another_type_goes_by_the_other_schedule() {
    let office = TestOffice::new().await;
    office
        .create_type("signs", usual_but(|steps| *steps = vec![step("expires-30d", -25), step("last-call", -5)]))
        .await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.permit_type = "signs".to_owned()).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!((notice.state.as_str(), notice.due_on), ("pending", office.in_days(-5)));
    assert_eq!(notice.send_by, office.in_days(14));

    office.create_type("none", usual_but(Vec::clear)).await;
    office.correct(permit, |p| p.permit_type = "none".to_owned()).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (step_removed)");
    office.correct(permit, |p| p.permit_type = "food".to_owned()).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d pending");
    office.close().await;
}

#[tokio::test]
async fn steps_due_when_the_term_takes_effect_are_not_owed() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(20);
        p.effective_on = Some(office.in_days(-10));
    });
    let permit = permit.await;
    assert!(office.said(permit).await.is_empty());
    office.correct(permit, |p| p.effective_on = Some(office.in_days(-11))).await;
    assert_eq!(office.said(permit).await, ["expires-30d pending"]);
    office.correct(permit, |p| p.effective_on = Some(office.in_days(-10))).await;
    assert_eq!(office.said(permit).await, ["expires-30d superseded (not_owed)"]);
    office.close().await;
}
