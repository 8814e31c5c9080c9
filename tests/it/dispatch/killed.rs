//! `kill -9` and SIGSTOP at every step: nothing lost, nothing twice, and what nobody can know is said.

use std::{collections::HashMap, fs, path::Path, sync::Arc, time::Duration};

use chrono::TimeDelta;
use nix::sys::signal::Signal;
use permit_notifier::mail::FileMailer;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::holder;
use crate::support::{
    dispatching::{Dispatching, Role},
    postbox::{Postbox, until},
};

async fn posts(count: usize) -> (Postbox, TempDir) {
    let post = Postbox::open().await;
    for number in 0..count {
        post.permit(&holder(number)).await;
    }
    (post, tempfile::tempdir().unwrap())
}

async fn take_over(post: &Postbox, folder: &Path) {
    post.age_processes().await;
    post.clock.advance(TimeDelta::minutes(1));
    post.dispatch_with(Arc::new(FileMailer::new(folder))).await;
}

fn files(folder: &Path) -> HashMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return HashMap::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Hidden names are what a killed process was writing.
    names
        .filter(|name| !name.starts_with('.'))
        .map(|name| (name.clone(), Sha256::digest(fs::read(folder.join(name)).unwrap()).to_vec()))
        .collect()
}

/// Files against database, after everything was taken over. Says how many are ambiguous.
async fn check(post: &Postbox, folder: &Path) -> usize {
    post.check().await;
    let files = files(folder);
    let copies = post.copies().await;
    let mut ambiguous = 0;
    for copy in &copies {
        let name = copy.message_id.as_deref().map(FileMailer::file_name).unwrap_or_default();
        match copy.state.as_str() {
            "sent" => assert_eq!(files.get(&name), copy.payload_sha256.as_ref(), "{:?}", copy.recipient),
            "ambiguous" => ambiguous += 1,
            state => panic!("{:?} is {state}", copy.recipient),
        }
    }
    let known = |name: &String| {
        copies.iter().any(|copy| copy.message_id.as_deref().map(FileMailer::file_name).as_ref() == Some(name))
    };
    assert!(files.keys().all(known));
    ambiguous
}

/// Waits until a backend waits for a lock on `table`.
async fn someone_waits(post: &Postbox, query: &'static str) {
    until("the child stands where it is to be killed", async || post.count(query).await > 0).await;
}

#[tokio::test]
async fn killed_after_the_lease_it_is_sent_by_another() {
    let (post, folder) = posts(5).await;
    let lock = post.lock("LOCK TABLE permit_types IN ACCESS EXCLUSIVE MODE").await;
    let child = Dispatching::start(&Role::with_files(&post, folder.path())).await;
    someone_waits(&post, "SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL").await;
    child.kill();
    lock.release().await;
    assert!(files(folder.path()).is_empty());
    take_over(&post, folder.path()).await;
    assert_eq!(check(&post, folder.path()).await, 0);
    assert_eq!(post.count("SELECT sum(lost_owners) FROM deliveries").await, 5);
}

#[tokio::test]
async fn what_may_be_killing_its_owners_goes_alone_so_that_its_neighbours_are_not_held() {
    let (post, folder) = posts(5).await;
    post.execute("UPDATE deliveries SET lost_owners = 2").await;
    let lock = post.lock("LOCK TABLE permit_types IN ACCESS EXCLUSIVE MODE").await;
    let child = Dispatching::start(&Role::with_files(&post, folder.path())).await;
    someone_waits(&post, "SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL").await;
    child.kill();
    lock.release().await;
    take_over(&post, folder.path()).await;
    assert_eq!(
        post.count("SELECT count(*) FROM deliveries WHERE state = 'held' AND reason_code = 'owner_died'").await,
        1
    );
    assert_eq!(post.count("SELECT count(*) FROM deliveries WHERE state = 'sent'").await, 4);
    post.check().await;
}

#[tokio::test]
async fn killed_in_the_gate_it_is_sent_by_another() {
    let (post, folder) = posts(5).await;
    let lock = post.lock("LOCK TABLE attempt_messages IN ACCESS EXCLUSIVE MODE").await;
    let child = Dispatching::start(&Role::with_files(&post, folder.path())).await;
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'attempt_messages'::regclass";
    someone_waits(&post, waiting).await;
    child.kill();
    lock.release().await;
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND state LIKE '%transaction%' AND pid <> pg_backend_pid()";
    until("its transactions are gone", async || post.count(open).await == 0).await;
    take_over(&post, folder.path()).await;
    assert_eq!(check(&post, folder.path()).await, 0);
    assert!(post.attempts().await.iter().all(|attempt| attempt.outcome == "accepted"));
}

