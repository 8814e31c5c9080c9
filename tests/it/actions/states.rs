//! Every action in every state: what the table says, and nothing else; the state is looked at before the input.

use permit_notifier::{
    domain::attempt::{Outcome, Resolution},
    store::{
        Result, StoreError,
        actions::{Posting, Resolving, cancel, hold, posted, release, resolve, retry},
    },
};
use uuid::Uuid;

use super::{Office, TODAY, day, today};

/// `x` allowed, `.` refused with the state, `b` refused because a copy is in flight. Written by hand from the
/// contract; a letter is pending or not.
const TABLE: &str = "
         pending held sending sent ambiguous failed bounced suppressed superseded skipped cancelled letter
hold     x       .    b       .    .         .      .       .          .          .       .         x
cancel   x       x    b       .    .         x      .       .          .          .       .         x
release  .       x    b       .    .         .      .       .          .          .       .         .
retry    .       .    b       .    .         x      x       x          .          .       .         .
resolve  .       .    b       .    x         .      .       .          .          .       .         .
posted   .       .    b       .    .         .      .       .          .          .       .         x
";

/// A notice whose one delivery is in that state.
async fn notice_in(office: &Office, state: &str, number: &str) -> Uuid {
    match state {
        "sent" => return office.ended(number, Outcome::Accepted).await,
        "ambiguous" => return office.ended(number, Outcome::Ambiguous).await,
        "failed" => return office.ended(number, Outcome::Rejected).await,
        "letter" => {
            let permit = office.permit_with(number, |data| data.holder_email = None).await;
            return office.notice(permit).await;
        }
        _ => {}
    }
    let notice = office.pending(number).await;
    let mut connection = office.connect().await;
    match state {
        "pending" => {}
        "held" => _ = hold(&mut connection, notice, "wait", &today()).await.unwrap(),
        "sending" => _ = office.send(notice).await,
        "bounced" => {
            let flight = office.send(notice).await;
            office.settle(flight, Outcome::Accepted).await;
            put(office, notice, "bounced", "failed").await;
        }
        "suppressed" => put(office, notice, "suppressed", "failed").await,
        "superseded" => {
            let permit = office.permit_of(notice).await;
            office.correct_on(TODAY, permit, |data| data.notices_paused_until = Some(day(TODAY))).await;
        }
        "skipped" => {
            let permit = office.permit_of(notice).await;
            office.correct_on("2026-06-17", permit, |data| data.description = Some("x".to_owned())).await;
        }
        "cancelled" => _ = cancel(&mut connection, notice, "no", &today()).await.unwrap(),
        other => panic!("{other}"),
    }
    notice
}

async fn put(office: &Office, notice: Uuid, delivery: &str, state: &str) {
    office
        .run(&format!(
            "UPDATE deliveries SET state = '{delivery}' WHERE notice_id = '{notice}';
             UPDATE notices SET state = '{state}' WHERE id = '{notice}'"
        ))
        .await;
}

async fn act(office: &Office, action: &str, notice: Uuid, reason: &str) -> Result<()> {
    let connection = &mut office.connect().await;
    let rules = &today();
    let done = match action {
        "hold" => hold(connection, notice, reason, rules).await,
        "cancel" => cancel(connection, notice, reason, rules).await,
        "release" => release(connection, notice, Some(reason), rules).await,
        "retry" => retry(connection, notice, rules).await,
        "resolve" => {
            let resolving = Resolving { delivery: None, outcome: Resolution::Delivered, reason, by: "ann" };
            resolve(connection, notice, resolving, rules).await
        }
        "posted" => {
            let posting = Posting { delivery: None, posted_on: day(TODAY), tracking: Some(reason), by: "ann" };
            posted(connection, notice, posting, rules).await
        }
        other => panic!("{other}"),
    };
    done.map(|_| ())
}

#[tokio::test]
async fn each_action_is_allowed_where_the_table_says() {
    let office = Office::new().await;
    let mut lines = TABLE.trim_matches('\n').lines();
    let states: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    for line in lines {
        let mut words = line.split_whitespace();
        let action = words.next().unwrap();
        for (state, mark) in states.iter().zip(words) {
            let notice = notice_in(&office, state, &format!("{action}-{state}")).await;
            let before = (office.state(notice).await, office.copies(notice).await);
            let named = before.0.split(' ').next().unwrap().to_owned();
            // Bad input at the same time: the state is what is told.
            let bad = act(&office, action, notice, "").await;
            match (mark, &bad) {
                ("x", Ok(())) if action == "retry" => continue,
                (".", Err(StoreError::WrongState { why, .. })) => {
                    assert!(why.contains(&named), "{action} in {state}: {why}");
                }
                ("x", Err(StoreError::Invalid { .. })) | ("b", Err(StoreError::BeingSent)) => {}
                _ => panic!("{action} in {state}: {bad:?}"),
            }
            let good = act(&office, action, notice, "a good reason").await;
            assert_eq!(good.is_ok(), mark == "x", "{action} in {state}: {good:?}");
            let after = (office.state(notice).await, office.copies(notice).await);
            assert_eq!(before == after, mark != "x", "{action} in {state}: {before:?} {after:?}");
        }
    }
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let office = Office::new().await;
    for action in ["hold", "cancel", "release", "retry", "resolve", "posted"] {
        let done = act(&office, action, Uuid::now_v7(), "why").await;
        assert!(matches!(done, Err(StoreError::NotFound("notice"))), "{action}: {done:?}");
    }
}

#[tokio::test]
async fn reasons_are_one_to_a_thousand_characters_without_control_characters() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    for bad in ["", "  ", "two\nlines", "bell\u{7}", "end\r\n", &"x".repeat(1001)] {
        let done = hold(&mut office.connect().await, notice, bad, &today()).await;
        assert!(matches!(done, Err(StoreError::Invalid { field: "reason", .. })), "{bad:?}: {done:?}");
    }
    let longest = "é".repeat(1000);
    hold(&mut office.connect().await, notice, &format!(" {longest} "), &today()).await.unwrap();
    assert_eq!(office.ask(&format!("SELECT reason FROM notices WHERE id = '{notice}'")).await, longest);
}
