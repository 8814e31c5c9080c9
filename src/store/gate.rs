//! The gate: the last look before the first byte of a body, for all senders that are ready at once.
//!
//! It never waits for a lock. Each condition that fails has its own answer; who is let through has an attempt
//! recorded as `sending`, with the hash and the exact bytes, in the same transaction.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Moment, Result, cases::is_on_permit};
use crate::domain::{
    attempt::Transport,
    notice::ReasonCode,
    permit::Standing,
    timetable::{NotOwed, barred},
};

/// A sender that is ready to send one message.
#[derive(Debug, Clone)]
pub struct GateRequest {
    /// The delivery.
    pub delivery_id: Uuid,
    /// The lease.
    pub token: Uuid,
    /// The permit.
    pub permit_id: Uuid,
    /// Version of the permit that the message was made from.
    pub version: i64,
    /// Version of the permit's type that the message was made from.
    pub type_version: i64,
    /// The day that the message takes for today.
    pub today: NaiveDate,
    /// Id that the attempt will have.
    pub attempt_id: Uuid,
    /// What carries the message.
    pub transport: Transport,
    /// Its Message-ID.
    pub message_id: String,
    /// SHA-256 of the bytes.
    pub payload_sha256: Vec<u8>,
    /// The bytes.
    pub content: Vec<u8>,
    /// The probe of the transport that its sender holds.
    pub probe: Option<Uuid>,
}

/// What the gate says to one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateAnswer {
    /// Go on; the attempt has this number.
    Open(i32),
    /// Somebody else is at it: give it back, take it again.
    Busy,
    /// The lease is gone: nothing is ours to do.
    NotOurs,
    /// Our process is dead for the others: begin nothing, come back as a new one.
    ProcessDead,
    /// The breaker is open, and this is not its probe; or the memory went back.
    Paused,
    /// The permit, its type or the day changed since the message was made: make it anew.
    Changed,
    /// It must not go: end it, for this reason.
    Ended(ReasonCode),
}

/// Lets through who may go on, in one transaction.
pub async fn open_gates(
    connection: &mut PgConnection,
    boot_id: Uuid,
    requests: &[GateRequest],
    moment: Moment,
) -> Result<Vec<GateAnswer>> {
    let mut transaction = connection.begin().await?;
    let requests: Vec<&GateRequest> = requests.iter().collect();
    let common = look(&mut transaction, boot_id).await?;
    let answers = open_in(&mut transaction, boot_id, &common, &requests, moment).await?;
    transaction.commit().await?;
    Ok(answers)
}

/// The same in a transaction of the caller's, who looked before. It waits for nobody, so whatever that transaction
/// holds does no harm.
pub(super) async fn open_in(
    connection: &mut PgConnection,
    boot_id: Uuid,
    common: &Common,
    requests: &[&GateRequest],
    moment: Moment,
) -> Result<Vec<GateAnswer>> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    if !common.alive {
        return Ok(vec![GateAnswer::ProcessDead; requests.len()]);
    }
    if common.went_back {
        return Ok(vec![GateAnswer::Paused; requests.len()]);
    }
    let facts = lock_and_read(connection, requests, moment).await?;
    let mut answers: Vec<GateAnswer> = requests
        .iter()
        .map(|request| match facts.get(&request.delivery_id) {
            Some(facts) => judge(request, common.breaker, facts, moment),
            None => GateAnswer::Busy,
        })
        .collect();
    let let_through: Vec<&GateRequest> =
        requests.iter().zip(&answers).filter(|(_, a)| matches!(a, GateAnswer::Open(_))).map(|(r, _)| *r).collect();
    if !let_through.is_empty() {
        let numbers = begin_attempts(connection, boot_id, &let_through, moment.now).await?;
        for (request, answer) in requests.iter().zip(&mut answers) {
            if let (GateAnswer::Open(number), Some(given)) = (answer, numbers.get(&request.attempt_id)) {
                *number = *given;
            }
        }
    }
    Ok(answers)
}

