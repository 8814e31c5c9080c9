//! Settling: writing how attempts ended, and what that makes of their deliveries, their notices and the transport.
//!
//! A settle is guarded by the attempt (this id, still open, or left by a lost owner and resolved by nobody), never
//! by the delivery's state. Repeating it is harmless: an attempt that already ended so is a success. It waits for
//! nobody: what somebody else is at just now is told apart, to be settled a little later.

mod after;
mod write;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Result, cases::is_on_permit, claims::refresh_states, reasons, transport};
use crate::domain::{
    attempt::{OWNER_LOST, Outcome, Phase, Transport},
    delivery::DeliveryState,
    notice::ReasonCode,
};

pub(super) use after::After;

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
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
    /// The probe of the transport that this message was.
    pub probe: Option<Uuid>,
}

impl Settlement {
    /// What is said of a transport that failed so.
    pub(super) fn fault(&self) -> String {
        self.response.as_ref().or(self.reason.as_ref()).cloned().unwrap_or_else(|| self.phase.to_string())
    }

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
    has_reason: bool,
    superseded: Option<ReasonCode>,
    held_by_person: bool,
    on_permit: bool,
    outcome: Outcome,
    /// Why it is ambiguous, unless a person has said what became of it.
    doubt: Option<String>,
    transport: Transport,
}

impl Facts {
    fn is_open(&self) -> bool {
        self.outcome == Outcome::Sending
            || (self.outcome == Outcome::Ambiguous && self.doubt.as_deref() == Some(OWNER_LOST))
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

/// Settles attempts in one transaction. `None`: somebody else is at that one just now; settle it again.
pub async fn settle(
    connection: &mut PgConnection,
    settlements: &[Settlement],
    max_attempts: u32,
    now: DateTime<Utc>,
) -> Result<Vec<Option<Settled>>> {
    let mut transaction = connection.begin().await?;
    let settlements: Vec<&Settlement> = settlements.iter().collect();
    let settled = settle_in(&mut transaction, &settlements, max_attempts, true, now).await?;
    transaction.commit().await?;
    Ok(settled)
}

/// The same in a transaction of the caller's, who may know that an acceptance is no news to the transport.
pub(super) async fn settle_in(
    connection: &mut PgConnection,
    settlements: &[&Settlement],
    max_attempts: u32,
    acceptance_is_news: bool,
    now: DateTime<Utc>,
) -> Result<Vec<Option<Settled>>> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let facts = lock_and_read(connection, settlements).await?;
    let absent = find_absent(connection, settlements, &facts).await?;
    let mut settled = Vec::with_capacity(settlements.len());
    let mut open = Vec::with_capacity(settlements.len());
    for &settlement in settlements {
        let fact = facts.get(&settlement.attempt_id);
        if fact.is_none() && !absent.contains(&settlement.attempt_id) {
            settled.push(None);
            continue;
        }
        let mut result = Settled { attempt_id: settlement.attempt_id, state: None, unserved: None };
        match fact {
            Some(fact) if fact.is_open() => {
                let after = After::of(settlement, fact, max_attempts, now);
                result.state = Some(after.state);
                result.unserved = fact.unserved(settlement.outcome);
                open.push(Ending { settlement, fact, after });
            }
            // Our own outcome, whose COMMIT got no answer.
            Some(fact) if fact.outcome == settlement.outcome => result.unserved = fact.unserved(settlement.outcome),
            Some(_) => write::keep_late_result(connection, settlement).await?,
            None => {}
        }
        settled.push(Some(result));
    }
    write_endings(connection, &open, now).await?;
    // The transport's row is locked last.
    let is_news = |settlement: &Settlement| {
        let by_smtp = || facts.get(&settlement.attempt_id).is_some_and(|fact| fact.transport == Transport::Smtp);
        acceptance_is_news && settlement.outcome == Outcome::Accepted && by_smtp()
    };
    let heard = settlements.iter().zip(&settled).filter(|(_, settled)| settled.is_some());
    transport::hear(connection, heard.map(|(settlement, _)| (*settlement, is_news(settlement)))).await?;
    Ok(settled)
}

/// An attempt that ends now.
struct Ending<'s> {
    settlement: &'s Settlement,
    fact: &'s Facts,
    after: After,
}

