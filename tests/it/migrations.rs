//! Bringing a database up to date: several at once, after a failure, from any version, with rows in it.

use std::sync::{Arc, Barrier};

use permit_notifier::store::migrate::{MigrateError, is_up_to_date, migrate, migrations};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::support::cluster::empty_database;

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection")
}

async fn run(connection: &mut PgConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{error}: {sql}"));
}

async fn number(connection: &mut PgConnection, query: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(connection).await.expect("a number")
}

#[tokio::test]
async fn four_replicas_that_start_at_once_on_an_empty_database_all_succeed() {
    let url = empty_database().await;
    let barrier = Arc::new(Barrier::new(4));
    let replicas: Vec<_> = (0..4)
        .map(|_| {
            let (url, barrier) = (url.clone(), barrier.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                barrier.wait();
                runtime.block_on(migrate(&url)).map_err(|error| error.to_string())
            })
        })
        .collect();
    for replica in replicas {
        assert_eq!(replica.join().expect("no panic"), Ok(()));
    }
    let mut connection = connect(&url).await;
    assert!(is_up_to_date(&mut connection).await.expect("an answer"));
    let applied = number(&mut connection, "SELECT count(*) FROM _sqlx_migrations WHERE success").await;
    assert_eq!(applied, migrations().len() as i64);
}

