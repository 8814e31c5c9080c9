//! Processes that die, are taken for dead, or are merely slow.

use std::time::Duration;

use permit_notifier::{
    domain::attempt::{Outcome, Phase},
    store::{
        recovery::recover,
        settle::{Settled, Settlement, settle},
    },
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::holder;
use crate::support::postbox::{
    Postbox, Replica,
    mailer::{Point, deferred},
    until,
};

/// A replica whose row nobody renews, in the midst of a pass.
async fn silent(post: &Postbox, concurrency: usize) -> Replica {
    Replica::start_without_heartbeat(post.rules(std::sync::Arc::new(post.mailer.clone()), concurrency)).await
}

#[tokio::test]
async fn what_a_dead_process_left_is_taken_over_at_once() {
    let post = Postbox::open().await;
    for number in 0..4 {
        post.permit(&holder(number)).await;
    }
    let mut stop = post.mailer.stop(&holder(0), Point::BeforeFinal);
    let dead = silent(&post, 1).await;
    let pass = dead.begin_once();
    stop.arrived().await;
    assert!(post.count("SELECT count(*) FROM deliveries WHERE lease_owner IS NOT NULL").await >= 2);
    post.age_processes().await;
    let report = post.dispatch().await;
    assert_eq!((report.accepted, report.ambiguous), (3, 1));
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!(copy.end(), "ambiguous");
    assert_eq!(post.outcomes(copy.id).await, ["ambiguous owner_lost"]);
    assert_eq!(post.dispatch().await.accepted, 0, "not repeated");

    // It was only slow: what its transport says still counts, and what it leased is not its own any more.
    dead.soft.cancel();
    stop.release();
    assert_eq!(pass.done().await.0.accepted, 1);
    assert_eq!(post.copy_to(&holder(0)).await.end(), "sent");
    assert_eq!(post.outcomes(copy.id).await, ["accepted"]);
    assert_eq!(post.mailer.taken_by(), [0, 1, 2, 3].map(holder));
    post.check().await;
}

#[tokio::test]
async fn a_slow_owner_that_sent_nothing_makes_the_delivery_pending_again() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.mailer.reply(&holder(0), deferred());
    let mut stop = post.mailer.stop(&holder(0), Point::AfterFinal);
    let slow = silent(&post, 1).await;
    let pass = slow.begin_once();
    stop.arrived().await;
    post.age_processes().await;
    assert_eq!(post.dispatch().await.ambiguous, 1);
    slow.soft.cancel();
    stop.release();
    pass.done().await;
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", 1));
    post.clock.set(copy.next_attempt_at);
    assert_eq!(post.dispatch().await.accepted, 1);
    post.check().await;
}

#[tokio::test]
async fn a_result_that_comes_after_a_persons_word_is_kept_beside_it() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let mut stop = post.mailer.stop(&holder(0), Point::AfterFinal);
    let slow = silent(&post, 1).await;
    let pass = slow.begin_once();
    stop.arrived().await;
    post.age_processes().await;
    post.dispatch().await;
    post.execute(
        "UPDATE attempts SET resolution = 'delivered', resolved_by = 'clerk@office.example',
                resolution_reason = 'the holder said so', resolved_at = clock_timestamp();
         UPDATE deliveries SET state = 'sent';
         UPDATE notices SET state = 'sent' WHERE state = 'ambiguous'",
    )
    .await;
    slow.soft.cancel();
    stop.release();
    pass.done().await;
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!(copy.end(), "sent");
    assert_eq!(post.outcomes(copy.id).await, ["ambiguous owner_lost"]);
    assert_eq!(post.attempts().await[0].late_result.as_deref(), Some("accepted: 2.0.0 Ok"));
    post.check().await;
}

