//! What ends before the gate: one attempt, inserted already finished.

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    Result,
    claims::refresh_states,
    leases::Lease,
    reasons,
    settle::{After, Settlement, lock_deliveries},
    suppressions::suppress_refused,
    transport,
};
use crate::domain::{attempt::Transport, delivery::DeliveryState, notice::ReasonCode};

/// An offer that the transport refused before the gate.
#[derive(Debug)]
pub struct Refusal<'r> {
    /// How it ended; the attempt has a new id.
    pub settlement: &'r Settlement,
    /// The lease.
    pub lease: Lease,
    /// The process.
    pub boot_id: Uuid,
    /// What refused it.
    pub transport: Transport,
    /// Message-ID of the message that would have followed.
    pub message_id: &'r str,
    /// SHA-256 of its bytes.
    pub payload_sha256: &'r [u8],
    /// The address that must not be mailed again, because the server said that it does not exist.
    pub suppress: Option<&'r str>,
}

/// What was recorded of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Which attempt of its delivery it is, from 1.
    pub number: i32,
    /// What the delivery became, if it did.
    pub state: Option<DeliveryState>,
}

/// Records an attempt that the transport refused before the gate. The delivery changes only if it is still
/// pending under our lease; else the attempt stands alone.
pub async fn record_refused(
    connection: &mut PgConnection,
    refusal: &Refusal<'_>,
    max_attempts: u32,
    now: DateTime<Utc>,
) -> Result<Refused> {
    let delivery = refusal.lease.delivery_id;
    let mut transaction = connection.begin().await?;
    let notice = sqlx::query!(
        "SELECT n.id, n.notice_key FROM notices n JOIN deliveries d ON d.notice_id = n.id
         WHERE d.id = $1 FOR NO KEY UPDATE OF n",
        delivery,
    )
    .fetch_one(&mut *transaction)
    .await?;
    lock_deliveries(&mut transaction, &[delivery]).await?;
    let number = insert_attempt(&mut transaction, refusal, &notice.notice_key, now).await?;
    let before = sqlx::query_scalar!("SELECT attempt_count FROM deliveries WHERE id = $1", delivery)
        .fetch_one(&mut *transaction)
        .await?;
    let after = After::of_owed(refusal.settlement, before, max_attempts, now);
    let changed = update_delivery(&mut transaction, refusal, &after, now).await?;
    if changed {
        refresh_states(&mut transaction, &[notice.id]).await?;
        if let (DeliveryState::Failed, Some(reason)) = (after.state, after.reason) {
            reasons::explain(&mut transaction, &[(notice.id, reason)]).await?;
        }
    }
    if let Some(address_key) = refusal.suppress {
        let words = refusal.settlement.response.as_deref().unwrap_or("the mail server knows no such address");
        suppress_refused(&mut transaction, address_key, words, now).await?;
    }
    // The transport's row is locked last.
    transport::hear(&mut transaction, std::iter::once((refusal.settlement, false))).await?;
    transaction.commit().await?;
    Ok(Refused { number, state: changed.then_some(after.state) })
}

async fn insert_attempt(
    connection: &mut PgConnection,
    refusal: &Refusal<'_>,
    notice_key: &str,
    now: DateTime<Utc>,
) -> Result<i32> {
    let settlement = refusal.settlement;
    let number = sqlx::query_scalar!(
        "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, transport_fault,
                               reason, phase, smtp_code, enhanced_code, response, payload_sha256, started_at, finished_at)
         SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14
         FROM attempts WHERE delivery_id = $2
         RETURNING number",
        settlement.attempt_id,
        refusal.lease.delivery_id,
        notice_key,
        refusal.boot_id,
        refusal.transport.as_str(),
        settlement.outcome.as_str(),
        settlement.transport_fault,
        settlement.reason,
        settlement.phase.as_str(),
        settlement.smtp_code,
        settlement.enhanced_code,
        settlement.response,
        refusal.payload_sha256,
        now,
    );
    Ok(number.fetch_one(connection).await?)
}

async fn update_delivery(
    connection: &mut PgConnection,
    refusal: &Refusal<'_>,
    after: &After,
    now: DateTime<Utc>,
) -> Result<bool> {
    let updated = sqlx::query!(
        "UPDATE deliveries
         SET state = $3, reason_code = $4, attempt_count = $5, next_attempt_at = coalesce($6, next_attempt_at),
             last_error = $7, message_id = $8, payload_sha256 = $9, lease_token = NULL, lease_owner = NULL,
             updated_at = $10
         WHERE id = $1 AND lease_token = $2 AND state = 'pending'",
        refusal.lease.delivery_id,
        refusal.lease.token,
        after.state.as_str(),
        after.reason.map(ReasonCode::as_str),
        after.attempt_count,
        after.next_attempt_at,
        refusal.settlement.error(),
        refusal.message_id,
        refusal.payload_sha256,
        now,
    )
    .execute(connection)
    .await?;
    Ok(updated.rows_affected() == 1)
}
