//! Writing what was settled, for all attempts of a round at once.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Ending, Result, Settlement};
use crate::domain::notice::ReasonCode;

/// Ends attempts and moves their deliveries.
pub(super) async fn end_attempts(connection: &mut PgConnection, open: &[Ending<'_>], now: DateTime<Utc>) -> Result<()> {
    let ended = open.iter().map(|ending| ending.settlement);
    let after = open.iter().map(|ending| &ending.after);
    sqlx::query!(
        "WITH ended AS (
             UPDATE attempts a
             SET outcome = e.outcome, transport_fault = e.fault, reason = e.reason, phase = e.phase,
                 smtp_code = e.smtp_code, enhanced_code = e.enhanced_code, response = e.response, finished_at = $15
             FROM unnest($1::uuid[], $2::text[], $3::bool[], $4::text[], $5::text[], $6::int[], $7::text[], $8::text[])
                  AS e (id, outcome, fault, reason, phase, smtp_code, enhanced_code, response)
             WHERE a.id = e.id)
         UPDATE deliveries d
         SET state = m.state, reason_code = m.reason, next_attempt_at = coalesce(m.next_attempt_at, d.next_attempt_at),
             attempt_count = m.attempt_count, last_error = coalesce(m.error, d.last_error),
             lease_token = NULL, lease_owner = NULL, updated_at = $15
         FROM unnest($9::uuid[], $10::text[], $11::text[], $12::timestamptz[], $13::int[], $14::text[])
              AS m (id, state, reason, next_attempt_at, attempt_count, error)
         WHERE d.id = m.id",
        &ended.clone().map(|e| e.attempt_id).collect::<Vec<_>>(),
        &ended.clone().map(|e| e.outcome.as_str()).collect::<Vec<_>>() as &[&str],
        &ended.clone().map(|e| e.transport_fault).collect::<Vec<_>>(),
        &ended.clone().map(|e| e.reason.as_deref()).collect::<Vec<_>>() as &[Option<&str>],
        &ended.clone().map(|e| e.phase.as_str()).collect::<Vec<_>>() as &[&str],
        &ended.clone().map(|e| e.smtp_code).collect::<Vec<_>>() as &[Option<i32>],
        &ended.clone().map(|e| e.enhanced_code.as_deref()).collect::<Vec<_>>() as &[Option<&str>],
        &ended.clone().map(|e| e.response.as_deref()).collect::<Vec<_>>() as &[Option<&str>],
        &ended.clone().map(|e| e.delivery_id).collect::<Vec<_>>(),
        &after.clone().map(|after| after.state.as_str()).collect::<Vec<_>>() as &[&str],
        &after.clone().map(|after| after.reason.map(ReasonCode::as_str)).collect::<Vec<_>>() as &[Option<&str>],
        &after.clone().map(|after| after.next_attempt_at).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &after.map(|after| after.attempt_count).collect::<Vec<_>>(),
        &ended.map(Settlement::error).collect::<Vec<_>>() as &[Option<String>],
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A reply that came after the attempt had ended otherwise is kept beside it.
pub(super) async fn keep_late_result(connection: &mut PgConnection, settlement: &Settlement) -> Result<()> {
    let result = match &settlement.response {
        Some(response) => format!("{}: {response}", settlement.outcome),
        None => settlement.outcome.to_string(),
    };
    let kept = sqlx::query!(
        "UPDATE attempts SET late_result = $2 WHERE id = $1 AND late_result IS NULL RETURNING notice_key, number",
        settlement.attempt_id,
        result,
    )
    .fetch_optional(connection)
    .await?;
    if let Some(attempt) = kept {
        let outcome = settlement.outcome.as_str();
        tracing::warn!(notice_key = attempt.notice_key, attempt = attempt.number, outcome, "a result came late");
    }
    Ok(())
}
