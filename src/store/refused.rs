//! What ends before the gate: one attempt, inserted already finished.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Result, cases::lock_deliveries, claims::refresh_states, settle::Settlement};
use crate::domain::{
    attempt::{Outcome, Transport},
    backoff,
    delivery::DeliveryState,
    notice::ReasonCode,
};

/// Records an attempt that the transport refused before the gate. The delivery changes only if it is still
/// pending under our lease; else the attempt stands alone.
#[expect(clippy::too_many_arguments, reason = "the columns of one row")]
pub async fn record_refused(
    connection: &mut PgConnection,
    settlement: &Settlement,
    token: Uuid,
    boot_id: Uuid,
    transport: Transport,
    payload_sha256: &[u8],
    max_attempts: u32,
    now: DateTime<Utc>,
) -> Result<()> {
    let mut transaction = connection.begin().await?;
    let delivery = settlement.delivery_id;
    let notice = sqlx::query!(
        "SELECT n.id, n.notice_key FROM notices n JOIN deliveries d ON d.notice_id = n.id
         WHERE d.id = $1 FOR NO KEY UPDATE OF n",
        delivery,
    )
    .fetch_one(&mut *transaction)
    .await?;
    lock_deliveries(&mut transaction, &[notice.id]).await?;
    sqlx::query!(
        "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, transport_fault,
                               reason, phase, smtp_code, enhanced_code, response, payload_sha256, started_at, finished_at)
         SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14
         FROM attempts WHERE delivery_id = $2",
        settlement.attempt_id,
        delivery,
        notice.notice_key,
        boot_id,
        transport.as_str(),
        settlement.outcome.as_str(),
        settlement.transport_fault,
        settlement.reason,
        settlement.phase.as_str(),
        settlement.smtp_code,
        settlement.enhanced_code,
        settlement.response,
        payload_sha256,
        now,
    )
    .execute(&mut *transaction)
    .await?;
    let counts = settlement.outcome == Outcome::Deferred && !settlement.transport_fault;
    let present = sqlx::query_scalar!("SELECT attempt_count FROM deliveries WHERE id = $1", delivery)
        .fetch_one(&mut *transaction)
        .await?;
    let attempt_count = present + i32::from(counts);
    let exhausted = counts && attempt_count >= i32::try_from(max_attempts).unwrap_or(i32::MAX);
    let state = settlement.outcome.delivery_state(false, exhausted);
    let reason = match state {
        DeliveryState::Failed if exhausted => Some(ReasonCode::Exhausted),
        DeliveryState::Failed => Some(ReasonCode::Refused),
        _ => None,
    };
    let failures = u32::try_from(attempt_count).unwrap_or(0).max(1);
    let wait = TimeDelta::from_std(backoff::delay(failures, fastrand::f64())).unwrap_or(TimeDelta::hours(6));
    sqlx::query!(
        "UPDATE deliveries
         SET state = $3, reason_code = $4, attempt_count = $5, next_attempt_at = $6, last_error = $7,
             lease_token = NULL, lease_owner = NULL, updated_at = $8
         WHERE id = $1 AND lease_token = $2 AND state = 'pending'",
        delivery,
        token,
        state.as_str(),
        reason.map(ReasonCode::as_str),
        attempt_count,
        now + wait,
        settlement.response.as_deref().or(settlement.reason.as_deref()),
        now,
    )
    .execute(&mut *transaction)
    .await?;
    refresh_states(&mut transaction, &[notice.id]).await?;
    transaction.commit().await?;
    Ok(())
}