#[tokio::test]
async fn killed_before_settling_it_is_ambiguous_and_not_sent_again() {
    let (post, folder) = posts(5).await;
    let lock = post.lock("SELECT FROM notices FOR UPDATE").await;
    let child = Dispatching::start(&Role::with_files(&post, folder.path())).await;
    // Both senders have their file, and wait for their results to be recorded.
    until("two files are there", async || files(folder.path()).len() == 2).await;
    child.kill();
    lock.release().await;
    let written = files(folder.path());
    take_over(&post, folder.path()).await;
    assert_eq!(check(&post, folder.path()).await, 2, "one for each sender");
    let after = files(folder.path());
    assert_eq!(after.len(), 5);
    assert!(written.iter().all(|(name, hash)| after[name] == *hash), "not written again");
}

#[tokio::test]
async fn killed_at_any_moment_nothing_is_lost_and_nothing_goes_twice() {
    let (post, folder) = posts(60).await;
    let mut random = fastrand::Rng::with_seed(42);
    for _ in 0..15 {
        let before = post.attempts().await.len();
        let lease = Duration::from_secs(3);
        let role = Role { senders: 4, lease, ..Role::with_files(&post, folder.path()) };
        let child = Dispatching::start(&role).await;
        let more = before + random.usize(0..5);
        // Deliveries that lost too many owners are held, so there may not be as many left.
        let left = "SELECT count(*) FROM deliveries WHERE state = 'pending'";
        until("it has sent some", async || post.attempts().await.len() >= more || post.count(left).await == 0).await;
        tokio::time::sleep(Duration::from_micros(random.u64(0..5000))).await;
        child.kill();
        post.age_processes().await;
    }
    // Deliveries that lost three owners wait for a person, who lets them go.
    take_over(&post, folder.path()).await;
    post.execute(
        "UPDATE deliveries SET state = 'pending', reason_code = NULL WHERE reason_code = 'owner_died';
         UPDATE notices SET state = 'pending', reason_code = NULL, reason = NULL WHERE reason_code = 'owner_died'",
    )
    .await;
    take_over(&post, folder.path()).await;
    let ambiguous = check(&post, folder.path()).await;
    assert!(ambiguous <= 15 * 4, "{ambiguous} ambiguous");
    let mut accepted = HashMap::new();
    for attempt in post.attempts().await {
        if attempt.outcome == "accepted" {
            *accepted.entry(attempt.delivery_id).or_insert(0) += 1;
        }
    }
    assert_eq!(accepted.len(), 60 - ambiguous);
    assert!(accepted.values().all(|count| *count == 1));
}

#[tokio::test]
async fn stopped_past_its_lease_it_takes_no_final_step_for_what_it_lost() {
    let (post, folder) = posts(6).await;
    // The gate of the child stands at its last statement when the child is stopped, so it opens after the lease.
    let lock = post.lock("LOCK TABLE attempt_messages IN ACCESS EXCLUSIVE MODE").await;
    let lease = Duration::from_secs(2);
    let child = Dispatching::start(&Role { senders: 1, lease, ..Role::with_files(&post, folder.path()) }).await;
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'attempt_messages'::regclass";
    someone_waits(&post, waiting).await;
    child.signal(Signal::SIGSTOP);
    lock.release().await;
    let dead = "SELECT count(*) FROM processes WHERE boot_id NOT IN (SELECT boot_id FROM living_processes)";
    someone_waits(&post, dead).await;
    post.dispatch_with(Arc::new(FileMailer::new(folder.path()))).await;
    let by_another = files(folder.path());
    child.signal(Signal::SIGCONT);
    let living = "SELECT count(*) FROM living_processes";
    someone_waits(&post, living).await;
    let rest = "SELECT count(*) FROM deliveries WHERE state IN ('sending', 'ambiguous') OR lease_token IS NOT NULL";
    // Recovery may come first and not know; what the owner saw then takes its place.
    until("all is settled", async || post.count(rest).await == 0).await;
    let first: Vec<_> = post.outcomes(post.copy_to(&holder(0)).await.id).await;
    // Its gate was never committed, or what it had opened was found lost; in no case was it finished late.
    assert!(!first.iter().any(|outcome| outcome.starts_with("ambiguous")), "{first:?}");
    assert!(by_another.len() >= 5, "{}", by_another.len());
    child.kill();
    take_over(&post, folder.path()).await;
    assert_eq!(check(&post, folder.path()).await, 0);
    assert_eq!(files(folder.path()).len(), 6);
}
