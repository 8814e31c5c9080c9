//! Releasing what the brake held: section 3 as of the day of the release.

use permit_notifier::{
    domain::notice::NoticeState,
    store::{
        StoreError,
        actions::{HeldBy, Released, hold, release, release_held},
        scans::{NewScan, Trigger, begin_scan},
    },
};
use uuid::Uuid;

use super::{Office, TODAY, invalid, moment, on, today, wrong_state};

/// Permits whose notices a scan held; gives the scan.
pub(super) async fn held_by_scan(office: &Office, count: usize) -> Uuid {
    for number in 0..count {
        office.permit(&number.to_string()).await;
    }
    let scan = NewScan {
        id: Uuid::now_v7(),
        scheduled_for: None,
        trigger: Trigger::Command,
        moment: moment(TODAY),
        own_day: true,
        boot_id: Uuid::nil(),
    };
    begin_scan(&mut office.connect().await, &scan).await.unwrap();
    let id = scan.id;
    office
        .run(&format!(
            "UPDATE notices SET state = 'held', reason_code = 'claim_limit', scan_id = '{id}' WHERE state = 'pending';
             UPDATE deliveries SET state = 'held', reason_code = 'claim_limit' WHERE state = 'pending';
             UPDATE scans SET outcome = 'completed', finished_at = started_at"
        ))
        .await;
    id
}

async fn count(office: &Office, state: &str) -> String {
    office.ask(&format!("SELECT count(*) FROM notices WHERE notice_type = 'expires-30d' AND state = '{state}'")).await
}

#[tokio::test]
async fn all_of_a_scan_go_but_what_a_person_holds() {
    let office = Office::new().await;
    let scan = held_by_scan(&office, 5).await;
    let permit = office.ask("SELECT id FROM permits WHERE permit_number = '3'").await.parse().unwrap();
    let kept = office.notice(permit).await;
    release(&mut office.connect().await, kept, None, &today()).await.unwrap();
    hold(&mut office.connect().await, kept, "wait for this one", &today()).await.unwrap();
    let mut told = Vec::new();
    let connection = &mut office.connect().await;
    let done =
        release_held(connection, HeldBy::Scan(scan), false, "checked", "tests", &today(), |at| told.push(at)).await;
    assert_eq!(done.unwrap(), Released { released: 4, ..Released::default() });
    assert_eq!((count(&office, "pending").await, count(&office, "held").await), ("4".into(), "1".into()));
    assert_eq!(office.state(kept).await, "held by_person");
    assert_eq!((told.len(), told[0].done, told[0].total), (1, 4, 4));
    assert_eq!(office.ask("SELECT count(*) FROM notices WHERE reason = 'checked' AND reason_code IS NULL").await, "4");
    let again =
        release_held(connection, HeldBy::Scan(scan), false, "checked", "tests", &today(), |_| {}).await.unwrap();
    assert_eq!(again.total(), 0);
}

#[tokio::test]
async fn released_late_only_what_is_still_in_time_goes() {
    let office = Office::new().await;
    let scan = held_by_scan(&office, 3).await;
    // One permit was renewed meanwhile without anybody looking, one has another two weeks.
    office.run("UPDATE permits SET expires_on = '2027-07-01' WHERE permit_number = '0'").await;
    let last_day = on("2026-06-16");
    let connection = &mut office.connect().await;
    let done = release_held(connection, HeldBy::Scan(scan), false, "late", "tests", &last_day, |_| {}).await.unwrap();
    assert_eq!(done, Released { released: 2, superseded: 1, ..Released::default() });
    let office = Office::new().await;
    let scan = held_by_scan(&office, 2).await;
    let connection = &mut office.connect().await;
    let done =
        release_held(connection, HeldBy::Scan(scan), false, "late", "tests", &on("2026-06-17"), |_| {}).await.unwrap();
    assert_eq!(done, Released { skipped: 2, ..Released::default() });
    assert_eq!(count(&office, "skipped").await, "2");
    assert_eq!(office.ask("SELECT count(*) FROM deliveries WHERE state = 'pending'").await, "0");
    assert_eq!(office.ask("SELECT DISTINCT reason_code FROM deliveries WHERE state = 'skipped'").await, "too_late");
}

#[tokio::test]
async fn of_two_held_steps_only_the_later_goes() {
    let office = Office::new().await;
    held_by_scan(&office, 1).await;
    let permit: Uuid = office.ask("SELECT id FROM permits").await.parse().unwrap();
    let earlier = office.notice(permit).await;
    // As a rule the brake of the later scan has superseded it; here both are held and due at once.
    office
        .run(
            "UPDATE schedule_steps SET offset_days = -30 WHERE notice_type = 'expires-14d';
             INSERT INTO notices (id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by, state,
                                  reason_code, created_at)
             SELECT gen_random_uuid(), permit_id || ':expires-14d:2026-07-01', permit_id, 'expires-14d', expires_on,
                    class, due_on, '2026-06-23', 'held', 'claim_limit', created_at
             FROM notices WHERE notice_type = 'expires-30d';
             INSERT INTO deliveries (id, notice_id, channel, recipient_key, role, state, send_by, next_attempt_at,
                                     created_at, updated_at)
             SELECT gen_random_uuid(), id, 'letter', 'letter', 'holder', 'held', send_by, created_at, created_at,
                    created_at FROM notices WHERE notice_type = 'expires-14d'",
        )
        .await;
    let state = release(&mut office.connect().await, earlier, None, &today()).await.unwrap();
    assert_eq!(state, NoticeState::Superseded);
    assert_eq!(office.state(earlier).await, "superseded more_urgent_step");
}

#[tokio::test]
async fn all_of_a_scan_can_be_cancelled() {
    let office = Office::new().await;
    let scan = held_by_scan(&office, 2).await;
    let connection = &mut office.connect().await;
    let done =
        release_held(connection, HeldBy::Scan(scan), true, "a wrong file", "tests", &today(), |_| {}).await.unwrap();
    assert_eq!(done, Released { cancelled: 2, ..Released::default() });
    assert_eq!(
        office
            .ask("SELECT DISTINCT concat_ws(' ', state, reason_code, reason) FROM notices WHERE state = 'cancelled'")
            .await,
        "cancelled by_person a wrong file"
    );
    assert_eq!(office.ask("SELECT count(*) FROM deliveries WHERE state <> 'cancelled'").await, "0");
}

#[tokio::test]
async fn scans_that_run_or_do_not_exist_and_bad_reasons_are_refused() {
    let office = Office::new().await;
    let scan = held_by_scan(&office, 1).await;
    let connection = &mut office.connect().await;
    let rules = today();
    let done = release_held(connection, HeldBy::Scan(scan), false, "", "tests", &rules, |_| {}).await;
    assert_eq!(invalid(done), "reason");
    for (held_by, what) in [(HeldBy::Scan(Uuid::nil()), "scan"), (HeldBy::Import(scan), "import")] {
        let done = release_held(connection, held_by, false, "x", "tests", &rules, |_| {}).await;
        assert!(matches!(done, Err(StoreError::NotFound(found)) if found == what), "{done:?}");
    }
    office.run("UPDATE scans SET outcome = 'running', finished_at = NULL").await;
    let why = wrong_state(release_held(connection, HeldBy::Scan(scan), false, "x", "tests", &rules, |_| {}).await);
    assert!(why.contains("running"), "{why}");
}
