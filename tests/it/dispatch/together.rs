//! Several dispatchers at once, and changes beside them.

use std::collections::HashMap;

use permit_notifier::store::{
    Result,
    cases::lock_permits,
    changes::{self, ChangeRules, Renewals},
    permit_types::keep_schedules,
};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::holder;
use crate::support::postbox::{Postbox, in_days, verbs::address};

const NOTICES: usize = 300;

async fn permits(post: &Postbox) -> Vec<Uuid> {
    let mut permits = Vec::new();
    for number in 0..NOTICES {
        permits.push(post.permit(&holder(number)).await);
    }
    permits
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_dispatchers_send_every_message_exactly_once() {
    let post = Postbox::open().await;
    permits(&post).await;
    let (one, other) = (post.replica(8).await, post.replica(8).await);
    let ((first, _), (second, _)) = tokio::join!(one.begin_once().done(), other.begin_once().done());
    assert_eq!(first.accepted + second.accepted, NOTICES as u64);
    assert!(first.accepted > 0 && second.accepted > 0, "{first:?} {second:?}");
    assert_eq!(post.mailer.taken_by(), (0..NOTICES).map(holder).collect::<Vec<_>>());
    one.leave().await;
    other.leave().await;
    post.check().await;
}

/// What a change forbids from the moment on at which it was done.
struct Forbidden {
    permit: Uuid,
    since: u64,
    what: fn(&str, &str) -> bool,
}

/// Pauses many permits in one sorted transaction.
async fn pause(connection: &mut PgConnection, permits: &[Uuid], rules: &ChangeRules<'_>) -> Result<()> {
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    lock_permits(&mut transaction, permits).await?;
    sqlx::query("UPDATE permits SET notices_paused_until = $2, version = version + 1 WHERE id = ANY ($1)")
        .bind(permits)
        .bind(in_days(9))
        .execute(&mut *transaction)
        .await?;
    changes::apply(&mut transaction, permits, &schedules, &Renewals::new(), rules).await?;
    transaction.commit().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_beside_two_dispatchers_never_deadlock_and_are_obeyed() {
    let post = std::sync::Arc::new(Postbox::open().await);
    let permits = permits(&post).await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let (one, other) = (post.replica(8).await, post.replica(8).await);
    let (one_pass, other_pass) = (one.begin_once(), other.begin_once());
    let mut forbidden: Vec<Forbidden> = Vec::new();
    let mut tasks: JoinSet<Vec<Forbidden>> = JoinSet::new();
    let any: fn(&str, &str) -> bool = |_, _| true;
    for (kind, chunk) in permits.chunks(NOTICES / 3).enumerate() {
        let (post, mut chunk) = (std::sync::Arc::clone(&post), chunk.to_vec());
        tasks.spawn(async move {
            let mut done = Vec::new();
            // From the end, where the dispatchers have not been yet; the ids within a bulk are sorted by the store.
            chunk.reverse();
            if kind == 0 {
                for bulk in chunk.chunks(20) {
                    let rules = ChangeRules::at(post.moment(), None);
                    pause(&mut post.session().await, bulk, &rules).await.expect("no deadlock");
                    let since = post.mailer.tick();
                    done.extend(bulk.iter().map(|permit| Forbidden { permit: *permit, since, what: any }));
                }
                return done;
            }
            for permit in chunk {
                let what: fn(&str, &str) -> bool = if kind == 1 {
                    post.renew(permit, in_days(395)).await;
                    |key, _| !key.contains(":renewed:")
                } else {
                    post.correct(permit, |p| p.holder_email = Some(address(&format!("new-{permit}@x.example")))).await;
                    |_, recipient| !recipient.starts_with("new-")
                };
                done.push(Forbidden { permit, since: post.mailer.tick(), what });
            }
            done
        });
    }
    while let Some(done) = tasks.join_next().await {
        forbidden.extend(done.expect("changes that go through"));
    }
    one_pass.done().await;
    other_pass.done().await;
    one.leave().await;
    other.leave().await;
    post.dispatch().await;

    let by_permit: HashMap<String, &Forbidden> =
        forbidden.iter().map(|forbidden| (forbidden.permit.to_string(), forbidden)).collect();
    let ledger = post.mailer.ledger();
    for taken in &ledger {
        let forbidden = by_permit[taken.notice_key.split_once(':').unwrap().0];
        let after = taken.offered_at > forbidden.since;
        assert!(!after || !(forbidden.what)(&taken.notice_key, &taken.recipient), "{}", taken.notice_key);
    }
    // Every holder of the last two thirds got something; a permit whose address changed is written to once.
    let recipients = ledger.iter().filter(|taken| taken.notice_key.contains(":expires-30d:"));
    let mut per_permit: HashMap<&str, usize> = HashMap::new();
    for taken in recipients {
        *per_permit.entry(taken.notice_key.split_once(':').unwrap().0).or_default() += 1;
    }
    assert!(per_permit.values().all(|count| *count == 1));
    assert!(permits[2 * NOTICES / 3..].iter().all(|permit| per_permit.contains_key(permit.to_string().as_str())));
    let confirmed = ledger.iter().filter(|taken| taken.notice_key.contains(":renewed:")).count();
    assert_eq!(confirmed, NOTICES / 3);
    assert_eq!(post.count(deadlocks).await, 0);
    let late = "SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending') OR lease_token IS NOT NULL";
    assert_eq!(post.count(late).await, 0);
    post.check().await;
}
