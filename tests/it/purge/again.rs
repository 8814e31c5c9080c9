//! Whatever happens after a purge, nothing is sent again because its memory was cleaned.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use permit_notifier::domain::attempt::{Outcome, Phase};
use permit_notifier::domain::permit::PermitStatus;
use permit_notifier::domain::schedule::{Schedule, Step};
use permit_notifier::files::{self, ImportOptions, ImportRules, Input};
use permit_notifier::store::StoreError;
use permit_notifier::store::actions::{self, ActionRules};
use permit_notifier::store::permits::Contact;
use sqlx::FromRow;
use uuid::Uuid;

use super::{purge, rows_with};
use crate::support::postbox::{FOOD, Postbox, in_days, mailer, verbs::address};

const NAMES: [&str; 2] = ["Corner Bakery", "@x.example"];

fn refused() -> mailer::Reply {
    let words = "5.1.1 <refused@x.example>: no such user (refused@x.example)";
    mailer::Reply::Offer(mailer::coded(Outcome::Rejected, Phase::Rcpt, 550, words))
}

/// Permits of which notices ended in every way.
struct Past {
    sent: Uuid,
    refused: Uuid,
    archived: Uuid,
    unresolved: Uuid,
}

async fn past(post: &Postbox) -> Past {
    let expires_on = in_days(30);
    let sent = post.permit_with("sent@x.example", expires_on, &["agent@x.example"]).await;
    let refused_one = post.permit_with("refused@x.example", expires_on, &["waits@x.example"]).await;
    let unresolved = post.permit("unresolved@x.example").await;
    let archived = post.permit("archived@x.example").await;
    post.mailer.reply("refused@x.example", refused());
    post.mailer.reply("waits@x.example", mailer::deferred());
    post.mailer.reply("unresolved@x.example", mailer::lost());
    post.archive(archived).await;
    post.dispatch().await;
    // One copy was refused and the other waited when this one was suspended: with it both would be owed again.
    post.correct(refused_one, |permit| permit.status = PermitStatus::Suspended).await;
    Past { sent, refused: refused_one, archived, unresolved }
}

#[derive(Debug, PartialEq, Eq, FromRow)]
struct Memory {
    notice_key: String,
    state: String,
    reason_code: Option<String>,
    copies: String,
    attempts: String,
}

/// What must never be forgotten.
async fn memory(post: &Postbox) -> Vec<Memory> {
    sqlx::query_as(
        "SELECT n.notice_key, n.state, n.reason_code,
                (SELECT coalesce(string_agg(concat_ws(' ', d.state, d.role, d.copy, d.message_id, d.payload_sha256), ', ' ORDER BY d.id), '')
                 FROM deliveries d WHERE d.notice_id = n.id) AS copies,
                (SELECT coalesce(string_agg(concat_ws(' ', a.number, a.outcome, a.smtp_code, a.payload_sha256, a.finished_at),
                                            ', ' ORDER BY a.id), '')
                 FROM attempts a JOIN deliveries d ON d.id = a.delivery_id WHERE d.notice_id = n.id) AS attempts
         FROM notices n ORDER BY n.notice_key",
    )
    .fetch_all(&mut post.session().await)
    .await
    .expect("the memory")
}

/// Every step may go for ten years.
async fn stretch_schedule(post: &Postbox) {
    let late = |step: &Step| Step { late_by_days: 3650, ..step.clone() };
    let schedule = Schedule::new(Schedule::usual().steps().iter().map(late).collect()).expect("a schedule");
    let mut session = post.session().await;
    permit_notifier::store::changes::reschedule(&mut session, FOOD, &schedule, &post.change_rules())
        .await
        .expect("another schedule");
}

