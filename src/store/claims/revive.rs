//! Reviving: a notice that was superseded because the permit changed is owed again.
//!
//! Unsent copies to addresses still on the permit become pending, addresses without a copy get one; attempts
//! and Message-IDs stay. A copy that was in flight is left to its sender, and stays what it became. What was held, by a
//! person or by the brake or because the memory went back, comes back held for that.

use std::collections::{HashMap, HashSet};

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
    case: &'c Case,
    timing: Timing,
    owed: Vec<Owed<'c>>,
}

/// What was revived.
#[derive(Default)]
pub(super) struct Revived {
    pub counts: Counts,
    /// Notices of which a copy was handed over, or may have been, and which have no copy to an address that is owed one.
    /// With the reason for which those are held, if they are.
    pub half_served: HashMap<Uuid, Option<ReasonCode>>,
}

/// Revives every notice that the actions say is owed again.
pub(super) async fn write(
    connection: &mut PgConnection,
    _: &Authority,
    judged: &[Judged<'_>],
    suppressed: &Suppressed,
    writing: Writing,
) -> Result<Revived> {
    let revivals: Vec<Revival<'_>> = judged
        .iter()
        .flat_map(|judged| wanted(judged, suppressed))
        .filter(|revival| !revival.owed.is_empty())
        .collect();
    if revivals.is_empty() {
        return Ok(Revived::default());
    }
    let ids: Vec<Uuid> = revivals.iter().map(|revival| revival.id).collect();
    let rows: Vec<Uuid> = revivals.iter().flat_map(|revival| &revival.case.rows).map(|row| row.id).collect();
    // With those beside them, which may be looked at later.
    lock_notices(connection, &rows).await?;
    lock_deliveries(connection, &rows).await?;
    let before = held_before(connection, &ids).await?;
    let ids = clear_superseded(connection, &revivals, &before, writing).await?;
    let (present, begun) = present_copies(connection, &ids).await?;
    let mut awake: HashMap<Option<ReasonCode>, Vec<Uuid>> = HashMap::new();
    let mut suppressed_now = Vec::new();
    let mut missing = DeliveryColumns::default();
    let mut half_served = HashMap::new();
    for revival in revivals.iter().filter(|revival| ids.contains(&revival.id)) {
        let hold = before.get(&revival.id).copied().or(writing.hold);
        for copy in &revival.owed {
            match present.get(&(revival.id, copy.recipient_key())) {
                Some(id) if matches!(copy, Owed::Suppressed(_)) => suppressed_now.push(*id),
                Some(id) => awake.entry(hold).or_default().push(*id),
                // A copy to a former address may serve the role: who is without one, `follow_addresses` knows.
                None if begun.contains(&revival.id) => _ = half_served.insert(revival.id, hold),
                None => missing.push(revival.id, revival.timing.send_by, copy, hold),
            }
        }
    }
    for (hold, copies) in &awake {
        wake_deliveries(connection, copies, *hold, writing).await?;
    }
    suppress_deliveries(connection, &suppressed_now, writing.moment.now).await?;
    set_send_by(connection, &ids).await?;
    insert_deliveries(connection, missing, writing.moment.now, writing.not_before).await?;
    refresh_states(connection, &ids).await?;
    let revived = ids.len() as u64;
    let held =
        if writing.hold.is_some() { revived } else { ids.iter().filter(|id| before.contains_key(id)).count() as u64 };
    Ok(Revived { counts: Counts { revived, held, ..Counts::default() }, half_served })
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
            Revival { id, case, timing, owed }
        })
        .collect()
}

/// The latest copy to each address, by notice and recipient key; and the notices of which a copy was handed over, or
/// may have been.
async fn present_copies(
    connection: &mut PgConnection,
    notices: &[Uuid],
) -> Result<(HashMap<(Uuid, String), Uuid>, HashSet<Uuid>)> {
    let rows = sqlx::query!(
        r#"SELECT DISTINCT ON (notice_id, recipient_key) id, notice_id, recipient_key,
                  bool_or(state IN ('sending', 'sent', 'ambiguous')) OVER (PARTITION BY notice_id) AS "begun!"
           FROM deliveries WHERE notice_id = ANY ($1) ORDER BY notice_id, recipient_key, copy DESC"#,
        notices,
    )
    .fetch_all(connection)
    .await?;
    let begun = rows.iter().filter(|row| row.begun).map(|row| row.notice_id).collect();
    Ok((rows.into_iter().map(|row| ((row.notice_id, row.recipient_key), row.id)).collect(), begun))
}