async fn write_endings(connection: &mut PgConnection, open: &[Ending<'_>], now: DateTime<Utc>) -> Result<()> {
    if open.is_empty() {
        return Ok(());
    }
    write::end_attempts(connection, open, now).await?;
    let notices: Vec<Uuid> = open.iter().map(|ending| ending.fact.notice_id).collect();
    refresh_states(connection, &notices).await?;
    let explained: Vec<Uuid> = open.iter().filter(|e| e.fact.has_reason).map(|e| e.fact.notice_id).collect();
    if !explained.is_empty() {
        reasons::clear(connection, &explained).await?;
    }
    let failed = open.iter().filter(|ending| ending.after.state == DeliveryState::Failed);
    let failures: Vec<_> = failed.filter_map(|e| Some((e.fact.notice_id, e.after.reason?))).collect();
    reasons::explain(connection, &failures).await
}

/// Locks notices, deliveries and attempts that nobody else is at, and reads what decides. The addresses of the permit may
/// be a moment older than the locks; then the copy waits although its address has left, and its gate ends it.
async fn lock_and_read(connection: &mut PgConnection, settlements: &[&Settlement]) -> Result<HashMap<Uuid, Facts>> {
    let attempts: Vec<Uuid> = settlements.iter().map(|settlement| settlement.attempt_id).collect();
    let rows = sqlx::query!(
        r#"SELECT a.id, a.outcome, CASE WHEN a.resolution IS NULL THEN a.reason END AS doubt, a.transport,
                  d.notice_id, n.permit_id, d.attempt_count, n.reason_code IS NOT NULL AS "has_reason!",
                  n.held_reason IS NOT NULL AS "held_by_person!",
                  CASE WHEN n.superseded_at IS NOT NULL THEN coalesce(n.reason_code, 'not_owed') END AS superseded,
                  d.recipient_key, d.by_request, p.holder_email,
                  ARRAY(SELECT c.email FROM contacts c WHERE c.permit_id = p.id AND c.email IS NOT NULL)
                      AS "contact_emails!"
           FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN notices n ON n.id = d.notice_id
                           JOIN permits p ON p.id = n.permit_id
           WHERE a.id = ANY ($1) ORDER BY n.id, d.id
           FOR NO KEY UPDATE OF n SKIP LOCKED FOR NO KEY UPDATE OF d SKIP LOCKED FOR NO KEY UPDATE OF a SKIP LOCKED"#,
        &attempts,
    )
    .fetch_all(connection)
    .await?;
    let facts = rows.into_iter().map(|row| {
        let fact = Facts {
            notice_id: row.notice_id,
            permit_id: row.permit_id,
            attempt_count: row.attempt_count,
            has_reason: row.has_reason,
            superseded: row.superseded.map(|code| code.parse().unwrap_or(ReasonCode::NotOwed)),
            held_by_person: row.held_by_person,
            on_permit: row.by_request
                || is_on_permit(&row.recipient_key, row.holder_email.as_deref(), &row.contact_emails),
            outcome: row.outcome.parse()?,
            doubt: row.doubt,
            transport: row.transport.parse()?,
        };
        Ok((row.id, fact))
    });
    facts.collect()
}

/// Which attempts of those that could not be locked do not exist: their gate was never committed. One whose COMMIT is
/// still on its way holds the lock on its delivery.
async fn find_absent(
    connection: &mut PgConnection,
    settlements: &[&Settlement],
    facts: &HashMap<Uuid, Facts>,
) -> Result<HashSet<Uuid>> {
    let missing = settlements.iter().filter(|settlement| !facts.contains_key(&settlement.attempt_id));
    let (attempts, deliveries): (Vec<Uuid>, Vec<Uuid>) = missing.map(|s| (s.attempt_id, s.delivery_id)).unzip();
    if attempts.is_empty() {
        return Ok(HashSet::new());
    }
    let free = sqlx::query_scalar!(
        "SELECT id FROM deliveries WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        &deliveries,
    )
    .fetch_all(&mut *connection)
    .await?;
    // A statement of its own, so that it sees what the last holder of the lock committed.
    let absent = sqlx::query_scalar!(
        r#"SELECT m.id AS "id!" FROM unnest($1::uuid[], $2::uuid[]) AS m (id, delivery_id)
           WHERE m.delivery_id = ANY ($3) AND NOT EXISTS (SELECT FROM attempts a WHERE a.id = m.id)"#,
        &attempts,
        &deliveries,
        &free,
    );
    Ok(absent.fetch_all(connection).await?.into_iter().collect())
}

/// Locks these deliveries, in order of id, and none of their siblings, which may be at the gate just now. Their
/// notices are locked before.
pub(super) async fn lock_deliveries(connection: &mut PgConnection, deliveries: &[Uuid]) -> Result<()> {
    sqlx::query!("SELECT 1 AS locked FROM deliveries WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", deliveries)
        .fetch_all(connection)
        .await?;
    Ok(())
}
