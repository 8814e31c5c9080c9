//! Resolving what nobody could know.

use permit_notifier::{
    domain::{
        attempt::{Outcome, Resolution},
        notice::NoticeState,
    },
    store::{
        StoreError,
        actions::{ActionRules, Resolving, hold, resolve, resolve_by_policy, send_copy},
        recovery::recover,
    },
};
use uuid::Uuid;

use super::{Flight, Office, TODAY, day, hours, invalid, on, today, wrong_state};

fn found(outcome: Resolution) -> Resolving<'static> {
    Resolving { delivery: None, outcome, reason: "the holder called", by: "ann@example.org" }
}

async fn ambiguous(office: &Office) -> Uuid {
    office.ended("1", Outcome::Ambiguous).await
}

#[tokio::test]
async fn delivered_makes_it_sent_with_who_how_and_when() {
    let office = Office::new().await;
    let notice = ambiguous(&office).await;
    let state = resolve(&mut office.connect().await, notice, found(Resolution::Delivered), &today()).await.unwrap();
    assert_eq!(state, NoticeState::Sent);
    assert_eq!(office.attempts(notice).await, "1 ambiguous delivered");
    let words =
        office.ask("SELECT concat_ws('|', resolved_by, resolution_reason, resolved_at IS NOT NULL) FROM attempts");
    assert_eq!(words.await, "ann@example.org|the holder called|t");
}

#[tokio::test]
async fn not_delivered_goes_through_the_gate_again() {
    let office = Office::new().await;
    let notice = ambiguous(&office).await;
    resolve(&mut office.connect().await, notice, found(Resolution::NotDelivered), &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "pending");
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Accepted).await;
    assert_eq!(office.attempts(notice).await, "1 ambiguous not_delivered, 2 accepted");
    let why = wrong_state(resolve(&mut office.connect().await, notice, found(Resolution::Delivered), &today()).await);
    assert!(why.contains("sent"), "{why}");
}

#[tokio::test]
async fn not_delivered_of_a_superseded_notice_is_superseded_and_comes_back_with_it() {
    let office = Office::new().await;
    let notice = ambiguous(&office).await;
    let permit = office.permit_of(notice).await;
    office
        .run(&format!(
            "UPDATE notices SET superseded_at = now(), reason_code = 'paused' WHERE id = '{notice}';
         UPDATE permits SET notices_paused_until = '{TODAY}' WHERE id = '{permit}'"
        ))
        .await;
    resolve(&mut office.connect().await, notice, found(Resolution::NotDelivered), &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "superseded paused");
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = None).await;
    assert_eq!(office.state(notice).await, "pending");
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 pending");
}

#[tokio::test]
async fn not_delivered_to_a_former_address_makes_a_copy_for_the_present_one() {
    let office = Office::new().await;
    let notice = ambiguous(&office).await;
    let permit = office.permit_of(notice).await;
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("new@example.com".parse().unwrap())).await;
    let before = office.copies(notice).await;
    resolve(&mut office.connect().await, notice, found(Resolution::NotDelivered), &today()).await.unwrap();
    assert!(before.starts_with("holder-1@example.com#1 ambiguous"), "{before}");
    let after = "holder-1@example.com#1 superseded address_changed, new@example.com#1 pending";
    assert_eq!(office.copies(notice).await, after);
}

#[tokio::test]
async fn not_delivered_of_a_notice_that_a_person_holds_is_held_too() {
    let office = Office::new().await;
    let notice = ambiguous(&office).await;
    send_copy(&mut office.connect().await, notice, None, "again", &today()).await.unwrap();
    hold(&mut office.connect().await, notice, "stop", &today()).await.unwrap();
    let state = resolve(&mut office.connect().await, notice, found(Resolution::NotDelivered), &today()).await.unwrap();
    assert_eq!(state, NoticeState::Held);
    assert_eq!(office.ask("SELECT count(*) FROM deliveries WHERE state = 'held'").await, "2");
}

#[tokio::test]
async fn several_need_to_be_told_apart() {
    let office = Office::new().await;
    let notice = ambiguous(&office).await;
    send_copy(&mut office.connect().await, notice, Some("else@example.com"), "again", &today()).await.unwrap();
    let flight = office.send(notice).await;
    let chosen = Resolving { delivery: Some(flight.delivery_id), ..found(Resolution::Delivered) };
    let done = resolve(&mut office.connect().await, notice, chosen, &today()).await;
    assert!(matches!(done, Err(StoreError::BeingSent)), "{done:?}");
    office.settle(flight, Outcome::Ambiguous).await;
    let connection = &mut office.connect().await;
    assert_eq!(invalid(resolve(connection, notice, found(Resolution::Delivered), &today()).await), "delivery_id");
    let nobody = Resolving { delivery: Some(Uuid::nil()), ..chosen };
    let done = resolve(connection, notice, nobody, &today()).await;
    assert!(matches!(done, Err(StoreError::NotFound("delivery"))), "{done:?}");
    assert_eq!(invalid(resolve(connection, notice, Resolving { by: "", ..chosen }, &today()).await), "by");
    resolve(connection, notice, chosen, &today()).await.unwrap();
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 ambiguous, else@example.com#1 sent");
    let why = wrong_state(resolve(connection, notice, chosen, &today()).await);
    assert!(why.contains("sent"), "{why}");
}

