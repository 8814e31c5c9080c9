//! Settling: writing how attempts ended, and what that makes of their deliveries and notices.
//!
//! A settle is guarded by the attempt (this id, still open, or left by a lost owner and resolved by nobody), never
//! by the delivery's state. Repeating it is harmless: an attempt that already ended so is a success.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Result, cases::is_on_permit, claims::refresh_states, reasons};
use crate::domain::{
    attempt::{OWNER_LOST, Outcome, Phase},
    backoff,
    delivery::DeliveryState,
    notice::ReasonCode,
};

/// How one attempt ended.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The attempt.
    pub attempt_id: Uuid,
    /// Its delivery.
    pub delivery_id: Uuid,
    /// The outcome; never `Sending`.
    pub outcome: Outcome,
    /// The transport's fault and not the notice's.
    pub transport_fault: bool,
    /// A word for why.
    pub reason: Option<String>,
    /// How far it came.
    pub phase: Phase,
    /// The server's reply code.
    pub smtp_code: Option<i32>,
    /// The server's enhanced code.
    pub enhanced_code: Option<String>,
    /// What the transport said.
    pub response: Option<String>,
}

impl Settlement {
    /// What a delivery keeps as its last error.
    pub(super) fn error(&self) -> Option<String> {
        let said = || self.response.clone().or_else(|| self.reason.clone());
        (self.outcome != Outcome::Accepted).then(|| said().unwrap_or_else(|| self.outcome.to_string()))
    }
}

/// What settling made of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The attempt.
    pub attempt_id: Uuid,
    /// The delivery's state now; `None` if the settle came too late to change it.
    pub state: Option<DeliveryState>,
    /// The permit, if a copy for another address may be missing now.
    pub unserved: Option<Uuid>,
}

struct Facts {
    notice_id: Uuid,
    permit_id: Uuid,
    attempt_count: i32,
    superseded: Option<ReasonCode>,
    on_permit: bool,
    outcome: Outcome,
    reason: Option<String>,
    resolved: bool,
}

impl Facts {
    fn is_open(&self) -> bool {
        self.outcome == Outcome::Sending
            || (self.outcome == Outcome::Ambiguous && self.reason.as_deref() == Some(OWNER_LOST) && !self.resolved)
    }

    /// The copy's address left the permit while its notice is still owed.
    fn address_left(&self) -> bool {
        !self.on_permit && self.superseded.is_none()
    }

    /// The permit, if a copy that was not handed over leaves somebody on it without one.
    fn unserved(&self, outcome: Outcome) -> Option<Uuid> {
        let unsent = matches!(outcome, Outcome::Deferred | Outcome::NotSent | Outcome::Rejected);
        (unsent && self.address_left()).then_some(self.permit_id)
    }
}

/// Settles attempts in one transaction.
pub async fn settle(
    connection: &mut PgConnection,
    settlements: &[Settlement],
    max_attempts: u32,
    now: DateTime<Utc>,
) -> Result<Vec<Settled>> {
    let mut transaction = connection.begin().await?;
    let facts = lock_and_read(&mut transaction, settlements).await?;
    let mut settled = Vec::new();
    let mut open = Vec::new();
    for settlement in settlements {
        let outcome = match facts.get(&settlement.attempt_id) {
            Some(fact) if fact.is_open() => {
                let after = After::of(settlement, fact, max_attempts, now);
                let state = Some(after.state);
                open.push((settlement, fact.notice_id, after));
                Settled { attempt_id: settlement.attempt_id, state, unserved: fact.unserved(settlement.outcome) }
            }
            // Our own outcome, whose COMMIT got no answer.
            Some(fact) if fact.outcome == settlement.outcome => {
                Settled { attempt_id: settlement.attempt_id, state: None, unserved: fact.unserved(settlement.outcome) }
            }
            Some(_) => {
                keep_late_result(&mut transaction, settlement).await?;
                Settled { attempt_id: settlement.attempt_id, state: None, unserved: None }
            }
            None => Settled { attempt_id: settlement.attempt_id, state: None, unserved: None },
        };
        settled.push(outcome);
    }
    if !open.is_empty() {
        end_attempts(&mut transaction, &open, now).await?;
        update_deliveries(&mut transaction, &open, now).await?;
        let notices: Vec<Uuid> = open.iter().map(|(_, notice, _)| *notice).collect();
        refresh_states(&mut transaction, &notices).await?;
        reasons::clear(&mut transaction, &notices).await?;
        reasons::explain(&mut transaction, &failures(&open)).await?;
    }
    transaction.commit().await?;
    Ok(settled)
}

