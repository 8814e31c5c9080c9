//! One more copy.

use permit_notifier::{
    domain::{attempt::Outcome, notice::NoticeState},
    store::{
        actions::{cancel, hold, send_copy},
        gate::GateAnswer,
    },
};

use super::{Office, TODAY, day, invalid, on, today};

#[tokio::test]
async fn the_same_address_gets_the_next_number_and_its_own_message_id() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Accepted).await;
    let (_, state) = send_copy(&mut office.connect().await, notice, None, "lost it", &today()).await.unwrap();
    assert_eq!(state, NoticeState::Pending);
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Accepted).await;
    send_copy(&mut office.connect().await, notice, Some("HOLDER-1@example.com"), "again", &today()).await.unwrap();
    let copies = "holder-1@example.com#1 sent, holder-1@example.com#2 sent, holder-1@example.com#3 pending";
    assert_eq!(office.copies(notice).await, copies);
    assert_eq!(office.ask("SELECT count(DISTINCT message_id) FROM deliveries").await, "2");
}

#[tokio::test]
async fn another_address_is_written_to_although_it_is_not_on_the_permit() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Accepted).await;
    send_copy(&mut office.connect().await, notice, Some("Lawyer@Example.COM"), "asked", &today()).await.unwrap();
    let permit = office.permit_of(notice).await;
    office.correct_on(TODAY, permit, |data| data.description = Some("a change".to_owned())).await;
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 sent, lawyer@example.com#1 pending");
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Deferred).await;
    assert!(office.copies(notice).await.ends_with("lawyer@example.com#1 pending"), "a deferred one is tried again");
}

#[tokio::test]
async fn a_copy_is_held_with_its_notice() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    hold(&mut office.connect().await, notice, "wait", &today()).await.unwrap();
    send_copy(&mut office.connect().await, notice, None, "one more", &today()).await.unwrap();
    let copies = "holder-1@example.com#1 held by_person, holder-1@example.com#2 held by_person";
    assert_eq!(office.copies(notice).await, copies);
    assert_eq!(office.ask("SELECT reason FROM notices WHERE state = 'held'").await, "wait");
}

#[tokio::test]
async fn what_may_not_go_is_recorded_with_the_reason() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Accepted).await;
    let connection = &mut office.connect().await;
    send_copy(connection, notice, None, "late", &on("2026-06-17")).await.unwrap();
    let permit = office.permit_of(notice).await;
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = Some(day(TODAY))).await;
    send_copy(connection, notice, None, "paused", &today()).await.unwrap();
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = None).await;
    office
        .run(
            "INSERT INTO suppressions (id, address, class, reason, source, created_at)
             VALUES (gen_random_uuid(), 'no@example.com', 'all', 'x', 'person', now())",
        )
        .await;
    let (_, state) = send_copy(connection, notice, Some("no@example.com"), "x", &today()).await.unwrap();
    assert_eq!(state, NoticeState::Sent);
    assert_eq!(
        office.copies(notice).await,
        "holder-1@example.com#1 sent, holder-1@example.com#2 skipped too_late, \
         holder-1@example.com#3 superseded paused, no@example.com#1 suppressed suppressed"
    );
}

#[tokio::test]
async fn a_cancelled_notice_can_be_copied_and_a_letter_too() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    let connection = &mut office.connect().await;
    cancel(connection, notice, "no", &today()).await.unwrap();
    let (_, state) = send_copy(connection, notice, None, "yes after all", &today()).await.unwrap();
    assert_eq!(state, NoticeState::Pending);
    let permit = office.permit_with("2", |data| data.holder_email = None).await;
    let letter = office.notice(permit).await;
    send_copy(connection, letter, None, "lost in the post", &today()).await.unwrap();
    assert_eq!(office.copies(letter).await, "letter#1 pending, letter#2 pending");
}

#[tokio::test]
async fn addresses_and_reasons_are_checked() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    let connection = &mut office.connect().await;
    for bad in ["", "nobody", "a@b", "\"a b\"@example.com"] {
        assert_eq!(invalid(send_copy(connection, notice, Some(bad), "x", &today()).await), "recipient");
    }
    assert_eq!(invalid(send_copy(connection, notice, None, "", &today()).await), "reason");
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 pending");
}

#[tokio::test]
async fn a_former_address_without_a_request_stays_out() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    let permit = office.permit_of(notice).await;
    office.run(&format!("UPDATE permits SET holder_email = 'new@example.com' WHERE id = '{permit}'")).await;
    let answer = office.try_send(notice, TODAY).await.map(|_| ());
    assert!(matches!(answer, Err(GateAnswer::Ended(_))), "{answer:?}");
}