/// What held each of the notices before it was superseded.
async fn held_before(connection: &mut PgConnection, notices: &[Uuid]) -> Result<HashMap<Uuid, ReasonCode>> {
    let rows = sqlx::query!(
        r#"SELECT id, CASE WHEN held_reason IS NULL THEN held_before ELSE 'by_person' END AS "held_by!"
           FROM notices WHERE id = ANY ($1) AND (held_reason IS NOT NULL OR held_before IS NOT NULL)"#,
        notices,
    );
    let rows = rows.fetch_all(connection).await?;
    rows.into_iter().map(|row| Ok((row.id, row.held_by.parse()?))).collect()
}

/// Makes the notices owed again that are still as they were judged; says which those are. What the brake holds belongs
/// to the scan or import that revived it, so that it is released with it; what was held before, to the one that held it.
async fn clear_superseded(
    connection: &mut PgConnection,
    revivals: &[Revival<'_>],
    before: &HashMap<Uuid, ReasonCode>,
    writing: Writing,
) -> Result<Vec<Uuid>> {
    let ids: Vec<Uuid> = revivals.iter().map(|revival| revival.id).collect();
    let due_ons: Vec<NaiveDate> = revivals.iter().map(|revival| revival.timing.due_on).collect();
    let send_bys: Vec<NaiveDate> = revivals.iter().map(|revival| revival.timing.send_by).collect();
    let forward: Vec<bool> = revivals.iter().map(|revival| revival.timing.brought_forward).collect();
    let holds: Vec<Option<ReasonCode>> = ids.iter().map(|id| before.get(id).copied().or(writing.hold)).collect();
    let codes: Vec<Option<&str>> = holds.iter().map(|hold| hold.map(ReasonCode::as_str)).collect();
    let sentences: Vec<Option<&str>> = holds.iter().map(|hold| hold.map(ReasonCode::sentence)).collect();
    let owned = writing.hold.is_some() && (writing.scan_id.is_some() || writing.import_id.is_some());
    // The state is what the deliveries make of it right after; pending keeps the constraints meanwhile.
    let revived = sqlx::query_scalar!(
        "UPDATE notices n
         SET superseded_at = NULL, due_on = again.due_on, send_by = again.send_by,
             brought_forward = again.forward, state = 'pending', held_before = NULL,
             reason_code = again.code, reason = coalesce(n.held_reason, again.sentence),
             scan_id = CASE WHEN $7 AND n.held_before IS NULL THEN $8 ELSE n.scan_id END,
             import_id = CASE WHEN $7 AND n.held_before IS NULL THEN $9 ELSE n.import_id END
         FROM unnest($1::uuid[], $2::date[], $3::date[], $4::bool[], $5::text[], $6::text[])
              AS again (id, due_on, send_by, forward, code, sentence)
         WHERE n.id = again.id AND n.superseded_at IS NOT NULL
           AND n.state IN ('superseded', 'pending', 'held', 'ambiguous', 'sent', 'failed')
         RETURNING n.id",
        &ids,
        &due_ons,
        &send_bys,
        &forward,
        &codes as &[Option<&str>],
        &sentences as &[Option<&str>],
        owned,
        writing.scan_id,
        writing.import_id,
    );
    Ok(revived.fetch_all(connection).await?)
}

/// Makes copies that had ended unsent pending again, or held for the reason in `hold`.
pub(super) async fn wake_deliveries(
    connection: &mut PgConnection,
    deliveries: &[Uuid],
    hold: Option<ReasonCode>,
    writing: Writing,
) -> Result<()> {
    sqlx::query!(
        "UPDATE deliveries
         SET state = CASE WHEN $2::text IS NULL THEN 'pending' ELSE 'held' END, reason_code = $2,
             next_attempt_at = greatest(next_attempt_at, $3), updated_at = $4
         WHERE id = ANY ($1) AND state IN ('superseded', 'suppressed')",
        deliveries,
        hold.map(ReasonCode::as_str),
        writing.not_before,
        writing.moment.now,
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
