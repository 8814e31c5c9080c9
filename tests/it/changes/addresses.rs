//! Copies follow the addresses of the permit.

use permit_notifier::domain::notice::NoticeClass;

use crate::support::office::{TestOffice, contact, usual_but};

#[tokio::test]
async fn the_holder_and_each_contact_get_one_copy_and_each_address_only_one() {
    let office = TestOffice::new().await;
    office.suppress("dan@example.org", "all").await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(20);
        p.contacts = vec![
            contact("agent", "bo@example.org"),
            contact("owner", "ADA@Example.org"),
            contact("cook", "Bo@example.org"),
            contact("guard", "dan@example.org"),
        ];
    });
    let notice = office.notice(permit.await, "expires-30d").await;
    assert_eq!(
        notice.copies(),
        ["ada@example.org pending", "bo@example.org pending", "dan@example.org suppressed (suppressed)"]
    );
    let roles: Vec<_> = notice.deliveries.iter().map(|d| d.role.as_str()).collect();
    assert_eq!(roles, ["holder", "agent", "guard"]);
    office.close().await;
}

#[tokio::test]
async fn a_new_address_gets_a_copy_and_the_old_one_ends() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let before = office.notice(permit, "expires-30d").await;
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.copies(), ["ada@example.org superseded (address_changed)", "eve@example.org pending"]);
    assert_eq!(notice.said(), "expires-30d pending");

    office.correct(permit, |p| p.holder_email = "ada@example.org".parse().ok()).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.copies(), ["ada@example.org pending", "eve@example.org superseded (address_changed)"]);
    assert_eq!(notice.deliveries[0], before.deliveries[0]);
    office.close().await;
}

#[tokio::test]
async fn a_held_notice_stays_held_when_the_address_changes() {
    let mut office = TestOffice::new().await;
    let permit = office.permit_expiring_in(31).await;
    let other = office.permit_expiring_in(31).await;
    office.days_pass(1);
    office.rules.claim_limit = 1;
    office.scan().await;
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    let notice = office.notice(permit, "expires-30d").await;
    assert_eq!(notice.said(), "expires-30d held (claim_limit)");
    assert_eq!(notice.copies(), ["ada@example.org superseded (address_changed)", "eve@example.org held (claim_limit)"]);
    assert_eq!(office.notice(other, "expires-30d").await.state, "held");
    office.close().await;
}

#[tokio::test]
async fn a_letter_is_owed_only_while_nobody_can_be_mailed() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.holder_email = None;
        p.expires_on = office.in_days(20);
    });
    let permit = permit.await;
    assert_eq!(office.notice(permit, "expires-30d").await.copies(), ["letter pending"]);
    office.correct(permit, |p| p.holder_email = "ada@example.org".parse().ok()).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["letter superseded (address_changed)", "ada@example.org pending"]);
    office.correct(permit, |p| p.holder_email = None).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["letter pending", "ada@example.org superseded (address_changed)"]);
    office.correct(permit, |p| p.contacts = vec![contact("agent", "bo@example.org")]).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies[0], "letter superseded (address_changed)");
    assert_eq!(copies[2], "bo@example.org pending");
    office.close().await;
}

#[tokio::test]
async fn a_new_address_that_must_not_be_mailed_is_shown_and_a_letter_is_owed() {
    let office = TestOffice::new().await;
    office.suppress("eve@example.org", "all").await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    let mut copies = office.notice(permit, "expires-30d").await.copies();
    copies.sort();
    assert_eq!(
        copies,
        ["ada@example.org superseded (address_changed)", "eve@example.org suppressed (suppressed)", "letter pending"]
    );
    office.close().await;
}

#[tokio::test]
async fn a_courtesy_without_an_address_is_skipped_and_its_last_address_gone_it_waits() {
    let office = TestOffice::new().await;
    let kind = |steps: &mut Vec<permit_notifier::domain::schedule::Step>| {
        for step in steps.iter_mut() {
            step.class = NoticeClass::Courtesy;
        }
    };
    office.create_type("kind", usual_but(kind)).await;
    let silent = office.create_permit(|p| {
        p.permit_type = "kind".to_owned();
        p.holder_email = None;
        p.expires_on = office.in_days(20);
    });
    let silent = silent.await;
    assert_eq!(office.notice(silent, "expires-30d").await.said(), "expires-30d skipped (no_address)");
    let permit = office.create_permit(|p| {
        p.permit_type = "kind".to_owned();
        p.expires_on = office.in_days(20);
    });
    let permit = permit.await;
    office.correct(permit, |p| p.holder_email = None).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d superseded (address_changed)");
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d pending");
    office.close().await;
}

