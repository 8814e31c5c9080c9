//! Imports beside others: other imports, scans, and changes by hand.

use std::sync::Arc;

use permit_notifier::clock::ManualClock;
use permit_notifier::files::{self, ImportRules, Input};
use permit_notifier::scan::{PATIENCE, ScanRequest, ScanRules, pass::run_once};
use permit_notifier::store::{Moment, scans::Trigger};
use sqlx::{AssertSqlSafe, Connection};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Desk, HEADER, TODAY, all_or_nothing, catch_up, day, moment, rules};
use crate::support::postbox::{Postbox, in_days, until};

fn lines(numbers: std::ops::Range<u32>, holder: &str, expires_on: &str) -> String {
    let lines = numbers.map(|i| format!("P-{i},Food,{holder},p{i}@example.org,{expires_on}\n"));
    format!("{HEADER}\n{}", lines.collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_imports_of_overlapping_files_at_once_lose_nothing() {
    let desk = Desk::new().await;
    for round in 0..4 {
        let first = desk.file("first.csv", &lines(0..500, "Ann", &format!("203{round}-01-31")));
        // The other way round, so that locks taken in the order of the file would meet head on.
        let text = lines(250..750, "Bob", &format!("203{round}-06-30"));
        let mut reversed: Vec<&str> = text.lines().skip(1).collect();
        reversed.reverse();
        let second = desk.file("second.csv", &format!("{HEADER}\n{}\n", reversed.join("\n")));
        let (options, rules) = (all_or_nothing(), catch_up());
        let both = tokio::join!(desk.try_import(&first, &options, &rules), desk.try_import(&second, &options, &rules),);
        let (first, second) = (both.0.unwrap(), both.1.unwrap());
        let created = first.permits_created + second.permits_created;
        let renewed = first.permits_renewed + second.permits_renewed + first.unchanged + second.unchanged;
        assert_eq!((created, created + renewed), (if round == 0 { 750 } else { 0 }, 1000));
        let later =
            format!("SELECT count(*) FROM permits WHERE expires_on = '203{round}-06-30' AND holder_name = 'Bob'");
        assert_eq!(desk.ask(&later).await, "500");
        let present = "SELECT count(*) FROM permits p WHERE expires_on <>
                       (SELECT expires_on FROM terms t WHERE t.permit_id = p.id ORDER BY number DESC LIMIT 1)";
        assert_eq!(desk.ask(present).await, "0");
    }
    assert_eq!(desk.ask("SELECT count(*) FROM import_rows").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_beside_a_scan_neither_blocks_it_nor_doubles_a_notice() {
    let desk = Desk::new().await;
    desk.try_import(&desk.file("all.csv", &lines(0..1500, "Ann", "2026-06-20")), &all_or_nothing(), &catch_up())
        .await
        .unwrap();
    for round in 0..4 {
        let now = moment(&format!("2026-06-0{}", 2 + round));
        let scan = ScanRules {
            direct_url: desk.url.clone(),
            clock: Arc::new(ManualClock::new(now.now)),
            zone: chrono_tz::UTC,
            window: None,
            claim_limit: 0,
            boot_id: Uuid::now_v7(),
            patience: PATIENCE,
            stop: CancellationToken::new(),
            heartbeat: permit_notifier::outgoing::heartbeat::Heartbeat::default(),
        };
        let request = ScanRequest { scheduled_for: None, trigger: Trigger::Manual, as_of: None };
        // Every permit renewed, or corrected to another holder, while the scan judges it.
        let text = if round == 3 {
            lines(0..1500, "Ann", "2026-06-25")
        } else {
            lines(0..1500, &format!("H{round}"), "2026-06-20")
        };
        let path = desk.file("more.csv", &text);
        let rules = ImportRules { moment: now, claim_limit: 0, ..catch_up() };
        let options = all_or_nothing();
        let (scanned, imported) = tokio::join!(run_once(&scan, request), desk.try_import(&path, &options, &rules));
        let imported = imported.unwrap();
        scanned.unwrap();
        assert_eq!(imported.permits_updated + imported.permits_renewed, 1500);
    }
    let open = "SELECT count(*) FROM notices n JOIN permits p ON p.id = n.permit_id
                WHERE n.state = 'pending' AND n.expires_on <> p.expires_on";
    assert_eq!(desk.ask(open).await, "0");
    let twice = "SELECT count(*) FROM (SELECT FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state = 'pending' GROUP BY n.permit_id HAVING count(*) > 1) AS twice";
    assert_eq!(desk.ask(twice).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_while_others_scan_and_dispatch_send_nothing_for_a_term_that_has_ended() {
    const PERMITS: usize = 600;
    let post = Postbox::open().await;
    post.permit("holder000@x.example").await;
    post.more_of_the_same(PERMITS).await;
    let numbers: Vec<String> = sqlx::query_scalar("SELECT permit_number FROM permits ORDER BY permit_number")
        .fetch_all(&mut post.session().await)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, numbers: &[String], years: i64| {
        let day = in_days(365 * years);
        let lines = numbers.iter().map(|number| format!("{number},food,Corner Bakery,{day}\n"));
        let path = folder.path().join(name);
        std::fs::write(
            &path,
            format!("permit_number,permit_type,holder_name,expires_on\n{}", lines.collect::<String>()),
        )
        .unwrap();
        Input::Path(path)
    };
    // They share a third, and the second names it the other way round.
    let mut second = numbers[PERMITS / 3..].to_vec();
    second.reverse();
    let (first, second) = (file("first.csv", &numbers[..PERMITS * 2 / 3], 1), file("second.csv", &second, 2));
    let mut replica = post.replica(4).await;
    replica.begin();
    until("a message is taken", async || !post.mailer.ledger().is_empty()).await;
    let (options, rules) = (all_or_nothing(), ImportRules { moment: post.moment(), claim_limit: 0, ..rules() });
    // When the import is over, nothing that is offered later may be about the old term of its permits.
    let import = async |file: Input| {
        let report = files::import(&post.url, file, &options, &rules, |_| {}).await.unwrap();
        (report, post.mailer.tick())
    };
    let ((first, first_over), (second, second_over), ()) = tokio::join!(import(first), import(second), post.scan());
    assert_eq!((first.rows, second.rows), (400, 400));
    assert_eq!(first.permits_renewed + first.skipped + second.permits_renewed, 800, "{first:?} {second:?}");
    until("nothing is pending", async || {
        post.count("SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending')").await == 0
    })
    .await;
    replica.leave().await;
    post.check().await;
    let latest: String = sqlx::query_scalar(
        "SELECT string_agg(expires_on || ' ' || permits, ', ' ORDER BY expires_on)
         FROM (SELECT expires_on, count(*) AS permits FROM permits GROUP BY 1) AS dates",
    )
    .fetch_one(&mut post.session().await)
    .await
    .unwrap();
    assert_eq!(latest, format!("{} 200, {} 400", in_days(365), in_days(730)), "the later date wins");
    let old = format!(":{}", in_days(30));
    let ended = first_over.max(second_over);
    let ledger = post.mailer.ledger();
    let late: Vec<_> =
        ledger.iter().filter(|taken| taken.notice_key.ends_with(&old) && taken.offered_at > ended).collect();
    assert!(late.is_empty(), "{late:?}");
    // The race was one: some were sent before, some were kept back.
    let kept_back = post.count("SELECT count(*) FROM deliveries WHERE state = 'superseded'").await;
    println!("{} messages went before their permits were renewed, {kept_back} were kept back", ledger.len());
    assert!(kept_back > 0 && !ledger.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_comes_before_the_lock_is_seen_and_not_overwritten() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["1,Food,Ann,,2026-12-31", "2,Food,Ann,,2026-12-31"], &rules()).await;
    let mut other = desk.connect().await;
    let mut change = other.begin().await.unwrap();
    sqlx::query(
        "UPDATE permits SET expires_on = '2029-12-31', holder_name = 'Eve', version = version + 1 WHERE number_key = '1'",
    )
    .execute(&mut *change)
    .await
    .unwrap();
    let rules = rules();
    let import = desk.import(HEADER, &["1,Food,Bob,,2027-12-31", "2,Food,Bob,,2027-12-31"], &rules);
    let committed = async {
        desk.until_import_waits().await;
        change.commit().await.unwrap();
    };
    let (report, ()) = tokio::join!(import, committed);
    assert_eq!((report.permits_renewed, report.unchanged), (1, 1));
    let permits = desk.rows("SELECT permit_number, holder_name, expires_on FROM permits ORDER BY 1").await;
    assert_eq!(permits, "1,Eve,2029-12-31 2,Bob,2027-12-31");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_import_changes_is_dated_after_its_wait_for_another_one() {
    let desk = Desk::new().await;
    let mut other = desk.connect().await;
    let mut holding = other.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(8099005319141944951)").execute(&mut *holding).await.unwrap();
    let eve = Moment { now: "2026-06-01T23:59:59.500Z".parse().unwrap(), today: day(TODAY) };
    let rules = ImportRules { moment: eve, ..rules() };
    let import = desk.import(HEADER, &["1,Food,Ann,a@example.org,2026-12-31"], &rules);
    let released = async {
        desk.until_import_waits().await;
        sqlx::query("SELECT pg_sleep(0.6)").execute(&mut *holding).await.unwrap();
        holding.rollback().await.unwrap();
    };
    tokio::join!(import, released);
    let dated = desk.rows("SELECT updated_at >= '2026-06-02T00:00:00.1Z', notices_from FROM permits").await;
    assert_eq!(dated, "t,2026-06-02");
    let taken = desk.rows("SELECT started_at = '2026-06-01T23:59:59.5Z', finished_at > started_at FROM imports").await;
    assert_eq!(taken, "t,t");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_taken_meanwhile_is_a_known_permit() {
    let desk = Desk::new().await;
    desk.import(HEADER, &["0,Food,Ann,,2026-12-31"], &rules()).await;
    let mut other = desk.connect().await;
    let mut change = other.begin().await.unwrap();
    let insert = format!(
        "INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, expires_on, period_since,
                              created_at, updated_at)
         VALUES ('{}', '1', '1', 'food', 'active', 'Eve', '2029-12-31', '2026-06-01', now(), now())",
        Uuid::now_v7()
    );
    sqlx::query(AssertSqlSafe(insert)).execute(&mut *change).await.unwrap();
    let rules = rules();
    let import = desk.import(HEADER, &["1,Food,Bob,,2027-12-31", "2,Food,Bob,,2027-12-31"], &rules);
    let committed = async {
        desk.until_import_waits().await;
        change.commit().await.unwrap();
    };
    let (report, ()) = tokio::join!(import, committed);
    assert_eq!((report.permits_created, report.unchanged), (1, 1));
    assert_eq!(desk.permit("1").await.holder_name, "Eve");
}
