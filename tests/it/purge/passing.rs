//! What was never to be kept for long, and what is personal and stands where nobody looks for it.

use chrono::TimeDelta;
use permit_notifier::config::Retention;
use permit_notifier::purge::{PurgeRules, Removed};
use permit_notifier::store::imports::staging;

use super::{purge, purge_with, rows_with, rules};
use crate::support::postbox::Postbox;

const DEAD: &str = "00000000-0000-7000-8000-00000000dead";
const ALIVE: &str = "00000000-0000-7000-8000-0000000a117e";

#[tokio::test]
async fn what_was_only_to_pass_goes_whatever_is_to_be_kept() {
    let post = Postbox::open().await;
    let mut living = post.session().await;
    staging::open(&mut living, ALIVE.parse().unwrap()).await.expect("an import that goes on");
    post.execute(
        "INSERT INTO tokens (id, name, scope, token_sha256, hint, created_by, created_at)
         VALUES (gen_random_uuid(), 'portal', 'write', sha256('x'), 'abcd', 'command', '2027-01-01');
         INSERT INTO idempotency_keys (token_id, method, path, key, request_sha256, status, body, created_at)
         SELECT id, 'POST', '/api/v1/permits', kind, sha256('x'), 201, convert_to('holder of an ' || kind, 'UTF8'), at
         FROM tokens, (VALUES ('old answer', timestamptz '2027-02-22 11:59Z'), ('young answer', '2027-02-22 12:01Z'))
                      AS answers (kind, at);
         INSERT INTO import_rows (import_id, file_row, id, permit_number, number_key, permit_type, permit_type_name,
                                  holder_name, contacts, expires_on)
         SELECT id, 2, gen_random_uuid(), '1', '1', 'food', 'Food', holder, '[]', '2027-06-01'
         FROM (VALUES ('00000000-0000-7000-8000-00000000dead'::uuid, 'holder of a dead import'),
                      ('00000000-0000-7000-8000-0000000a117e', 'holder of a living import')) AS imports (id, holder);
         INSERT INTO import_permits (import_id, number_key, file_row)
         VALUES ('00000000-0000-7000-8000-00000000dead', '1', 2);
         INSERT INTO import_rejected_rows (import_id, file_row, cells, errors)
         VALUES ('00000000-0000-7000-8000-00000000dead', 3, '[\"holder of a dead import\"]', 'no date');
         INSERT INTO sign_in_failures (kind, key, count, last_at)
         VALUES ('account', 'holder@x.example', 1, '2027-03-01 10:59Z'), ('account', 'young@x.example', 1, '2027-03-01 11:59Z')",
    )
    .await;
    let keep = Retention { content: None, personal: None };
    let rules = PurgeRules { keep, ..rules(&post) };
    let all = Removed { staged: 3, answers: 1, sign_ins: 1, ..Removed::default() };
    let before = rows_with(&post, &["holder"]).await;
    assert_eq!(before.len(), 6, "{before:#?}");
    assert_eq!(purge_with(&rules, true).await, all);
    assert_eq!(rows_with(&post, &["holder"]).await, before);
    assert_eq!(purge_with(&rules, false).await, all);
    let left = rows_with(&post, &["holder"]).await;
    assert_eq!(left.len(), 2, "{left:#?}");
    assert!(left.iter().any(|row| row.contains("young answer")), "{left:#?}");
    assert!(left.iter().any(|row| row.contains("a living import")), "{left:#?}");
    assert_eq!(rows_with(&post, &[DEAD]).await, Vec::<String>::new());
    assert_eq!(post.count("SELECT count(*) FROM sign_in_failures").await, 1);
}

#[tokio::test]
async fn names_of_files_and_addresses_that_were_refused_go_with_personal_data() {
    let post = Postbox::open().await;
    post.permit("holder@x.example").await;
    post.execute(
        "INSERT INTO imports (id, file_name, started_at, finished_at, report)
         SELECT gen_random_uuid(), 'Ada Holder.csv', created_at, created_at, '{}' FROM permits;
         INSERT INTO office_log (id, at, by, action, subject, subject_id, label)
         SELECT gen_random_uuid(), started_at, 'user:ann@office.example', 'imported', 'import', id, file_name FROM imports;
         UPDATE transport SET policy_refusals = '{other@y.example,holder@x.example}'",
    )
    .await;
    post.dispatch().await;
    post.execute("UPDATE transport SET policy_refusals = '{other@y.example,holder@x.example}'").await;
    assert_eq!(purge(&post).await.file_names, 0, "all is young");
    post.clock.advance(TimeDelta::days(1000));
    let would = purge_with(&rules(&post), true).await;
    assert_eq!((would.file_names, would.deeds), (1, 1), "{would:?}");
    assert_eq!(purge(&post).await, would);
    assert_eq!(rows_with(&post, &["Ada Holder", "holder@x.example"]).await, Vec::<String>::new());
    assert_eq!(post.count("SELECT cardinality(policy_refusals)::bigint FROM transport").await, 1, "another's stays");
    assert_eq!(purge(&post).await, Removed::default());
}
