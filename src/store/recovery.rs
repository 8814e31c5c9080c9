//! Recovery: what dead processes left behind.
//!
//! An open attempt of a dead process is ambiguous: its message may have been accepted. A lease of a dead process
//! is free at once; a delivery on which three owners died is held, for it may be what kills them.

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    Result,
    claims::{follow_addresses, refresh_states, skip_former_copies},
    leases::{LOST_OWNERS_MAX, Lease},
    reasons,
    settle::lock_deliveries,
};
use crate::domain::{attempt::OWNER_LOST, notice::ReasonCode};

/// What was recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Attempts that nobody can know the outcome of.
    pub ambiguous: u64,
    /// Leases that were freed.
    pub freed: u64,
    /// Deliveries held because their owners kept dying.
    pub held: u64,
}

/// Takes over from dead processes.
pub async fn recover(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<Recovered> {
    let ambiguous = recover_attempts(connection, now).await?;
    let (freed, held) = recover_leases(connection, now).await?;
    Ok(Recovered { ambiguous, freed, held })
}

async fn recover_attempts(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<u64> {
    let left = sqlx::query!(
        r#"SELECT a.delivery_id, d.notice_id FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
           WHERE a.outcome = 'sending' AND a.boot_id NOT IN (SELECT boot_id FROM living_processes) LIMIT 1000"#
    )
    .fetch_all(&mut *connection)
    .await?;
    if left.is_empty() {
        return Ok(0);
    }
    let mut transaction = connection.begin().await?;
    let notices: Vec<Uuid> = left.iter().map(|row| row.notice_id).collect();
    let deliveries: Vec<Uuid> = left.iter().map(|row| row.delivery_id).collect();
    let notices = lock_free_notices(&mut transaction, &notices).await?;
    let deliveries = lock_free_deliveries(&mut transaction, &notices, &deliveries).await?;
    let ambiguous = sqlx::query_scalar!(
        "UPDATE attempts SET outcome = 'ambiguous', reason = $2, finished_at = $3
         WHERE delivery_id = ANY ($1) AND outcome = 'sending'
           AND boot_id NOT IN (SELECT boot_id FROM living_processes)
         RETURNING delivery_id",
        &deliveries,
        OWNER_LOST,
        now,
    )
    .fetch_all(&mut *transaction)
    .await?;
    sqlx::query!(
        "UPDATE deliveries SET state = 'ambiguous', lease_token = NULL, lease_owner = NULL, updated_at = $2,
                last_error = 'its process died while sending'
         WHERE id = ANY ($1) AND state = 'sending'",
        &ambiguous,
        now,
    )
    .execute(&mut *transaction)
    .await?;
    refresh_states(&mut transaction, &notices).await?;
    transaction.commit().await?;
    Ok(ambiguous.len() as u64)
}

async fn lock_notices(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    sqlx::query!("SELECT 1 AS locked FROM notices WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", notices)
        .fetch_all(connection)
        .await?;
    Ok(())
}

/// Locks the notices that nobody is at. Recovery stands before every lease and waits for nobody: what is locked
/// now is recovered the next time.
async fn lock_free_notices(connection: &mut PgConnection, notices: &[Uuid]) -> Result<Vec<Uuid>> {
    let locked = sqlx::query_scalar!(
        "SELECT id FROM notices WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        notices
    );
    Ok(locked.fetch_all(connection).await?)
}

/// Locks those of `deliveries` that belong to `notices` and that nobody is at.
async fn lock_free_deliveries(
    connection: &mut PgConnection,
    notices: &[Uuid],
    deliveries: &[Uuid],
) -> Result<Vec<Uuid>> {
    let locked = sqlx::query_scalar!(
        "SELECT id FROM deliveries WHERE notice_id = ANY ($1) AND id = ANY ($2)
         ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        notices,
        deliveries,
    );
    Ok(locked.fetch_all(connection).await?)
}

async fn recover_leases(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<(u64, u64)> {
    let left = sqlx::query!(
        "SELECT id, notice_id FROM deliveries
         WHERE lease_owner IS NOT NULL AND state = 'pending'
           AND lease_owner NOT IN (SELECT boot_id FROM living_processes)
         LIMIT 1000"
    )
    .fetch_all(&mut *connection)
    .await?;
    if left.is_empty() {
        return Ok((0, 0));
    }
    let mut transaction = connection.begin().await?;
    let notices: Vec<Uuid> = left.iter().map(|row| row.notice_id).collect();
    let deliveries: Vec<Uuid> = left.iter().map(|row| row.id).collect();
    let notices = lock_free_notices(&mut transaction, &notices).await?;
    let deliveries = lock_free_deliveries(&mut transaction, &notices, &deliveries).await?;
    // An owner that ended in order did not die of what it left.
    let freed = sqlx::query!(
        "UPDATE deliveries d
         SET lease_token = NULL, lease_owner = NULL, lost_owners = lost.owners, updated_at = $2,
             state = CASE WHEN lost.owners >= $3 THEN 'held' ELSE d.state END,
             reason_code = CASE WHEN lost.owners >= $3 THEN $4 ELSE d.reason_code END
         FROM (SELECT l.id, l.lost_owners + CASE WHEN p.ended_at IS NULL THEN 1 ELSE 0 END AS owners
               FROM deliveries l LEFT JOIN processes p ON p.boot_id = l.lease_owner
               WHERE l.id = ANY ($1) AND l.state = 'pending' AND l.lease_owner IS NOT NULL
                 AND l.lease_owner NOT IN (SELECT boot_id FROM living_processes)) AS lost
         WHERE d.id = lost.id
         RETURNING d.notice_id, d.state",
        &deliveries,
        now,
        LOST_OWNERS_MAX,
        ReasonCode::OwnerDied.as_str(),
    )
    .fetch_all(&mut *transaction)
    .await?;
    let held: Vec<_> =
        freed.iter().filter(|row| row.state == "held").map(|row| (row.notice_id, ReasonCode::OwnerDied)).collect();
    if !held.is_empty() {
        refresh_states(&mut transaction, &notices).await?;
        reasons::explain(&mut transaction, &held).await?;
    }
    transaction.commit().await?;
    Ok((freed.len() as u64, held.len() as u64))
}

/// Ends leased deliveries that must not go, for the reasons the gate gave. Only what is still pending under its
/// lease is ended: a change that came first has done it already.
pub async fn end_unsent(
    connection: &mut PgConnection,
    endings: &[(Lease, ReasonCode)],
    last_error: Option<&str>,
    now: DateTime<Utc>,
) -> Result<()> {
    let deliveries: Vec<Uuid> = endings.iter().map(|(lease, _)| lease.delivery_id).collect();
    let tokens: Vec<Uuid> = endings.iter().map(|(lease, _)| lease.token).collect();
    let reasons: Vec<&str> = endings.iter().map(|(_, reason)| reason.as_str()).collect();
    let sentences: Vec<&str> = endings.iter().map(|(_, reason)| reason.sentence()).collect();
    let states: Vec<&str> = endings.iter().map(|(_, reason)| ended_state(*reason)).collect();
    let mut transaction = connection.begin().await?;
    let notices =
        sqlx::query_scalar!(r#"SELECT DISTINCT notice_id AS "id!" FROM deliveries WHERE id = ANY ($1)"#, &deliveries)
            .fetch_all(&mut *transaction)
            .await?;
    lock_notices(&mut transaction, &notices).await?;
    lock_deliveries(&mut transaction, &deliveries).await?;
    sqlx::query!(
        "WITH ended AS (
             UPDATE deliveries d
             SET state = e.state, reason_code = e.reason, lease_token = NULL, lease_owner = NULL, updated_at = $6,
                 last_error = coalesce($7, d.last_error)
             FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[])
                  AS e (id, token, state, reason, sentence)
             WHERE d.id = e.id AND d.lease_token = e.token AND d.state = 'pending'
             RETURNING d.notice_id, e.reason, e.sentence, e.state)
         UPDATE notices n
         SET reason_code = coalesce(n.reason_code, ended.reason), reason = CASE WHEN n.reason_code IS NULL THEN ended.sentence ELSE n.reason END,
             superseded_at = CASE WHEN ended.state = 'superseded' AND ended.reason <> 'address_changed'
                                  THEN coalesce(n.superseded_at, $6::timestamptz) ELSE n.superseded_at END
         FROM ended WHERE n.id = ended.notice_id AND ended.reason <> 'address_changed'",
        &deliveries,
        &tokens,
        &states as &[&str],
        &reasons as &[&str],
        &sentences as &[&str],
        now,
        last_error,
    )
    .execute(&mut *transaction)
    .await?;
    let late = sqlx::query_scalar!(
        "SELECT DISTINCT notice_id FROM deliveries WHERE id = ANY ($1) AND state = 'skipped'",
        &deliveries
    )
    .fetch_all(&mut *transaction)
    .await?;
    skip_former_copies(&mut transaction, &late, now).await?;
    refresh_states(&mut transaction, &notices).await?;
    reasons::clear(&mut transaction, &notices).await?;
    transaction.commit().await?;
    Ok(())
}

fn ended_state(reason: ReasonCode) -> &'static str {
    match reason {
        ReasonCode::TooLate => "skipped",
        ReasonCode::Suppressed | ReasonCode::Guard => "suppressed",
        ReasonCode::CannotCompose | ReasonCode::Refused | ReasonCode::Exhausted => "failed",
        _ => "superseded",
    }
}

/// After a copy to a former address ended unsent: makes the copies that are missing, the permits locked first.
pub async fn serve_missing_copies(
    connection: &mut PgConnection,
    permits: &[Uuid],
    moment: super::Moment,
) -> Result<()> {
    use super::{
        cases::{Hold, load_cases, load_suppressed},
        claims::{Authority, Writing},
        permit_types::keep_schedules,
    };
    let mut transaction = connection.begin().await?;
    // No copy may come to a step that is being removed.
    keep_schedules(&mut transaction).await?;
    let cases = load_cases(&mut transaction, permits, Hold::Change).await?;
    let suppressed = load_suppressed(&mut transaction, &cases).await?;
    let writing = Writing { moment, not_before: moment.now, hold: None, scan_id: None, import_id: None };
    follow_addresses(&mut transaction, &Authority::new(), &cases, &suppressed, writing).await?;
    // The reason of the copy that ended is none of a notice that has another copy now.
    let notices: Vec<Uuid> = cases.iter().flat_map(|case| &case.rows).map(|row| row.id).collect();
    reasons::clear(&mut transaction, &notices).await?;
    transaction.commit().await?;
    Ok(())
}
