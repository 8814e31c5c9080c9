//! Reviving: a notice that was superseded because the permit changed is owed again.
//!
//! Unsent copies to addresses still on the permit become pending, addresses without a copy get one; attempts
//! and Message-IDs stay. A copy in flight is left to its sender.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Authority, Counts, Judged, Writing,
    insert::{DeliveryColumns, insert_deliveries},
    supersede::{lock_notices, refresh_states},
};
use crate::{
    domain::{
        copies::{Owed, copies},
        notice::{NoticeClass, ReasonCode},
        owed::{Action, Timing},
    },
    store::{
        Result,
        cases::{Case, Suppressed, lock_deliveries},
    },
};

struct Revival<'c> {
    id: Uuid,
    timing: Timing,
    owed: Vec<Owed<'c>>,
}

/// Revives every notice that the actions say is owed again.
pub(super) async fn write(
    connection: &mut PgConnection,
    _: &Authority,
    judged: &[Judged<'_>],
    suppressed: &Suppressed,
    writing: Writing,
) -> Result<Counts> {
    let revivals: Vec<Revival<'_>> = judged
        .iter()
        .flat_map(|judged| wanted(judged, suppressed))
        .filter(|revival| !revival.owed.is_empty())
        .collect();
    if revivals.is_empty() {
        return Ok(Counts::default());
    }
    let ids: Vec<Uuid> = revivals.iter().map(|revival| revival.id).collect();
    lock_notices(connection, &ids).await?;
    lock_deliveries(connection, &ids).await?;
    let ids = clear_superseded(connection, &revivals, writing.hold).await?;
    let present = present_copies(connection, &ids).await?;
    let mut awake = Vec::new();
    let mut suppressed_now = Vec::new();
    let mut missing = DeliveryColumns::default();
    for revival in revivals.iter().filter(|revival| ids.contains(&revival.id)) {
        for copy in &revival.owed {
            match present.get(&(revival.id, copy.recipient_key())) {
                Some(id) if !matches!(copy, Owed::Suppressed(_)) => awake.push(*id),
                Some(id) => suppressed_now.push(*id),
                None => missing.push(revival.id, revival.timing.send_by, copy, writing.hold),
            }
        }
    }
    wake_deliveries(connection, &awake, writing.hold, writing.not_before, writing.moment.now).await?;
    suppress_deliveries(connection, &suppressed_now, writing.moment.now).await?;
    set_send_by(connection, &ids).await?;
    insert_deliveries(connection, missing, writing.moment.now, writing.not_before).await?;
    refresh_states(connection, &ids).await?;
    let revived = ids.len() as u64;
    Ok(Counts { revived, held: if writing.hold { revived } else { 0 }, ..Counts::default() })
}

fn wanted<'c>(judged: &Judged<'c>, suppressed: &Suppressed) -> Vec<Revival<'c>> {
    let case: &'c Case = judged.case;
    let revivals = judged.actions.iter().filter_map(|action| match action {
        Action::Revive(id, _, timing) => Some((*id, *timing)),
        _ => None,
    });
    revivals
        .map(|(id, timing)| {
            let row = case.rows.iter().find(|row| row.id == id);
            let class = row.map_or(NoticeClass::Courtesy, |row| row.class);
            let owed = copies(class, &case.recipients, |r| suppressed.forbids(class, &r.address));
            Revival { id, timing, owed }
        })
        .collect()
}

/// The latest copy to each address: by notice and recipient key.
async fn present_copies(connection: &mut PgConnection, notices: &[Uuid]) -> Result<HashMap<(Uuid, String), Uuid>> {
    let rows = sqlx::query!(
        "SELECT DISTINCT ON (notice_id, recipient_key) id, notice_id, recipient_key FROM deliveries
         WHERE notice_id = ANY ($1) ORDER BY notice_id, recipient_key, copy DESC",
        notices,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| ((row.notice_id, row.recipient_key), row.id)).collect())
}

/// Makes the notices owed again that are still as they were judged; says which those are.
async fn clear_superseded(connection: &mut PgConnection, revivals: &[Revival<'_>], hold: bool) -> Result<Vec<Uuid>> {
    let ids: Vec<Uuid> = revivals.iter().map(|revival| revival.id).collect();
    let due_ons: Vec<NaiveDate> = revivals.iter().map(|revival| revival.timing.due_on).collect();
    let send_bys: Vec<NaiveDate> = revivals.iter().map(|revival| revival.timing.send_by).collect();
    let forward: Vec<bool> = revivals.iter().map(|revival| revival.timing.brought_forward).collect();
    let reason = hold.then_some(ReasonCode::ClaimLimit);
    // The state is what the deliveries make of it right after; pending keeps the constraints meanwhile.
    let revived = sqlx::query_scalar!(
        "UPDATE notices n
         SET superseded_at = NULL, reason_code = $5, reason = $6, due_on = again.due_on, send_by = again.send_by,
             brought_forward = again.forward, state = 'pending'
         FROM unnest($1::uuid[], $2::date[], $3::date[], $4::bool[]) AS again (id, due_on, send_by, forward)
         WHERE n.id = again.id AND n.superseded_at IS NOT NULL
           AND n.state IN ('superseded', 'pending', 'held', 'ambiguous')
         RETURNING n.id",
        &ids,
        &due_ons,
        &send_bys,
        &forward,
        reason.map(ReasonCode::as_str),
        reason.map(ReasonCode::sentence),
    )
    .fetch_all(connection)
    .await?;
    Ok(revived)
}

async fn wake_deliveries(
    connection: &mut PgConnection,
    deliveries: &[Uuid],
    hold: bool,
    not_before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE deliveries
         SET state = CASE WHEN $2 THEN 'held' ELSE 'pending' END,
             reason_code = CASE WHEN $2 THEN 'claim_limit' END,
             next_attempt_at = greatest(next_attempt_at, $3), updated_at = $4
         WHERE id = ANY ($1) AND state IN ('superseded', 'suppressed')",
        deliveries,
        hold,
        not_before,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn suppress_deliveries(connection: &mut PgConnection, deliveries: &[Uuid], now: DateTime<Utc>) -> Result<()> {
    sqlx::query!(
        "UPDATE deliveries SET state = 'suppressed', reason_code = 'suppressed', updated_at = $2
         WHERE id = ANY ($1) AND state = 'superseded'",
        deliveries,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn set_send_by(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    sqlx::query!(
        "UPDATE deliveries d SET send_by = n.send_by FROM notices n
         WHERE n.id = ANY ($1) AND d.notice_id = n.id AND d.state IN ('pending', 'held', 'superseded')",
        notices,
    )
    .execute(connection)
    .await?;
    Ok(())
}