#[tokio::test]
async fn a_migration_that_fails_leaves_no_lock_behind_and_can_be_repeated() {
    let url = empty_database().await;
    let mut connection = connect(&url).await;
    run(&mut connection, "CREATE TABLE notices (in_the_way integer)").await;
    assert!(!is_up_to_date(&mut connection).await.expect("an answer"));
    for _ in 0..2 {
        let failed = migrate(&url).await;
        assert!(matches!(failed, Err(MigrateError::Failed(_))), "{failed:?}");
    }
    assert!(!is_up_to_date(&mut connection).await.expect("an answer"));
    // Nothing is left of the one that failed, and the ones before it stand.
    assert_eq!(number(&mut connection, "SELECT count(*) FROM pg_tables WHERE tablename = 'deliveries'").await, 0);
    assert_eq!(number(&mut connection, "SELECT count(*) FROM permits").await, 0);
    run(&mut connection, "DROP TABLE notices").await;
    migrate(&url).await.expect("the migrations");
    assert!(is_up_to_date(&mut connection).await.expect("an answer"));
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
                     (SELECT oid FROM pg_database WHERE datname = current_database())";
    while number(&mut connection, locks).await > 0 {
        // The server ends the closed session in its own time.
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_database_that_needs_a_newer_program_is_refused_and_left_alone() {
    let url = empty_database().await;
    migrate(&url).await.expect("the migrations");
    let mut connection = connect(&url).await;
    for (needed, refused) in [("0.0.9", false), (env!("CARGO_PKG_VERSION"), false), ("0.1.1", true), ("10.0.0", true)] {
        run(&mut connection, &format!("UPDATE installation SET min_binary = '{needed}'")).await;
        let done = migrate(&url).await;
        assert_eq!(matches!(&done, Err(MigrateError::TooOld { needed: by, .. }) if by == needed), refused, "{done:?}");
        assert_eq!(done.is_ok(), !refused);
    }
    let error = migrate(&url).await.expect_err("a refusal").to_string();
    assert!(error.contains("10.0.0") && error.contains(env!("CARGO_PKG_VERSION")), "{error}");
}

#[tokio::test]
async fn a_newer_database_that_this_program_may_still_use_is_left_as_it_is() {
    let url = empty_database().await;
    migrate(&url).await.expect("the migrations");
    let mut connection = connect(&url).await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (20991231000000, 'from the future', true, '', 0)";
    run(&mut connection, newer).await;
    migrate(&url).await.expect("no refusal");
    assert!(is_up_to_date(&mut connection).await.expect("an answer"));
}

/// Rows as an office has them, by the migration after which they can be written.
const SAMPLES: [(i64, &str); 30] = [
    (
        20_261_129_100_000,
        "INSERT INTO permit_types (code, name, created_at, updated_at) VALUES ('food', 'Food', now(), now());
         INSERT INTO schedule_steps VALUES ('food', 0, 'expires-30d', -30, 'statutory', 7, true),
                                           ('food', 1, 'renewed', NULL, 'courtesy', 7, true)",
    ),
    (
        20_261_129_100_100,
        "INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, holder_email, expires_on,
                              period_since, created_at, updated_at)
         VALUES ('00000000-0000-7000-8000-000000000001', 'A 1', 'a1', 'food', 'active', 'Ada', 'ada@example.org',
                 '2027-06-30', '2026-12-01', now(), now());
         INSERT INTO contacts (id, permit_id, position, email, role)
         VALUES (gen_random_uuid(), '00000000-0000-7000-8000-000000000001', 0, 'bo@example.org', 'agent');
         INSERT INTO terms SELECT id, 1, NULL, NULL, expires_on, now() FROM permits;
         INSERT INTO expiry_periods SELECT id, expires_on, period_since FROM permits;
         INSERT INTO suppressions VALUES (gen_random_uuid(), 'eve@example.org', 'all', 'bounced', 'bounce', now())",
    ),
    (
        20_261_129_100_200,
        "INSERT INTO processes (boot_id, host, roles, version, fingerprint, lease_seconds)
         VALUES ('00000000-0000-7000-8000-0000000000b0', 'host', 'scan', '0.1.0', 'same', 60);
         INSERT INTO business_clocks (setting, offset_micros) VALUES ('2027-01-01', 1)",
    ),
    (
        20_261_129_100_300,
        "INSERT INTO scan_schedules (schedule, zone, since) VALUES ('0 0 6 * * *', 'UTC', now());
         INSERT INTO scans (id, trigger, as_of, own_day, boot_id, started_at, finished_at, outcome, lock)
         VALUES ('00000000-0000-7000-8000-0000000000c0', 'command', '2027-05-31', true,
                 '00000000-0000-7000-8000-0000000000b0', now(), now(), 'completed', 'acquired')",
    ),
    (
        20_261_129_100_400,
        "INSERT INTO imports VALUES ('00000000-0000-7000-8000-0000000000d0', 'permits.csv', now(), now(), '{}');
         INSERT INTO import_rows (import_id, file_row, id, permit_number, number_key, permit_type, permit_type_name,
                                  holder_name, contacts, expires_on)
         VALUES ('00000000-0000-7000-8000-0000000000d1', 2, gen_random_uuid(), 'A 2', 'a2', 'food', 'Food', 'Bo', '[]',
                 '2027-06-30');
         INSERT INTO import_permits (import_id, number_key, file_row)
         VALUES ('00000000-0000-7000-8000-0000000000d1', 'a2', 2)",
    ),
    (
        20_261_129_100_500,
        "INSERT INTO notices (id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by, state,
                              created_at, scan_id, import_id)
         VALUES ('00000000-0000-7000-8000-0000000000e0',
                 '00000000-0000-7000-8000-000000000001:expires-30d:2027-06-30',
                 '00000000-0000-7000-8000-000000000001', 'expires-30d', '2027-06-30', 'statutory', '2027-05-31',
                 '2027-06-30', 'sent', now(), '00000000-0000-7000-8000-0000000000c0',
                 '00000000-0000-7000-8000-0000000000d0');
         INSERT INTO deliveries (id, notice_id, channel, recipient, recipient_key, role, state, send_by, next_attempt_at,
                                 created_at, updated_at)
         VALUES ('00000000-0000-7000-8000-0000000000f0', '00000000-0000-7000-8000-0000000000e0', 'email',
                 'ada@example.org', 'ada@example.org', 'holder', 'pending', '2027-06-30', now(), now(), now());
         INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, phase, smtp_code,
                               payload_sha256, started_at, finished_at)
         SELECT '00000000-0000-7000-8000-0000000000a0', d.id, 1, n.notice_key, s.boot_id, 'smtp', 'accepted', 'dot', 250,
                sha256('mail'), now(), now()
         FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN scans s ON s.id = n.scan_id;
         INSERT INTO attempt_messages VALUES ('00000000-0000-7000-8000-0000000000a0', 'mail');
         UPDATE deliveries SET state = 'sent'",
    ),
    (
        20_261_129_100_600,
        "INSERT INTO audit_lines VALUES (1, 'A1', '<first@example.org>', true);
         INSERT INTO audit_messages VALUES ('<first@example.org>', 1, 1)",
    ),
    (20_261_129_100_700, "UPDATE transport SET paused_until = now(), fault = '421 busy'"),
    (
        20_261_129_100_800,
        "INSERT INTO memory_marks (system_identifier, timeline, database_oid, notices_oid) VALUES (1, 1, 2, 3);
         INSERT INTO memory_lapses (timeline, database_oid, notices_oid, noticed_at, held, confirmed_at, reason)
         VALUES (1, 2, 4, now(), 7, now(), 'moved to another server')",
    ),
    (20_261_129_101_000, "UPDATE attempt_messages SET content = 'mail, packed anew'"),
    (
        20_261_129_101_100,
        "INSERT INTO tokens (id, name, scope, token_sha256, hint, created_by, created_at)
         VALUES ('00000000-0000-7000-8000-000000000070', 'portal', 'write', sha256('token'), 'aB3d', 'command', now());
         INSERT INTO idempotency_keys (token_id, method, path, key, request_sha256, status, created_at)
         SELECT id, 'POST', '/api/v1/permits', 'k', sha256('body'), 201, now() FROM tokens",
    ),
    (
        20_261_129_101_200,
        "INSERT INTO permit_history (permit_id, version, action, at, by, before)
         SELECT id, version + 1, 'corrected', now(), 'command', permit_said(permits) FROM permits",
    ),
    (20_261_129_101_300, "UPDATE permits SET site_address = '12 Elm Street'"),
    (20_261_129_101_400, "UPDATE notices SET state = 'failed'"),
    (
        20_261_129_102_000,
        "INSERT INTO import_rejections SELECT id, 2, '[\"A 3\"]', 'expires_on is needed' FROM imports;
         INSERT INTO import_rejected_rows VALUES (gen_random_uuid(), 2, '[]', 'expires_on is needed')",
    ),
    (20_261_129_102_100, "UPDATE notices SET superseded_at = now(), reason_code = 'paused'"),
    (
        20_261_129_103_000,
        "INSERT INTO users (id, email, email_key, role, created_by, created_at)
         VALUES ('00000000-0000-7000-8000-000000000080', 'Ada@office.example', 'ada@office.example', 'admin', 'command', now());
         INSERT INTO sessions SELECT gen_random_uuid(), id, sha256('session'), now(), now() FROM users;
         INSERT INTO password_links SELECT sha256('link'), id, now(), now() FROM users;
         INSERT INTO sign_in_failures VALUES ('account', 'somebody', 1, now());
         INSERT INTO office_log (id, at, by, action, subject, label)
         VALUES (gen_random_uuid(), now(), 'user:ada@office.example', 'added', 'user', 'bo@office.example')",
    ),
    (20_261_129_103_100, "UPDATE permits SET holder_name = 'Ada Byron'"),
    (20_261_129_104_000, "UPDATE deliveries SET last_error = 'none' WHERE state = 'pending'"),
    (
        20_261_129_105_000,
        "INSERT INTO kept_files (id, file_name, bytes, kept_by, kept_at)
         VALUES ('00000000-0000-7000-8000-000000000090', 'permits.csv', 1, 'user:ada@office.example', now());
         INSERT INTO kept_file_parts SELECT id, 0, 'a' FROM kept_files;
         UPDATE imports SET by = 'user:ada@office.example'",
    ),
    (20_261_129_106_000, "UPDATE permits SET site_address = '1 Mill Street'"),
    (20_261_130_140_000, "UPDATE import_rejected_rows SET number_key = 'a1'"),
    (20_261_130_150_100, "UPDATE contacts SET from_holder = true"),
    (
        20_261_130_140_100,
        "INSERT INTO import_mappings VALUES ('00000000-0000-7000-8000-0000000000a0', 'Old system', 'old system',
                                             '{\"map\": [\"permit_number=NO\"]}', 'command', now());
         UPDATE permits SET permit_number = 'B\u{200b}7', number_key = 'b\u{200b}7'",
    ),
    (
        20_261_130_150_200,
        "DO $$ BEGIN ASSERT (SELECT permit_number || ' ' || number_key FROM permits) = 'B7 b7'; END $$",
    ),
    (
        20_261_130_110_000,
        "INSERT INTO purges VALUES ('00000000-0000-7000-8000-0000000000aa', 'daily', now(), now(), '{}')",
    ),
    (
        20_261_130_100_000,
        "INSERT INTO alarms (id, kind, subject, detail, raised_at, raised_by)
         VALUES ('00000000-0000-7000-8000-0000000000a1', 'held', '', '1 notice waits', now(), gen_random_uuid());
         INSERT INTO alarm_messages (alarm_id, event, surface)
         VALUES ('00000000-0000-7000-8000-0000000000a1', 'raised', 'webhook')",
    ),
    (20_261_130_150_300, "UPDATE alarms SET subject = 'by hand'"),
    (20_261_130_160_100, "UPDATE notices SET held_before = 'claim_limit'"),
    (20_261_130_170_000, "UPDATE import_rejected_rows SET cell_keys = '[\"a1\"]'"),
];

#[tokio::test]
async fn every_migration_runs_over_the_rows_of_those_before_it() {
    let url = empty_database().await;
    let mut connection = connect(&url).await;
    for (version, sql) in migrations() {
        run(&mut connection, &format!("BEGIN; {sql}; COMMIT")).await;
        let sample = SAMPLES.iter().find(|(after, _)| *after == version);
        run(&mut connection, sample.unwrap_or_else(|| panic!("no sample rows for {version}")).1).await;
    }
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
            .fetch_all(&mut connection)
            .await
            .expect("the tables");
    for table in tables {
        let rows = number(&mut connection, &format!("SELECT count(*) FROM {table}")).await;
        assert!(rows > 0, "no sample rows in {table}");
    }
}

#[tokio::test]
async fn every_table_and_column_says_what_it_is() {
    let url = empty_database().await;
    migrate(&url).await.expect("the migrations");
    let silent: Vec<String> = sqlx::query_scalar(
        "SELECT concat_ws('.', c.relname, a.attname)
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.relkind = 'r' AND c.relname <> '_sqlx_migrations'
           AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid) IS NULL)",
    )
    .fetch_all(&mut connect(&url).await)
    .await
    .expect("the columns");
    assert!(silent.is_empty(), "{silent:?}");
}
