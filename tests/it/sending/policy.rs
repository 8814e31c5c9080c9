//! Refusals of a recipient that are about more, or less, than this one message.

use std::time::Duration;

use chrono::TimeDelta;
use permit_notifier::{
    config::{AmbiguousPolicy, MailAllowlist},
    dispatch::Report,
    domain::delivery::DeliveryState,
};

use super::{agrees, due, hasty, holder, patient};
use crate::support::{
    postbox::{Postbox, Replica},
    smtp_server::{Act, At, Rule, SmtpServer},
};

const BY_POLICY: Act = Act::Say("550 5.7.1 not from where you are\r\n");

async fn paused(post: &Postbox) -> bool {
    post.count("SELECT count(*) FROM transport WHERE paused_until IS NOT NULL").await == 1
}

#[tokio::test]
async fn a_refusal_by_policy_is_final_only_when_another_message_was_accepted_since() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let server = SmtpServer::with([Rule::new(At::Rcpt, BY_POLICY).for_recipient(&holder(0))]);
    for tries in 1..=3 {
        post.dispatch_with(patient(&server)).await;
        let copy = post.copy_to(&holder(0)).await;
        assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", tries), "as long as nothing is accepted");
        post.clock.advance(TimeDelta::hours(1));
    }
    // Another message goes, and not this one.
    post.execute("UPDATE deliveries SET next_attempt_at = next_attempt_at + interval '2 hours'").await;
    post.permit(&holder(1)).await;
    assert_eq!(post.dispatch_with(patient(&server)).await.0.accepted, 1);
    post.clock.advance(TimeDelta::hours(3));
    post.dispatch_with(patient(&server)).await;
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!(copy.end(), "failed refused");
    assert_eq!(copy.last_error.as_deref(), Some("550 5.7.1 not from where you are"));
    assert!(copy.payload_sha256.is_some());
    assert_eq!(post.outcomes(copy.id).await, ["deferred", "deferred", "deferred", "rejected"]);
    assert_eq!(post.count("SELECT count(*) FROM suppressions").await, 0, "the address is good");
    agrees(&post, &server).await;
}

