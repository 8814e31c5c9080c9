//! Holding and cancelling: the effect, and that a hold, by a person or by the brake, survives what happens to the permit.

use permit_notifier::{
    domain::{attempt::Outcome, notice::NoticeState, permit::PermitStatus},
    store::{
        actions::{HeldBy, Released, cancel, give_up, hold, release, release_held},
        changes::{self, ChangeRules},
    },
};

use super::{Office, TODAY, day, moment, release::held_by_scan, today, wrong_state};

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
    // The same of one that the brake holds.
    let office = Office::new().await;
    let scan = held_by_scan(&office, 1).await;
    let permit: uuid::Uuid = office.ask("SELECT id FROM permits").await.parse().unwrap();
    office.run(&format!("UPDATE permits SET notices_paused_until = '{TODAY}'")).await;
    let connection = &mut office.connect().await;
    release_held(connection, HeldBy::Scan(scan), false, "looked", "tests", &today(), |_| {}).await.unwrap();
    assert_eq!(office.state(office.notice(permit).await).await, "superseded paused");
    office.correct_on(TODAY, permit, |data| data.notices_paused_until = None).await;
    assert_eq!(office.state(office.notice(permit).await).await, "pending");
}

#[tokio::test]
async fn what_the_brake_held_comes_back_held_whatever_was_done_to_the_permit() {
    let office = Office::new().await;
    let scan = held_by_scan(&office, 5).await;
    let permits: Vec<uuid::Uuid> = {
        let ids = office.ask("SELECT string_agg(id::text, ' ' ORDER BY permit_number) FROM permits").await;
        ids.split(' ').map(|id| id.parse().unwrap()).collect()
    };
    let new = "new@example.com".parse().unwrap();
    office.correct_on(TODAY, permits[0], |data| data.notices_paused_until = Some(day(TODAY))).await;
    office.correct_on(TODAY, permits[0], |data| data.notices_paused_until = None).await;
    office.correct_on(TODAY, permits[1], |data| data.status = PermitStatus::Suspended).await;
    office.correct_on(TODAY, permits[1], |data| data.status = PermitStatus::Active).await;
    office.correct_on(TODAY, permits[2], |data| data.expires_on = day("2028-07-01")).await;
    office.correct_on(TODAY, permits[2], |data| data.expires_on = day(super::EXPIRES)).await;
    let rules = ChangeRules::at(moment(TODAY), None);
    let mut connection = office.connect().await;
    changes::archive(&mut connection, permits[3], None, &rules).await.unwrap();
    changes::restore(&mut connection, permits[3], None, &rules).await.unwrap();
    office.run("UPDATE schedule_steps SET class = 'courtesy'; UPDATE notices SET class = 'courtesy'").await;
    office.correct_on(TODAY, permits[4], |data| data.holder_email = None).await;
    office.correct_on(TODAY, permits[4], |data| data.holder_email = Some(new)).await;
    for permit in permits {
        let notice = office.notice(permit).await;
        assert_eq!(office.state(notice).await, "held claim_limit");
        let copies = office.copies(notice).await;
        assert!(copies.ends_with("held claim_limit") && !copies.contains("pending"), "{copies}");
    }
    assert_eq!(office.ask("SELECT count(*) FROM notices WHERE held_before IS NOT NULL").await, "0");
    let done = release_held(&mut connection, HeldBy::Scan(scan), false, "looked", "tests", &today(), |_| {}).await;
    assert_eq!(done.unwrap(), Released { released: 5, ..Released::default() }, "they are still the scan's");
}

#[tokio::test]
async fn what_was_released_is_not_held_again_after_a_pause() {
    let office = Office::new().await;
    let scan = held_by_scan(&office, 1).await;
    let permit: uuid::Uuid = office.ask("SELECT id FROM permits").await.parse().unwrap();
    let pause = |until| move |data: &mut permit_notifier::store::permits::PermitData| data.notices_paused_until = until;
    office.correct_on(TODAY, permit, pause(Some(day(TODAY)))).await;
    office.correct_on(TODAY, permit, pause(None)).await;
    let mut connection = office.connect().await;
    release_held(&mut connection, HeldBy::Scan(scan), false, "looked", "tests", &today(), |_| {}).await.unwrap();
    office.correct_on(TODAY, permit, pause(Some(day(TODAY)))).await;
    office.correct_on(TODAY, permit, pause(None)).await;
    assert_eq!(office.state(office.notice(permit).await).await, "pending");
}

#[tokio::test]
async fn giving_up_what_failed_leaves_the_mail_to_the_corrected_address() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Rejected).await;
    let permit = office.permit_of(notice).await;
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("new@example.com".parse().unwrap())).await;
    let mut connection = office.connect().await;
    let state = give_up(&mut connection, notice, "a new address was recorded", &today()).await.unwrap();
    assert_eq!(state, NoticeState::Pending);
    assert_eq!(office.state(notice).await, "pending");
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 cancelled by_person, new@example.com#1 pending");
    let why = wrong_state(give_up(&mut connection, notice, "again", &today()).await);
    assert_eq!(why, "the notice is pending; no copy of it has failed");
    let alone = office.ended("2", Outcome::Rejected).await;
    office.run(&format!("UPDATE notices SET reason_code = NULL, reason = NULL WHERE id = '{alone}'")).await;
    assert_eq!(give_up(&mut connection, alone, "moved away", &today()).await.unwrap(), NoticeState::Cancelled);
    let reason = format!("SELECT state || ' ' || reason FROM notices WHERE id = '{alone}'");
    assert_eq!(office.ask(&reason).await, "cancelled moved away");
}