/// The notices whose copies failed for good, and why.
fn failures(open: &[(&Settlement, Uuid, After)]) -> Vec<(Uuid, ReasonCode)> {
    let failed = open.iter().filter(|(.., after)| after.state == DeliveryState::Failed);
    failed.filter_map(|(_, notice, after)| Some((*notice, after.reason?))).collect()
}

/// What a delivery becomes.
pub(super) struct After {
    pub(super) state: DeliveryState,
    pub(super) reason: Option<ReasonCode>,
    pub(super) next_attempt_at: Option<DateTime<Utc>>,
    pub(super) attempt_count: i32,
}

impl After {
    fn of(settlement: &Settlement, fact: &Facts, max_attempts: u32, now: DateTime<Utc>) -> Self {
        let after = Self::of_owed(settlement, fact.attempt_count, max_attempts, now);
        let reason = fact.superseded.or_else(|| fact.address_left().then_some(ReasonCode::AddressChanged));
        // A refusal of an address that nobody writes to any more is nothing for a person to decide.
        let unsent = settlement.outcome.delivery_state(reason.is_some(), false);
        let ends_unsent =
            unsent == DeliveryState::Superseded || (fact.address_left() && unsent == DeliveryState::Failed);
        if ends_unsent {
            return Self { state: DeliveryState::Superseded, reason, next_attempt_at: None, ..after };
        }
        after
    }

    /// What the outcome makes of a delivery whose notice is still owed to an address of the permit.
    pub(super) fn of_owed(
        settlement: &Settlement,
        attempts_before: i32,
        max_attempts: u32,
        now: DateTime<Utc>,
    ) -> Self {
        let counts = settlement.outcome == Outcome::Deferred && !settlement.transport_fault;
        let attempt_count = attempts_before + i32::from(counts);
        let exhausted = counts && attempt_count >= i32::try_from(max_attempts).unwrap_or(i32::MAX);
        let state = settlement.outcome.delivery_state(false, exhausted);
        let reason = match state {
            DeliveryState::Failed if exhausted => Some(ReasonCode::Exhausted),
            DeliveryState::Failed => Some(ReasonCode::Refused),
            _ => None,
        };
        let failures = u32::try_from(attempt_count).unwrap_or(0).max(1);
        let wait = TimeDelta::from_std(backoff::delay(failures, fastrand::f64())).unwrap_or(TimeDelta::hours(6));
        let next_attempt_at = (state == DeliveryState::Pending).then(|| now + wait);
        Self { state, reason, next_attempt_at, attempt_count }
    }
}

