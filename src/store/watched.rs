//! What the watch asks every few seconds: each question is answered from an index, and stops counting early.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Moment, Result, StoreError};

/// Counts end here: an alarm needs no more.
const COUNT_MAX: i64 = 1000;
/// As many are put into groups: the newest, if there are more.
const GROUPED_MAX: i64 = 20_000;
/// Those of so many days are told apart by day.
const APART_DAYS: i32 = 14;
/// The mail server is well when it has been for so long.
const QUIET_SECONDS: f64 = 30.0;
/// A statutory notice that ended unsent is an alarm for so many days after its last day.
const UNSENT_DAYS: i32 = 30;
/// A mail that was accepted after somebody had resolved it is an alarm for so many days.
const LATE_RESULT_DAYS: i64 = 7;
/// Mails kept as files are looked for so many days back: no step of a usual schedule may go later after it was due.
const FILES_DAYS: i64 = 100;

/// Waits for locks no longer than this, until the end of the transaction.
pub async fn wait_for_locks(connection: &mut PgConnection, patience: Duration) -> Result<()> {
    let limit = format!("{}ms", patience.as_millis());
    sqlx::query!(r#"SELECT set_config('lock_timeout', $1, true) AS "set!""#, limit).fetch_one(connection).await?;
    Ok(())
}

/// The last scan that came to an end, if it did not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedScan {
    pub outcome: String,
    pub error: Option<String>,
    pub started_at: DateTime<Utc>,
}

/// The last scan, if it failed or its process died. One that was asked to stop is none: another goes on at once.
pub async fn failed_scan(connection: &mut PgConnection) -> Result<Option<FailedScan>> {
    let last = sqlx::query_as!(
        FailedScan,
        "SELECT outcome, error, started_at FROM scans WHERE outcome IN ('completed', 'failed', 'abandoned')
           AND error IS DISTINCT FROM $1
         ORDER BY started_at DESC LIMIT 1",
        StoreError::Stopping.to_string(),
    );
    Ok(last.fetch_optional(connection).await?.filter(|last| last.outcome != "completed"))
}

/// Why the breaker is open, in the server's words, and since when by the database's clock.
pub async fn transport_fault(connection: &mut PgConnection) -> Result<Option<(String, DateTime<Utc>)>> {
    let row = sqlx::query!(
        r#"SELECT coalesce(fault, '') AS "fault!", coalesce(opened_at, clock_timestamp()) AS "since!"
           FROM transport WHERE paused_until IS NOT NULL"#
    );
    Ok(row.fetch_optional(connection).await?.map(|row| (row.fault, row.since)))
}

/// Why nothing is sent, in the server's words: the breaker is open, or was a moment ago while its alarm stands. A server
/// that comes and goes is one alarm.
pub async fn transport_trouble(connection: &mut PgConnection) -> Result<Option<String>> {
    let fault = sqlx::query_scalar!(
        r#"SELECT CASE WHEN paused_until IS NULL THEN 'it has answered again for less than half a minute'
                       ELSE coalesce(fault, '') END AS "fault!"
           FROM transport
           WHERE paused_until IS NOT NULL
              OR closed_at > clock_timestamp() - make_interval(secs => $1)
                 AND EXISTS (SELECT FROM alarms WHERE kind = 'transport' AND cleared_at IS NULL)"#,
        QUIET_SECONDS,
    );
    Ok(fault.fetch_optional(connection).await?)
}

/// How many have the same cause, or came on the same day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub subject: String,
    pub count: i64,
}

/// The subject of those that came earlier than two weeks ago.
pub const OLDER: &str = "older";
/// The subject of those that are held because the memory went back.
pub const RESTORED: &str = "restored";
/// The subject of those in the midst of which processes died again and again.
pub const DIED: &str = "processes died";

