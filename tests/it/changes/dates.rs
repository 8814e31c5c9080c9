//! Correcting dates: a new date is a new key, an old one the old key.

use permit_notifier::store::StoreError;

use crate::support::{
    office::{TestOffice, contact},
    records::Notice,
};

#[tokio::test]
async fn a_date_changed_and_changed_back_is_the_same_notice_with_the_same_copies() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.sql("UPDATE deliveries SET message_id = '<first@example.org>'").await;
    let before = office.notice(permit, "expires-30d").await;
    let date = office.in_days(20);

    office.correct(permit, |p| p.expires_on = office.in_days(200)).await;
    let away = office.notice(permit, "expires-30d").await;
    assert_eq!(away.said(), "expires-30d superseded (period_changed)");
    assert!(office.open(permit).await.is_empty());

    office.correct(permit, |p| p.expires_on = date).await;
    assert_eq!(office.notice(permit, "expires-30d").await, before);
    assert_eq!(office.scan().await.counts.claimed, 0);
    office.close().await;
}

#[tokio::test]
async fn a_corrected_date_has_notices_of_its_own() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.expires_on = office.in_days(10)).await;
    assert_eq!(office.open(permit).await, ["expires-14d"]);
    let keys = office.text("SELECT notice_key FROM notices WHERE state = 'pending'").await;
    assert_eq!(keys, [format!("{permit}:expires-14d:{}", office.in_days(10))]);
    office.close().await;
}

#[tokio::test]
async fn what_was_sent_for_a_date_is_not_sent_again_when_the_date_comes_back() {
    let office = TestOffice::new().await;
    for outcome in ["accepted", "rejected", "ambiguous"] {
        let permit = office.permit_expiring_in(20).await;
        office.transport(permit, outcome).await;
        let before = office.notice(permit, "expires-30d").await;
        office.correct(permit, |p| p.expires_on = office.in_days(21)).await;
        office.transport(permit, "accepted").await;
        office.correct(permit, |p| p.expires_on = office.in_days(20)).await;
        office.scan().await;
        let now = office.notices(permit).await.into_iter().find(|notice| notice.id == before.id);
        assert_eq!(now.as_ref(), Some(&before), "{outcome}");
        assert!(office.open(permit).await.is_empty());
    }
    office.close().await;
}

#[tokio::test]
async fn what_gave_way_to_a_later_step_stays_superseded_when_the_date_comes_back() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let date = office.in_days(20);
    office.days_pass(6);
    office.scan().await;
    office.correct(permit, |p| p.expires_on = office.in_days(300)).await;
    office.correct(permit, |p| p.expires_on = date).await;
    assert_eq!(office.notice(permit, "expires-60d").await.said(), "expires-60d superseded (more_urgent_step)");
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d skipped (too_late)");
    assert_eq!(office.open(permit).await, ["expires-14d"]);
    office.close().await;
}

#[tokio::test]
async fn a_date_that_comes_back_too_late_brings_back_only_the_step_of_today() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let date = office.in_days(20);
    office.correct(permit, |p| p.expires_on = office.in_days(300)).await;
    office.days_pass(13);
    office.correct(permit, |p| p.expires_on = date).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (period_changed)");
    assert_eq!(office.open(permit).await, ["expires-7d"]);
    office.close().await;
}

#[tokio::test]
async fn a_date_in_flight_that_changed_and_changed_back_is_owed_as_if_nothing_had_been() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.transport(permit, "sending").await;
    let before = office.notice(permit, "expires-30d").await;
    office.correct(permit, |p| p.expires_on = office.in_days(200)).await;
    assert!(office.notice(permit, "expires-30d").await.is_superseded);
    office.correct(permit, |p| p.expires_on = office.in_days(20)).await;
    assert_eq!(office.notice(permit, "expires-30d").await, before);
    office.close().await;
}