#[tokio::test]
async fn five_addresses_refused_by_policy_in_a_row_are_the_transports_fault() {
    let post = Postbox::open().await;
    due(&post, 40).await;
    let server = SmtpServer::with([Rule::new(At::Rcpt, BY_POLICY)]);
    let (report, is_down) = post.dispatch_with(patient(&server)).await;
    assert!(is_down && paused(&post).await);
    assert_eq!((report.deferred, report.rejected, report.left_pending), (4, 0, 40));
    assert!((1..=4).contains(&report.not_sent), "{report:?}");
    for _ in 0..3 {
        post.clock.advance(TimeDelta::minutes(2));
        post.breaker_lets_probe().await;
        let (report, is_down) = post.dispatch_with(patient(&server)).await;
        assert_eq!((report.not_sent, report.deferred, is_down), (1, 0, true), "one probe");
    }
    assert!(post.copies().await.iter().all(|copy| copy.state == "pending" && copy.attempt_count <= 1));
    server.behave([]);
    post.clock.advance(TimeDelta::minutes(2));
    post.breaker_lets_probe().await;
    assert_eq!(post.dispatch_with(patient(&server)).await.0.accepted, 40);
    assert!(!paused(&post).await);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn an_acceptance_between_refusals_by_policy_clears_the_transport() {
    let post = Postbox::open().await;
    due(&post, 6).await;
    let refused: Vec<String> = (0..6).map(holder).collect();
    let server = SmtpServer::with(refused.iter().map(|address| Rule::new(At::Rcpt, BY_POLICY).for_recipient(address)));
    // At most three are tried between two that are accepted.
    post.execute("UPDATE deliveries SET next_attempt_at = next_attempt_at + interval '1 hour'").await;
    for number in 0..2 {
        let three = "UPDATE deliveries SET next_attempt_at = next_attempt_at - interval '1 hour' WHERE id IN
                     (SELECT id FROM deliveries WHERE state = 'pending' AND attempt_count = 0 LIMIT 3)";
        post.execute(three).await;
        assert_eq!(post.dispatch_with(patient(&server)).await.0.deferred, 3);
        post.permit(&holder(10 + number)).await;
        assert_eq!(post.dispatch_with(patient(&server)).await.0.accepted, 1);
    }
    assert!(!paused(&post).await);
    post.clock.advance(TimeDelta::minutes(2));
    assert_eq!(post.dispatch_with(patient(&server)).await.0.rejected, 6);
    assert!(!paused(&post).await);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn an_address_that_does_not_exist_is_suppressed_and_its_notice_owes_a_letter() {
    let post = Postbox::open().await;
    due(&post, 2).await;
    let nobody = Rule::new(At::Rcpt, Act::Say("550 5.1.1 nobody of that name\r\n")).for_recipient(&holder(0));
    let server = SmtpServer::with([nobody]);
    let (report, is_down) = post.dispatch_with(patient(&server)).await;
    assert_eq!((report.accepted, report.rejected, is_down), (1, 1, false));
    let copies = post.copies().await;
    let failed = copies.iter().find(|copy| copy.recipient.as_deref() == Some(&*holder(0))).unwrap();
    assert_eq!(failed.end(), "failed refused");
    assert_eq!(failed.last_error.as_deref(), Some("550 5.1.1 nobody of that name"));
    let letters: Vec<_> = copies.iter().filter(|copy| copy.channel == "letter").collect();
    assert_eq!(letters.len(), 1, "{copies:?}");
    assert_eq!((letters[0].notice_id, &*letters[0].state), (failed.notice_id, DeliveryState::Pending.as_str()));
    let suppressed = "SELECT count(*) FROM suppressions WHERE address = 'holder000@x.example' AND source = 'refused'";
    assert_eq!(post.count(suppressed).await, 1);
    agrees(&post, &server).await;
}

#[tokio::test]
async fn one_recipient_whose_connection_always_breaks_stops_nobody_else() {
    for (at, act) in [
        (At::Rcpt, Act::Cut),
        (At::Rcpt, Act::SayThenCut("250 2.1")),
        (At::Rcpt, Act::Stall),
        (At::Rcpt, Act::Say("what was that?\r\n")),
        (At::Data, Act::Cut),
    ] {
        let post = Postbox::open().await;
        due(&post, 31).await;
        let server = SmtpServer::with([Rule::new(at, act.clone()).for_recipient(&holder(0))]);
        let (report, is_down) = post.dispatch_with(hasty(&server)).await;
        assert_eq!((report.accepted, report.not_sent, is_down), (30, 1, false), "{at:?} {act:?}");
        for _ in 0..3 {
            post.clock.advance(TimeDelta::minutes(2));
            let (report, is_down) = post.dispatch_with(hasty(&server)).await;
            assert_eq!((report.not_sent, is_down), (1, false), "{at:?} {act:?}");
        }
        assert_eq!(post.copy_to(&holder(0)).await.end(), "pending");
        agrees(&post, &server).await;
    }
}

#[tokio::test]
async fn nobody_outside_the_allowlist_is_mailed() {
    let post = Postbox::open().await;
    for number in 0..10 {
        post.permit(&format!("holder{number}@outside.example")).await;
        post.permit(&format!("holder{number}@sub.inside.example")).await;
    }
    for number in 0..5 {
        post.permit(&format!("holder{number}@inside.example")).await;
    }
    post.permit("One.Person@elsewhere.example").await;
    let server = SmtpServer::with([]);
    let mut rules = post.rules(patient(&server), 4);
    rules.allowlist = MailAllowlist::parse("inside.example, one.person@elsewhere.example");
    let report = pass(rules).await;
    assert_eq!((report.accepted, report.suppressed, report.left_pending), (6, 20, 0));
    for copy in post.copies().await {
        let address = copy.recipient.clone().unwrap();
        let inside = address.ends_with("@inside.example") || address == "One.Person@elsewhere.example";
        assert_eq!(copy.end(), if inside { "sent" } else { "suppressed guard" }, "{address}");
    }
    let named = server.heard().into_iter().filter(|heard| heard.line.starts_with("RCPT"));
    assert!(named.clone().count() == 6 && named.into_iter().all(|heard| !heard.line.contains("outside")));
    agrees(&post, &server).await;
}

#[tokio::test]
async fn by_policy_an_ambiguous_message_is_sent_again_once_after_the_hours_have_passed() {
    let post = Postbox::open().await;
    due(&post, 3).await;
    let server = SmtpServer::with([
        Rule::new(At::Dot, Act::AcceptThenCut).for_recipient(&holder(0)),
        Rule::new(At::Dot, Act::Cut).for_recipient(&holder(1)),
    ]);
    let mut rules = post.rules(patient(&server), 2);
    rules.policy = AmbiguousPolicy::ResendAfter(Duration::from_hours(12));
    assert_eq!(pass(rules.clone()).await.ambiguous, 2);
    let first = [post.copy_to(&holder(0)).await.message_id, post.copy_to(&holder(1)).await.message_id];
    agrees(&post, &server).await;
    server.behave([]);
    post.clock.advance(TimeDelta::hours(11));
    assert_eq!(pass(rules.clone()).await, Report::default(), "not yet");
    for (hours, accepted) in [(1, 2), (13, 0), (13, 0)] {
        post.clock.advance(TimeDelta::hours(hours));
        assert_eq!(pass(rules.clone()).await.accepted, accepted);
    }
    for (number, id) in first.into_iter().enumerate() {
        let copy = post.copy_to(&holder(number)).await;
        assert_eq!((copy.end().as_str(), &copy.message_id), ("sent", &id), "the same Message-ID");
        assert_eq!(post.outcomes(copy.id).await, ["ambiguous connection_lost", "accepted"]);
    }
    let by_policy = "SELECT count(*) FROM attempts WHERE resolution = 'not_delivered' AND resolved_by = 'policy'";
    assert_eq!(post.count(by_policy).await, 2);
    let times = |number| server.accepted().iter().filter(|taken| taken.recipient == holder(number)).count();
    assert_eq!([times(0), times(1), times(2)], [2, 1, 1]);
    agrees(&post, &server).await;
}

async fn pass(rules: permit_notifier::dispatch::DispatchRules) -> Report {
    let replica = Replica::start(rules).await;
    let (report, _) = replica.run_once().await;
    replica.leave().await;
    report
}

#[tokio::test]
async fn the_third_break_of_one_recipient_while_others_pass_is_its_own() {
    let post = Postbox::open().await;
    let server = SmtpServer::with([Rule::new(At::Rcpt, Act::Cut).for_recipient(&holder(0))]);
    post.permit(&holder(0)).await;
    for other in 1..=3 {
        assert_eq!(post.copy_to(&holder(0)).await.attempt_count, 0);
        post.dispatch_with(patient(&server)).await;
        // Somebody else passes after each break.
        post.clock.advance(TimeDelta::seconds(10));
        post.permit(&holder(other)).await;
        assert_eq!(post.dispatch_with(patient(&server)).await.0.accepted, 1);
        post.clock.advance(TimeDelta::minutes(2));
    }
    let copy = post.copy_to(&holder(0)).await;
    assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", 1));
    assert_eq!(
        post.outcomes(copy.id).await,
        ["not_sent connection_lost", "not_sent connection_lost", "deferred breaks_alone"]
    );
    agrees(&post, &server).await;
}

#[tokio::test]
async fn one_recipient_at_which_the_server_always_leaves_stops_nobody_else() {
    const LEAVES: Act = Act::Say("421 4.3.2 closing\r\n");
    for at in [At::Rcpt, At::Dot] {
        let post = Postbox::open().await;
        due(&post, 31).await;
        let server = SmtpServer::with([Rule::new(at, LEAVES).for_recipient(&holder(0))]);
        let mut accepted = 0;
        for _ in 0..4 {
            accepted += post.dispatch_with(patient(&server)).await.0.accepted;
            post.clock.advance(TimeDelta::minutes(2));
            post.breaker_lets_probe().await;
        }
        assert_eq!(accepted, 30, "{at:?}");
        let copy = post.copy_to(&holder(0)).await;
        assert_eq!((copy.end().as_str(), copy.last_error.as_deref()), ("pending", Some("421 4.3.2 closing")));
        agrees(&post, &server).await;
    }
}

#[tokio::test]
async fn a_fault_that_one_message_meets_for_the_third_time_while_others_pass_is_its_own() {
    let post = Postbox::open().await;
    post.permit(&holder(0)).await;
    let server = SmtpServer::with([Rule::new(At::Rcpt, Act::Say("421 4.3.2 closing\r\n")).for_recipient(&holder(0))]);
    for number in 1..=4 {
        assert_eq!(post.dispatch_with(patient(&server)).await.0.accepted, 0);
        assert_eq!(paused(&post).await, number < 3, "fault {number}");
        post.breaker_lets_probe().await;
        post.permit(&holder(number)).await;
        assert_eq!(post.dispatch_with(patient(&server)).await.0.accepted, 1);
        post.clock.advance(TimeDelta::minutes(10));
    }
    let copy = post.copy_to(&holder(0)).await;
    let outcomes = post.outcomes(copy.id).await;
    assert_eq!(outcomes[2..], ["deferred breaks_alone", "deferred breaks_alone"], "{outcomes:?}");
    assert_eq!((copy.end().as_str(), copy.attempt_count), ("pending", 2));
    agrees(&post, &server).await;
}

#[tokio::test]
async fn a_long_outage_by_policy_fails_nobody_however_many_addresses_it_meets() {
    let post = Postbox::open().await;
    due(&post, 2).await;
    let server = SmtpServer::with([Rule::new(At::Rcpt, BY_POLICY)]);
    post.dispatch_with(patient(&server)).await;
    // A hundred others were probed meanwhile, and pushed these two out of the list.
    post.execute("UPDATE transport SET policy_refusals = ARRAY(SELECT 'a' || n FROM generate_series(1, 100) n)").await;
    for _ in 0..2 {
        post.clock.advance(TimeDelta::minutes(2));
        post.breaker_lets_probe().await;
        assert_eq!(post.dispatch_with(patient(&server)).await.0.rejected, 0);
    }
    assert!(post.copies().await.iter().all(|copy| copy.end() == "pending"));
    agrees(&post, &server).await;
}
