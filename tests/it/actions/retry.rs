//! Sending again what failed, bounced or was suppressed.

use permit_notifier::{
    domain::{attempt::Outcome, notice::NoticeState},
    store::{
        actions::{retry, send_copy},
        changes::{self, ChangeRules},
    },
};

use super::{Office, TODAY, day, moment, on, today, wrong_state};

async fn refused(office: &Office, notice: uuid::Uuid, today: &str) -> String {
    wrong_state(retry(&mut office.connect().await, notice, &on(today)).await)
}

#[tokio::test]
async fn what_failed_goes_again_with_a_new_budget() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Rejected).await;
    office.run("UPDATE deliveries SET attempt_count = 16, lost_owners = 2, next_attempt_at = '2030-01-01'").await;
    assert_eq!(retry(&mut office.connect().await, notice, &today()).await.unwrap(), NoticeState::Pending);
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 pending");
    assert_eq!(office.ask("SELECT attempt_count + lost_owners FROM deliveries").await, "0");
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Accepted).await;
    assert_eq!(office.attempts(notice).await, "1 rejected, 2 accepted");
}

#[tokio::test]
async fn what_bounced_goes_as_a_new_copy_once() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Accepted).await;
    office
        .run("UPDATE deliveries SET state = 'bounced'; UPDATE notices SET state = 'failed' WHERE state = 'sent'")
        .await;
    retry(&mut office.connect().await, notice, &today()).await.unwrap();
    let copies = "holder-1@example.com#1 bounced, holder-1@example.com#2 pending";
    assert_eq!(office.copies(notice).await, copies);
    assert!(refused(&office, notice, TODAY).await.contains("pending"));
    assert_eq!(office.copies(notice).await, copies);
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Accepted).await;
    assert_eq!(office.ask("SELECT count(DISTINCT message_id) FROM deliveries").await, "2");
}

#[tokio::test]
async fn what_may_have_been_accepted_is_never_sent_again_under_its_name() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Ambiguous).await;
    // Evidence said that it came back, without resolving the attempt.
    office
        .run("UPDATE deliveries SET state = 'failed'; UPDATE notices SET state = 'failed' WHERE state = 'ambiguous'")
        .await;
    retry(&mut office.connect().await, notice, &today()).await.unwrap();
    assert_eq!(office.copies(notice).await, "holder-1@example.com#1 failed, holder-1@example.com#2 pending");
}

#[tokio::test]
async fn a_suppressed_address_waits_until_it_is_suppressed_no_longer() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Rejected).await;
    office
        .run(
            "UPDATE deliveries SET state = 'suppressed', reason_code = 'suppressed';
             INSERT INTO suppressions (id, address, class, reason, source, created_at)
             VALUES (gen_random_uuid(), 'holder-1@example.com', 'all', 'x', 'person', now())",
        )
        .await;
    assert!(refused(&office, notice, TODAY).await.contains("suppressed"));
    office.run("UPDATE suppressions SET class = 'courtesy'").await;
    assert_eq!(retry(&mut office.connect().await, notice, &today()).await.unwrap(), NoticeState::Pending);
}

#[tokio::test]
async fn too_late_and_no_longer_owed_are_refused_with_the_reason() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Rejected).await;
    let why = refused(&office, notice, "2026-06-17").await;
    assert!(why.contains("failed") && why.contains("last day for sending has passed"), "{why}");
    let permit = office.permit_of(notice).await;
    office.run(&format!("UPDATE permits SET notices_paused_until = '{TODAY}' WHERE id = '{permit}'")).await;
    assert!(refused(&office, notice, TODAY).await.contains("paused"));
    office.run("UPDATE permits SET notices_paused_until = NULL").await;
    let rules = ChangeRules::at(moment(TODAY), None);
    let connection = &mut office.connect().await;
    changes::renew(connection, permit, None, day("2027-07-01"), None, &rules).await.unwrap();
    assert!(refused(&office, notice, TODAY).await.contains("another expiry date"));
    assert_eq!(office.state(notice).await, "failed refused");
}

#[tokio::test]
async fn an_address_that_left_the_permit_is_refused_unless_a_person_chose_it() {
    let office = Office::new().await;
    let notice = office.ended("1", Outcome::Rejected).await;
    let permit = office.permit_of(notice).await;
    office.run(&format!("UPDATE permits SET holder_email = 'new@example.com' WHERE id = '{permit}'")).await;
    assert!(refused(&office, notice, TODAY).await.contains("no longer on the permit"));
    send_copy(&mut office.connect().await, notice, Some("else@example.com"), "x", &today()).await.unwrap();
    let flight = office.send(notice).await;
    office.settle(flight, Outcome::Rejected).await;
    retry(&mut office.connect().await, notice, &today()).await.unwrap();
    assert!(office.copies(notice).await.ends_with("else@example.com#1 pending"), "{}", office.copies(notice).await);
}
