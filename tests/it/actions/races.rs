//! Two at once: whatever the order, never a second effective attempt, and one of the two is told.

use std::sync::Arc;

use permit_notifier::{
    domain::attempt::{Outcome, Resolution},
    store::{
        StoreError,
        actions::{Resolving, cancel, resolve, retry},
        gate::{GateAnswer, open_gates},
    },
};
use sqlx::Connection;
use tokio::sync::Barrier;

use super::{Office, TODAY, moment, today};

const ROUNDS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn not_delivered_twice_at_once_is_resolved_once() {
    let office = Arc::new(Office::new().await);
    for round in 0..ROUNDS {
        let notice = office.ended(&format!("{round}"), Outcome::Ambiguous).await;
        let barrier = Arc::new(Barrier::new(2));
        let both = ["ann", "bob"].map(|by| {
            let (office, barrier) = (Arc::clone(&office), Arc::clone(&barrier));
            async move {
                let mut connection = office.connect().await;
                let resolving = Resolving { delivery: None, outcome: Resolution::NotDelivered, reason: "x", by };
                barrier.wait().await;
                resolve(&mut connection, notice, resolving, &today()).await
            }
        });
        let [one, two] = both;
        let (one, two) = tokio::join!(one, two);
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
        let refused = one.and(two);
        assert!(matches!(&refused, Err(StoreError::WrongState { why, .. }) if why.contains("pending")), "{refused:?}");
        let flight = office.send(notice).await;
        office.settle(flight, Outcome::Accepted).await;
        assert_eq!(office.attempts(notice).await, "1 ambiguous not_delivered, 2 accepted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_retry_and_a_lease_at_once_make_one_attempt() {
    let office = Arc::new(Office::new().await);
    for round in 0..ROUNDS {
        let notice = office.ended(&format!("{round}"), Outcome::Rejected).await;
        let barrier = Arc::new(Barrier::new(3));
        let retries = [(), ()].map(|()| {
            let (office, barrier) = (Arc::clone(&office), Arc::clone(&barrier));
            async move {
                let mut connection = office.connect().await;
                barrier.wait().await;
                retry(&mut connection, notice, &today()).await.is_ok()
            }
        });
        let lease = {
            let (office, barrier) = (Arc::clone(&office), Arc::clone(&barrier));
            async move {
                let mut connection = office.connect().await;
                let boot = office.boot(&mut connection).await;
                barrier.wait().await;
                loop {
                    if let Some(request) = office.request(&mut connection, boot, notice, moment(TODAY).now).await {
                        let flight = (request.attempt_id, request.delivery_id);
                        let answers = open_gates(&mut connection, boot, &[request], moment(TODAY)).await.unwrap();
                        match answers[0] {
                            GateAnswer::Open(_) => return flight,
                            // A retry that comes second ends the lease it finds.
                            GateAnswer::Busy | GateAnswer::NotOurs => {
                                office.run("UPDATE deliveries SET lease_token = NULL, lease_owner = NULL WHERE state = 'pending'").await;
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                }
            }
        };
        let [one, two] = retries;
        let (one, two, (attempt_id, delivery_id)) = tokio::join!(one, two, lease);
        assert!(one != two, "one retry is done, the other told: {one} {two}");
        office.settle(super::Flight { attempt_id, delivery_id }, Outcome::Accepted).await;
        assert_eq!(office.attempts(notice).await, "1 rejected, 2 accepted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cancel_against_a_gate_is_done_or_told() {
    let office = Arc::new(Office::new().await);
    for round in 0..ROUNDS {
        let notice = office.pending(&format!("{round}")).await;
        let mut gate = office.connect().await;
        let boot = office.boot(&mut gate).await;
        let request = office.request(&mut gate, boot, notice, moment(TODAY).now).await.expect("a lease");
        let barrier = Arc::new(Barrier::new(2));
        let opening = {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                open_gates(&mut gate, boot, &[request], moment(TODAY)).await.unwrap()[0]
            }
        };
        let cancelling = {
            let (office, barrier) = (Arc::clone(&office), Arc::clone(&barrier));
            async move {
                let mut connection = office.connect().await;
                barrier.wait().await;
                cancel(&mut connection, notice, "stop it", &today()).await
            }
        };
        let (answer, cancelled) = tokio::join!(opening, cancelling);
        match (answer, &cancelled) {
            (GateAnswer::Open(_), Err(StoreError::BeingSent)) => {
                assert_eq!(office.state(notice).await, "pending");
                assert_eq!(office.attempts(notice).await, "1 sending");
            }
            (GateAnswer::Busy | GateAnswer::NotOurs, Ok(_)) => {
                assert_eq!(office.state(notice).await, "cancelled by_person");
                assert_eq!(office.attempts(notice).await, "");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_cancel_waits_for_a_gate_that_is_open_and_then_refuses() {
    let office = Office::new().await;
    let notice = office.pending("1").await;
    // What an open gate holds until its commit.
    let mut gate = office.connect().await;
    let mut transaction = gate.begin().await.unwrap();
    sqlx::query("SELECT id FROM permits FOR SHARE").fetch_all(&mut *transaction).await.unwrap();
    sqlx::query("UPDATE deliveries SET state = 'sending'").execute(&mut *transaction).await.unwrap();
    let mut connection = office.connect().await;
    let waiting = async { cancel(&mut connection, notice, "stop it", &today()).await };
    let commit = async {
        for _ in 0..1500 {
            let waits = office.ask(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            );
            if waits.await != "0" {
                return transaction.commit().await.unwrap();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("the cancel never waited");
    };
    let (cancelled, ()) = tokio::join!(waiting, commit);
    assert!(matches!(cancelled, Err(StoreError::BeingSent)), "{cancelled:?}");
}
