//! Renewing: a new term, its confirmation, and what that makes needless.

use permit_notifier::{
    domain::{notice::RENEWED, permit::PermitStatus},
    store::{StoreError, permits::list_terms},
};

use crate::support::{
    office::{TestOffice, usual_but},
    records::Notice,
};

#[tokio::test]
async fn a_renewal_is_confirmed_and_ends_what_was_open_of_the_old_term() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let renewed = office.renew(permit, office.in_days(385)).await;
    assert_eq!((renewed.version, renewed.data.expires_on), (2, office.in_days(385)));
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (period_changed)");
    let confirmation = office.notice(permit, RENEWED).await;
    assert_eq!(confirmation.said(), "renewed pending");
    assert_eq!((confirmation.due_on, confirmation.send_by), (office.today(), office.in_days(7)));
    assert_eq!(confirmation.class, "courtesy");

    let terms = list_terms(&mut *office.connection().await, permit).await.expect("the terms");
    let dates: Vec<_> = terms.iter().map(|term| (term.number, term.expires_on)).collect();
    assert_eq!(dates, [(1, office.in_days(20)), (2, office.in_days(385))]);
    office.close().await;
}

#[tokio::test]
async fn steps_of_the_new_term_that_are_due_already_are_told_by_the_confirmation() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(5).await;
    office.renew(permit, office.in_days(40)).await;
    let mut said: Vec<_> = office.notices(permit).await;
    said.retain(|notice| notice.expires_on == office.in_days(40));
    let said: Vec<_> = said.iter().map(Notice::said).collect();
    assert_eq!(said, ["expires-90d superseded (renewed)", "expires-60d superseded (renewed)", "renewed pending"]);
    office.days_pass(10);
    office.scan().await;
    assert_eq!(office.open(permit).await, ["expires-30d"]);
    office.close().await;
}

#[tokio::test]
async fn a_confirmation_goes_no_later_than_the_new_date() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(-5).await;
    office.renew(permit, office.in_days(3)).await;
    assert_eq!(office.notice(permit, RENEWED).await.send_by, office.in_days(3));
    office.close().await;
}

#[tokio::test]
async fn the_same_renewal_again_changes_nothing() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let renewed = office.renew(permit, office.in_days(385)).await;
    let before = office.dump().await;
    assert_eq!(office.renew(permit, office.in_days(385)).await, renewed);
    assert_eq!(office.dump().await, before);
    office.close().await;
}

#[tokio::test]
async fn an_earlier_or_past_date_and_an_archived_permit_are_not_renewed() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let expired = office.permit_expiring_in(-20).await;
    let archived = office.permit_expiring_in(20).await;
    office.archive(archived).await;
    let before = office.dump().await;
    let refused = office.try_renew(permit, office.in_days(19)).await;
    assert!(matches!(refused, Err(StoreError::NotLater { .. })), "{refused:?}");
    let refused = office.try_renew(expired, office.in_days(-1)).await;
    assert!(matches!(refused, Err(StoreError::Invalid { field: "expires_on", .. })), "{refused:?}");
    let refused = office.try_renew(archived, office.in_days(385)).await;
    assert!(matches!(refused, Err(StoreError::WrongState { .. })), "{refused:?}");
    assert_eq!(office.dump().await, before);
    office.close().await;
}

#[tokio::test]
async fn without_an_address_the_steps_are_owed_as_usual_and_the_confirmation_is_skipped() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.holder_email = None;
        p.expires_on = office.in_days(5);
    });
    let permit = permit.await;
    office.renew(permit, office.in_days(40)).await;
    assert_eq!(office.notice(permit, RENEWED).await.said(), "renewed skipped (no_address)");
    assert_eq!(office.notice(permit, "expires-60d").await.copies(), ["letter pending"]);
    office.close().await;
}

#[tokio::test]
async fn a_holder_who_declined_courtesies_is_told_the_steps_and_not_the_renewal() {
    let office = TestOffice::new().await;
    office.suppress("ada@example.org", "courtesy").await;
    let permit = office.permit_expiring_in(5).await;
    office.renew(permit, office.in_days(40)).await;
    assert_eq!(office.notice(permit, RENEWED).await.said(), "renewed skipped (no_address)");
    assert_eq!(office.notice(permit, "expires-60d").await.copies(), ["ada@example.org pending"]);
    office.close().await;
}

#[tokio::test]
async fn a_confirmation_that_is_switched_off_is_not_recorded() {
    let office = TestOffice::new().await;
    office.reschedule("food", usual_but(|steps| steps.retain(|step| step.offset_days.is_some()))).await;
    let permit = office.permit_expiring_in(5).await;
    office.renew(permit, office.in_days(40)).await;
    assert_eq!(office.open(permit).await, ["expires-60d"]);
    office.close().await;
}

#[tokio::test]
async fn a_date_that_is_only_corrected_is_not_confirmed() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.expires_on = office.in_days(385)).await;
    assert_eq!(office.said(permit).await.len(), 3);
    assert!(office.open(permit).await.is_empty());
    office.close().await;
}

#[tokio::test]
async fn a_renewal_taken_back_and_made_again_is_confirmed_by_the_same_notice() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.renew(permit, office.in_days(385)).await;
    let before = office.notice(permit, RENEWED).await;
    office.correct(permit, |p| p.expires_on = office.in_days(20)).await;
    assert_eq!(office.notice(permit, RENEWED).await.said(), "renewed superseded (period_changed)");
    assert_eq!(office.open(permit).await, ["expires-30d"]);
    office.renew(permit, office.in_days(385)).await;
    assert_eq!(office.notice(permit, RENEWED).await, before);
    assert_eq!(office.open(permit).await, [RENEWED]);
    office.close().await;
}

#[tokio::test]
async fn renewing_a_revoked_permit_is_recorded_and_tells_nobody() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.set_status(permit, PermitStatus::Revoked).await;
    office.renew(permit, office.in_days(40)).await;
    assert!(office.open(permit).await.is_empty());
    office.set_status(permit, PermitStatus::Active).await;
    assert_eq!(office.open(permit).await, ["expires-60d"]);
    office.close().await;
}

#[tokio::test]
async fn the_issue_date_of_the_old_term_does_not_hold_back_the_steps_of_the_new_one() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.holder_email = None;
        p.issued_on = Some(office.in_days(-10));
        p.expires_on = office.in_days(5);
    });
    let permit = permit.await;
    assert_eq!(office.open(permit).await, ["expires-7d"]);
    office.renew(permit, office.in_days(40)).await;
    assert_eq!(office.open(permit).await, ["expires-60d"]);
    office.close().await;
}
