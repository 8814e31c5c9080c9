//! Notices of which one copy is over and another is not: what one path knows of them the others know too.

use permit_notifier::{
    domain::{
        attempt::{Outcome, Resolution},
        notice::NoticeState,
    },
    store::{
        actions::{
            HeldBy, Posting, Released, Resolving, cancel, give_up, hold, posted, release_held, resolve, send_copy,
        },
        changes::{self, ChangeRules},
        memory::hold_pending,
        permits::{Contact, PermitData},
    },
};
use uuid::Uuid;

use super::{Office, TODAY, day, moment, release::held_by_scan, today};

fn contact(email: &str) -> Contact {
    Contact {
        name: "Bob".to_owned(),
        email: Some(email.parse().unwrap()),
        role: "agent".to_owned(),
        language: "en".to_owned(),
    }
}

fn pause(until: Option<&str>) -> impl FnOnce(&mut PermitData) + Send {
    let until = until.map(day);
    move |data| data.notices_paused_until = until
}

/// A notice with the copies of a holder and an agent, of which one is handed over.
async fn half_sent(office: &Office) -> (Uuid, Uuid) {
    let permit = office.permit_with("1", |data| data.contacts.push(contact("bob@example.com"))).await;
    let notice = office.notice(permit).await;
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Accepted).await;
    (permit, notice)
}

#[tokio::test]
async fn what_a_restore_held_of_a_notice_that_is_sent_in_part_comes_back_held() {
    let office = Office::new().await;
    let (permit, notice) = half_sent(&office).await;
    hold_pending(&mut office.connect().await, moment(TODAY).now).await.unwrap();
    assert_eq!(office.state(notice).await, "held memory_went_back");
    office.correct_on(TODAY, permit, pause(Some(TODAY))).await;
    office.correct_on(TODAY, permit, pause(None)).await;
    assert_eq!(office.state(notice).await, "held memory_went_back");
}

/// Gives whoever has the copy that is held another address, or none.
async fn address_of_the_held(office: &Office) -> impl Fn(&mut PermitData, Option<&str>) + Send + Copy {
    let is_agents = office.ask("SELECT recipient_key FROM deliveries WHERE state = 'held'").await.starts_with("bob");
    move |data, email| {
        if is_agents {
            data.contacts = email.map(contact).into_iter().collect();
        } else {
            data.holder_email = email.map(|email| email.parse().unwrap());
        }
    }
}

