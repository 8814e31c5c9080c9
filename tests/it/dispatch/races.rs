//! Changes that come between lease and gate, and between gate and settle.

use chrono::TimeDelta;
use permit_notifier::store::permit_types::describe_permit_type;
use uuid::Uuid;

use super::holder;
use crate::support::postbox::{
    FOOD, Postbox, in_days,
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

/// What a change makes due waits, so that the pass in which the change happens never finds it, however late it looks.
const WAITS: TimeDelta = TimeDelta::minutes(5);

async fn postbox() -> Postbox {
    let mut post = Postbox::open().await;
    post.change_delay = WAITS;
    post
}

/// Lets each of `events` happen to a permit of its own whose message stands at `point`. Returns how the copies to
/// the old addresses ended, in order.
async fn let_happen(post: &Postbox, events: &[Event], point: Point, reply: Option<Reply>) -> Vec<String> {
    let mut permits = Vec::new();
    let mut stops = Vec::new();
    for (number, _) in events.iter().enumerate() {
        permits.push(post.permit(&holder(number)).await);
        stops.push(post.mailer.stop(&holder(number), point));
        if let Some(reply) = &reply {
            post.mailer.reply(&holder(number), reply.clone());
        }
    }
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
    post.check().await;
    post.clock.advance(WAITS);
    let mut ends = Vec::new();
    for number in 0..events.len() {
        ends.push(post.first_copy_to(&holder(number)).await.end());
    }
    ends
}

#[tokio::test]
async fn what_changes_before_the_gate_is_not_sent() {
    let post = postbox().await;
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
async fn a_mail_says_what_its_permit_type_says_at_the_gate() {
    let post = Postbox::open().await;
    let say = async |link: &str| {
        let session = &mut post.session().await;
        describe_permit_type(session, FOOD, Some(link), None, 0, post.clock.now()).await.expect("other words");
    };
    say("https://old.example/renew").await;
    post.permit(&holder(0)).await;
    let mut stop = post.mailer.stop(&holder(0), Point::Offered);
    let replica = post.replica(1).await;
    let pass = replica.begin_once();
    stop.arrived().await;
    say("https://new.example/renew").await;
    stop.release();
    pass.done().await;
    replica.leave().await;
    let taken = post.mailer.ledger();
    let mail = String::from_utf8(taken[0].bytes.clone()).unwrap();
    assert_eq!(taken.len(), 1);
    assert!(mail.contains("https://new.example/renew") && !mail.contains("old.example"), "{mail}");
    post.check().await;
}

#[tokio::test]
async fn a_suppressed_statutory_notice_becomes_a_letter() {
    let post = postbox().await;
    let ends = let_happen(&post, &[Event::Suppress], Point::Offered, None).await;
    assert_eq!(ends, ["suppressed suppressed"]);
    let copies = post.copies().await;
    let letter = copies.iter().find(|copy| copy.channel == "letter").unwrap();
    assert_eq!((letter.end().as_str(), letter.notice_state.as_str()), ("pending", "pending"));
    assert_eq!(letter.notice_reason, None, "it is owed still, on paper");
}

#[tokio::test]
async fn a_step_removed_before_the_gate_is_not_sent() {
    let post = postbox().await;
    let ends = let_happen(&post, &[Event::RemoveStep], Point::Offered, None).await;
    assert_eq!(ends, ["superseded step_removed"]);
    assert!(post.mailer.ledger().is_empty());
}

#[tokio::test]
async fn what_is_accepted_after_the_gate_is_sent_whatever_happened() {
    let post = postbox().await;
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
        let post = postbox().await;
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
    let post = postbox().await;
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
    let post = postbox().await;
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
        let post = postbox().await;
        assert_eq!(let_happen(&post, &[Event::RemoveStep], Point::BeforeFinal, reply).await, [expected]);
    }
}

#[tokio::test]
async fn a_message_taken_without_a_reply_stays_the_only_one_when_the_date_comes_back() {
    let post = postbox().await;
    let ends = let_happen(&post, &[Event::ChangeDateAndBack], Point::AfterFinal, Some(Reply::TakeAndLose)).await;
    assert_eq!(ends, ["ambiguous"]);
    post.clock.advance(TimeDelta::days(1));
    post.dispatch().await;
    assert_eq!(post.mailer.taken_by(), [holder(0)]);
    post.check().await;
}

/// Two copies, of which the first is in flight when its permit is paused. Says what the other one is after that, once
/// `meanwhile` happened and the pause is lifted.
async fn pause_in_flight(post: &Postbox, reply: Option<Reply>, meanwhile: Option<Event>) -> String {
    let permit = post.permit_with(&holder(0), in_days(30), &["agent@x.example"]).await;
    let mut stop = post.mailer.stop(&holder(0), Point::BeforeFinal);
    post.mailer.reply_to_all(reply);
    let replica = post.replica(1).await;
    let pass = replica.begin_once();
    stop.arrived().await;
    post.happen(Event::Pause, permit, &holder(0)).await;
    stop.release();
    pass.done().await;
    replica.leave().await;
    post.mailer.reply_to_all(None);
    assert_eq!(post.first_copy_to("agent@x.example").await.end(), "superseded paused");
    if let Some(event) = meanwhile {
        post.happen(event, permit, &holder(0)).await;
    }
    post.correct(permit, |p| p.notices_paused_until = None).await;
    post.first_copy_to("agent@x.example").await.end()
}

#[tokio::test]
async fn what_came_of_a_copy_in_flight_does_not_keep_the_others_back_when_the_pause_ends() {
    for (reply, taken) in [(None, 2), (Some(rejected()), 1), (Some(lost()), 1)] {
        let post = Postbox::open().await;
        assert_eq!(pause_in_flight(&post, reply, None).await, "pending");
        post.dispatch().await;
        assert_eq!(post.mailer.taken_by().len(), taken);
        // Nobody would look for the one that failed under a notice that is not owed.
        let superseded = "SELECT count(*) FROM notices WHERE superseded_at IS NOT NULL AND notice_type = 'expires-30d'";
        assert_eq!(post.count(superseded).await, 0);
        post.check().await;
    }
}

#[tokio::test]
async fn what_came_of_a_copy_in_flight_does_not_keep_the_others_back_when_its_step_comes_back() {
    for (reply, taken) in [(None, 2), (Some(rejected()), 1)] {
        let post = Postbox::open().await;
        post.permit_with(&holder(0), in_days(30), &["agent@x.example"]).await;
        let mut stop = post.mailer.stop(&holder(0), Point::BeforeFinal);
        post.mailer.reply_to_all(reply);
        let replica = post.replica(1).await;
        let pass = replica.begin_once();
        stop.arrived().await;
        post.remove_step().await;
        stop.release();
        pass.done().await;
        replica.leave().await;
        post.mailer.reply_to_all(None);
        assert_eq!(post.first_copy_to("agent@x.example").await.end(), "superseded step_removed");
        post.bring_step_back().await;
        // A schedule that changed is heeded by the next scan.
        post.scan().await;
        assert_eq!(post.first_copy_to("agent@x.example").await.end(), "pending");
        post.dispatch().await;
        assert_eq!(post.mailer.taken_by().len(), taken);
        post.check().await;
    }
}

#[tokio::test]
async fn who_was_told_in_flight_and_moved_during_the_pause_is_not_told_again() {
    for reply in [None, Some(Reply::TakeAndLose)] {
        let post = Postbox::open().await;
        assert_eq!(pause_in_flight(&post, reply, Some(Event::Readdress)).await, "pending");
        post.dispatch().await;
        assert_eq!(post.mailer.taken_by(), ["agent@x.example".to_owned(), holder(0)]);
        post.check().await;
    }
}

/// The agent's copy is in flight when the permit is paused; during the pause the holder gets another address. Says who was
/// mailed once the pause has ended.
async fn holder_moves_while_the_agent_is_told(post: &Postbox, end: impl AsyncFnOnce(&Postbox, Uuid)) -> Vec<String> {
    let permit = post.permit_with(&holder(0), in_days(30), &["agent@x.example"]).await;
    let mut stop = post.mailer.stop("agent@x.example", Point::BeforeFinal);
    let mut first = post.mailer.stop(&holder(0), Point::Offered);
    let replica = post.replica(2).await;
    let pass = replica.begin_once();
    stop.arrived().await;
    first.arrived().await;
    post.happen(Event::Pause, permit, &holder(0)).await;
    stop.release();
    first.release();
    pass.done().await;
    replica.leave().await;
    assert_eq!(post.mailer.taken_by(), ["agent@x.example"]);
    post.happen(Event::Readdress, permit, &holder(0)).await;
    end(post, permit).await;
    post.dispatch().await;
    post.check().await;
    post.mailer.taken_by()
}

#[tokio::test]
async fn a_holder_who_moved_while_another_copy_was_in_flight_is_told_however_the_pause_ends() {
    let by_hand = async |post: &Postbox, permit| post.correct(permit, |p| p.notices_paused_until = None).await;
    let by_its_day = async |post: &Postbox, _| {
        post.clock.advance(TimeDelta::days(6));
        post.scan().await;
    };
    let post = Postbox::open().await;
    assert_eq!(holder_moves_while_the_agent_is_told(&post, by_hand).await, ["agent@x.example", NEW_ADDRESS]);
    let post = Postbox::open().await;
    assert_eq!(holder_moves_while_the_agent_is_told(&post, by_its_day).await, ["agent@x.example", NEW_ADDRESS]);
}
