//! Hold and cancel in advance: the row of a step that is not yet due.

use chrono::Datelike;
use permit_notifier::{
    domain::{calendar::start_of_day, schedule::Schedule},
    store::{
        StoreError,
        actions::{Beforehand, release, write_in_advance},
        changes::{ChangeRules, reschedule},
    },
};
use uuid::Uuid;

use super::{Office, TODAY, day, invalid, moment, on, today, wrong_state};

async fn ahead(office: &Office, permit: Uuid, action: Beforehand) -> Uuid {
    let connection = &mut office.connect().await;
    write_in_advance(connection, permit, "expires-14d", action, "not yet", &today()).await.unwrap()
}

#[tokio::test]
async fn a_cancelled_step_is_never_claimed_and_leaves_the_others_alone() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let ahead = ahead(&office, permit, Beforehand::Cancel).await;
    assert_eq!(office.state(ahead).await, "cancelled by_person");
    assert_eq!(office.copies(ahead).await, "");
    // 17 June: the step is due; 24 June: the one after it.
    for (at, state) in [("2026-06-17", "0"), ("2026-06-24", "1")] {
        office.correct_on(at, permit, |data| data.description = Some(at.to_owned())).await;
        assert_eq!(office.state(ahead).await, "cancelled by_person");
        assert_eq!(office.ask("SELECT count(*) FROM notices WHERE notice_type = 'expires-7d'").await, state);
    }
}

#[tokio::test]
async fn a_held_step_stays_held_when_it_is_due() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let ahead = ahead(&office, permit, Beforehand::Hold).await;
    assert_eq!(office.state(ahead).await, "held by_person");
    assert_eq!(office.copies(ahead).await, "holder-1@example.com#1 held by_person");
    for at in [TODAY, "2026-06-17"] {
        office.correct_on(at, permit, |data| data.description = Some(at.to_owned())).await;
        assert_eq!(office.state(ahead).await, "held by_person", "{at}");
    }
    office.correct_on("2026-06-24", permit, |data| data.description = None).await;
    assert_eq!(office.state(ahead).await, "skipped too_late", "the next step of its class is due");
}

#[tokio::test]
async fn released_before_its_day_it_waits_for_the_start_of_that_day() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let notice = ahead(&office, permit, Beforehand::Hold).await;
    release(&mut office.connect().await, notice, Some("may go"), &today()).await.unwrap();
    assert_eq!(office.state(notice).await, "pending");
    // Midnight in Berlin in June.
    assert_eq!(office.next_attempt(notice).await, "2026-06-16 22:00:00");
    let current = office.notice(permit).await;
    assert_eq!(office.state(current).await, "pending", "what is due now goes now");
    // Addresses follow for both; the new copy of the one that waits waits as well.
    office.correct_on(TODAY, permit, |data| data.holder_email = Some("new@example.com".parse().unwrap())).await;
    assert_eq!(office.next_attempt(notice).await, "2026-06-16 22:00:00");
    assert!(office.copies(notice).await.ends_with("new@example.com#1 pending"));
    assert!(office.copies(current).await.ends_with("new@example.com#1 pending"));
    let mut connection = office.connect().await;
    let boot = office.boot(&mut connection).await;
    let before = "2026-06-16T21:59:59Z".parse().unwrap();
    assert!(office.request(&mut connection, boot, notice, before).await.is_none());
    let then = "2026-06-16T22:00:00Z".parse().unwrap();
    assert!(office.request(&mut connection, boot, notice, then).await.is_some());
}

#[tokio::test]
async fn released_and_overtaken_it_gives_way() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let notice = ahead(&office, permit, Beforehand::Hold).await;
    release(&mut office.connect().await, notice, None, &today()).await.unwrap();
    // Another step moves onto its day; of the same day the later in the list is the more urgent one.
    office.run("UPDATE schedule_steps SET offset_days = -14 WHERE notice_type = 'expires-7d'").await;
    office.correct_on("2026-06-16", permit, |data| data.description = Some("x".to_owned())).await;
    assert_eq!(office.state(notice).await, "pending");
    office.correct_on("2026-06-17", permit, |data| data.description = None).await;
    assert_eq!(office.state(notice).await, "superseded more_urgent_step");
    let urgent = office.notice_of(permit, "expires-7d").await;
    assert_eq!(office.state(urgent).await, "pending");
}