#[tokio::test]
async fn after_a_purge_of_everything_nothing_that_is_remembered_is_sent_again() {
    let post = Postbox::open().await;
    let before_it = past(&post).await;
    let ledger = post.mailer.ledger().len();
    assert_eq!(ledger, 2, "the rest was refused, was put off or got no answer");
    post.clock.advance(TimeDelta::days(1000));
    post.scan().await;
    let before = memory(&post).await;
    let removed = purge(&post).await;
    assert!(removed.messages == 3 && removed.notices >= 10, "{removed:?}");
    assert_eq!(removed.permits, 3, "of one it is still to be found out what became of its notice");
    assert_eq!(memory(&post).await, before);
    // What is left belongs to the one of which nobody knows.
    // These tests name the agents' roles after their addresses, and roles stay.
    let without_role =
        |row: String| row.replace("agent agent@x.example", "agent").replace("agent waits@x.example", "agent");
    let left: Vec<String> = rows_with(&post, &NAMES).await.into_iter().map(without_role).collect();
    let left: Vec<String> = left.into_iter().filter(|row| NAMES.iter().any(|name| row.contains(name))).collect();
    let unresolved = before_it.unresolved.to_string();
    let others: Vec<_> =
        left.iter().filter(|row| !row.contains("unresolved@x.example") && !row.contains(&unresolved)).collect();
    assert!(others.is_empty(), "{others:#?}");
    assert!(!left.is_empty());

    stretch_schedule(&post).await;
    let same_again = |permit: &mut permit_notifier::store::permits::PermitData, email: &str, agent: &str| {
        permit.status = PermitStatus::Active;
        permit.holder_name = "Corner Bakery".to_owned();
        permit.holder_email = Some(address(email));
        permit.contacts = vec![Contact {
            name: "Agent".to_owned(),
            email: Some(address(agent)),
            role: format!("agent {agent}"),
            language: "en".to_owned(),
        }];
    };
    post.correct(before_it.refused, |permit| same_again(permit, "refused@x.example", "waits@x.example")).await;
    for permit in [before_it.sent, before_it.refused] {
        post.correct(permit, |permit| {
            permit.holder_name = "Corner Bakery".to_owned();
            permit.expires_on = in_days(400);
        })
        .await;
        post.correct(permit, |permit| permit.expires_on = in_days(30)).await;
    }
    post.correct(before_it.sent, |permit| same_again(permit, "sent@x.example", "agent@x.example")).await;
    let mut session = post.session().await;
    permit_notifier::store::changes::restore(&mut session, before_it.archived, None, &post.change_rules())
        .await
        .expect("a permit that is back");
    import_the_same(&post, before_it.sent, "sent@x.example").await;
    for _ in 0..2 {
        post.scan().await;
        post.dispatch().await;
        post.clock.advance(TimeDelta::days(1));
    }
    // The one that was suspended then, and so never owed its last step, owes it now: nothing else goes.
    let since = post.mailer.ledger().split_off(ledger);
    let known = |key: &str| before.iter().any(|row| row.notice_key == key);
    assert!(since.iter().all(|taken| !known(&taken.notice_key)), "{since:#?}");
    let keys: BTreeSet<&str> = since.iter().map(|taken| taken.notice_key.as_str()).collect();
    assert_eq!(keys, BTreeSet::from([&*format!("{}:expired-30d:2027-03-31", before_it.refused)]), "{since:#?}");
    assert_eq!(since.len(), 2, "one for each address: {since:#?}");
    // The one that was archived then owes a letter for a step of which nothing had been recorded; letters are a person's.
    let open = post
        .count("SELECT count(*) FROM deliveries WHERE channel = 'email' AND state IN ('pending', 'held', 'sending')")
        .await;
    assert_eq!(open, 0);
    post.check().await;
}

async fn import_the_same(post: &Postbox, permit: Uuid, email: &str) {
    let number: String = sqlx::query_scalar("SELECT permit_number FROM permits WHERE id = $1")
        .bind(permit)
        .fetch_one(&mut post.session().await)
        .await
        .expect("its number");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("permits.csv");
    let line = format!("{number},{FOOD},Corner Bakery,{email},{}", in_days(30));
    std::fs::write(&file, format!("permit_number,permit_type,holder_name,holder_email,expires_on\n{line}\n"))
        .expect("written");
    let rules = ImportRules {
        moment: post.moment(),
        zone: chrono_tz::UTC,
        window: None,
        claim_limit: 0,
        catch_up: true,
        complete: false,
        dry_run: false,
        by: "import",
    };
    let options = ImportOptions::default();
    let report = files::import(&post.url, Input::Path(file), &options, &rules, |_| {}).await.expect("an import");
    assert_eq!(report.rejected, 0, "{report:?}");
}

#[tokio::test]
async fn nobody_acts_on_what_is_only_memory() {
    let post = Postbox::open().await;
    post.permit("refused@x.example").await;
    post.mailer.reply("refused@x.example", refused());
    post.dispatch().await;
    let notice = post.copies().await[0].notice_id;
    post.clock.advance(TimeDelta::days(1000));
    purge(&post).await;
    let rules = ActionRules { moment: post.moment(), window: None, zone: chrono_tz::UTC };
    let mut session = post.session().await;
    let retried = actions::retry(&mut session, notice, &rules).await;
    let Err(StoreError::WrongState { state, why }) = retried else { panic!("{retried:?}") };
    assert_eq!(state, "failed");
    assert!(why.contains("KEEP_PERSONAL_DAYS"), "{why}");
    post.check().await;
}
