//! Alarms as rows, and the outbox of the messages about them.
//!
//! What stands is written under a lock that one replica has at a time: a replica whose look is older than another's
//! would else clear what that one has just raised, and the operator would be told twice.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Result;
use crate::domain::alarm::{AlarmEvent, AlarmKind, AlarmSurface};

/// Key of the advisory lock around what stands.
const LOCK: i64 = 8_099_005_319_141_944_950;
/// After so long nobody needs to hear of it any more.
const GIVEN_UP_AFTER_DAYS: i32 = 7;
/// Longest time between two tries of one message, in seconds.
const LONGEST_WAIT: f64 = 600.0;

/// Something that needs the operator at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: AlarmKind,
    /// What exactly, for a kind of which several may stand.
    pub subject: String,
    /// A sentence about it.
    pub detail: String,
}

/// An alarm as it is on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    pub id: Uuid,
    pub kind: AlarmKind,
    pub subject: String,
    pub detail: String,
    pub raised_at: DateTime<Utc>,
    pub cleared_at: Option<DateTime<Utc>>,
}

struct AlarmRow {
    id: Uuid,
    kind: String,
    subject: String,
    detail: String,
    raised_at: DateTime<Utc>,
    cleared_at: Option<DateTime<Utc>>,
}

impl TryFrom<AlarmRow> for Alarm {
    type Error = super::StoreError;

    fn try_from(row: AlarmRow) -> Result<Self> {
        let AlarmRow { id, kind, subject, detail, raised_at, cleared_at } = row;
        Ok(Self { id, kind: kind.parse()?, subject, detail, raised_at, cleared_at })
    }
}

