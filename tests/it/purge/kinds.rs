//! Each kind goes when it is old enough, and not before; a dry run counts and removes nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::TimeDelta;
use permit_notifier::config::Retention;
use permit_notifier::domain::role::Role;
use permit_notifier::purge::{PurgeRules, Purged, Removed, daily::purge_if_due, run_once};
use permit_notifier::store::purge::PurgeTrigger;
use reqwest::Method;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{purge, purge_with, rows_with, rules, two_years};
use crate::support::api::{TestApi, send};
use crate::support::postbox::{Postbox, in_days, verbs::address};

#[tokio::test]
async fn a_dry_run_counts_what_a_purge_removes_and_removes_nothing() {
    let post = Postbox::open().await;
    for number in 0..3 {
        post.permit(&format!("holder{number}@x.example")).await;
    }
    post.dispatch().await;
    post.execute(
        "INSERT INTO office_log (id, at, by, action, subject, label, after)
         SELECT gen_random_uuid(), created_at, 'user:ann@office.example', 'suppressed', 'suppression', 'holder0@x.example',
                '{\"reason\": \"holder0@x.example asked\"}' FROM permits;
         INSERT INTO imports (id, file_name, started_at, finished_at, report)
         SELECT gen_random_uuid(), 'permits.csv', created_at, created_at,
                '{\"rows\": 1, \"errors\": [{\"row\": 2, \"column\": \"holder_email\", \"value\": \"holder9@x.example,\",
                  \"code\": \"malformed\", \"detail\": \"holder9@x.example, is no address\"}], \"warnings\": []}'
         FROM permits LIMIT 1;
         INSERT INTO import_rejections SELECT id, 2, '[\"holder9@x.example,\"]', 'holder_email: is no address' FROM imports;
         INSERT INTO kept_files (id, file_name, bytes, kept_by, kept_at)
         SELECT gen_random_uuid(), 'permits.csv', 1, 'user:ann@office.example', created_at FROM permits LIMIT 1",
    )
    .await;
    post.clock.advance(TimeDelta::days(2));
    assert_eq!(purge(&post).await, Removed { uploads: 1, ..Removed::default() }, "all the rest is young");
    post.clock.advance(TimeDelta::days(1000));
    let before = rows_with(&post, &["x.example"]).await;
    let would = purge_with(&rules(&post), true).await;
    assert_eq!(rows_with(&post, &["x.example"]).await, before);
    assert_eq!(post.count("SELECT count(*) FROM purges").await, 1, "a dry run is none");
    assert_eq!((would.messages, would.import_rows, would.permits, would.deeds), (3, 2, 3, 3), "{would:?}");
    assert!(would.notices >= 3);
    assert_eq!(purge(&post).await, would);
    assert_eq!(rows_with(&post, &["x.example", "Corner Bakery"]).await, Vec::<String>::new());
    let kept =
        "SELECT count(*) FROM imports WHERE report->'errors'->0->>'code' = 'malformed' AND report->>'rows' = '1'";
    assert_eq!(post.count(kept).await, 1, "what is nobody's personal data stays");
    assert_eq!(purge(&post).await, Removed::default(), "nothing is left to do");
    post.check().await;
}

#[tokio::test]
async fn what_is_to_be_kept_for_ever_is_kept() {
    let post = Postbox::open().await;
    post.permit("holder@x.example").await;
    post.dispatch().await;
    post.clock.advance(TimeDelta::days(20_000));
    let keep = Retention { content: None, personal: None };
    assert_eq!(purge_with(&PurgeRules { keep, ..rules(&post) }, false).await, Removed::default());
    let keep = Retention { content: None, ..two_years() };
    let removed = purge_with(&PurgeRules { keep, ..rules(&post) }, false).await;
    assert_eq!((removed.messages, removed.permits), (0, 1));
    let keep = Retention { personal: None, ..two_years() };
    let removed = purge_with(&PurgeRules { keep, ..rules(&post) }, false).await;
    assert_eq!((removed.messages, removed.permits), (1, 0));
}

