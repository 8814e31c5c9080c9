//! Scanning against bare SQL, as ratios in one run: `cargo bench --bench scan`, or with `-- 200000` for
//! other sizes.
//!
//! A private PostgreSQL with durable settings is filled with permits of which 10,000 fall due on one day. The
//! window of the scan holds some 140,000 permits with their history of notices, however many lie outside it. Each
//! round runs the product's scan and bare statements that write the same rows, in turn, from the same state.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{NaiveDate, TimeZone, Utc};
use permit_notifier::{
    clock::ManualClock,
    private_postgres::PrivatePostgres,
    scan::{PATIENCE, ScanReport, ScanRequest, ScanRules, pass::run_once},
    store::{
        PgConnection,
        connect::{Purpose, connect},
        migrate::migrate,
        scans::Trigger,
    },
};
use sqlx::{AssertSqlSafe, Connection, Executor};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const ROUNDS: usize = 5;
/// Permits that expire on each day of the window: nine steps make about 10,000 due a day.
const A_DAY: i64 = 1111;
const SIZES: [i64; 2] = [1_000_000, 5_000_000];

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let sizes: Vec<i64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    let folder = tempfile::Builder::new().prefix("pn-bench").tempdir_in("/tmp")?;
    let_in(folder.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut claims = Vec::new();
    for size in sizes {
        let data = folder.path().join(size.to_string());
        std::fs::create_dir(&data)?;
        let_in(&data)?;
        let server = PrivatePostgres::open(&data)?;
        claims.push((size, runtime.block_on(measure(&server.url(), size))?));
        server.stop();
    }
    if let [(small, first), (large, second)] = claims[..] {
        println!("\nclaiming of {large} permits takes {:.2} times that of {small}  (bar: 1.3)", ratio(second, first));
    }
    Ok(())
}

/// The server's account must be able to enter.
fn let_in(folder: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o711))
}

async fn measure(url: &str, size: i64) -> Result<Duration, Error> {
    migrate(url).await?;
    let mut connection = connect(url, Purpose::Bulk).await?;
    let started = Instant::now();
    fill(&mut connection, size).await?;
    println!("\n{size} permits filled in {:.0?}", started.elapsed());
    let today = today();
    let rules = ScanRules {
        direct_url: url.to_owned(),
        clock: Arc::new(ManualClock::new(Utc.from_utc_datetime(&today.and_hms_opt(6, 0, 0).unwrap_or_default()))),
        zone: chrono_tz::UTC,
        window: None,
        claim_limit: 0,
        boot_id: Uuid::new_v4(),
        patience: PATIENCE,
        stop: CancellationToken::new(),
        heartbeat: permit_notifier::outgoing::heartbeat::Heartbeat::default(),
    };
    // One completed scan, so that the look back is what it is every day.
    connection.execute(AssertSqlSafe(FIRST_SCAN.replace("$today", &format!("'{today}'")))).await?;
    let (mut ours, mut bare, mut ours_idle, mut bare_idle) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let (claimed, took) = scan(&rules).await?;
        ours.push(took);
        let (nothing, took) = scan(&rules).await?;
        ours_idle.push(took);
        let written = forget(&mut connection).await?;
        bare.push(run_bare(&mut connection).await?);
        bare_idle.push(run_bare(&mut connection).await?);
        let bare_written = forget(&mut connection).await?;
        assert_eq!(nothing.counts.claimed, 0, "a second scan claims nothing");
        assert_eq!(written, bare_written, "both must write the same number of rows");
        println!(
            "  a round: claimed {}, rows {written:?}, already {}",
            claimed.counts.claimed, claimed.counts.already_claimed
        );
    }
    let [ours, bare, ours_idle, bare_idle] = [ours, bare, ours_idle, bare_idle].map(median);
    let line = |what: &str, ours: Duration, bare: Duration| {
        let (ours_ms, bare_ms) = (ours.as_millis(), bare.as_millis());
        println!("{what:<20} ours {ours_ms:>6} ms   bare {bare_ms:>6} ms   ratio {:.2}  (bar: 1.5)", ratio(ours, bare));
    };
    line("scan and claim", ours, bare);
    line("scan, nothing new", ours_idle, bare_idle);
    connection.close().await?;
    Ok(ours)
}

fn today() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 12, 1).unwrap_or_default()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

async fn scan(rules: &ScanRules) -> Result<(ScanReport, Duration), Error> {
    let started = Instant::now();
    let request = ScanRequest { scheduled_for: None, trigger: Trigger::Command, as_of: None };
    let report = run_once(rules, request).await?;
    Ok((report, started.elapsed()))
}

async fn run_bare(connection: &mut PgConnection) -> Result<Duration, Error> {
    let today = format!("'{}'::date", today());
    let started = Instant::now();
    let mut transaction = connection.begin().await?;
    // The planner's own choice of joins, and the memory that ours has too.
    transaction.execute("SET LOCAL work_mem = '64MB'").await?;
    transaction.execute(AssertSqlSafe(BARE_NOTICES.replace("$today", &today))).await?;
    transaction.execute(AssertSqlSafe(BARE_DELIVERIES.replace("$today", &today))).await?;
    transaction.commit().await?;
    Ok(started.elapsed())
}

/// Takes back what a round wrote; says how many notices and deliveries that was.
async fn forget(connection: &mut PgConnection) -> Result<(u64, u64), Error> {
    let deliveries = connection.execute("DELETE FROM deliveries").await?.rows_affected();
    let notices = connection.execute("DELETE FROM notices WHERE reason IS DISTINCT FROM 'history'").await?;
    connection.execute("VACUUM ANALYZE notices").await?;
    connection.execute("VACUUM ANALYZE deliveries").await?;
    connection.execute("CHECKPOINT").await?;
    Ok((notices.rows_affected(), deliveries))
}