#[tokio::test]
async fn a_late_result_does_not_touch_what_was_sent_again_on_a_persons_word() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.mailer.reply(&holder(0), deferred());
    let mut stop = post.mailer.stop(&holder(0), Point::AfterFinal);
    let slow = silent(&post, 1).await;
    let pass = slow.begin_once();
    stop.arrived().await;
    post.age_processes().await;
    post.dispatch().await;
    post.execute(
        "UPDATE attempts SET resolution = 'not_delivered', resolved_by = 'clerk@office.example',
                resolution_reason = 'the holder said so', resolved_at = clock_timestamp();
         UPDATE deliveries SET state = 'pending';
         UPDATE notices SET state = 'pending' WHERE state = 'ambiguous'",
    )
    .await;
    assert_eq!(post.dispatch().await.accepted, 1);
    slow.soft.cancel();
    stop.release();
    pass.done().await;
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.attempt_count), ("sent", 0));
    assert_eq!(post.outcomes(copy.id).await, ["ambiguous owner_lost", "accepted"]);
    assert_eq!(post.attempts().await[0].late_result.as_deref(), Some("deferred: 4.3.0 try later"));
    post.check().await;
}

#[tokio::test]
async fn a_delivery_on_which_three_owners_died_is_held() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let mut passes = Vec::new();
    for died in 1..=3 {
        let mut stop = post.mailer.stop(&holder(0), Point::Offered);
        let dead = silent(&post, 1).await;
        let pass = dead.begin_once();
        stop.arrived().await;
        post.age_processes().await;
        // Its own feeder may be the one that finds it dead.
        until("it is freed", async || {
            recover(&mut post.session().await, post.clock.now()).await.unwrap();
            post.count("SELECT lost_owners::bigint FROM deliveries").await == died
        })
        .await;
        dead.soft.cancel();
        passes.push((stop, pass));
    }
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.notice_state.as_str()), ("held owner_died", "held"));
    assert_eq!(copy.notice_reason.as_deref(), Some("owner_died"));
    for (stop, pass) in passes {
        stop.release();
        assert_eq!(pass.done().await.0.accepted, 0);
    }
    assert_eq!(post.dispatch().await.accepted, 0);
    post.check().await;
}

#[tokio::test]
async fn one_that_goes_alone_and_takes_long_does_not_hold_up_the_rest() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    post.execute("UPDATE deliveries SET lost_owners = 2").await;
    let mut first = post.mailer.stop(&holder(0), Point::Offered);
    let mut second = post.mailer.stop(&holder(1), Point::Offered);
    let mut replica = post.replica(2).await;
    replica.begin();
    first.arrived().await;
    post.permit(&holder(2)).await;
    until("the other is sent", async || post.copy_to(&holder(2)).await.state == "sent").await;
    let alone = "SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL AND state = 'pending'";
    assert_eq!(post.count(alone).await, 1, "the second of the two waits for the first");
    first.release();
    second.arrived().await;
    second.release();
    until("all are sent", async || post.count("SELECT count(*) FROM deliveries WHERE state = 'sent'").await == 3).await;
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn recovery_waits_for_nobody() {
    let post = Postbox::open().await;
    for number in 0..3 {
        post.permit(&holder(number)).await;
    }
    let mut stop = post.mailer.stop(&holder(0), Point::BeforeFinal);
    let dead = silent(&post, 1).await;
    let pass = dead.begin_once();
    stop.arrived().await;
    post.age_processes().await;
    let mut lock = post
        .lock("SELECT FROM notices WHERE id = (SELECT notice_id FROM deliveries WHERE state = 'sending') FOR UPDATE")
        .await;
    let report = lock.waited_for_by_nobody(post.dispatch()).await;
    assert_eq!((report.accepted, report.ambiguous), (2, 0));
    lock.release().await;
    assert_eq!(post.dispatch().await.ambiguous, 1);
    dead.soft.cancel();
    stop.release();
    pass.done().await;
    post.check().await;
}

