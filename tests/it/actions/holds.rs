//! Holding and cancelling: the effect, and that a person's hold survives what happens to the permit.

use permit_notifier::{
    domain::notice::NoticeState,
    store::actions::{cancel, hold, release},
};

use super::{Office, TODAY, day, today};

#[tokio::test]
async fn held_by_a_person_says_so_and_is_not_leased() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    let mut connection = office.connect().await;
    let boot = office.boot(&mut connection).await;
    let leased = office.request(&mut connection, boot, notice, today().moment.now).await;
    assert!(leased.is_some(), "it is leased before the hold");
    let state = hold(&mut connection, notice, "the holder called", &today()).await.unwrap();
    assert_eq!(state, NoticeState::Held);
    assert_eq!(office.state(notice).await, "held by_person");
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 held by_person");
    assert_eq!(office.ask("SELECT reason FROM notices WHERE state = 'held'").await, "the holder called");
    assert_eq!(office.ask("SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL").await, "0");
    assert!(office.request(&mut connection, boot, notice, today().moment.now).await.is_none());
}

#[tokio::test]
async fn cancelled_stays_cancelled_through_a_pause() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let notice = office.notice(permit).await;
    let state = cancel(&mut office.connect().await, notice, "sold the shop", &today()).await.unwrap();
    assert_eq!(state, NoticeState::Cancelled);
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = Some(day(TODAY))).await;
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = None).await;
    assert_eq!(office.state(notice).await, "cancelled by_person");
    assert_eq!(office.ask("SELECT reason FROM notices WHERE state = 'cancelled'").await, "sold the shop");
}

#[tokio::test]
async fn a_hold_survives_a_pause_and_a_new_address() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let notice = office.notice(permit).await;
    hold(&mut office.connect().await, notice, "the holder called", &today()).await.unwrap();
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = Some(day(TODAY))).await;
    assert_eq!(office.state(notice).await, "superseded paused");
    office
        .correct_on(TODAY, permit, |data| {
            data.notices_paused_until = None;
            data.contacts.push(permit_notifier::store::permits::Contact {
                name: "Bob".to_owned(),
                email: Some("bob@example.com".parse().unwrap()),
                role: "agent".to_owned(),
                language: "en".to_owned(),
            });
        })
        .await;
    assert_eq!(office.state(notice).await, "held by_person");
    let copies = "holder-1@example.com#1 held by_person, bob@example.com#1 held by_person";
    assert_eq!(office.copies(notice).await, copies);
    assert_eq!(office.ask(&format!("SELECT reason FROM notices WHERE id = '{notice}'")).await, "the holder called");
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("new@example.com".parse().unwrap())).await;
    assert!(
        office.copies(notice).await.ends_with("new@example.com#1 held by_person"),
        "{}",
        office.copies(notice).await
    );
    release(&mut office.connect().await, notice, None, &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "pending");
}

#[tokio::test]
async fn a_courtesy_that_lost_its_only_address_comes_back_held() {
    let office = Office::new().await;
    office.run("UPDATE schedule_steps SET class = 'courtesy'").await;
    let permit = office.permit("1").await;
    let notice = office.notice(permit).await;
    hold(&mut office.connect().await, notice, "wait", &today()).await.unwrap();
    office.correct_on(TODAY, permit, |data| data.holder_email = None).await;
    assert_eq!(office.state(notice).await, "superseded address_changed");
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("new@example.com".parse().unwrap())).await;
    assert_eq!(office.state(notice).await, "held by_person");
}

#[tokio::test]
async fn released_while_paused_it_ends_and_is_not_held_when_the_pause_ends() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let notice = office.notice(permit).await;
    hold(&mut office.connect().await, notice, "wait", &today()).await.unwrap();
    // A pause that no change has looked at yet.
    office.run(&format!("UPDATE permits SET notices_paused_until = '{TODAY}' WHERE id = '{permit}'")).await;
    release(&mut office.connect().await, notice, None, &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "superseded paused");
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = None).await;
    assert_eq!(office.state(notice).await, "pending");
}