async fn fill(connection: &mut PgConnection, size: i64) -> Result<(), Error> {
    let today = today();
    connection.execute(TYPES).await?;
    let fill = FILL.replace("$today", &format!("'{today}'::date")).replace("$size", &size.to_string());
    connection.execute(AssertSqlSafe(fill.replace("$a_day", &A_DAY.to_string()))).await?;
    connection.execute(AssertSqlSafe(HISTORY.replace("$today", &format!("'{today}'::date")))).await?;
    connection.execute("VACUUM ANALYZE").await?;
    Ok(())
}

const TYPES: &str = "
    INSERT INTO permit_types (code, name, created_at, updated_at) VALUES ('food', 'Food', now(), now()), ('tavern', 'Tavern', now(), now());
    INSERT INTO schedule_steps (permit_type, position, notice_type, offset_days, class)
    SELECT code, row_number() OVER (PARTITION BY code ORDER BY days) - 1, step.name, days, 'statutory'
    FROM permit_types, (VALUES ('expires-90d', -90), ('expires-60d', -60), ('expires-30d', -30), ('expires-14d', -14),
                        ('expires-7d', -7), ('expires-1d', -1), ('expires-today', 0), ('expired-1d', 1),
                        ('expired-30d', 30)) AS step (name, days)";

/// The first permits fill the window evenly, the others expire later.
const FILL: &str = "
    INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, holder_email, expires_on,
                         period_since, created_at, updated_at)
    SELECT gen_random_uuid(), 'P-' || i, 'p-' || i, CASE i % 2 WHEN 0 THEN 'food' ELSE 'tavern' END, 'active',
           'Holder ' || i, 'holder-' || i || '@example.com',
           $today + CASE WHEN i < $a_day * 128 THEN i / $a_day - 37 ELSE 91 + i % 3000 END::int,
           '2020-01-01', now(), now()
    FROM generate_series(0, $size - 1) AS i";

const HISTORY: &str = "
    INSERT INTO notices (id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by, state, reason_code,
                         reason, created_at)
    SELECT gen_random_uuid(), p.id || ':' || s.notice_type || ':' || to_char(p.expires_on, 'YYYY-MM-DD'), p.id,
           s.notice_type, p.expires_on, s.class, p.expires_on + s.offset_days, p.expires_on, 'skipped', 'too_late',
           'history', now()
    FROM permits p JOIN schedule_steps s ON s.permit_type = p.permit_type
    WHERE p.expires_on + s.offset_days < $today AND p.expires_on >= $today - 37";

const FIRST_SCAN: &str = "
    INSERT INTO scans (id, trigger, as_of, own_day, boot_id, started_at, finished_at, outcome, lock)
    VALUES (gen_random_uuid(), 'command', $today, true, gen_random_uuid(), now(), now(), 'completed', 'acquired')";

/// What somebody would write who trusts the plan and needs no locks, whys, holds or revivals.
const BARE_NOTICES: &str = "
    WITH steps AS (
        SELECT *, lead(offset_days) OVER (PARTITION BY permit_type, class ORDER BY offset_days) AS next_days
        FROM schedule_steps WHERE enabled AND offset_days IS NOT NULL),
    due AS (
        SELECT p.id, p.expires_on, s.notice_type, s.class, p.expires_on + s.offset_days AS due_on,
               least(p.expires_on + s.next_days - 1,
                     CASE WHEN s.offset_days <= 0 THEN p.expires_on ELSE p.expires_on + s.offset_days + s.late_by_days END) AS send_by,
               row_number() OVER (PARTITION BY p.id, s.class ORDER BY s.offset_days DESC) AS rank
        FROM permits p JOIN steps s ON s.permit_type = p.permit_type
        WHERE p.status = 'active' AND p.archived_at IS NULL AND p.expires_on BETWEEN $today - 37 AND $today + 90
          AND (p.notices_paused_until IS NULL OR p.notices_paused_until < $today)
          AND p.expires_on + s.offset_days <= $today
          AND (p.takes_effect_on IS NULL OR p.expires_on + s.offset_days > p.takes_effect_on)
          AND (p.notices_from IS NULL OR p.expires_on + s.offset_days >= p.notices_from)
          AND (s.offset_days <= 0 OR p.expires_on + s.offset_days >= p.period_since)
          AND NOT EXISTS (SELECT FROM notices n WHERE n.permit_id = p.id AND n.expires_on = p.expires_on
                                                 AND n.notice_type = s.notice_type))
    INSERT INTO notices (id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by, state, reason_code,
                         superseded_at, created_at)
    SELECT gen_random_uuid(), id || ':' || notice_type || ':' || to_char(expires_on, 'YYYY-MM-DD'), id, notice_type,
           expires_on, class, due_on, send_by, CASE rank WHEN 1 THEN 'pending' ELSE 'superseded' END,
           CASE WHEN rank > 1 THEN 'more_urgent_step' END, CASE WHEN rank > 1 THEN now() END, now()
    FROM due ORDER BY id
    ON CONFLICT (notice_key) DO NOTHING";

const BARE_DELIVERIES: &str = "
    INSERT INTO deliveries (id, notice_id, channel, recipient, recipient_key, recipient_name, role, state, send_by,
                            next_attempt_at, created_at, updated_at)
    SELECT gen_random_uuid(), n.id, 'email', p.holder_email, lower(p.holder_email), p.holder_name, 'holder', 'pending',
           n.send_by, now(), now(), now()
    FROM notices n JOIN permits p ON p.id = n.permit_id
    WHERE n.state = 'pending' AND n.send_by >= $today
    ON CONFLICT (notice_id, recipient_key, copy) DO NOTHING";
