//! Ending or moving notices that are open.
//!
//! A delivery in flight keeps its state: its notice is stamped, and the settling of its attempt looks at that.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Authority, Counts, Judged};
use crate::{
    domain::{
        delivery::DeliveryState,
        notice::ReasonCode,
        owed::{Action, Timing},
    },
    store::{Result, cases::lock_deliveries, reasons},
};

/// Writes every superseding, lateness and change of days among the actions.
pub(super) async fn write(
    connection: &mut PgConnection,
    _: &Authority,
    judged: &[Judged<'_>],
    now: DateTime<Utc>,
) -> Result<Counts> {
    let mut superseded = Vec::new();
    let mut late = Vec::new();
    let mut moved = Vec::new();
    for action in judged.iter().flat_map(|judged| judged.actions) {
        match action {
            Action::Supersede(id, _, reason) => superseded.push((*id, *reason)),
            Action::TooLate(id, _) => late.push((*id, ReasonCode::TooLate)),
            Action::Retime(id, timing) => moved.push((*id, *timing)),
            _ => {}
        }
    }
    let touched: Vec<Uuid> =
        superseded.iter().chain(&late).map(|(id, _)| *id).chain(moved.iter().map(|(id, _)| *id)).collect();
    if touched.is_empty() {
        return Ok(Counts::default());
    }
    lock_notices(connection, &touched).await?;
    lock_deliveries(connection, &touched).await?;
    skip_former_copies(connection, &late.iter().map(|(id, _)| *id).collect::<Vec<_>>(), now).await?;
    let counts = Counts {
        superseded: end(connection, &superseded, "superseded", now).await?,
        skipped: end(connection, &late, "skipped", now).await?,
        ..Counts::default()
    };
    retime(connection, &moved, now).await?;
    refresh_states(connection, &touched).await?;
    Ok(counts)
}

/// Locks notices in order of id.
pub(super) async fn lock_notices(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    sqlx::query!("SELECT 1 AS locked FROM notices WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", notices)
        .fetch_all(connection)
        .await?;
    Ok(())
}

/// Ends what is still open of the notices; says how many notices were open.
///
/// A copy that is suppressed is superseded with the others, so that a notice that is owed again can be told from
/// one that failed. A copy in flight may still be sent on the last day, so its notice is not too late yet.
async fn end(
    connection: &mut PgConnection,
    notices: &[(Uuid, ReasonCode)],
    state: &'static str,
    now: DateTime<Utc>,
) -> Result<u64> {
    if notices.is_empty() {
        return Ok(0);
    }
    let ids: Vec<Uuid> = notices.iter().map(|(id, _)| *id).collect();
    let codes: Vec<&str> = notices.iter().map(|(_, reason)| reason.as_str()).collect();
    let sentences: Vec<&str> = notices.iter().map(|(_, reason)| reason.sentence()).collect();
    // Before its copies end, for they say what holds it: one of them may be in flight, and then the notice is pending.
    let ended = sqlx::query!(
        "UPDATE notices n
         SET reason_code = ending.code, reason = ending.sentence,
             superseded_at = CASE WHEN $4 = 'superseded' THEN $5::timestamptz END,
             held_before = CASE WHEN $4 = 'superseded' THEN
                                     coalesce((SELECT d.reason_code FROM deliveries d
                                               WHERE d.notice_id = n.id AND d.state = 'held'
                                                 AND d.reason_code IN ('claim_limit', 'memory_went_back', 'owner_died')
                                               ORDER BY d.reason_code = 'memory_went_back' DESC LIMIT 1), n.held_before)
                                ELSE n.held_before END
         FROM unnest($1::uuid[], $2::text[], $3::text[]) AS ending (id, code, sentence)
         WHERE n.id = ending.id AND n.superseded_at IS NULL
           AND (n.state IN ('pending', 'held') OR ($4 = 'superseded' AND n.state = 'ambiguous'))
           AND ($4 = 'superseded'
                OR NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id AND d.state = 'sending'))",
        &ids,
        &codes as &[&str],
        &sentences as &[&str],
        state,
        now,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE deliveries d
         SET state = $3, reason_code = ending.code, lease_token = NULL, lease_owner = NULL, updated_at = $4
         FROM unnest($1::uuid[], $2::text[]) AS ending (id, code)
         WHERE d.notice_id = ending.id
           AND (d.state IN ('pending', 'held') OR ($3 = 'superseded' AND d.state = 'suppressed'))",
        &ids,
        &codes as &[&str],
        state,
        now,
    )
    .execute(connection)
    .await?;
    Ok(ended.rows_affected())
}

/// Makes copies that had ended while their notice went on, for their address had left or mail took the place of a letter,
/// too late with the notices that are: else such a notice would be taken for one that waits for an address.
pub(in crate::store) async fn skip_former_copies(
    connection: &mut PgConnection,
    notices: &[Uuid],
    now: DateTime<Utc>,
) -> Result<()> {
    end_former_copies(connection, notices, (DeliveryState::Skipped, ReasonCode::TooLate), now).await
}

/// The same with the notices that a person cancels.
pub(in crate::store) async fn cancel_former_copies(
    connection: &mut PgConnection,
    notices: &[Uuid],
    now: DateTime<Utc>,
) -> Result<()> {
    end_former_copies(connection, notices, (DeliveryState::Cancelled, ReasonCode::ByPerson), now).await
}

