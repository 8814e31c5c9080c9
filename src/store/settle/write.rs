//! Writing what was settled, for all attempts of a round at once.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Ending, Result, Settlement};
use crate::domain::notice::ReasonCode;

pub(super) async fn end_attempts(connection: &mut PgConnection, open: &[Ending<'_>], now: DateTime<Utc>) -> Result<()> {
    let ended = open.iter().map(|ending| ending.settlement);
    sqlx::query!(
        "UPDATE attempts a
         SET outcome = e.outcome, transport_fault = e.fault, reason = e.reason, phase = e.phase,
             smtp_code = e.smtp_code, enhanced_code = e.enhanced_code, response = e.response, finished_at = $9
         FROM unnest($1::uuid[], $2::text[], $3::bool[], $4::text[], $5::text[], $6::int[], $7::text[], $8::text[])
              AS e (id, outcome, fault, reason, phase, smtp_code, enhanced_code, response)
         WHERE a.id = e.id",
        &ended.clone().map(|e| e.attempt_id).collect::<Vec<_>>(),
        &ended.clone().map(|e| e.outcome.to_string()).collect::<Vec<_>>(),
        &ended.clone().map(|e| e.transport_fault).collect::<Vec<_>>(),
        &ended.clone().map(|e| e.reason.clone()).collect::<Vec<_>>() as &[Option<String>],
        &ended.clone().map(|e| e.phase.to_string()).collect::<Vec<_>>(),
        &ended.clone().map(|e| e.smtp_code).collect::<Vec<_>>() as &[Option<i32>],
        &ended.clone().map(|e| e.enhanced_code.clone()).collect::<Vec<_>>() as &[Option<String>],
        &ended.clone().map(|e| e.response.clone()).collect::<Vec<_>>() as &[Option<String>],
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn update_deliveries(
    connection: &mut PgConnection,
    open: &[Ending<'_>],
    now: DateTime<Utc>,
) -> Result<()> {
    let errors: Vec<Option<String>> = open.iter().map(|ending| ending.settlement.error()).collect();
    sqlx::query!(
        "UPDATE deliveries d
         SET state = e.state, reason_code = e.reason, next_attempt_at = coalesce(e.next_attempt_at, d.next_attempt_at),
             attempt_count = e.attempt_count, last_error = coalesce(e.error, d.last_error),
             lease_token = NULL, lease_owner = NULL, updated_at = $7
         FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::int[], $6::text[])
              AS e (id, state, reason, next_attempt_at, attempt_count, error)
         WHERE d.id = e.id",
        &open.iter().map(|ending| ending.settlement.delivery_id).collect::<Vec<_>>(),
        &open.iter().map(|ending| ending.after.state.to_string()).collect::<Vec<_>>(),
        &open.iter().map(|ending| ending.after.reason.map(ReasonCode::as_str)).collect::<Vec<_>>() as &[Option<&str>],
        &open.iter().map(|ending| ending.after.next_attempt_at).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &open.iter().map(|ending| ending.after.attempt_count).collect::<Vec<_>>(),
        &errors as &[Option<String>],
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