/// What holds for all requests alike.
pub(super) struct Common {
    /// The database's clock.
    pub(super) now: DateTime<Utc>,
    /// The others take this process for alive.
    pub(super) alive: bool,
    /// The memory went back ([`super::memory`]): nothing may go.
    pub(super) went_back: bool,
    /// The breaker is open, and whoever holds this probe may pass.
    pub(super) breaker: Option<Uuid>,
    /// Nobody noted for a while that a mail server accepts, or refusals wait to be forgotten when one does.
    pub(super) acceptance_is_news: bool,
}

pub(super) async fn look(connection: &mut PgConnection, boot_id: Uuid) -> Result<Common> {
    let row = sqlx::query!(
        r#"SELECT clock_timestamp() AS "now!",
                  EXISTS (SELECT FROM living_processes WHERE boot_id = $1) AS "alive!",
                  EXISTS (SELECT FROM memory_comparison WHERE recorded <> present) AS "went_back!",
                  paused_until, probe_token,
                  coalesce(accepted_at < clock_timestamp() - interval '1 second', true) OR policy_refusals <> '{}'
                      AS "acceptance_is_news!"
           FROM transport"#,
        boot_id,
    )
    .fetch_one(connection)
    .await?;
    let breaker = row.paused_until.map(|_| row.probe_token.unwrap_or_default());
    let (alive, went_back, acceptance_is_news) = (row.alive, row.went_back, row.acceptance_is_news);
    Ok(Common { now: row.now, alive, went_back, breaker, acceptance_is_news })
}

/// What decides about one request, as it is under our locks.
struct Facts {
    version: i64,
    type_version: i64,
    barred: Option<NotOwed>,
    token: Option<Uuid>,
    is_pending: bool,
    superseded: Option<ReasonCode>,
    send_by: NaiveDate,
    on_permit: bool,
    suppressed: bool,
}

/// Locks the permits that nobody is changing and the deliveries that nobody else is at, and reads them. Of a change that
/// ended a moment ago the locked rows tell: it raised the permit's version or took the delivery from us. The other rows
/// may be a moment older, which then does not matter any more.
async fn lock_and_read(
    connection: &mut PgConnection,
    requests: &[&GateRequest],
    moment: Moment,
) -> Result<HashMap<Uuid, Facts>> {
    let ids: Vec<Uuid> = requests.iter().map(|request| request.delivery_id).collect();
    // The recipient is compared with the permit as it is now, whatever the version says: a belt to the braces.
    let rows = sqlx::query!(
        r#"SELECT d.id, d.lease_token, d.state, n.send_by, n.superseded_at, n.reason_code, d.recipient_key, d.by_request,
                  p.version, t.version AS type_version, p.status, p.archived_at IS NOT NULL AS "archived!", p.notices_paused_until, p.expires_on,
                  n.expires_on = p.expires_on AS "present_period!", p.holder_email,
                  ARRAY(SELECT c.email FROM contacts c WHERE c.permit_id = p.id AND c.email IS NOT NULL)
                      AS "contact_emails!",
                  EXISTS (SELECT FROM suppressions s WHERE s.address = d.recipient_key
                            AND (s.class = 'all' OR n.class = 'courtesy')) AS "suppressed!"
           FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN permits p ON p.id = n.permit_id
                JOIN permit_types t ON t.code = p.permit_type
           WHERE d.id = ANY ($1) ORDER BY p.id, d.id FOR SHARE OF p SKIP LOCKED FOR UPDATE OF d SKIP LOCKED"#,
        &ids,
    )
    .fetch_all(connection)
    .await?;
    let facts = rows.into_iter().map(|row| {
        let standing = Standing {
            status: row.status.parse()?,
            archived: row.archived,
            notices_paused_until: row.notices_paused_until,
            takes_effect_on: None,
            expires_on: row.expires_on,
            period_since: row.expires_on,
            notices_from: None,
        };
        let reason = row.reason_code.as_deref().map(str::parse::<ReasonCode>).transpose()?;
        let facts = Facts {
            version: row.version,
            type_version: row.type_version,
            barred: barred(&standing, moment.today),
            token: row.lease_token,
            is_pending: row.state == "pending",
            // A retry or a resolution may bring back a copy whose notice no change could end.
            superseded: row
                .superseded_at
                .map(|_| reason.unwrap_or(ReasonCode::NotOwed))
                .or((!row.present_period).then_some(ReasonCode::PeriodChanged)),
            send_by: row.send_by,
            // A copy that a person asked for goes where that person said.
            on_permit: row.by_request
                || is_on_permit(&row.recipient_key, row.holder_email.as_deref(), &row.contact_emails),
            suppressed: row.suppressed,
        };
        Ok((row.id, facts))
    });
    facts.collect()
}

