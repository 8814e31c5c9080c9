//! Two purges at once, one that is killed, and one that meets people and scans at work.

use chrono::TimeDelta;
use permit_notifier::purge::{Purged, Removed, run_once};
use permit_notifier::store::StoreError;
use permit_notifier::store::purge::{PurgeLock, PurgeTrigger};

use super::{purge, rules};
use crate::support::postbox::{Postbox, in_days, until};

async fn old_notices(count: usize) -> Postbox {
    let post = Postbox::open().await;
    post.permit("holder000@x.example").await;
    post.more_of_the_same(count).await;
    post.dispatch().await;
    post.clock.advance(TimeDelta::days(1000));
    post
}

/// Notices of which some and not all was removed.
const HALF: &str = "SELECT count(*) FROM notices n JOIN deliveries d ON d.notice_id = n.id
                    WHERE (n.purged_at IS NULL) <> (d.recipient LIKE '%@%')";

#[tokio::test]
async fn of_two_purges_at_once_one_does_the_work() {
    let post = old_notices(20).await;
    let held = PurgeLock::try_take(&post.url).await.unwrap().expect("nobody has it");
    assert_eq!(run_once(&rules(&post), PurgeTrigger::Command, false).await.unwrap(), Purged::HeldElsewhere);
    held.release().await;
    let (rules, other) = (rules(&post), rules(&post));
    let (one, two) =
        tokio::join!(run_once(&rules, PurgeTrigger::Command, false), run_once(&other, PurgeTrigger::Daily, false));
    let done = [one.unwrap(), two.unwrap()];
    let removed: u64 = done
        .iter()
        .map(|done| match done {
            Purged::Done(removed) => removed.permits,
            Purged::HeldElsewhere => 0,
        })
        .sum();
    assert_eq!(removed, 20, "{done:?}");
    assert_eq!(post.count(HALF).await, 0);
    post.check().await;
}

#[tokio::test]
async fn more_than_a_batch_is_removed_to_the_end_unless_the_service_stops() {
    let post = old_notices(520).await;
    let stopped = rules(&post);
    stopped.stop.cancel();
    let ended = run_once(&stopped, PurgeTrigger::Daily, false).await;
    assert!(matches!(ended, Err(StoreError::Stopping)), "{ended:?}");
    assert_eq!(post.count("SELECT count(*) FROM purges").await, 0, "it is done again");
    let removed = purge(&post).await;
    assert!(removed.notices >= 520, "{removed:?}");
    assert_eq!((removed.messages, removed.permits), (520, 520));
    assert_eq!(purge(&post).await, Removed::default());
}

#[tokio::test]
async fn a_purge_that_is_killed_leaves_nothing_half_and_the_next_one_ends_it() {
    let post = old_notices(20).await;
    // Somebody is at one copy, so the batch waits with all it has locked.
    let lock = post.lock("SELECT FROM deliveries ORDER BY id DESC LIMIT 1 FOR UPDATE").await;
    let task = {
        let rules = rules(&post);
        tokio::task::JoinSet::from_iter([async move { run_once(&rules, PurgeTrigger::Command, false).await }])
    };
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'permit-notifier purge'
                     AND wait_event_type = 'Lock'";
    until("it waits", async || post.count(waiting).await == 1).await;
    post.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'permit-notifier purge' AND datname = current_database()",
    )
    .await;
    let ended = task.join_all().await.remove(0);
    assert!(ended.is_err(), "{ended:?}");
    lock.release().await;
    assert_eq!((post.count(HALF).await, post.count("SELECT count(*) FROM purges").await), (0, 0));
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE recipient NOT LIKE '%@%'").await, 0);
    assert_eq!(purge(&post).await.permits, 20);
    assert_eq!(post.count(HALF).await, 0);
    post.check().await;
}

#[tokio::test]
async fn a_permit_that_somebody_is_changing_is_left_for_the_next_day() {
    let post = old_notices(3).await;
    let mut lock = post.lock("SELECT FROM permits ORDER BY id LIMIT 1 FOR NO KEY UPDATE").await;
    let removed = lock.waited_for_by_nobody(purge(&post)).await;
    assert_eq!(removed.permits, 2);
    lock.release().await;
    assert_eq!(purge(&post).await.permits, 1);
    assert_eq!(post.count(HALF).await, 0);
}

#[tokio::test]
async fn a_row_that_cannot_be_changed_is_left_and_keeps_no_other() {
    let post = old_notices(5).await;
    post.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF OLD.id = (SELECT id FROM permits ORDER BY id OFFSET 2 LIMIT 1) THEN RAISE EXCEPTION 'not this one'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON permits FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .await;
    let removed = purge(&post).await;
    assert_eq!((removed.permits, removed.left), (4, 1), "{removed:?}");
    assert!(removed.notices >= 5, "{removed:?}");
    assert_eq!(post.count("SELECT (removed ->> 'left')::bigint FROM purges").await, 1, "it came to its end");
    assert_eq!(post.count("SELECT count(*) FROM permits WHERE holder_email IS NOT NULL").await, 1);
    post.execute("DROP TRIGGER refuse ON permits").await;
    let removed = purge(&post).await;
    assert_eq!((removed.permits, removed.left), (1, 0), "{removed:?}");
    post.check().await;
}

#[tokio::test]
async fn a_database_that_lets_nothing_change_ends_a_purge() {
    let post = old_notices(3).await;
    post.execute("ALTER TABLE permits RENAME COLUMN purged_at TO gone").await;
    let ended = run_once(&rules(&post), PurgeTrigger::Daily, false).await;
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(post.count("SELECT count(*) FROM purges").await, 0);
}

#[tokio::test]
async fn purges_scans_and_changes_at_once_do_not_stop_each_other() {
    let post = old_notices(40).await;
    let permits: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM permits ORDER BY id").fetch_all(&mut post.session().await).await.unwrap();
    let changes = async {
        for permit in permits.iter().step_by(3) {
            post.correct(*permit, |permit| {
                permit.holder_name = "A name anew".to_owned();
                permit.expires_on = in_days(1400);
            })
            .await;
        }
    };
    let scans = async {
        for _ in 0..3 {
            post.scan().await;
        }
    };
    let purges = async {
        for _ in 0..3 {
            purge(&post).await;
        }
    };
    tokio::join!(changes, scans, purges);
    assert_eq!(post.count(HALF).await, 0);
    post.check().await;
}
