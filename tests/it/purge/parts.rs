//! Of each row the words about people go and the proof stays; and what is young stays whole.

use chrono::TimeDelta;
use permit_notifier::domain::attempt::Resolution;
use permit_notifier::store::actions::{self, ActionRules, Posting, Resolving};

use super::{purge, rows_with};
use crate::support::postbox::{Postbox, mailer};

/// What nobody must find any more.
const WORDS: [&str; 3] = ["@x.example", "Corner Bakery", "Zoe Bell"];

fn rules(post: &Postbox) -> ActionRules<'static> {
    ActionRules { moment: post.moment(), window: None, zone: chrono_tz::UTC }
}

/// The notice of a permit whose one copy got no answer.
async fn unanswered(post: &Postbox, email: &str) -> uuid::Uuid {
    post.permit(email).await;
    post.mailer.reply(email, mailer::lost());
    post.dispatch().await;
    post.copy_to(email).await.notice_id
}

#[tokio::test]
async fn what_people_and_servers_said_goes_and_how_a_letter_was_posted_stays() {
    let post = Postbox::open().await;
    let mut session = post.session().await;
    let found_out = unanswered(&post, "found-out@x.example").await;
    let reason = "Zoe Bell called";
    let resolving = Resolving { delivery: None, outcome: Resolution::Delivered, reason, by: "ann@office.example" };
    actions::resolve(&mut session, found_out, resolving, &rules(&post)).await.expect("it was delivered");
    post.execute(
        "UPDATE attempts SET late_result = 'accepted 250 for found-out@x.example' WHERE outcome = 'ambiguous'",
    )
    .await;
    post.permit("cancelled@x.example").await;
    let cancelled = post.copy_to("cancelled@x.example").await.notice_id;
    actions::hold(&mut session, cancelled, "Zoe Bell asks", &rules(&post)).await.expect("it waits");
    actions::cancel(&mut session, cancelled, "Zoe Bell wants none", &rules(&post)).await.expect("it will not go");
    post.permit("released@x.example").await;
    let released = post.copy_to("released@x.example").await.notice_id;
    actions::hold(&mut session, released, "wait", &rules(&post)).await.expect("it waits");
    actions::release(&mut session, released, Some("Zoe Bell called"), &rules(&post)).await.expect("it goes");
    let told = post.permit("told@x.example").await;
    post.correct(told, |permit| {
        permit.site_address = Some("1 Zoe Bell Lane".to_owned());
        permit.description = Some("the oven of Zoe Bell".to_owned());
        permit.custom = serde_json::json!({ "keeper": "Zoe Bell" });
    })
    .await;
    let by_letter = post.permit("moved@x.example").await;
    post.correct(by_letter, |permit| permit.holder_email = None).await;
    let letter = post.copies().await.into_iter().find(|copy| copy.channel == "letter").expect("a letter").notice_id;
    let posting =
        Posting { delivery: None, posted_on: post.moment().today, tracking: Some("RR 12"), by: "ann@office.example" };
    actions::posted(&mut session, letter, posting, &rules(&post)).await.expect("it was posted");
    post.dispatch().await;
    post.clock.advance(TimeDelta::days(1000));
    post.execute("UPDATE notices SET held_reason = 'Zoe Bell asks' WHERE reason_code = 'by_person'").await;
    purge(&post).await;
    assert_eq!(rows_with(&post, &WORDS).await, Vec::<String>::new());
    let proof = "SELECT count(*) FROM attempts
                 WHERE response LIKE 'posted on %-%-% by ann@office.example, tracking number RR 12'";
    assert_eq!(post.count(proof).await, 1, "who posted a letter, and when, is the proof of it");
    let what_was_found = "SELECT count(*) FROM attempts
                          WHERE resolution = 'delivered' AND resolved_by = 'ann@office.example'
                            AND resolution_reason = '(removed)' AND late_result LIKE 'accepted 250%'";
    assert_eq!(post.count(what_was_found).await, 1);
    post.check().await;
}

#[tokio::test]
async fn of_the_offices_log_who_did_what_stays_and_schedules_with_their_values() {
    let post = Postbox::open().await;
    post.execute(
        "INSERT INTO office_log (id, at, by, action, subject, label, before, after)
         SELECT gen_random_uuid(), now() - interval '3000 days', 'user:ann@office.example', 'changed', subject,
                subject || ' of zoe@x.example', '{\"was\": \"Zoe Bell\"}', '{\"is\": \"Zoe Bell\"}'
         FROM unnest(ARRAY['suppression', 'user', 'token', 'permit-type']) AS subject",
    )
    .await;
    assert_eq!(purge(&post).await.deeds, 3);
    let log = "SELECT count(*) FROM office_log WHERE by = 'user:ann@office.example' AND action = 'changed' AND ";
    for (subject, is) in [
        ("suppression", "label = '(removed)' AND before IS NULL AND after IS NULL"),
        ("user", "label = '(removed)' AND before IS NULL AND after IS NULL"),
        ("token", "label = 'token of zoe@x.example' AND before IS NULL AND after IS NULL"),
        ("permit-type", "label LIKE '% of zoe@x.example' AND before ? 'was' AND after ? 'is'"),
    ] {
        let rows: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("{log} subject = '{subject}' AND {is}")))
            .fetch_one(&mut post.session().await)
            .await
            .expect("the log");
        assert_eq!(rows, 1, "{subject}");
    }
}

#[tokio::test]
async fn what_is_young_stays_however_old_its_permit_is() {
    let post = Postbox::open().await;
    let corrected = post.permit("corrected@x.example").await;
    let found_out = unanswered(&post, "found-out@x.example").await;
    let may_go = post.permit("may-go@x.example").await;
    post.dispatch().await;
    post.clock.advance(TimeDelta::days(1000));
    // Whoever found something out today may be asked about it tomorrow.
    let resolving =
        Resolving { delivery: None, outcome: Resolution::Delivered, reason: "Zoe Bell", by: "ann@office.example" };
    actions::resolve(&mut post.session().await, found_out, resolving, &rules(&post)).await.expect("it was delivered");
    // Recorded today, and over long ago.
    let late = post.permit("late@x.example").await;
    post.scan().await;
    post.correct(corrected, |permit| permit.holder_name = "Zoe Bell".to_owned()).await;
    post.execute(
        "INSERT INTO kept_files (id, file_name, bytes, kept_by, kept_at)
         SELECT gen_random_uuid(), 'permits.csv', 1, 'user:ann@office.example', updated_at
         FROM permits WHERE holder_name = 'Zoe Bell'",
    )
    .await;
    let may_go_still = "UPDATE notices SET send_by = expires_on + 3650 WHERE permit_id = $1";
    sqlx::query(may_go_still).bind(may_go).execute(&mut post.session().await).await.expect("its last day");
    let removed = purge(&post).await;
    assert_eq!((removed.uploads, removed.changes), (0, 0), "{removed:?}");
    let notices: Vec<(uuid::Uuid, uuid::Uuid, bool)> =
        sqlx::query_as("SELECT id, permit_id, purged_at IS NULL FROM notices")
            .fetch_all(&mut post.session().await)
            .await
            .expect("the notices");
    assert!(notices.iter().any(|(id, _, whole)| *id == found_out && *whole), "{notices:?}");
    for permit in [late, may_go] {
        let of_it: Vec<_> = notices.iter().filter(|(_, of, _)| *of == permit).collect();
        assert!(!of_it.is_empty() && of_it.iter().all(|(_, _, whole)| *whole), "{of_it:?}");
    }
    assert!(notices.iter().any(|(_, _, whole)| !whole), "what is old went: {removed:?}");
}
