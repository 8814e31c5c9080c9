//! What each outcome makes of a delivery.

use chrono::TimeDelta;
use permit_notifier::{
    domain::attempt::{Outcome, Phase},
    mail::Ended,
};

use super::holder;
use crate::support::postbox::{
    Postbox,
    mailer::{Reply, broken, coded, deferred, not_sent, rejected},
};

fn seconds_until(next: chrono::DateTime<chrono::Utc>, post: &Postbox) -> i64 {
    (next - post.clock.now()).num_seconds()
}

#[tokio::test]
async fn a_deferral_waits_longer_each_time_until_the_attempts_are_used_up() {
    let mut post = Postbox::open().await;
    post.max_attempts = 7;
    post.permit_expiring(&holder(0), crate::support::postbox::in_days(30)).await;
    post.mailer.reply_to_all(Some(deferred()));
    // One minute and three times as long each time, at most six hours; half of it fixed.
    for (count, full) in [60, 180, 540, 1620, 4860, 14580].into_iter().enumerate() {
        assert_eq!(post.dispatch().await.deferred, 1);
        let copy = post.copy_to(&holder(0)).await;
        assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", count as i32 + 1));
        let wait = seconds_until(copy.next_attempt_at, &post);
        assert!((full / 2..=full).contains(&wait), "{wait} s after {} attempts", count + 1);
        assert_eq!(post.dispatch().await.deferred, 0, "not before its time");
        post.clock.set(copy.next_attempt_at);
    }
    post.dispatch().await;
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.attempt_count), ("failed exhausted", 7));
    assert_eq!(copy.last_error.as_deref(), Some("4.3.0 try later"));
    assert!(copy.payload_sha256.is_some());
    assert_eq!((copy.notice_state.as_str(), copy.notice_reason.as_deref()), ("failed", Some("exhausted")));
    assert_eq!(post.attempts().await.len(), 7);
    let ids = post.count("SELECT count(DISTINCT message_id) FROM deliveries").await;
    assert_eq!(ids, 1);
    post.check().await;
}

#[tokio::test]
async fn a_refusal_is_a_dead_letter_with_its_error_and_hash() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    post.mailer.reply(&holder(0), rejected());
    let unknown = coded(Outcome::Rejected, Phase::Rcpt, 550, "5.1.1 no such user");
    post.mailer.reply(&holder(1), Reply::Offer(unknown));
    assert_eq!(post.dispatch().await.rejected, 2);
    for (number, error) in [(0, "5.6.0 never"), (1, "5.1.1 no such user")] {
        let copy = post.copy_to(&holder(number)).await;
        assert_eq!((copy.end().as_str(), copy.last_error.as_deref()), ("failed refused", Some(error)));
        assert!(copy.payload_sha256.is_some() && copy.message_id.is_some() && copy.lease_token.is_none());
        assert_eq!((copy.notice_state.as_str(), copy.notice_reason.as_deref()), ("failed", Some("refused")));
        assert_eq!(post.outcomes(copy.id).await, ["rejected"]);
    }
    post.check().await;
}

#[tokio::test]
async fn what_is_not_the_notices_fault_does_not_count() {
    let mut post = Postbox::open().await;
    post.max_attempts = 1;
    for number in 0..3 {
        post.permit(&holder(number)).await;
    }
    let fault = Ended { transport_fault: true, ..coded(Outcome::Deferred, Phase::Dot, 421, "4.3.2 closing") };
    for (number, reply) in [broken(), not_sent(), Reply::End(fault)].into_iter().enumerate() {
        post.mailer.reply(&holder(number), reply);
    }
    let mut outcomes = Vec::new();
    for number in 0..3 {
        // A fault ends a pass and opens the breaker, so there is one pass for each, and it probes.
        post.breaker_lets_probe().await;
        post.dispatch().await;
        let copy = post.copy_to(&holder(number)).await;
        assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", 0));
        let wait = seconds_until(copy.next_attempt_at, &post);
        assert!((30..=60).contains(&wait), "{wait} s");
        outcomes.extend(post.outcomes(copy.id).await);
    }
    assert_eq!(outcomes, ["not_sent connection_lost", "not_sent timed_out", "deferred"]);
    post.clock.advance(TimeDelta::minutes(1));
    assert_eq!(post.dispatch().await.accepted, 3);
    post.check().await;
}

#[tokio::test]
async fn a_transport_that_is_down_ends_the_pass_and_loses_nothing() {
    let post = Postbox::open().await;
    for number in 0..20 {
        post.permit(&holder(number)).await;
    }
    let down = Ended::new(Outcome::NotSent, Phase::Connect).because("refused").as_transport_fault();
    post.mailer.reply_to_all(Some(Reply::Offer(down)));
    for _ in 0..3 {
        post.breaker_lets_probe().await;
        let replica = post.replica(4).await;
        let (report, is_down) = replica.run_once().await;
        assert!(is_down);
        assert_eq!((report.left_pending, report.accepted), (20, 0));
        assert!((1..=4).contains(&report.not_sent), "one try for each sender at most: {report:?}");
        replica.leave().await;
    }
    for copy in post.copies().await {
        assert_eq!((copy.end().as_str(), copy.attempt_count, copy.lease_token), ("pending", 0, None));
    }
    post.mailer.reply_to_all(None);
    post.clock.advance(TimeDelta::minutes(1));
    assert_eq!(post.dispatch().await.accepted, 0, "the breaker is open for everybody");
    post.breaker_lets_probe().await;
    assert_eq!(post.dispatch().await.accepted, 20);
    post.check().await;
}

#[tokio::test]
async fn a_server_may_say_what_it_likes() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    let words = format!("4.3.0 \0{}", "long ".repeat(10_000));
    post.mailer.reply(&holder(0), Reply::End(coded(Outcome::Deferred, Phase::Dot, 451, &words)));
    post.mailer.reply(&holder(1), Reply::Offer(coded(Outcome::Deferred, Phase::Rcpt, 451, &words)));
    assert_eq!(post.dispatch().await.deferred, 2);
    for number in 0..2 {
        let copy = post.copy_to(&holder(number)).await;
        assert_eq!(post.outcomes(copy.id).await, ["deferred"]);
        let error = copy.last_error.unwrap();
        assert!(error.starts_with("4.3.0 long") && error.len() == 2000, "{} bytes", error.len());
    }
    post.check().await;
}

#[tokio::test]
async fn a_result_that_the_database_refuses_is_ambiguous_and_stops_nobody() {
    let post = Postbox::open().await;
    for number in 0..3 {
        post.permit(&holder(number)).await;
    }
    // Only 250 proves that a server took it.
    post.mailer.reply(&holder(1), Reply::End(coded(Outcome::Accepted, Phase::Dot, 251, "perhaps")));
    post.dispatch().await;
    let copy = post.copy_to(&holder(1)).await;
    assert_eq!(copy.end(), "ambiguous");
    assert_eq!(post.outcomes(copy.id).await, ["ambiguous cannot_record"]);
    assert_eq!(post.mailer.taken_by(), [holder(0), holder(2)]);
    post.check().await;
}
