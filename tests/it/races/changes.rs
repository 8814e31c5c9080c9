//! Changes at once: of one permit, and of many beside scans.

use permit_notifier::{
    domain::notice::RENEWED,
    scan::pass::run_once,
    store::{
        StoreError, changes,
        permits::{PermitData, list_terms},
    },
};

use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;

use super::{Blocker, PARKED_SCAN, at_once, until};
use crate::support::office::{TestOffice, by_hand, usual_but};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_permit_created_many_times_at_once_is_one_permit_and_all_others_are_told_which() {
    let office = TestOffice::new().await;
    let data = office.permit_data(|p| p.expires_on = office.in_days(20));
    let moment = office.moment();
    let results = at_once(8, |i| {
        let (pool, mut data) = (office.pool.clone(), data.clone());
        if i % 2 == 1 {
            data.permit_number = data.permit_number.as_str().to_uppercase().parse().expect("a number");
        }
        async move {
            let mut connection = pool.acquire().await.expect("a connection");
            changes::create(&mut connection, &data, &changes::ChangeRules::at(moment, None)).await
        }
    });
    let results = results.await;
    let made: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).map(|permit| permit.id).collect();
    assert_eq!(made.len(), 1);
    for refused in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(matches!(refused, StoreError::NumberTaken { by, .. } if *by == made[0]), "{refused}");
    }
    assert_eq!(office.open(made[0]).await, ["expires-30d"]);
    assert_eq!(office.text("SELECT count(*)::text FROM deliveries").await, ["1"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_renewal_made_many_times_at_once_is_one_renewal_with_one_confirmation() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let (moment, date) = (office.moment(), office.in_days(385));
    let results = at_once(8, |_| {
        let pool = office.pool.clone();
        async move {
            let mut connection = pool.acquire().await.expect("a connection");
            let rules = changes::ChangeRules::at(moment, None);
            changes::renew(&mut connection, permit, None, date, None, &rules).await
        }
    });
    for renewed in results.await {
        assert_eq!(renewed.expect("a renewal").version, 2);
    }
    let terms = list_terms(&mut *office.connection().await, permit).await.expect("the terms");
    assert_eq!(terms.len(), 2);
    assert_eq!(office.open(permit).await, [RENEWED]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_changes_that_saw_the_same_version_one_is_made() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    let moment = office.moment();
    let results = at_once(6, |i| {
        let pool = office.pool.clone();
        async move {
            let mut connection = pool.acquire().await.expect("a connection");
            let rules = changes::ChangeRules::at(moment, None);
            let edit = move |p: &mut PermitData| p.holder_name = format!("Ada {i}");
            changes::correct(&mut connection, permit, Some(1), edit, &rules).await
        }
    });
    let results = results.await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let stale = |error: &StoreError| matches!(error, StoreError::Stale { present: 2 });
    assert!(results.iter().filter_map(|result| result.as_ref().err()).all(stale));
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bulk_renewals_and_edits_beside_scans_meet_no_deadlock_and_leave_everything_consistent() {
    let office = TestOffice::new().await;
    let mut permits = Vec::new();
    for i in 0..60 {
        permits.push(office.permit_expiring_in(25 + i % 10).await);
    }
    office.days_pass(1);
    let (moment, date) = (office.moment(), office.in_days(400));
    at_once(6, |i| {
        let (pool, rules, mut permits) = (office.pool.clone(), office.rules.clone(), permits.clone());
        async move {
            if i < 2 {
                for _ in 0..6 {
                    run_once(&rules, by_hand(None)).await.expect("a scan");
                }
                return;
            }
            if i % 2 == 1 {
                permits.reverse();
            }
            for (n, permit) in permits.into_iter().enumerate().filter(|(n, _)| (n + i) % 3 > 0) {
                let mut connection = pool.acquire().await.expect("a connection");
                let rules = changes::ChangeRules::at(moment, None);
                if (n + i) % 3 == 1 {
                    changes::renew(&mut connection, permit, None, date, None, &rules).await.expect("a renewal");
                } else {
                    let edit = move |p: &mut PermitData| p.holder_email = format!("ada{i}@example.org").parse().ok();
                    changes::correct(&mut connection, permit, None, edit, &rules).await.expect("an edit");
                }
            }
        }
    })
    .await;
    office.scan().await;
    for permit in permits {
        assert_eq!(office.open(permit).await, [RENEWED]);
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scan_that_waited_for_a_change_that_was_rolled_back_claims_what_is_due() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(91).await;
    office.days_pass(1);
    let mut session = PgConnection::connect(&office.url).await.expect("a connection");
    let mut change = session.begin().await.expect("a transaction");
    let rename = |p: &mut PermitData| "Bo Holder".clone_into(&mut p.holder_name);
    changes::correct(&mut change, permit, None, rename, &office.change_rules()).await.expect("a correction");
    let written: i64 =
        sqlx::query_scalar("SELECT count(*) FROM notices").fetch_one(&mut *change).await.expect("a count");
    assert_eq!(written, 1, "the key stands in the transaction of the change");
    let rules = office.rules.clone();
    let scan = JoinSet::from_iter([async move { run_once(&rules, by_hand(None)).await }]);
    until(&office, PARKED_SCAN).await;
    change.rollback().await.expect("the end of the change");
    let report = scan.join_all().await.pop().expect("a scan").expect("a scan");
    assert_eq!((report.counts.claimed, report.counts.already_claimed), (1, 0));
    assert_eq!(office.said(permit).await, ["expires-90d pending"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_step_that_is_removed_while_a_missing_copy_is_made_for_it_takes_that_copy_along() {
    let office = TestOffice::new().await;
    let permit = office.permit_expiring_in(20).await;
    // As after a copy to a former address that was in flight when the address changed, and then was not sent.
    office
        .sql(
            "UPDATE permits SET holder_email = 'new@example.org', version = version + 1;
             UPDATE deliveries SET state = 'superseded', reason_code = 'address_changed';
             UPDATE notices SET state = 'superseded', reason_code = 'address_changed', reason = 'It moved.'
             WHERE notice_type = 'expires-30d'",
        )
        .await;
    let notice = "SELECT FROM notices WHERE notice_type = 'expires-30d' FOR UPDATE";
    let blocker = Blocker::begin(&office, notice).await;
    let mut tasks = JoinSet::new();
    let rules = office.rules.clone();
    tasks.spawn(async move { run_once(&rules, by_hand(None)).await.map(drop) });
    until(&office, PARKED_SCAN).await;
    let (pool, moment) = (office.pool.clone(), office.moment());
    tasks.spawn(async move {
        let off = usual_but(|steps| steps[2].enabled = false);
        let rules = changes::ChangeRules::at(moment, None);
        changes::reschedule(&mut pool.acquire().await.expect("a connection"), "food", &off, &rules).await.map(drop)
    });
    // It waits for the scan, or it is done.
    until(
        &office,
        "SELECT 'done' FROM schedule_steps WHERE NOT enabled
         UNION ALL SELECT 'waits' FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()
         WHERE locktype = 'advisory' AND NOT granted",
    )
    .await;
    blocker.release().await;
    for done in tasks.join_all().await {
        done.expect("a scan and a changed schedule");
    }
    assert!(office.open(permit).await.is_empty(), "nothing of a step that is gone is to be sent");
    office.close().await;
}
