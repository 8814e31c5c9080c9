//! Scans as rows: every try is one, and an expected time is met by one that completed.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Moment, Result, claims::Counts};
use crate::{domain::words, scan::schedule::ScanSchedule};

words! {
    /// What started a scan.
    "scan trigger" Trigger {
        /// Its expected time.
        Schedule = "schedule",
        /// A person, by page or API.
        Manual = "manual",
        /// A person, by command.
        Command = "command",
    }
}

words! {
    /// How a scan ended.
    "scan outcome" ScanOutcome {
        /// It goes on.
        Running = "running",
        /// It looked at everything.
        Completed = "completed",
        /// It met an error.
        Failed = "failed",
        /// Its process died, or lost the lock.
        Abandoned = "abandoned",
        /// Another process held the lock.
        HeldElsewhere = "held_elsewhere",
        /// Its expected time was met before it had the lock.
        AlreadyDone = "already_done",
    }
}

/// A scan that begins.
#[derive(Debug, Clone, Copy)]
pub struct NewScan {
    /// Its id.
    pub id: Uuid,
    /// The expected time it is for.
    pub scheduled_for: Option<DateTime<Utc>>,
    /// What started it.
    pub trigger: Trigger,
    /// When, and which day counts as today.
    pub moment: Moment,
    /// Whether that day is the business day on which it begins.
    pub own_day: bool,
    /// The process.
    pub boot_id: Uuid,
}

/// Records that a scan begins. The caller holds the lock.
pub async fn begin_scan(connection: &mut PgConnection, scan: &NewScan) -> Result<()> {
    insert_scan(connection, scan, ScanOutcome::Running, "acquired").await
}

/// Records a try that ended before it began: once per process and expected time.
pub async fn record_try(connection: &mut PgConnection, scan: &NewScan, outcome: ScanOutcome) -> Result<()> {
    let lock = if outcome == ScanOutcome::HeldElsewhere { "held_elsewhere" } else { "acquired" };
    insert_scan(connection, scan, outcome, lock).await
}

async fn insert_scan(
    connection: &mut PgConnection,
    scan: &NewScan,
    outcome: ScanOutcome,
    lock: &'static str,
) -> Result<()> {
    let finished = (outcome != ScanOutcome::Running).then_some(scan.moment.now);
    sqlx::query!(
        "INSERT INTO scans (id, scheduled_for, trigger, as_of, own_day, boot_id, started_at, finished_at, outcome, lock)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (scheduled_for, boot_id) WHERE outcome = 'held_elsewhere' DO NOTHING",
        scan.id,
        scan.scheduled_for,
        scan.trigger.as_str(),
        scan.moment.today,
        scan.own_day,
        scan.boot_id,
        scan.moment.now,
        finished,
        outcome.as_str(),
        lock,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records how a scan ended.
pub async fn finish_scan(
    connection: &mut PgConnection,
    id: Uuid,
    outcome: ScanOutcome,
    counts: Counts,
    error: Option<&str>,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE scans SET outcome = $2, finished_at = $3, claimed = $4, already_claimed = $5, revived = $6,
                superseded = $7, skipped = $8, held = $9, error = $10
         WHERE id = $1 AND outcome = 'running'",
        id,
        outcome.as_str(),
        now,
        counts.claimed as i64,
        counts.already_claimed as i64,
        counts.revived as i64,
        counts.superseded as i64,
        counts.skipped as i64,
        counts.held as i64,
        error,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Marks scans that are running by their rows and cannot be, because the caller holds the lock.
pub async fn abandon_others(connection: &mut PgConnection, own: Uuid, now: DateTime<Utc>) -> Result<u64> {
    let abandoned = sqlx::query!(
        "UPDATE scans SET outcome = 'abandoned', finished_at = $2, error = 'its process died or lost the lock'
         WHERE outcome = 'running' AND id <> $1",
        own,
        now,
    );
    Ok(abandoned.execute(connection).await?.rows_affected())
}

/// Whether an expected time is met: by a completed scan of its own day that began at or after it. One that began
/// after `now` ran while business time was ahead, and says nothing about the days between.
pub async fn is_met(connection: &mut PgConnection, expected: DateTime<Utc>, now: DateTime<Utc>) -> Result<bool> {
    let met = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM scans WHERE outcome = 'completed' AND own_day AND started_at BETWEEN $1 AND $2)
               AS "met!""#,
        expected,
        now,
    );
    Ok(met.fetch_one(connection).await?)
}

/// Tries for an expected time that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setbacks {
    /// How many failed or were abandoned.
    pub count: i64,
    /// When the last of them ended, business time.
    pub last: Option<DateTime<Utc>>,
}