#[tokio::test]
async fn the_policy_resends_what_is_old_and_may_still_go() {
    let office = Office::new().await;
    let notice = ambiguous(&office).await;
    let connection = &mut office.connect().await;
    let at = |offset: i64| ActionRules {
        moment: permit_notifier::store::Moment { now: today().moment.now + hours(offset), today: day(TODAY) },
        ..today()
    };
    assert_eq!(resolve_by_policy(connection, hours(4), &at(3)).await.unwrap(), 0);
    assert_eq!(
        resolve_by_policy(connection, hours(4), &on("2026-06-20")).await.unwrap(),
        0,
        "it is too late to resend"
    );
    assert_eq!(resolve_by_policy(connection, hours(4), &at(4)).await.unwrap(), 1);
    assert_eq!(resolve_by_policy(connection, hours(4), &at(5)).await.unwrap(), 0);
    assert_eq!(office.state(notice).await, "pending");
    assert_eq!(office.ask("SELECT resolved_by || ' ' || resolution FROM attempts").await, "policy not_delivered");
    assert!(office.ask("SELECT resolution_reason FROM attempts").await.contains("4 hours"));
}

/// A notice whose owner was taken for dead in the midst of sending, with no sign of life for so many minutes (at least
/// the ten of its lease).
async fn lost(office: &Office, number: &str, silent_minutes: u32) -> (Uuid, Flight) {
    let notice = office.pending(number).await;
    let flight = office.send(notice).await;
    silent(office, silent_minutes).await;
    recover(&mut office.connect().await, today().moment.now).await.unwrap();
    assert_eq!(office.attempts(notice).await, "1 ambiguous");
    (notice, flight)
}

async fn silent(office: &Office, minutes: u32) {
    office.run(&format!("UPDATE processes SET renewed_at = clock_timestamp() - interval '{minutes} minutes'")).await;
}

#[tokio::test]
async fn what_a_lost_owner_left_is_not_denied_while_it_may_still_wait_for_the_reply() {
    let office = Office::new().await;
    let (notice, _) = lost(&office, "1", 11).await;
    let connection = &mut office.connect().await;
    let why = wrong_state(resolve(connection, notice, found(Resolution::NotDelivered), &today()).await);
    assert!(why.contains("from 2026-06-01T09:0") && why.contains("Z on, in 9 min,"), "{why}");
    assert_eq!((office.attempts(notice).await, office.state(notice).await), ("1 ambiguous".into(), "ambiguous".into()));
    // Business time may have been moved; the owner waits in real time.
    wrong_state(resolve(connection, notice, found(Resolution::NotDelivered), &on("2026-06-03")).await);
    let nobody = Resolving { by: "", ..found(Resolution::NotDelivered) };
    wrong_state(resolve(connection, notice, nobody, &today()).await);
    // And it may stand still.
    silent(&office, 20).await;
    resolve(connection, notice, found(Resolution::NotDelivered), &today()).await.unwrap();
    assert_eq!(office.attempts(notice).await, "1 ambiguous not_delivered");
    assert_eq!(office.state(notice).await, "pending");
}

#[tokio::test]
async fn what_a_lost_owner_left_is_confirmed_at_once_and_denied_at_once_when_the_owner_ended_in_order() {
    let office = Office::new().await;
    let (notice, _) = lost(&office, "1", 11).await;
    let connection = &mut office.connect().await;
    resolve(connection, notice, found(Resolution::Delivered), &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "sent");
    let (notice, _) = lost(&office, "2", 11).await;
    office.run("UPDATE processes SET ended_at = clock_timestamp()").await;
    resolve(connection, notice, found(Resolution::NotDelivered), &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "pending");
}

#[tokio::test]
async fn the_policy_waits_for_a_lost_owner_too() {
    let office = Office::new().await;
    let (waits, _) = lost(&office, "1", 11).await;
    let goes = office.ended("2", Outcome::Ambiguous).await;
    let connection = &mut office.connect().await;
    let moment = permit_notifier::store::Moment { now: today().moment.now + hours(2), today: day(TODAY) };
    let later = ActionRules { moment, ..today() };
    assert_eq!(resolve_by_policy(connection, hours(1), &later).await.unwrap(), 1);
    assert_eq!((office.state(waits).await, office.state(goes).await), ("ambiguous".into(), "pending".into()));
    silent(&office, 20).await;
    assert_eq!(resolve_by_policy(connection, hours(1), &later).await.unwrap(), 1);
    assert_eq!(office.state(waits).await, "pending");
}

#[tokio::test]
async fn an_owner_that_was_only_slow_does_not_overwrite_a_resolution() {
    let office = Office::new().await;
    let (notice, flight) = lost(&office, "1", 20).await;
    resolve(&mut office.connect().await, notice, found(Resolution::NotDelivered), &today()).await.unwrap();
    office.settle(flight, Outcome::Accepted).await;
    assert_eq!(office.attempts(notice).await, "1 ambiguous not_delivered");
    assert_eq!(office.state(notice).await, "pending");
    assert!(office.ask("SELECT late_result FROM attempts").await.starts_with("accepted"));
}
