//! Changes that come between lease and gate, and between gate and settle.

use chrono::TimeDelta;

use super::holder;
use crate::support::postbox::{
    Postbox,
    mailer::{Point, Reply, Stop, deferred, lost, not_sent, rejected},
    verbs::{Event, NEW_ADDRESS},
};

/// All that concern one permit alone.
const EVENTS: [Event; 9] = [
    Event::Renew,
    Event::Revoke,
    Event::Pause,
    Event::Archive,
    Event::Readdress,
    Event::ChangeDate,
    Event::ChangeDateAndBack,
    Event::Rename,
    Event::Suppress,
];

/// Lets each of `events` happen to a permit of its own whose message stands at `point`. Returns how the copies to
/// the old addresses ended, in order.
async fn let_happen(post: &Postbox, events: &[Event], point: Point, reply: Option<Reply>) -> Vec<String> {
    let mut permits = Vec::new();
    let mut stops = Vec::new();
    for (number, _) in events.iter().enumerate() {
        permits.push(post.permit(&holder(number)).await);
        stops.push(post.mailer.stop(&holder(number), point));
    }
    post.mailer.reply_to_all(reply);
    let replica = post.replica(events.len()).await;
    let pass = replica.begin_once();
    for stop in &mut stops {
        stop.arrived().await;
    }
    for (number, event) in events.iter().enumerate() {
        post.happen(*event, permits[number], &holder(number)).await;
    }
    stops.into_iter().for_each(Stop::release);
    let (_, down) = pass.done().await;
    assert!(!down);
    replica.leave().await;
    post.mailer.reply_to_all(None);
    post.check().await;
    let mut ends = Vec::new();
    for number in 0..events.len() {
        ends.push(post.first_copy_to(&holder(number)).await.end());
    }
    ends
}

#[tokio::test]
async fn what_changes_before_the_gate_is_not_sent() {
    let post = Postbox::open().await;
    let ends = let_happen(&post, &EVENTS, Point::Offered, None).await;
    let superseded = ["period_changed", "not_active", "paused", "archived", "address_changed", "period_changed"];
    let expected: Vec<String> = superseded.iter().map(|reason| format!("superseded {reason}")).collect();
    assert_eq!(ends[..6], expected);
    // Changed and changed back: owed as before, and the old lease is gone.
    assert_eq!(ends[6..], ["pending", "sent", "suppressed suppressed"]);
    assert_eq!(post.mailer.taken_by(), [holder(7)]);

    post.dispatch().await;
    post.check().await;
    assert_eq!(post.copy_to(&holder(6)).await.end(), "sent");
    assert_eq!(post.copy_to(NEW_ADDRESS).await.end(), "sent");
    // The first of them is the confirmation of the renewal.
    assert_eq!(post.mailer.taken_by(), [holder(0), holder(6), holder(7), NEW_ADDRESS.to_owned()]);
    let ledger = post.mailer.ledger();
    let to = |address: &str| ledger.iter().find(|taken| taken.recipient == address).unwrap();
    assert!(to(&holder(0)).notice_key.contains(":renewed:"));
    let renamed = String::from_utf8(to(&holder(7)).bytes.clone()).unwrap();
    assert!(renamed.contains("Village Bakery") && !renamed.contains("Corner Bakery"), "{renamed}");
}

#[tokio::test]
async fn a_suppressed_statutory_notice_becomes_a_letter() {
    let post = Postbox::open().await;
    let ends = let_happen(&post, &[Event::Suppress], Point::Offered, None).await;
    assert_eq!(ends, ["suppressed suppressed"]);
    let copies = post.copies().await;
    let letter = copies.iter().find(|copy| copy.channel == "letter").unwrap();
    assert_eq!((letter.end().as_str(), letter.notice_state.as_str()), ("pending", "pending"));
    assert_eq!(letter.notice_reason, None, "it is owed still, on paper");
}