#[tokio::test]
async fn steps_after_expiry_due_before_the_permit_had_this_date_are_not_owed() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(40).await;
    office.days_pass(50);
    office.scan().await;
    office.correct(permit, |p| p.expires_on = office.in_days(-3)).await;
    let mut notices = office.notices(permit).await;
    notices.retain(|notice| notice.expires_on == office.in_days(-3));
    let said: Vec<_> = notices.iter().map(Notice::said).collect();
    assert_eq!(said.len(), 7, "{said:?}");
    assert_eq!(said[6], "expires-today skipped (too_late)");
    office.close().await;
}

#[tokio::test]
async fn an_edit_that_changes_nothing_keeps_the_version() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let before = office.dump().await;
    let unchanged = office.correct(permit, |p| p.holder_name = "Ada Holder".to_owned()).await;
    assert_eq!(unchanged.version, 1);
    assert_eq!(office.dump().await, before);
    assert_eq!(office.correct(permit, |p| p.holder_name = "Ada".to_owned()).await.version, 2);
    office.close().await;
}

#[tokio::test]
async fn a_change_of_what_somebody_else_changed_meanwhile_is_refused() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.holder_name = "Ada".to_owned()).await;
    let before = office.dump().await;
    let refused = office.try_correct(permit, Some(1), |p| p.expires_on = office.in_days(90)).await;
    assert!(matches!(refused, Err(StoreError::Stale { present: 2 })), "{refused:?}");
    assert_eq!(office.dump().await, before);
    office.try_correct(permit, Some(2), |p| p.expires_on = office.in_days(90)).await.expect("the version it saw");
    office.close().await;
}

#[tokio::test]
async fn dates_in_the_wrong_order_are_refused_and_nothing_is_written() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let before = office.dump().await;
    let refused = office.try_correct(permit, None, |p| p.effective_on = Some(office.in_days(21))).await;
    assert!(matches!(refused, Err(StoreError::Invalid { field: "effective_on", .. })), "{refused:?}");
    let refused = office.try_create(|p| p.permit_type = "boats".to_owned()).await;
    assert!(matches!(refused, Err(StoreError::Invalid { field: "permit_type", .. })), "{refused:?}");
    assert_eq!(office.dump().await, before);
    office.close().await;
}

#[tokio::test]
async fn what_nobody_knows_of_is_told_when_it_is_no_longer_owed_and_when_it_is_again() {
    let office = TestOffice::new().await;
    let alone = office.permit_expiring_in(20).await;
    office.transport(alone, "ambiguous").await;
    office.renew(alone, office.in_days(400)).await;
    let told = office.notices(alone).await.into_iter().find(|notice| notice.notice_type == "expires-30d");
    assert!(told.is_some_and(|notice| notice.is_superseded && notice.state == "ambiguous"));
    let permit = office.permit_expiring_in(20).await;
    office.transport(permit, "ambiguous").await;
    office.correct(permit, |p| p.contacts.push(contact("agent", "bo@example.org"))).await;
    let before = office.notice(permit, "expires-30d").await;
    office.renew(permit, office.in_days(400)).await;
    let renewed = office.notices(permit).await.into_iter().find(|notice| notice.id == before.id).expect("it stays");
    assert_eq!((renewed.state.as_str(), renewed.is_superseded), ("ambiguous", true), "not to be sent again");
    assert_eq!(renewed.reason_code.as_deref(), Some("period_changed"));
    office.correct(permit, |p| p.expires_on = office.in_days(20)).await;
    let back = office.notices(permit).await.into_iter().find(|notice| notice.id == before.id).expect("it stays");
    assert!(!back.is_superseded, "owed again");
    let copies: Vec<_> = back.deliveries.iter().map(|d| (d.recipient_key.as_str(), d.state.as_str())).collect();
    assert_eq!(copies, [("ada@example.org", "ambiguous"), ("bo@example.org", "pending")]);
    office.close().await;
}