#[tokio::test]
async fn a_process_that_finds_itself_dead_comes_back_as_another() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    let mut stop = post.mailer.stop(&holder(0), Point::Offered);
    let replica = post.replica(1).await;
    let before = replica.membership.boot_id();
    let pass = replica.begin_once();
    stop.arrived().await;
    post.age_processes().await;
    stop.release();
    pass.done().await;
    assert!(post.mailer.withdrawn() >= 1, "the gate was shut");
    // A pass that begins dead waits for the new life and leases under it.
    assert_eq!(replica.run_once().await.0.left_pending, 0);
    let after = replica.membership.boot_id();
    assert_ne!(before, after);
    assert!(post.attempts().await.iter().all(|attempt| attempt.boot_id == after && attempt.outcome == "accepted"));
    assert_eq!(post.mailer.taken_by(), [holder(0), holder(1)]);
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn a_renewal_too_old_forbids_the_final_step() {
    let mut post = Postbox::open().await;
    post.lease = Duration::from_secs(1);
    post.permit(&holder(0)).await;
    let mut stop = post.mailer.stop(&holder(0), Point::BeforeFinal);
    let silent = silent(&post, 1).await;
    let may_finish = silent.membership.may_finish(silent.membership.boot_id(), CancellationToken::new());
    assert!(may_finish.ask());
    let other = silent.membership.may_finish(Uuid::new_v4(), CancellationToken::new());
    assert!(!other.ask(), "not in another life");
    let pass = silent.begin_once();
    stop.arrived().await;
    until("the renewal is too old", async || !may_finish.ask()).await;
    stop.release();
    let (report, _) = pass.done().await;
    assert_eq!((report.not_sent, report.accepted), (1, 0));
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", 0));
    assert_eq!(post.outcomes(copy.id).await, ["not_sent lease_too_old"]);
    assert!(post.mailer.ledger().is_empty());
    post.check().await;
}

#[tokio::test]
async fn a_lease_that_no_task_holds_is_freed_with_the_next_renewal() {
    let mut post = Postbox::open().await;
    post.lease = Duration::from_secs(3);
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    let mut stop = post.mailer.stop(&holder(0), Point::Offered);
    let replica = post.replica(1).await;
    let pass = replica.begin_once();
    stop.arrived().await;
    post.execute(
        "UPDATE deliveries SET lease_token = gen_random_uuid(),
                lease_owner = (SELECT boot_id FROM processes WHERE ended_at IS NULL)
         WHERE recipient = 'holder001@x.example'",
    )
    .await;
    until("it is freed", async || post.copy_to(&holder(1)).await.lease_token.is_none()).await;
    assert!(post.copy_to(&holder(0)).await.lease_token.is_some(), "a task holds that one");
    stop.release();
    pass.done().await;
    replica.leave().await;
    post.dispatch().await;
    assert_eq!(post.mailer.taken_by(), [holder(0), holder(1)]);
    post.check().await;
}

#[tokio::test]
async fn settling_again_changes_nothing() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.dispatch().await;
    let (copy, attempt) = (post.copy_to(&holder(0)).await, post.attempts().await.remove(0));
    let settlement = |outcome| Settlement {
        attempt_id: attempt.id,
        delivery_id: copy.id,
        outcome,
        transport_fault: false,
        reason: None,
        phase: Phase::Dot,
        smtp_code: Some(250),
        enhanced_code: None,
        response: Some("2.0.0 Ok".to_owned()),
        retry_after: None,
        probe: None,
    };
    let mut session = post.session().await;
    for outcome in [Outcome::Accepted, Outcome::Accepted, Outcome::Ambiguous] {
        let settled = settle(&mut session, &[settlement(outcome)], 16, post.clock.now()).await.unwrap();
        assert_eq!(settled, [Some(Settled { attempt_id: attempt.id, state: None, unserved: None })]);
        assert_eq!(post.copy_to(&holder(0)).await.end(), "sent");
        assert_eq!(post.outcomes(copy.id).await, ["accepted"]);
    }
    let late = post.attempts().await.remove(0).late_result;
    assert_eq!(late.as_deref(), Some("ambiguous: 2.0.0 Ok"));
    post.check().await;
}