#[tokio::test]
async fn a_permit_that_somebody_works_with_or_that_owes_a_notice_yet_keeps_its_names() {
    let post = Postbox::open().await;
    let touched = post.permit("touched@x.example").await;
    post.permit("owes@x.example").await;
    post.dispatch().await;
    post.execute("UPDATE schedule_steps SET late_by_days = 1500 WHERE notice_type = 'expired-30d'").await;
    post.clock.advance(TimeDelta::days(1000));
    assert_eq!(purge(&post).await.permits, 0, "its last step may still go");
    post.execute("UPDATE schedule_steps SET late_by_days = 7 WHERE notice_type = 'expired-30d'").await;
    post.correct(touched, |permit| permit.description = Some("a bakery".to_owned())).await;
    assert_eq!(purge(&post).await.permits, 1);
    assert!(!rows_with(&post, &["touched@x.example"]).await.is_empty());
    // Names that somebody writes into it afterwards stay as long again.
    post.clock.advance(TimeDelta::days(800));
    assert_eq!(purge(&post).await.permits, 1);
    post.clock.advance(TimeDelta::minutes(1));
    post.correct(touched, |permit| {
        permit.holder_name = "A name anew".to_owned();
        permit.holder_email = Some(address("anew@x.example"));
    })
    .await;
    assert_eq!(purge(&post).await.permits, 0);
    post.clock.advance(TimeDelta::days(800));
    assert_eq!(purge(&post).await.permits, 1);
    assert_eq!(rows_with(&post, &["x.example"]).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_permit_in_force_and_one_that_ended_not_so_long_ago_keep_their_names_however_long_nobody_has_changed_them() {
    let post = Postbox::open().await;
    post.execute("UPDATE schedule_steps SET enabled = false WHERE offset_days > 0").await;
    for (email, days) in [("in-force@x.example", 2000), ("ended@x.example", 271), ("long-over@x.example", 269)] {
        post.permit_expiring(email, in_days(days)).await;
    }
    post.clock.advance(TimeDelta::days(1000));
    assert_eq!(purge(&post).await.permits, 1);
    for (email, kept) in [("in-force@x.example", true), ("ended@x.example", true), ("long-over@x.example", false)] {
        let left = rows_with(&post, &[email]).await;
        assert_eq!(left.iter().any(|row| row.starts_with("permits: ")), kept, "{left:#?}");
    }
}

#[tokio::test]
async fn mail_on_disk_goes_by_the_age_of_its_files() {
    let post = Postbox::open().await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, days: u64| {
        let path = folder.path().join(name);
        let file = std::fs::File::create(&path).unwrap();
        #[expect(clippy::disallowed_methods, reason = "files have the host's times")]
        file.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
        path
    };
    let old = [file("a@x.eml", 731), file(".b@x.eml.0123456789abcdef.part", 731)];
    let stays = [file("c@x.eml", 729), file("notes.txt", 900)];
    let rules = PurgeRules { mail_folder: PathBuf::from(folder.path()), ..rules(&post) };
    assert_eq!(purge_with(&rules, true).await.mail_files, 2);
    assert!(old.iter().chain(&stays).all(|path| path.exists()));
    assert_eq!(purge_with(&rules, false).await.mail_files, 2);
    assert!(!old.iter().any(|path| path.exists()) && stays.iter().all(|path| path.exists()));
}

#[tokio::test]
async fn it_runs_once_a_business_day() {
    let post = Postbox::open().await;
    let (rules, pool) = (rules(&post), permit_notifier::store::connect::pool(&post.url, 2).unwrap());
    assert!(purge_if_due(&rules, &pool).await.unwrap().is_some());
    post.clock.advance(TimeDelta::hours(11));
    assert!(purge_if_due(&rules, &pool).await.unwrap().is_none(), "not twice on one day");
    post.clock.advance(TimeDelta::hours(2));
    assert!(purge_if_due(&rules, &pool).await.unwrap().is_some(), "midnight has passed");
    assert_eq!(post.count("SELECT count(*) FROM purges WHERE trigger = 'daily'").await, 2);
}

#[tokio::test]
async fn what_was_removed_is_said_by_the_api_and_the_pages() {
    let api = TestApi::open().await;
    let viewer = api.signed_in(Role::Viewer).await;
    let permit = api.office.permit_expiring_in(5).await;
    api.office.correct(permit, |permit| permit.holder_name = "Bo Holder".to_owned()).await;
    api.office.transport(permit, "accepted").await;
    let notice = api.office.notices(permit).await.into_iter().find(|notice| notice.state == "sent").unwrap().id;
    let attempt = "SELECT a.id::text FROM attempts a WHERE a.outcome = 'accepted'";
    let attempt = api.office.text(attempt).await.remove(0);
    api.office.sql(&format!("INSERT INTO attempt_messages VALUES ('{attempt}', 'Subject: x')")).await;
    let page = viewer.get(&format!("/notices/{notice}")).await;
    page.shows(&["the very bytes", "ada@example.org"]);
    let copy = api.office.text("SELECT delivery_id::text FROM attempts").await.remove(0);
    assert_eq!(viewer.get(&format!("/notices/{notice}/message/{copy}")).await.status, 200);
    api.office.days_pass(1000);
    let rules = PurgeRules {
        direct_url: api.office.url.clone(),
        clock: Arc::clone(&api.office.clock) as _,
        zone: api.office.rules.zone,
        keep: two_years(),
        mail_folder: PathBuf::from("/nonexistent"),
        stop: CancellationToken::new(),
    };
    api.office.scan().await;
    let Purged::Done(removed) = run_once(&rules, PurgeTrigger::Command, false).await.unwrap() else { panic!() };
    assert_eq!((removed.messages, removed.permits), (1, 1), "{removed:?}");

    let gone = api.get(&format!("/notices/{notice}/message")).await;
    assert_eq!((gone.status.as_u16(), gone.text("type").ends_with("/not-found")), (404, true), "{gone:?}");
    assert!(gone.text("detail").contains("KEEP_CONTENT_DAYS"), "{gone:?}");
    let shown = api.get(&format!("/notices/{notice}")).await;
    let copy = &shown.body["deliveries"][0];
    assert!(copy["recipient"].is_null() && copy["attempts"][0]["payload_sha256"].is_string(), "{shown:?}");
    let history = api.get(&format!("/permits/{permit}/history")).await;
    let changes = history.body["items"].as_array().unwrap();
    assert_eq!(changes[0]["action"], "purged", "{changes:#?}");
    assert!(changes.iter().all(|change| change["changes"].get("holder_name").is_none()), "{changes:#?}");
    // A letter to "(removed)" would help nobody.
    let path = format!("/permits/{permit}");
    let etag = api.get(&path).await.etag().to_owned();
    let until = json!({"expires_on": api.office.in_days(365)});
    let renewal =
        |etag: &str| send(api.request(Method::POST, &format!("{path}/renew")).header("if-match", etag).json(&until));
    let refused = renewal(&etag).await;
    assert_eq!((refused.status.as_u16(), refused.faults()[0].0), (422, "/holder_name"), "{refused:?}");
    let named = api.patch(&path, &etag, &json!({"holder_name": "Cy Holder"})).await;
    assert_eq!(renewal(named.etag()).await.status, 200, "{named:?}");
    // Nobody stays signed in for so long.
    let viewer = api.signed_in(Role::Clerk).await;
    let page = viewer.get(&format!("/notices/{notice}")).await;
    assert_eq!(page.status, 200);
    assert!(!page.text.contains("the very bytes") && !page.text.contains("ada@example.org"), "{page:?}");
    page.shows(&["(removed)"]);
    for path in [format!("/permits/{permit}"), "/audit".to_owned(), "/problems".to_owned(), "/notices".to_owned()] {
        let page = viewer.get(&path).await;
        assert!(page.status == 200 || path == "/audit", "{path}: {page:?}");
        assert!(!page.text.contains("ada@example.org") && !page.text.contains("Ada Holder"), "{path}: {page:?}");
    }
    api.close().await;
}
