//! A soft stop finishes what is past the gate; a hard one says honestly what it left.

use chrono::TimeDelta;

use super::holder;
use crate::support::postbox::{
    Postbox,
    mailer::{Point, Reply, Stop},
};

#[tokio::test]
async fn a_soft_stop_finishes_what_is_past_the_gate_and_gives_back_the_rest() {
    let post = Postbox::open().await;
    for number in 0..10 {
        post.permit(&holder(number)).await;
    }
    let mut stops = vec![
        post.mailer.stop(&holder(0), Point::BeforeFinal),
        post.mailer.stop(&holder(1), Point::AfterFinal),
        post.mailer.stop(&holder(2), Point::Offered),
    ];
    let mut replica = post.replica(3).await;
    let boot_id = replica.membership.boot_id();
    replica.begin();
    for stop in &mut stops {
        stop.arrived().await;
    }
    replica.soft.cancel();
    stops.into_iter().for_each(Stop::release);
    replica.leave().await;
    assert_eq!(post.mailer.taken_by(), [holder(0), holder(1)]);
    assert_eq!(post.mailer.withdrawn(), 1, "what was before the gate stays there");
    for copy in post.copies().await {
        let sent = copy.recipient == Some(holder(0)) || copy.recipient == Some(holder(1));
        assert_eq!((copy.end().as_str(), copy.lease_token), (if sent { "sent" } else { "pending" }, None));
    }
    let ended = "SELECT count(*) FROM processes WHERE ended_at IS NOT NULL";
    assert_eq!(post.count(ended).await, 1, "the row of {boot_id}");
    assert_eq!(post.dispatch().await.accepted, 8);
    post.check().await;
}

#[tokio::test]
async fn a_hard_stop_drops_what_can_be_dropped_and_admits_the_rest() {
    let post = Postbox::open().await;
    for number in 0..3 {
        post.permit(&holder(number)).await;
    }
    let mut stops = vec![
        post.mailer.stop(&holder(0), Point::BeforeFinal),
        post.mailer.stop(&holder(1), Point::AfterFinal),
        post.mailer.stop(&holder(2), Point::Offered),
    ];
    let mut replica = post.replica(3).await;
    replica.begin();
    for stop in &mut stops {
        stop.arrived().await;
    }
    replica.soft.cancel();
    replica.hard.cancel();
    // The sessions never go on by themselves.
    replica.stopped().await;
    let end_of = async |number| {
        let copy = post.copy_to(&holder(number)).await;
        (copy.end(), post.outcomes(copy.id).await, copy.lease_token)
    };
    assert_eq!(end_of(0).await, ("pending".to_owned(), vec!["not_sent stopped".to_owned()], None));
    assert_eq!(end_of(1).await, ("ambiguous".to_owned(), vec!["ambiguous stopped".to_owned()], None));
    assert_eq!(end_of(2).await, ("pending".to_owned(), Vec::new(), None));
    assert_eq!(post.mailer.taken_by(), [holder(1)]);
    post.check().await;
    drop(stops);
    replica.leave().await;
    post.clock.advance(TimeDelta::minutes(1));
    assert_eq!(post.dispatch().await.accepted, 2);
    assert_eq!(post.mailer.taken_by(), [0, 1, 2].map(holder));
    post.check().await;
}

#[tokio::test]
async fn a_panic_in_one_sender_costs_nobody_elses_result() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    post.permit(&holder(1)).await;
    post.mailer.reply(&holder(0), Reply::Panic);
    let mut panics = post.mailer.stop(&holder(0), Point::BeforeFinal);
    let mut goes_on = post.mailer.stop(&holder(1), Point::AfterFinal);
    let replica = post.replica(2).await;
    let pass = replica.begin_once();
    panics.arrived().await;
    goes_on.arrived().await;
    panics.release();
    // Senders and feeder are gone but for this one.
    tokio::task::yield_now().await;
    goes_on.release();
    assert!(pass.panic().await.is_panic(), "so that the process ends with a failure");
    assert_eq!(post.copy_to(&holder(1)).await.end(), "sent");
    assert_eq!(post.copy_to(&holder(0)).await.end(), "sending", "until the process is gone");
    replica.leave().await;
    assert_eq!(post.dispatch().await.ambiguous, 1);
    assert_eq!(post.copy_to(&holder(0)).await.end(), "ambiguous");
    post.check().await;
}