/// Mails that failed for good or came back and wait for a person, by the day on which they did; the newest are counted.
pub async fn failed_by_day(connection: &mut PgConnection, zone: Tz, today: NaiveDate) -> Result<Vec<Group>> {
    let groups = sqlx::query_as!(
        Group,
        r#"SELECT CASE WHEN day < $2::date - $3::integer THEN 'older' ELSE to_char(day, 'YYYY-MM-DD') END AS "subject!",
                  count(*) AS "count!"
           FROM (SELECT (d.updated_at AT TIME ZONE $1)::date AS day
                 FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE d.state IN ('failed', 'bounced') AND n.superseded_at IS NULL
                   AND NOT EXISTS (SELECT FROM deliveries l WHERE l.notice_id = d.notice_id
                                     AND l.recipient_key = d.recipient_key AND l.copy > d.copy)
                 ORDER BY d.id DESC LIMIT $4) failed
           GROUP BY 1 ORDER BY 1"#,
        zone.name(),
        today,
        APART_DAYS,
        GROUPED_MAX,
    );
    Ok(groups.fetch_all(connection).await?)
}

/// Mails of which nobody knows and that ended before `until`, by the day on which they did.
pub async fn ambiguous_by_day(
    connection: &mut PgConnection,
    zone: Tz,
    until: DateTime<Utc>,
    today: NaiveDate,
) -> Result<Vec<Group>> {
    let groups = sqlx::query_as!(
        Group,
        r#"SELECT CASE WHEN day < $2::date - $3::integer THEN 'older' ELSE to_char(day, 'YYYY-MM-DD') END AS "subject!",
                  count(*) AS "count!"
           FROM (SELECT (a.finished_at AT TIME ZONE $1)::date AS day
                 FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN notices n ON n.id = d.notice_id
                 WHERE a.outcome = 'ambiguous' AND a.resolution IS NULL AND a.finished_at < $5
                   AND d.state = 'ambiguous' AND n.superseded_at IS NULL
                 ORDER BY a.finished_at DESC LIMIT $4) unknown
           GROUP BY 1 ORDER BY 1"#,
        zone.name(),
        today,
        APART_DAYS,
        GROUPED_MAX,
        until,
    );
    Ok(groups.fetch_all(connection).await?)
}

/// Notices that are held, by the scan or import that did, or because the memory went back or processes died, or by people.
pub async fn held_by_cause(connection: &mut PgConnection) -> Result<Vec<Group>> {
    let groups = sqlx::query_as!(
        Group,
        r#"SELECT CASE reason_code WHEN 'claim_limit' THEN coalesce('scan ' || scan_id, 'import ' || import_id, '')
                                   WHEN 'memory_went_back' THEN 'restored'
                                   WHEN 'owner_died' THEN 'processes died' ELSE 'by hand' END AS "subject!",
                  count(*) AS "count!"
           FROM (SELECT reason_code, scan_id, import_id FROM notices WHERE state = 'held' ORDER BY id DESC LIMIT $1) held
           GROUP BY 1 ORDER BY 1"#,
        GROUPED_MAX,
    );
    Ok(groups.fetch_all(connection).await?)
}

/// Statutory notices of present periods that ended unsent, by their last day: it is over, it lay not before the permit
/// first had this date, and no later step of the law took their place. One that only the guard of a test service held
/// back is none.
pub async fn unsent_statutory_by_day(connection: &mut PgConnection, today: NaiveDate) -> Result<Vec<Group>> {
    let groups = sqlx::query_as!(
        Group,
        r#"SELECT to_char(send_by, 'YYYY-MM-DD') AS "subject!", count(*) AS "count!" FROM (
               SELECT n.send_by FROM notices n JOIN permits p ON p.id = n.permit_id AND p.expires_on = n.expires_on
               WHERE n.class = 'statutory' AND n.superseded_at IS NULL AND n.state IN ('skipped', 'failed')
                 AND n.send_by < $1 AND n.send_by >= $1 - $2::integer AND n.send_by >= p.period_since
                 AND p.status = 'active' AND p.archived_at IS NULL
                 AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id AND d.reason_code = 'guard')
                 AND NOT EXISTS (SELECT FROM notices o
                                 WHERE o.permit_id = n.permit_id AND o.expires_on = n.expires_on
                                   AND o.class = 'statutory' AND o.due_on > n.due_on
                                   AND o.state IN ('pending', 'held', 'ambiguous', 'sent'))
               LIMIT $3) unsent
           GROUP BY send_by ORDER BY send_by"#,
        today,
        UNSENT_DAYS,
        GROUPED_MAX,
    );
    Ok(groups.fetch_all(connection).await?)
}