/// Takes the lock until the end of the transaction, unless another replica has it.
pub async fn try_lock_alarms(connection: &mut PgConnection) -> Result<bool> {
    let had = sqlx::query_scalar!(r#"SELECT pg_try_advisory_xact_lock($1) AS "had!""#, LOCK);
    Ok(had.fetch_one(connection).await?)
}

/// Who raises alarms, when, and how often at most for missing runs.
#[derive(Debug, Clone, Copy)]
pub struct Raising {
    pub now: DateTime<Utc>,
    pub boot_id: Uuid,
    /// A schedule of seconds that nobody keeps must not raise an alarm for each of them.
    pub apart: TimeDelta,
}

/// Raises what does not stand yet; says what it raised. What stands is told once, and shown as it is
/// now. The caller has the lock.
pub async fn raise_alarms(
    connection: &mut PgConnection,
    conditions: &[Condition],
    raising: Raising,
) -> Result<Vec<Alarm>> {
    let mut raised = Vec::new();
    for Condition { kind, subject, detail } in conditions {
        let row = sqlx::query_as!(
            AlarmRow,
            r#"INSERT INTO alarms (id, kind, subject, detail, raised_at, raised_by)
               SELECT $1, $2, $3, $4, $5, $6
               WHERE $2 <> 'missing_run'
                  OR NOT EXISTS (SELECT FROM alarms WHERE kind = 'missing_run' AND cleared_at IS NULL AND raised_at > $7)
               ON CONFLICT DO NOTHING
               RETURNING id, kind, subject, detail, raised_at, cleared_at"#,
            Uuid::now_v7(),
            kind.as_str(),
            subject,
            detail,
            raising.now,
            raising.boot_id,
            raising.now - raising.apart,
        );
        if let Some(row) = row.fetch_optional(&mut *connection).await? {
            raised.push(row.try_into()?);
        } else {
            sqlx::query!(
                "UPDATE alarms SET detail = $3
                 WHERE kind = $1 AND subject = $2 AND cleared_at IS NULL AND detail <> $3",
                kind.as_str(),
                subject,
                detail,
            )
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(raised)
}

/// Clears what stands and is none of `conditions` any more, but for `unanswered` kinds, of which nobody knows. A missing
/// run is over when its time is met, whatever schedule the process that looks goes by. The caller has the lock.
pub async fn clear_alarms(
    connection: &mut PgConnection,
    conditions: &[Condition],
    unanswered: &[AlarmKind],
    now: DateTime<Utc>,
) -> Result<Vec<Alarm>> {
    let unanswered: Vec<String> = unanswered.iter().map(|kind| kind.as_str().to_owned()).collect();
    let subjects: Vec<String> = conditions.iter().map(|condition| condition.subject.clone()).collect();
    let kinds: Vec<String> = conditions.iter().map(|condition| condition.kind.as_str().to_owned()).collect();
    let rows = sqlx::query_as!(
        AlarmRow,
        r#"UPDATE alarms a SET cleared_at = greatest($2, a.raised_at)
           WHERE a.cleared_at IS NULL
             AND CASE WHEN a.kind = 'missing_run'
                      THEN EXISTS (SELECT FROM scans s WHERE s.outcome = 'completed' AND s.own_day
                                     AND s.started_at BETWEEN a.subject::timestamptz AND $2)
                      ELSE NOT a.kind = ANY ($4)
                           -- A process of an older version raises without a subject.
                           AND NOT EXISTS (SELECT FROM unnest($1::text[], $3::text[]) AS c (kind, subject)
                                           WHERE c.kind = a.kind AND (c.subject = a.subject OR a.subject = '')) END
           RETURNING id, kind, subject, detail, raised_at, cleared_at"#,
        &kinds,
        now,
        &subjects,
        &unanswered,
    )
    .fetch_all(&mut *connection)
    .await?;
    tell_of_clearing(connection, &rows.iter().map(|row| row.id).collect::<Vec<_>>()).await?;
    rows.into_iter().map(Alarm::try_from).collect()
}

/// Messages that the alarms are over, wherever one that it was raised was to go. One that never arrived is dropped: the
/// last word says it all.
async fn tell_of_clearing(connection: &mut PgConnection, alarms: &[Uuid]) -> Result<()> {
    sqlx::query!(
        "INSERT INTO alarm_messages (alarm_id, event, surface)
         SELECT alarm_id, 'cleared', surface FROM alarm_messages WHERE event = 'raised' AND alarm_id = ANY ($1)
         ON CONFLICT DO NOTHING",
        alarms,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "DELETE FROM alarm_messages
         WHERE event = 'raised' AND alarm_id = ANY ($1) AND delivered_at IS NULL
           AND (taken_until IS NULL OR taken_until < clock_timestamp())",
        alarms,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Messages for these surfaces about everything that stands, whichever process raised it and wherever that one tells of
/// it; says whether any is new. The caller has the lock.
pub async fn tell_of_standing(connection: &mut PgConnection, surfaces: &[AlarmSurface]) -> Result<bool> {
    let surfaces: Vec<String> = surfaces.iter().map(|surface| surface.as_str().to_owned()).collect();
    let told = sqlx::query!(
        "INSERT INTO alarm_messages (alarm_id, event, surface)
         SELECT id, 'raised', surface FROM alarms, unnest($1::text[]) surface WHERE cleared_at IS NULL
         ORDER BY raised_at, id, surface
         ON CONFLICT DO NOTHING",
        &surfaces,
    );
    Ok(told.execute(connection).await?.rows_affected() > 0)
}

/// What stands, the oldest first.
pub async fn list_standing(connection: &mut PgConnection) -> Result<Vec<Alarm>> {
    let rows = sqlx::query_as!(
        AlarmRow,
        "SELECT id, kind, subject, detail, raised_at, cleared_at FROM alarms
         WHERE cleared_at IS NULL ORDER BY raised_at, id LIMIT 100"
    );
    rows.fetch_all(connection).await?.into_iter().map(Alarm::try_from).collect()
}

/// What is over, the last first.
pub async fn list_cleared(connection: &mut PgConnection, limit: i64) -> Result<Vec<Alarm>> {
    let rows = sqlx::query_as!(
        AlarmRow,
        "SELECT id, kind, subject, detail, raised_at, cleared_at FROM alarms
         WHERE cleared_at IS NOT NULL ORDER BY raised_at DESC, id DESC LIMIT $1",
        limit,
    );
    rows.fetch_all(connection).await?.into_iter().map(Alarm::try_from).collect()
}

/// A message that this process is to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmMessage {
    pub id: i64,
    pub alarm: Alarm,
    pub event: AlarmEvent,
    pub surface: AlarmSurface,
}

/// Takes the oldest message for one of `surfaces` for `lease`; nobody else gets it meanwhile. That an alarm is over is
/// told after that it was raised, never before, and that it was raised no more when it is over.
pub async fn take_message(
    connection: &mut PgConnection,
    surfaces: &[AlarmSurface],
    lease: Duration,
) -> Result<Option<AlarmMessage>> {
    let surfaces: Vec<String> = surfaces.iter().map(|surface| surface.as_str().to_owned()).collect();
    let row = sqlx::query!(
        r#"UPDATE alarm_messages m
           SET tries = tries + 1, taken_until = clock_timestamp() + make_interval(secs => $2)
           FROM alarms a
           WHERE a.id = m.alarm_id AND m.id = (
               SELECT w.id FROM alarm_messages w JOIN alarms o ON o.id = w.alarm_id
               WHERE w.delivered_at IS NULL AND w.surface = ANY ($1) AND w.next_try_at <= clock_timestamp()
                 AND (w.taken_until IS NULL OR w.taken_until < clock_timestamp())
                 AND w.created_at > clock_timestamp() - make_interval(days => $3)
                 AND (w.event = 'cleared' OR o.cleared_at IS NULL)
                 AND NOT (w.event = 'cleared' AND EXISTS (
                         SELECT FROM alarm_messages r
                         WHERE r.alarm_id = w.alarm_id AND r.surface = w.surface AND r.event = 'raised'
                           AND r.delivered_at IS NULL AND r.taken_until > clock_timestamp()))
               ORDER BY w.id LIMIT 1 FOR UPDATE OF w SKIP LOCKED)
           RETURNING m.id AS message, m.event, m.surface, a.id, a.kind, a.subject, a.detail, a.raised_at, a.cleared_at"#,
        &surfaces,
        lease.as_secs_f64(),
        GIVEN_UP_AFTER_DAYS,
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let alarm = AlarmRow {
        id: row.id,
        kind: row.kind,
        subject: row.subject,
        detail: row.detail,
        raised_at: row.raised_at,
        cleared_at: row.cleared_at,
    };
    let (event, surface) = (row.event.parse()?, row.surface.parse()?);
    Ok(Some(AlarmMessage { id: row.message, alarm: alarm.try_into()?, event, surface }))
}

/// Records that a message was taken by whom it was for.
pub async fn message_delivered(connection: &mut PgConnection, id: i64) -> Result<()> {
    sqlx::query!(
        "UPDATE alarm_messages SET delivered_at = clock_timestamp(), taken_until = NULL, last_error = NULL
         WHERE id = $1 AND delivered_at IS NULL",
        id,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives a message back that was taken and is not delivered by this process any more.
pub async fn give_message_back(connection: &mut PgConnection, id: i64) -> Result<()> {
    sqlx::query!("UPDATE alarm_messages SET taken_until = NULL WHERE id = $1 AND delivered_at IS NULL", id)
        .execute(connection)
        .await?;
    Ok(())
}

/// Records that a message was not taken: it is tried again after ten seconds, then twice as long each time. That an alarm
/// was raised which is over meanwhile is not: it is dropped.
pub async fn message_failed(connection: &mut PgConnection, id: i64, error: &str) -> Result<()> {
    sqlx::query!(
        "UPDATE alarm_messages
         SET taken_until = NULL, last_error = left($2, 500),
             next_try_at = clock_timestamp() + make_interval(secs => least($3, 10 * 2 ^ least(tries - 1, 10)))
         WHERE id = $1 AND delivered_at IS NULL",
        id,
        error,
        LONGEST_WAIT,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "DELETE FROM alarm_messages m USING alarms a
         WHERE m.id = $1 AND m.delivered_at IS NULL AND m.event = 'raised' AND a.id = m.alarm_id
           AND a.cleared_at IS NOT NULL",
        id,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Messages that could not be delivered so far, by surface, with the last reason.
pub async fn list_undelivered(connection: &mut PgConnection) -> Result<Vec<(String, i64, String)>> {
    let rows = sqlx::query!(
        r#"SELECT surface, count(*) AS "count!", (array_agg(last_error ORDER BY id DESC))[1] AS "error!"
           FROM alarm_messages WHERE delivered_at IS NULL AND last_error IS NOT NULL GROUP BY surface ORDER BY surface"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.surface, row.count, row.error)).collect())
}