/// What the gate says to one request; an open gate gets its number when the attempt is inserted.
fn judge(request: &GateRequest, breaker: Option<Uuid>, facts: &Facts, moment: Moment) -> GateAnswer {
    if facts.token != Some(request.token) || !facts.is_pending {
        return GateAnswer::NotOurs;
    }
    if let Some(reason) = facts.superseded {
        return GateAnswer::Ended(reason);
    }
    match facts.barred {
        Some(NotOwed::Archived) => return GateAnswer::Ended(ReasonCode::Archived),
        Some(NotOwed::Paused(_)) => return GateAnswer::Ended(ReasonCode::Paused),
        Some(_) => return GateAnswer::Ended(ReasonCode::NotActive),
        None => {}
    }
    if moment.today > facts.send_by {
        return GateAnswer::Ended(ReasonCode::TooLate);
    }
    if facts.suppressed {
        return GateAnswer::Ended(ReasonCode::Suppressed);
    }
    if !facts.on_permit {
        return GateAnswer::Ended(ReasonCode::AddressChanged);
    }
    if breaker.is_some_and(|probe| request.probe != Some(probe)) {
        return GateAnswer::Paused;
    }
    let is_as_it_was = facts.version == request.version && facts.type_version == request.type_version;
    if !is_as_it_was || moment.today != request.today {
        return GateAnswer::Changed;
    }
    GateAnswer::Open(0)
}

/// Records the attempts as sending, with their exact bytes; says their numbers by attempt id.
async fn begin_attempts(
    connection: &mut PgConnection,
    boot_id: Uuid,
    requests: &[&GateRequest],
    now: DateTime<Utc>,
) -> Result<HashMap<Uuid, i32>> {
    let rows = sqlx::query!(
        "WITH request AS (
             SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::bytea[])
                           AS r (id, delivery_id, transport, hash, message_id, content)),
         begun AS (
             INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, payload_sha256, started_at)
             SELECT r.id, d.id, coalesce((SELECT max(o.number) FROM attempts o WHERE o.delivery_id = d.id), 0) + 1,
                    n.notice_key, $7, r.transport, 'sending', r.hash, $8
             FROM request r JOIN deliveries d ON d.id = r.delivery_id JOIN notices n ON n.id = d.notice_id
             RETURNING id, number),
         kept AS (INSERT INTO attempt_messages (attempt_id, content) SELECT id, content FROM request),
         marked AS (
             UPDATE deliveries d
             SET state = 'sending', message_id = r.message_id, payload_sha256 = r.hash, updated_at = $8
             FROM request r WHERE d.id = r.delivery_id)
         SELECT id, number FROM begun",
        &requests.iter().map(|request| request.attempt_id).collect::<Vec<_>>(),
        &requests.iter().map(|request| request.delivery_id).collect::<Vec<_>>(),
        &requests.iter().map(|request| request.transport.to_string()).collect::<Vec<_>>(),
        &requests.iter().map(|request| &*request.payload_sha256).collect::<Vec<_>>() as &[&[u8]],
        &requests.iter().map(|request| &*request.message_id).collect::<Vec<_>>() as &[&str],
        &requests.iter().map(|request| &*request.content).collect::<Vec<_>>() as &[&[u8]],
        boot_id,
        now,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.number)).collect())
}
