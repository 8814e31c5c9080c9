//! `AMBIGUOUS_POLICY` `resend-after`: what nobody has found out for so long counts as not delivered.

use chrono::TimeDelta;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    ActionRules,
    open::{lock, read},
    resolve::{owner_may_wait, resolve_locked},
};
use crate::{
    domain::{attempt::Resolution, delivery::DeliveryState},
    store::{Result, connect::in_time, permit_types::keep_schedules},
};

/// Attempts resolved in one transaction.
const BATCH: i64 = 100;
/// Who resolved, when nobody did.
const POLICY: &str = "policy";

/// Resolves as not delivered, by `policy`, every ambiguous attempt that ended more than `older_than` ago and may still
/// be sent again; says how many. What may not go any more stays ambiguous until somebody finds out, and so does what was
/// tried before the memory went back: how it ended may have been known and forgotten. What a lost owner may still be
/// waiting for is looked at again the next time.
pub async fn resolve_by_policy(
    connection: &mut PgConnection,
    older_than: TimeDelta,
    rules: &ActionRules<'_>,
) -> Result<u64> {
    let reason = format!("nobody found out within {} hours (AMBIGUOUS_POLICY)", older_than.num_hours());
    let mut resolved = 0;
    let mut after = Uuid::nil();
    loop {
        // Each step has its limit, and not all of them together: there may be many.
        let found = in_time(next(connection, older_than, after, rules)).await?;
        let Some(last) = found.last() else { return Ok(resolved) };
        after = *last;
        resolved += in_time(resolve_batch(connection, &found, older_than, &reason, rules)).await?;
    }
}

/// The next notices with such an attempt, in order of id.
async fn next(
    connection: &mut PgConnection,
    older_than: TimeDelta,
    after: Uuid,
    rules: &ActionRules<'_>,
) -> Result<Vec<Uuid>> {
    let notices = sqlx::query_scalar!(
        r#"SELECT DISTINCT n.id AS "id!"
           FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN notices n ON n.id = d.notice_id
           WHERE a.outcome = 'ambiguous' AND a.resolution IS NULL AND a.finished_at <= $1 AND d.state = 'ambiguous'
             AND n.superseded_at IS NULL AND n.send_by >= $2 AND n.id > $3
             AND NOT EXISTS (SELECT FROM memory_lapses l WHERE l.noticed_at >= a.started_at)
           ORDER BY 1 LIMIT $4"#,
        rules.moment.now - older_than,
        rules.moment.today,
        after,
        BATCH,
    );
    Ok(notices.fetch_all(connection).await?)
}

async fn resolve_batch(
    connection: &mut PgConnection,
    notices: &[Uuid],
    older_than: TimeDelta,
    reason: &str,
    rules: &ActionRules<'_>,
) -> Result<u64> {
    let mut transaction = connection.begin().await?;
    keep_schedules(&mut transaction).await?;
    lock(&mut transaction, notices).await?;
    let mut resolved = 0;
    for notice in notices {
        let opened = read(&mut transaction, *notice).await?;
        if opened.superseded.is_some() || opened.send_by < rules.moment.today {
            continue;
        }
        let old = still_unresolved(&mut transaction, *notice, older_than, rules).await?;
        for copy in opened.in_states(&[DeliveryState::Ambiguous]).into_iter().filter(|copy| old.contains(&copy.id)) {
            if owner_may_wait(&mut transaction, copy.id).await?.is_some() {
                continue;
            }
            let words = (reason, POLICY);
            resolve_locked(&mut transaction, &opened, copy, Resolution::NotDelivered, words, rules).await?;
            tracing::warn!(notice_key = opened.key, "an ambiguous message is sent again, as AMBIGUOUS_POLICY says");
            resolved += 1;
        }
    }
    transaction.commit().await?;
    Ok(resolved)
}

/// Which deliveries of a locked notice still have such an attempt.
async fn still_unresolved(
    connection: &mut PgConnection,
    notice: Uuid,
    older_than: TimeDelta,
    rules: &ActionRules<'_>,
) -> Result<Vec<Uuid>> {
    let deliveries = sqlx::query_scalar!(
        "SELECT a.delivery_id FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
         WHERE d.notice_id = $1 AND a.outcome = 'ambiguous' AND a.resolution IS NULL AND a.finished_at <= $2
           AND NOT EXISTS (SELECT FROM memory_lapses l WHERE l.noticed_at >= a.started_at)",
        notice,
        rules.moment.now - older_than,
    );
    Ok(deliveries.fetch_all(connection).await?)
}