/// How often an expected time was tried in vain.
pub async fn setbacks(connection: &mut PgConnection, expected: DateTime<Utc>) -> Result<Setbacks> {
    let found = sqlx::query_as!(
        Setbacks,
        r#"SELECT count(*) AS "count!", max(finished_at) AS last FROM scans
           WHERE scheduled_for = $1 AND outcome IN ('failed', 'abandoned')"#,
        expected,
    );
    Ok(found.fetch_one(connection).await?)
}

/// The day of the last completed scan of its own day.
pub async fn last_completed_day(connection: &mut PgConnection) -> Result<Option<NaiveDate>> {
    let day = sqlx::query_scalar!("SELECT max(as_of) FROM scans WHERE outcome = 'completed' AND own_day");
    Ok(day.fetch_one(connection).await?)
}

/// When the last completed scan ended, business time.
pub async fn last_completed_at(connection: &mut PgConnection) -> Result<Option<DateTime<Utc>>> {
    let at = sqlx::query_scalar!("SELECT max(finished_at) FROM scans WHERE outcome = 'completed'");
    Ok(at.fetch_one(connection).await?)
}

/// Notes that a process goes by this schedule; says since when its times are expected. Replicas that disagree each keep
/// their own: a schedule stays in force while somebody goes by it.
pub async fn keep_scan_schedule(
    connection: &mut PgConnection,
    schedule: &str,
    zone: &str,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>> {
    if let Some(since) = expected_since(connection, schedule, zone).await? {
        sqlx::query!(
            "UPDATE scan_schedules SET kept_at = clock_timestamp()
             WHERE schedule = $1 AND zone = $2 AND since = $3 AND kept_at < clock_timestamp() - interval '1 minute'",
            schedule,
            zone,
            since,
        )
        .execute(connection)
        .await?;
        return Ok(since);
    }
    sqlx::query!("INSERT INTO scan_schedules (schedule, zone, since) VALUES ($1, $2, $3)", schedule, zone, now)
        .execute(connection)
        .await?;
    Ok(now)
}

/// Since when the times of this schedule are expected: it was the last that a process went by, or one goes by it now;
/// `None` when no process has yet.
pub async fn expected_since(
    connection: &mut PgConnection,
    schedule: &str,
    zone: &str,
) -> Result<Option<DateTime<Utc>>> {
    let since = sqlx::query_scalar!(
        "SELECT since FROM scan_schedules
         WHERE schedule = $1 AND zone = $2
           AND (kept_at > clock_timestamp() - interval '5 minutes'
                OR id = (SELECT id FROM scan_schedules ORDER BY kept_at DESC, id DESC LIMIT 1))
         ORDER BY id DESC LIMIT 1",
        schedule,
        zone,
    );
    Ok(since.fetch_optional(connection).await?)
}

/// The last expected time whose grace is over at `now`, if no scan has met it. Times before the schedule came into force
/// were never expected.
pub async fn missing_run(
    connection: &mut PgConnection,
    schedule: &ScanSchedule,
    grace: TimeDelta,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>> {
    let since = expected_since(connection, schedule.expression(), schedule.zone().name()).await?;
    let expected = schedule.last_expected(now - grace);
    let Some(expected) = expected.filter(|expected| since.is_some_and(|since| since <= *expected)) else {
        return Ok(None);
    };
    Ok((!is_met(connection, expected, now).await?).then_some(expected))
}

/// Notices that wait for a person because more was due at once than the limit allows.
pub async fn count_held(connection: &mut PgConnection) -> Result<i64> {
    let held = sqlx::query_scalar!(r#"SELECT count(*) AS "held!" FROM notices WHERE state = 'held'"#);
    Ok(held.fetch_one(connection).await?)
}

/// Tells listening dispatchers that there is something to send; only a hint, they look anyway.
pub async fn notify_dispatchers(connection: &mut PgConnection) -> Result<()> {
    sqlx::query!(r#"SELECT pg_notify('deliveries_due', '') IS NULL AS "told!""#).fetch_one(connection).await?;
    Ok(())
}