async fn end_former_copies(
    connection: &mut PgConnection,
    notices: &[Uuid],
    (state, reason): (DeliveryState, ReasonCode),
    now: DateTime<Utc>,
) -> Result<()> {
    if notices.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "UPDATE deliveries d SET state = $2, reason_code = $3, updated_at = $4
         FROM notices n
         WHERE n.id = ANY ($1) AND d.notice_id = n.id AND n.superseded_at IS NULL AND d.state = 'superseded'",
        notices,
        state.as_str(),
        reason.as_str(),
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives open notices their new days.
async fn retime(connection: &mut PgConnection, notices: &[(Uuid, Timing)], now: DateTime<Utc>) -> Result<()> {
    if notices.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = notices.iter().map(|(id, _)| *id).collect();
    let due_ons: Vec<NaiveDate> = notices.iter().map(|(_, timing)| timing.due_on).collect();
    let send_bys: Vec<NaiveDate> = notices.iter().map(|(_, timing)| timing.send_by).collect();
    let forward: Vec<bool> = notices.iter().map(|(_, timing)| timing.brought_forward).collect();
    // What a person released before its due day waits for that day, so it moves with it. The two hours: where the
    // zone's clocks change between the days, it must rather wait longer than go on the day before.
    sqlx::query!(
        "UPDATE deliveries d
         SET next_attempt_at = d.next_attempt_at + make_interval(days => moved.due_on - n.due_on, hours => 2)
         FROM unnest($1::uuid[], $2::date[]) AS moved (id, due_on) JOIN notices n ON n.id = moved.id
         WHERE d.notice_id = n.id AND n.in_advance AND moved.due_on <> n.due_on AND d.state = 'pending'
           AND d.next_attempt_at > $3",
        &ids,
        &due_ons,
        now,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE notices n SET due_on = moved.due_on, send_by = moved.send_by, brought_forward = moved.forward
         FROM unnest($1::uuid[], $2::date[], $3::date[], $4::bool[]) AS moved (id, due_on, send_by, forward)
         WHERE n.id = moved.id",
        &ids,
        &due_ons,
        &send_bys,
        &forward,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE deliveries d SET send_by = moved.send_by
         FROM unnest($1::uuid[], $2::date[]) AS moved (id, send_by)
         WHERE d.notice_id = moved.id AND d.state IN ('pending', 'held')",
        &ids,
        &send_bys,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes the state of `notices` follow from their deliveries again. Every function that changes the state of a
/// delivery calls this for its notice, in the same transaction; the notices are locked before.
pub async fn refresh_states(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    // The order is that of domain::notice::NoticeState::of; a test compares the two.
    let unexplained = sqlx::query_scalar!(
        "WITH refreshed AS (
         UPDATE notices n
         SET state = derived.state,
             reason_code = CASE WHEN derived.state = 'held' AND n.held_reason IS NOT NULL THEN 'by_person'
                                WHEN derived.state = 'superseded' AND n.superseded_at IS NULL THEN 'address_changed'
                                WHEN derived.state IN ('pending', 'ambiguous', 'sent') AND n.superseded_at IS NULL THEN NULL
                                WHEN n.state = 'superseded' AND n.reason_code = 'address_changed' THEN NULL
                                WHEN derived.state = 'failed' AND n.superseded_at IS NULL
                                     AND n.reason_code IN ('claim_limit', 'memory_went_back', 'owner_died') THEN NULL
                                ELSE n.reason_code END,
             reason = CASE WHEN derived.state = 'held' AND n.held_reason IS NOT NULL THEN n.held_reason
                           WHEN derived.state = 'superseded' AND n.superseded_at IS NULL THEN $2
                           WHEN derived.state IN ('pending', 'ambiguous', 'sent') AND n.superseded_at IS NULL
                                AND n.reason_code IS NOT NULL THEN NULL
                           WHEN n.state = 'superseded' AND n.reason_code = 'address_changed' THEN NULL
                           ELSE n.reason END,
             held_before = CASE WHEN n.superseded_at IS NOT NULL THEN n.held_before
                                WHEN derived.state IN ('pending', 'held', 'skipped', 'cancelled') THEN NULL
                                WHEN n.state = 'held' AND n.reason_code IN ('claim_limit', 'memory_went_back', 'owner_died')
                                     THEN n.reason_code
                                ELSE n.held_before END
         FROM (SELECT notice_id,
                      CASE WHEN bool_or(state IN ('pending', 'sending')) THEN 'pending'
                           WHEN bool_or(state = 'held') THEN 'held'
                           WHEN bool_or(state = 'ambiguous') THEN 'ambiguous'
                           WHEN bool_or(state = 'sent') THEN 'sent'
                           WHEN bool_or(state IN ('failed', 'bounced', 'suppressed')) THEN 'failed'
                           WHEN bool_or(state = 'superseded') THEN 'superseded'
                           WHEN bool_or(state = 'skipped') THEN 'skipped'
                           ELSE 'cancelled' END AS state
               FROM deliveries WHERE notice_id = ANY ($1) GROUP BY notice_id) AS derived
         WHERE n.id = derived.notice_id AND n.state <> derived.state
         RETURNING n.id, n.state, n.reason_code)
         SELECT id FROM refreshed WHERE state IN ('held', 'failed') AND reason_code IS NULL",
        notices,
        ReasonCode::AddressChanged.sentence(),
    )
    .fetch_all(&mut *connection)
    .await?;
    reasons::explain_by_copies(connection, &unexplained).await
}
