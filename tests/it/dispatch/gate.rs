//! What the gate and the steps before it do with what must not, or cannot, go.

use chrono::TimeDelta;

use super::holder;
use crate::support::postbox::{Postbox, in_days, mailer::Point};

#[tokio::test]
async fn what_is_too_late_at_the_gate_is_skipped() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let mut stop = post.mailer.stop(&holder(0), Point::Offered);
    let replica = post.replica(1).await;
    let pass = replica.begin_once();
    stop.arrived().await;
    // The next step is due on the 16th day.
    post.clock.advance(TimeDelta::days(16));
    stop.release();
    let (report, _) = pass.done().await;
    assert_eq!((report.skipped, report.accepted), (1, 0));
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.notice_state.as_str()), ("skipped too_late", "skipped"));
    assert_eq!(copy.notice_reason.as_deref(), Some("too_late"));
    assert_eq!(post.mailer.withdrawn(), 1);
    replica.leave().await;
    post.check().await;
}

#[tokio::test]
async fn a_notice_too_late_at_the_gate_says_so_though_another_copy_had_lost_its_address() {
    let post = Postbox::open().await;
    let permit = post.permit_with(&holder(0), in_days(30), &[&holder(1)]).await;
    post.correct(permit, |permit| permit.holder_email = None).await;
    assert_eq!(post.copy_to(&holder(0)).await.end(), "superseded address_changed");
    post.clock.advance(TimeDelta::days(16));
    assert_eq!(post.dispatch().await.skipped, 1);
    let copy = post.copy_to(&holder(1)).await;
    assert_eq!((copy.end().as_str(), copy.notice_state.as_str()), ("skipped too_late", "skipped"));
    assert_eq!(copy.notice_reason.as_deref(), Some("too_late"));
    post.check().await;
}

#[tokio::test]
async fn a_locked_permit_is_given_back_and_never_waited_for() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    let mut lock = post.lock("SELECT FROM permits WHERE holder_email = 'holder000@x.example' FOR NO KEY UPDATE").await;
    let report = lock.waited_for_by_nobody(post.dispatch()).await;
    assert_eq!((report.accepted, report.left_pending), (1, 1));
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.lease_token), ("pending", None));
    lock.release().await;
    post.clock.advance(TimeDelta::seconds(2));
    assert_eq!(post.dispatch().await.accepted, 1);
    post.check().await;
}

#[tokio::test]
async fn a_delivery_locked_before_the_lease_is_passed_over() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    let mut lock = post.lock("SELECT FROM deliveries WHERE recipient = 'holder000@x.example' FOR UPDATE").await;
    assert_eq!(lock.waited_for_by_nobody(post.dispatch()).await.accepted, 1);
    assert!(post.copy_to(&holder(0)).await.lease_token.is_none());
    lock.release().await;
    assert_eq!(post.dispatch().await.accepted, 1);
    post.check().await;
}

#[tokio::test]
async fn a_delivery_locked_at_the_gate_is_not_waited_for_and_goes_later() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let mut stop = post.mailer.stop(&holder(0), Point::Offered);
    let replica = post.replica(1).await;
    let pass = replica.begin_once();
    stop.arrived().await;
    let mut lock = post.lock("SELECT FROM deliveries FOR UPDATE").await;
    stop.release();
    // It leaves a lease that cannot be given back.
    assert_eq!(lock.waited_for_by_nobody(pass.done()).await.0.accepted, 0);
    lock.release().await;
    replica.leave().await;
    assert_eq!(post.dispatch().await.accepted, 1);
    assert_eq!(post.count("SELECT lost_owners::bigint FROM deliveries").await, 0, "nobody died");
    post.check().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_made_fails_alone() {
    let post = Postbox::open().await;
    for number in 0..5 {
        post.permit(&holder(number)).await;
    }
    post.execute("UPDATE deliveries SET message_id = 'no id' WHERE recipient = 'holder001@x.example'").await;
    post.execute("UPDATE deliveries SET recipient = 'nobody' WHERE recipient = 'holder003@x.example'").await;
    let report = post.dispatch().await;
    assert_eq!((report.accepted, report.rejected, report.left_pending), (3, 2, 0));
    assert_eq!(post.mailer.taken_by(), [0, 2, 4].map(holder));
    for recipient in [&holder(1), "nobody"] {
        let copy = post.copy_to(recipient).await;
        assert_eq!((copy.end().as_str(), copy.notice_state.as_str()), ("failed cannot_compose", "failed"));
        assert_eq!(copy.notice_reason.as_deref(), Some("cannot_compose"));
        assert!(copy.last_error.is_some());
    }
    assert_eq!(post.attempts().await.len(), 3);
    post.check().await;
}

#[tokio::test]
async fn a_copy_that_failed_gives_its_notice_no_reason_while_another_went() {
    let post = Postbox::open().await;
    let days = in_days(30);
    post.permit_with(&holder(0), days, &["agent@x.example"]).await;
    post.execute("UPDATE deliveries SET message_id = 'no id' WHERE recipient = 'holder000@x.example'").await;
    post.dispatch().await;
    let copy = post.copy_to("agent@x.example").await;
    assert_eq!((copy.end().as_str(), copy.notice_state.as_str(), copy.notice_reason), ("sent", "sent", None));
    assert_eq!(post.copy_to(&holder(0)).await.end(), "failed cannot_compose");
    post.check().await;
}

#[tokio::test]
async fn a_delivery_that_the_gate_cannot_record_does_not_stop_the_others() {
    let post = Postbox::open().await;
    for number in 0..3 {
        post.permit(&holder(number)).await;
    }
    // Stands for whatever the database may have against one attempt.
    post.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF (SELECT recipient FROM deliveries WHERE id = NEW.delivery_id) = 'holder001@x.example' THEN
                 RAISE EXCEPTION 'not this one' USING ERRCODE = 'check_violation';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .await;
    let mut stops: Vec<_> = (0..3).map(|number| post.mailer.stop(&holder(number), Point::Offered)).collect();
    let replica = post.replica(3).await;
    let pass = replica.begin_once();
    for stop in &mut stops {
        stop.arrived().await;
    }
    stops.into_iter().for_each(crate::support::postbox::mailer::Stop::release);
    let (report, _) = pass.done().await;
    assert_eq!((report.accepted, report.left_pending), (2, 1));
    let attempts = post.attempts().await;
    assert_eq!(attempts.iter().map(|attempt| attempt.outcome.as_str()).collect::<Vec<_>>(), ["accepted"; 2]);
    replica.leave().await;
    post.check().await;
}