#[tokio::test]
async fn a_contact_that_comes_gets_a_copy_and_one_that_goes_loses_it() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.contacts = vec![contact("agent", "bo@example.org")]).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org pending", "bo@example.org pending"]);
    office.correct(permit, |p| p.contacts.clear()).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org pending", "bo@example.org superseded (address_changed)"]);
    office.close().await;
}

#[tokio::test]
async fn a_second_contact_in_a_role_gets_a_copy_of_its_own() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.contacts = vec![contact("agent", "bo@example.org")]).await;
    office.correct(permit, |p| p.contacts.push(contact("agent", "cy@example.org"))).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org pending", "bo@example.org pending", "cy@example.org pending"]);
    office.close().await;
}

#[tokio::test]
async fn an_address_in_two_roles_keeps_its_copy_while_one_role_keeps_it() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(20);
        p.contacts = vec![contact("agent", "ada@example.org")];
    });
    let permit = permit.await;
    assert_eq!(office.notice(permit, "expires-30d").await.copies(), ["ada@example.org pending"]);
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org pending", "eve@example.org pending"]);
    office.close().await;
}

#[tokio::test]
async fn whoever_takes_over_a_role_whose_copy_was_sent_is_not_mailed_again() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.transport(permit, "accepted").await;
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    assert_eq!(office.notice(permit, "expires-30d").await.copies(), ["ada@example.org sent"]);
    office.correct(permit, |p| p.contacts = vec![contact("agent", "bo@example.org")]).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org sent", "bo@example.org pending"]);
    office.close().await;
}

#[tokio::test]
async fn a_new_address_after_a_refused_one_is_mailed() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.transport(permit, "rejected").await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d failed");
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org failed", "eve@example.org pending"]);
    office.close().await;
}

#[tokio::test]
async fn a_copy_to_a_former_address_that_ended_unsent_is_replaced_by_the_next_scan() {
    let office = TestOffice::new().await;
    let permit = office.create_permit(|p| {
        p.expires_on = office.in_days(20);
        p.contacts = vec![contact("agent", "bo@example.org"), contact("agent", "cy@example.org")];
    });
    let permit = permit.await;
    office.transport(permit, "sending").await;
    office.correct(permit, |p| p.contacts[0] = contact("agent", "dee@example.org")).await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(copies, ["ada@example.org sending", "bo@example.org sending", "cy@example.org sending"]);
    // As settling has it when the owner could not say so any more.
    let ended = "UPDATE attempts SET outcome = 'not_sent', finished_at = started_at;
         UPDATE deliveries SET state = 'superseded', reason_code = 'address_changed' WHERE recipient_key LIKE 'bo@%';
         UPDATE deliveries SET state = 'pending' WHERE state = 'sending'";
    office.sql(ended).await;
    office.scan().await;
    let copies = office.notice(permit, "expires-30d").await.copies();
    assert_eq!(
        copies,
        [
            "ada@example.org pending",
            "bo@example.org superseded (address_changed)",
            "cy@example.org pending",
            "dee@example.org pending"
        ]
    );
    office.close().await;
}

#[tokio::test]
async fn a_notice_that_waits_for_an_address_does_not_go_while_the_permit_is_paused_or_its_step_is_gone() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.renew(permit, office.in_days(385)).await;
    office.correct(permit, |p| p.holder_email = None).await;
    assert_eq!(office.notice(permit, "renewed").await.said(), "renewed superseded (address_changed)");
    office.pause(permit, Some(office.today())).await;
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    assert!(office.open(permit).await.is_empty());
    office.correct(permit, |p| p.holder_email = None).await;
    office.pause(permit, None).await;
    office.reschedule("food", usual_but(|steps| steps.retain(|step| step.offset_days.is_some()))).await;
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    assert!(office.open(permit).await.is_empty());
    office.reschedule("food", usual_but(|_| {})).await;
    office.scan().await;
    assert_eq!(office.notice(permit, "renewed").await.copies()[1], "eve@example.org pending");
    office.close().await;
}

#[tokio::test]
async fn a_notice_whose_new_copy_was_too_late_says_so_and_not_that_it_waits_for_an_address() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    office.correct(permit, |p| p.holder_email = "eve@example.org".parse().ok()).await;
    office.days_pass(6);
    office.scan().await;
    assert_eq!(office.notice(permit, "expires-30d").await.said(), "expires-30d skipped (too_late)");
    office.close().await;
}