#[tokio::test]
async fn a_step_removed_before_the_gate_is_not_sent() {
    let post = Postbox::open().await;
    let ends = let_happen(&post, &[Event::RemoveStep], Point::Offered, None).await;
    assert_eq!(ends, ["superseded step_removed"]);
    assert!(post.mailer.ledger().is_empty());
}

#[tokio::test]
async fn what_is_accepted_after_the_gate_is_sent_whatever_happened() {
    let post = Postbox::open().await;
    let ends = let_happen(&post, &EVENTS, Point::BeforeFinal, None).await;
    assert_eq!(ends, ["sent"; 9]);
    post.dispatch().await;
    // Once more only for the renewal, which is confirmed; nobody is written to at a second address.
    let mut expected: Vec<_> = (0..9).map(holder).collect();
    expected.insert(0, holder(0));
    assert_eq!(post.mailer.taken_by(), expected);
    post.check().await;
}

#[tokio::test]
async fn what_is_deferred_after_the_gate_ends_as_the_change_says() {
    for reply in [deferred(), not_sent()] {
        let post = Postbox::open().await;
        let ends = let_happen(&post, &EVENTS, Point::BeforeFinal, Some(reply)).await;
        let superseded = ["period_changed", "not_active", "paused", "archived", "address_changed", "period_changed"];
        let expected: Vec<String> = superseded.iter().map(|reason| format!("superseded {reason}")).collect();
        assert_eq!(ends[..6], expected);
        assert_eq!(ends[6..], ["pending"; 3], "still owed");
        post.clock.advance(TimeDelta::hours(1));
        post.dispatch().await;
        post.check().await;
        let expected = [holder(0), holder(6), holder(7), NEW_ADDRESS.to_owned()];
        assert_eq!(post.mailer.taken_by(), expected);
        assert_eq!(post.copy_to(&holder(8)).await.end(), "suppressed suppressed");
    }
}

#[tokio::test]
async fn what_is_refused_after_the_gate_fails_unless_nobody_is_there_any_more() {
    let post = Postbox::open().await;
    let ends = let_happen(&post, &EVENTS, Point::BeforeFinal, Some(rejected())).await;
    let mut expected = ["failed refused"; 9];
    expected[4] = "superseded address_changed";
    assert_eq!(ends, expected);
    post.dispatch().await;
    assert_eq!(post.mailer.taken_by(), [holder(0), NEW_ADDRESS.to_owned()]);
    post.check().await;
}

#[tokio::test]
async fn what_gets_no_reply_is_ambiguous_and_not_sent_again() {
    let post = Postbox::open().await;
    let ends = let_happen(&post, &EVENTS, Point::BeforeFinal, Some(lost())).await;
    assert_eq!(ends, ["ambiguous"; 9]);
    post.clock.advance(TimeDelta::days(1));
    post.dispatch().await;
    // The confirmation of the renewal is another notice.
    assert_eq!(post.mailer.taken_by(), [holder(0)]);
    post.check().await;
}

#[tokio::test]
async fn a_step_removed_after_the_gate_ends_as_the_reply_says() {
    let end_with = [(None, "sent"), (Some(deferred()), "superseded step_removed"), (Some(lost()), "ambiguous")];
    for (reply, expected) in end_with {
        let post = Postbox::open().await;
        assert_eq!(let_happen(&post, &[Event::RemoveStep], Point::BeforeFinal, reply).await, [expected]);
    }
}

#[tokio::test]
async fn a_message_taken_without_a_reply_stays_the_only_one_when_the_date_comes_back() {
    let post = Postbox::open().await;
    let ends = let_happen(&post, &[Event::ChangeDateAndBack], Point::AfterFinal, Some(Reply::TakeAndLose)).await;
    assert_eq!(ends, ["ambiguous"]);
    post.clock.advance(TimeDelta::days(1));
    post.dispatch().await;
    assert_eq!(post.mailer.taken_by(), [holder(0)]);
    post.check().await;
}