/// How many mails the server took although somebody had said that they had not arrived.
pub async fn count_late_results(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT FROM attempts
               WHERE late_result LIKE 'accepted%' AND resolution = 'not_delivered' AND resolved_at > $1 LIMIT $2) found"#,
        now - TimeDelta::days(LATE_RESULT_DAYS),
        COUNT_MAX,
    );
    Ok(count.fetch_one(connection).await?)
}

/// How many mails were only kept as files and may still be sent.
pub async fn count_kept_as_files(connection: &mut PgConnection, moment: Moment) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN notices n ON n.id = d.notice_id
               WHERE a.transport = 'file' AND a.outcome = 'accepted' AND a.finished_at > $1
                 AND d.state = 'sent' AND d.send_by >= $2 AND n.superseded_at IS NULL
                 AND NOT EXISTS (SELECT FROM deliveries l WHERE l.notice_id = d.notice_id
                                   AND l.recipient_key = d.recipient_key AND l.copy > d.copy)
               LIMIT $3) found"#,
        moment.now - TimeDelta::days(FILES_DAYS),
        moment.today,
        COUNT_MAX,
    );
    Ok(count.fetch_one(connection).await?)
}

/// How many mails the guard of a trial kept back and may still be sent.
pub async fn count_kept_back(connection: &mut PgConnection, moment: Moment) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT FROM deliveries d JOIN notices n ON n.id = d.notice_id
               WHERE d.reason_code = 'guard' AND d.state IN ('failed', 'suppressed') AND d.send_by >= $1
                 AND n.superseded_at IS NULL AND n.state = 'failed'
               LIMIT $2) found"#,
        moment.today,
        COUNT_MAX,
    );
    Ok(count.fetch_one(connection).await?)
}

/// A session that keeps a transaction open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSession {
    pub pid: i32,
    pub application: String,
    pub state: String,
    pub seconds: i64,
}

/// How long a session may keep a transaction open: its snapshot keeps the database from cleaning up behind us, and its
/// locks may be in our way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLimits {
    /// Anybody's.
    pub any: Duration,
    /// Our own imports, exports and migrations.
    pub bulk: Duration,
}

/// The session of this database that has kept its transaction open for longest, beyond `limits`. A prepared
/// transaction counts too.
pub async fn held_session(connection: &mut PgConnection, limits: HeldLimits) -> Result<Option<HeldSession>> {
    let session = sqlx::query_as!(
        HeldSession,
        r#"SELECT pid AS "pid!", application AS "application!", state AS "state!", seconds AS "seconds!" FROM (
               SELECT pid, application_name AS application, coalesce(state, 'of unknown state') AS state,
                      extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds
               FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
                 AND xact_start < clock_timestamp() - make_interval(secs =>
                         CASE application_name WHEN 'permit-notifier bulk' THEN $2::float8 ELSE $1::float8 END)
               UNION ALL
               SELECT 0, left(gid, 60), 'prepared', extract(epoch FROM clock_timestamp() - prepared)::bigint
               FROM pg_prepared_xacts
               WHERE database = current_database() AND prepared < clock_timestamp() - make_interval(secs => $1)) held
           ORDER BY seconds DESC LIMIT 1"#,
        limits.any.as_secs_f64(),
        limits.bulk.as_secs_f64(),
    );
    Ok(session.fetch_optional(connection).await?)
}

/// A process that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingProcess {
    pub boot_id: Uuid,
    pub host: String,
    pub roles: String,
    pub version: String,
    pub fingerprint: String,
    pub started_at: DateTime<Utc>,
    /// How long ago it started.
    pub seconds: i64,
}

/// The processes that are alive, the oldest first.
pub async fn living_processes(connection: &mut PgConnection) -> Result<Vec<LivingProcess>> {
    let processes = sqlx::query_as!(
        LivingProcess,
        r#"SELECT p.boot_id, p.host, p.roles, p.version, p.fingerprint, p.started_at,
                  extract(epoch FROM clock_timestamp() - p.started_at)::bigint AS "seconds!"
           FROM processes p JOIN living_processes l USING (boot_id) ORDER BY p.started_at, p.boot_id LIMIT 200"#
    );
    Ok(processes.fetch_all(connection).await?)
}