#[tokio::test]
async fn released_after_its_last_day_it_is_skipped() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let notice = ahead(&office, permit, Beforehand::Hold).await;
    // Nobody looked for days, and the next one of its class is due.
    release(&mut office.connect().await, notice, None, &on("2026-06-25")).await.unwrap();
    assert_eq!(office.state(notice).await, "skipped too_late");
}

#[tokio::test]
async fn a_step_that_moves_takes_the_waiting_with_it() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let notice = ahead(&office, permit, Beforehand::Hold).await;
    release(&mut office.connect().await, notice, None, &today()).await.unwrap();
    let mut steps = Schedule::usual().steps().to_vec();
    let step = steps.iter_mut().find(|step| step.notice_type.as_str() == "expires-14d").unwrap();
    step.offset_days = Some(-10);
    let rules = ChangeRules::at(moment(TODAY), None);
    reschedule(&mut office.connect().await, "food", &Schedule::new(steps).unwrap(), &rules).await.unwrap();
    let waits = office.next_attempt(notice).await;
    assert!(waits.as_str() >= "2026-06-20 22:00:00" && day(&waits[..10]).day() == 21, "{waits}");
}

#[tokio::test]
async fn only_an_owed_dated_step_without_a_row_and_not_yet_due() {
    let office = Office::new().await;
    let permit = office.permit("1").await;
    let connection = &mut office.connect().await;
    let rules = today();
    let hold = Beforehand::Hold;
    for bad in ["", "expires-15d", "renewed", "EXPIRES-14D"] {
        assert_eq!(invalid(write_in_advance(connection, permit, bad, hold, "why", &rules).await), "notice_type");
    }
    let done = write_in_advance(connection, permit, "expires-14d", hold, "", &rules).await;
    assert_eq!(invalid(done), "reason");
    let why = wrong_state(write_in_advance(connection, permit, "expires-30d", hold, "", &rules).await);
    assert!(why.contains("pending"), "{why}");
    let why = wrong_state(write_in_advance(connection, permit, "expires-60d", hold, "why", &rules).await);
    assert!(why.contains("superseded"), "{why}");
    let later = on("2026-06-18");
    let why = wrong_state(write_in_advance(connection, permit, "expires-14d", hold, "why", &later).await);
    assert!(why.contains("due since 2026-06-17"), "{why}");
    write_in_advance(connection, permit, "expires-14d", hold, "why", &rules).await.unwrap();
    let why = wrong_state(write_in_advance(connection, permit, "expires-14d", Beforehand::Cancel, "why", &rules).await);
    assert!(why.contains("held"), "{why}");
    let archived = office.permit("2").await;
    office.run(&format!("UPDATE permits SET archived_at = now() WHERE id = '{archived}'")).await;
    let why = wrong_state(write_in_advance(connection, archived, "expires-14d", hold, "why", &rules).await);
    assert!(why.contains("archived"), "{why}");
    let nobody = write_in_advance(connection, Uuid::now_v7(), "expires-14d", hold, "why", &rules).await;
    assert!(matches!(nobody, Err(StoreError::NotFound("permit"))), "{nobody:?}");
}

#[test]
fn a_day_begins_at_its_first_instant() {
    let start = |date: &str, zone: chrono_tz::Tz| start_of_day(day(date), zone).to_rfc3339();
    assert_eq!(start("2026-06-17", chrono_tz::Europe::Berlin), "2026-06-16T22:00:00+00:00");
    assert_eq!(start("2026-10-25", chrono_tz::Europe::Berlin), "2026-10-24T22:00:00+00:00");
    // Midnight is skipped, comes twice, or the whole day is missing.
    assert_eq!(start("2021-03-28", chrono_tz::Asia::Beirut), "2021-03-27T22:00:00+00:00");
    assert_eq!(start("2020-11-01", chrono_tz::America::Havana), "2020-11-01T04:00:00+00:00");
    assert_eq!(start("2011-12-30", chrono_tz::Pacific::Apia), "2011-12-30T10:00:00+00:00");
}