#[tokio::test]
async fn what_a_restore_held_for_an_address_that_left_is_held_for_the_next() {
    let office = Office::new().await;
    let (permit, notice) = half_sent(&office).await;
    hold_pending(&mut office.connect().await, moment(TODAY).now).await.unwrap();
    let give = address_of_the_held(&office).await;
    office.correct_on(TODAY, permit, move |data| give(data, None)).await;
    assert_eq!(office.state(notice).await, "sent");
    office.correct_on(TODAY, permit, move |data| give(data, Some("new@example.com"))).await;
    assert_eq!(office.state(notice).await, "held memory_went_back", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn who_moved_while_what_was_held_was_paused_is_held() {
    let office = Office::new().await;
    let (permit, notice) = half_sent(&office).await;
    hold_pending(&mut office.connect().await, moment(TODAY).now).await.unwrap();
    let give = address_of_the_held(&office).await;
    office.correct_on(TODAY, permit, pause(Some(TODAY))).await;
    office.correct_on(TODAY, permit, move |data| give(data, Some("new@example.com"))).await;
    office.correct_on(TODAY, permit, pause(None)).await;
    assert_eq!(office.state(notice).await, "held memory_went_back", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn what_was_held_beside_a_copy_in_flight_comes_back_held() {
    let office = Office::new().await;
    let permit = office.permit_with("1", |data| data.contacts.push(contact("bob@example.com"))).await;
    let notice = office.notice(permit).await;
    let flight = office.send(notice).await;
    office.run("UPDATE deliveries SET state = 'held', reason_code = 'owner_died' WHERE state = 'pending'").await;
    office.correct_on(TODAY, permit, pause(Some(TODAY))).await;
    office.settle(flight, Outcome::Accepted).await;
    office.correct_on(TODAY, permit, pause(None)).await;
    assert_eq!(office.state(notice).await, "held owner_died", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn giving_up_what_failed_in_flight_leaves_the_copies_that_a_pause_took_back() {
    let office = Office::new().await;
    let permit = office.permit_with("1", |data| data.contacts.push(contact("bob@example.com"))).await;
    let notice = office.notice(permit).await;
    let flight = office.send(notice).await;
    office.correct_on(TODAY, permit, pause(Some(TODAY))).await;
    office.settle(flight, Outcome::Rejected).await;
    give_up(&mut office.connect().await, notice, "moved away", &today()).await.unwrap();
    office.correct_on(TODAY, permit, pause(None)).await;
    assert_eq!(office.state(notice).await, "pending", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn what_failed_in_flight_says_why_after_the_pause() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    let permit = office.permit_of(notice).await;
    let flight = office.send(notice).await;
    office.correct_on(TODAY, permit, pause(Some(TODAY))).await;
    office.settle(flight, Outcome::Rejected).await;
    office.correct_on(TODAY, permit, pause(None)).await;
    assert_eq!(office.state(notice).await, "failed refused");
}

#[tokio::test]
async fn what_is_cancelled_after_a_change_of_address_is_not_owed_to_the_next() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    let permit = office.permit_of(notice).await;
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("new@example.com".parse().unwrap())).await;
    let state = cancel(&mut office.connect().await, notice, "sold", &today()).await.unwrap();
    assert_eq!(state, NoticeState::Cancelled);
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("third@example.com".parse().unwrap())).await;
    assert_eq!(office.state(notice).await, "cancelled by_person", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn what_a_scan_held_and_is_cancelled_after_a_change_of_address_is_not_owed_to_the_next() {
    let office = Office::new().await;
    let scan = held_by_scan(&office, 1).await;
    let permit: Uuid = office.ask("SELECT id FROM permits").await.parse().unwrap();
    let notice = office.notice(permit).await;
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("new@example.com".parse().unwrap())).await;
    let done =
        release_held(&mut office.connect().await, HeldBy::Scan(scan), true, "no", "tests", &today(), |_| {}).await;
    assert_eq!(done.unwrap(), Released { cancelled: 1, ..Released::default() });
    assert_eq!(office.state(notice).await, "cancelled by_person");
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("third@example.com".parse().unwrap())).await;
    assert_eq!(office.state(notice).await, "cancelled by_person", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn a_mail_beside_a_letter_is_held_after_a_restore_and_found_by_the_release() {
    let office = Office::new().await;
    let permit = office.permit_with("1", |data| data.holder_email = None).await;
    let notice = office.notice(permit).await;
    let connection = &mut office.connect().await;
    send_copy(connection, notice, Some("other@example.com"), "she asked", &today()).await.unwrap();
    hold_pending(connection, moment(TODAY).now).await.unwrap();
    let posting = Posting { delivery: None, posted_on: day(TODAY), tracking: None, by: "Ann" };
    posted(connection, notice, posting, &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "held memory_went_back", "{}", office.copies(notice).await);
    let done = release_held(connection, HeldBy::Restored, false, "looked", "tests", &today(), |_| {}).await;
    assert_eq!(done.unwrap(), Released { released: 1, ..Released::default() });
}

#[tokio::test]
async fn a_copy_that_a_lost_owner_puts_off_joins_what_a_person_holds() {
    let office = Office::new().await;
    let permit = office.permit_with("1", |data| data.contacts.push(contact("bob@example.com"))).await;
    let notice = office.notice(permit).await;
    let flight = office.send(notice).await;
    office.run("UPDATE processes SET renewed_at = renewed_at - interval '1 hour'").await;
    permit_notifier::store::recovery::recover(&mut office.connect().await, moment(TODAY).now).await.unwrap();
    hold(&mut office.connect().await, notice, "the holder called", &today()).await.unwrap();
    office.settle(flight, Outcome::Deferred).await;
    assert_eq!(office.state(notice).await, "held by_person", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn a_resolved_copy_joins_what_a_restore_holds() {
    let office = Office::new().await;
    let permit = office.permit_with("1", |data| data.contacts.push(contact("bob@example.com"))).await;
    let notice = office.notice(permit).await;
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Ambiguous).await;
    hold_pending(&mut office.connect().await, moment(TODAY).now).await.unwrap();
    assert_eq!(office.state(notice).await, "held memory_went_back");
    let resolving = Resolving { delivery: None, outcome: Resolution::NotDelivered, reason: "asked", by: "Ann" };
    resolve(&mut office.connect().await, notice, resolving, &today()).await.unwrap();
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Accepted).await;
    assert_eq!(office.state(notice).await, "held memory_went_back", "{}", office.copies(notice).await);
}

#[tokio::test]
async fn what_comes_back_held_does_not_call_the_brake() {
    let office = Office::new().await;
    office.run("UPDATE schedule_steps SET class = 'courtesy' WHERE notice_type = 'expires-60d'").await;
    let permit = office.permit("1").await;
    office
        .run(
            "UPDATE deliveries SET state = 'held', reason_code = 'claim_limit'
             WHERE notice_id = (SELECT id FROM notices WHERE notice_type = 'expires-30d');
             UPDATE notices SET state = 'held', reason_code = 'claim_limit' WHERE notice_type = 'expires-30d'",
        )
        .await;
    office.correct_on(TODAY, permit, pause(Some(TODAY))).await;
    // One of the two becomes pending, which is as many as may.
    let rules = ChangeRules { claim_limit: 1, ..ChangeRules::at(moment(TODAY), None) };
    changes::correct(&mut office.connect().await, permit, None, pause(None), &rules).await.unwrap();
    assert_eq!(office.state(office.notice(permit).await).await, "held claim_limit");
    assert_eq!(office.state(office.notice_of(permit, "expires-60d").await).await, "pending");
}