/// Locks notices, deliveries and attempts in that order, each by id, and reads what decides.
async fn lock_and_read(connection: &mut PgConnection, settlements: &[Settlement]) -> Result<HashMap<Uuid, Facts>> {
    let attempts: Vec<Uuid> = settlements.iter().map(|settlement| settlement.attempt_id).collect();
    let deliveries: Vec<Uuid> = settlements.iter().map(|settlement| settlement.delivery_id).collect();
    sqlx::query!(
        "SELECT 1 AS locked FROM notices WHERE id IN (SELECT notice_id FROM deliveries WHERE id = ANY ($1))
         ORDER BY id FOR NO KEY UPDATE",
        &deliveries,
    )
    .fetch_all(&mut *connection)
    .await?;
    lock_deliveries(connection, &deliveries).await?;
    sqlx::query!("SELECT 1 AS locked FROM attempts WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", &attempts)
        .fetch_all(&mut *connection)
        .await?;
    let rows = sqlx::query!(
        r#"SELECT a.id, a.outcome, a.reason, a.resolution IS NOT NULL AS "resolved!", d.notice_id, n.permit_id,
                  d.attempt_count,
                  CASE WHEN n.superseded_at IS NOT NULL THEN coalesce(n.reason_code, 'not_owed') END AS superseded,
                  d.recipient_key, d.by_request, p.holder_email,
                  ARRAY(SELECT c.email FROM contacts c WHERE c.permit_id = p.id AND c.email IS NOT NULL)
                      AS "contact_emails!"
           FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN notices n ON n.id = d.notice_id
                           JOIN permits p ON p.id = n.permit_id
           WHERE a.id = ANY ($1)"#,
        &attempts,
    )
    .fetch_all(connection)
    .await?;
    let facts = rows.into_iter().map(|row| {
        let fact = Facts {
            notice_id: row.notice_id,
            permit_id: row.permit_id,
            attempt_count: row.attempt_count,
            superseded: row.superseded.map(|code| code.parse().unwrap_or(ReasonCode::NotOwed)),
            on_permit: row.by_request
                || is_on_permit(&row.recipient_key, row.holder_email.as_deref(), &row.contact_emails),
            outcome: row.outcome.parse()?,
            reason: row.reason,
            resolved: row.resolved,
        };
        Ok((row.id, fact))
    });
    facts.collect()
}

/// Locks these deliveries, in order of id, and none of their siblings, which may be at the gate just now. Their
/// notices are locked before.
pub(super) async fn lock_deliveries(connection: &mut PgConnection, deliveries: &[Uuid]) -> Result<()> {
    sqlx::query!("SELECT 1 AS locked FROM deliveries WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", deliveries)
        .fetch_all(connection)
        .await?;
    Ok(())
}

async fn end_attempts(
    connection: &mut PgConnection,
    open: &[(&Settlement, Uuid, After)],
    now: DateTime<Utc>,
) -> Result<()> {
    let ended = open.iter().map(|(settlement, ..)| *settlement);
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

async fn update_deliveries(
    connection: &mut PgConnection,
    open: &[(&Settlement, Uuid, After)],
    now: DateTime<Utc>,
) -> Result<()> {
    let errors: Vec<Option<String>> = open.iter().map(|(settlement, ..)| settlement.error()).collect();
    sqlx::query!(
        "UPDATE deliveries d
         SET state = e.state, reason_code = e.reason, next_attempt_at = coalesce(e.next_attempt_at, d.next_attempt_at),
             attempt_count = e.attempt_count, last_error = coalesce(e.error, d.last_error),
             lease_token = NULL, lease_owner = NULL, updated_at = $7
         FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::int[], $6::text[])
              AS e (id, state, reason, next_attempt_at, attempt_count, error)
         WHERE d.id = e.id",
        &open.iter().map(|(s, ..)| s.delivery_id).collect::<Vec<_>>(),
        &open.iter().map(|(.., after)| after.state.to_string()).collect::<Vec<_>>(),
        &open.iter().map(|(.., after)| after.reason.map(ReasonCode::as_str)).collect::<Vec<_>>() as &[Option<&str>],
        &open.iter().map(|(.., after)| after.next_attempt_at).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &open.iter().map(|(.., after)| after.attempt_count).collect::<Vec<_>>(),
        &errors as &[Option<String>],
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A reply that came after the attempt had ended otherwise is kept beside it.
async fn keep_late_result(connection: &mut PgConnection, settlement: &Settlement) -> Result<()> {
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
