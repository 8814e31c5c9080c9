//! `release`: what is held goes through section 3 as of this day. Still owed and in time, it becomes pending; else
//! it ends superseded or skipped, with the reason.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    ActionRules, conclude,
    judging::{self, goes_from, judge_as_open, refusal},
    open::{lock, read},
    words,
};
use crate::{
    domain::{delivery::DeliveryState, notice::NoticeState, owed::Action},
    store::{
        Result,
        cases::{Case, Hold, Suppressed, load_cases},
        claims::{Judged, refresh_states},
        permit_types::{Schedules, keep_schedules},
    },
};

/// Releases one notice, whoever held it. One that was written before its due day waits for that day. `reason`: 1 to
/// 1000 characters, if given.
pub async fn release(
    connection: &mut PgConnection,
    notice: Uuid,
    reason: Option<&str>,
    rules: &ActionRules<'_>,
) -> Result<NoticeState> {
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    let permits = lock(&mut transaction, &[notice]).await?;
    let opened = read(&mut transaction, notice).await?;
    if opened.in_states(&[DeliveryState::Held]).is_empty() {
        return Err(opened.wrong_state("only one that is held can be released"));
    }
    let reason = reason.map(words::reason).transpose()?;
    release_locked(&mut transaction, &permits, &HashSet::from([notice]), &schedules, reason, rules).await?;
    let state = conclude(&mut transaction, notice).await?;
    transaction.commit().await?;
    tracing::info!(notice_key = opened.key, state = state.as_str(), "released by a person");
    Ok(state)
}

/// Releases notices that are held and locked with everything around them.
pub(super) async fn release_locked(
    connection: &mut PgConnection,
    permits: &[Uuid],
    notices: &HashSet<Uuid>,
    schedules: &Schedules,
    reason: Option<&str>,
    rules: &ActionRules<'_>,
) -> Result<()> {
    let cases = load_cases(connection, permits, Hold::Look).await?;
    let actions: Vec<Vec<Action>> = cases.iter().map(|case| judge_as_open(case, schedules, notices, rules)).collect();
    let ids: Vec<Uuid> = notices.iter().copied().collect();
    // Before anything ends: what ends now and is owed again later is not held any more.
    forget_hold(connection, &ids).await?;
    let judged: Vec<Judged<'_>> = cases.iter().zip(&actions).map(|(case, actions)| Judged { case, actions }).collect();
    judging::write(connection, &judged, &Suppressed::default(), rules).await?;
    let (mut going, mut from) = (Vec::new(), Vec::new());
    for (case, actions) in cases.iter().zip(&actions) {
        for (id, at) in still_owed(case, actions, notices, schedules, rules) {
            going.push(id);
            from.push(at);
        }
    }
    wake(connection, &going, &from, reason, rules).await?;
    refresh_states(connection, &ids).await
}

/// Which of the permit's wanted notices go, and from when on.
fn still_owed<'c>(
    case: &'c Case,
    actions: &'c [Action],
    wanted: &'c HashSet<Uuid>,
    schedules: &'c Schedules,
    rules: &'c ActionRules<'_>,
) -> impl Iterator<Item = (Uuid, DateTime<Utc>)> + 'c {
    let rows = case.rows.iter().filter(|row| wanted.contains(&row.id) && row.superseded.is_none());
    rows.filter(|row| refusal(actions, row.id).is_none())
        .map(|row| (row.id, goes_from(case, schedules, &row.notice_type, rules)))
}

async fn forget_hold(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    sqlx::query!(
        "UPDATE notices SET held_reason = NULL, reason_code = NULL WHERE id = ANY ($1) AND superseded_at IS NULL",
        notices
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("UPDATE deliveries SET reason_code = NULL WHERE notice_id = ANY ($1) AND state = 'held'", notices)
        .execute(connection)
        .await?;
    Ok(())
}

/// Makes the held copies of notices pending, each from its time on, with a new budget of owners to lose.
async fn wake(
    connection: &mut PgConnection,
    notices: &[Uuid],
    from: &[DateTime<Utc>],
    reason: Option<&str>,
    rules: &ActionRules<'_>,
) -> Result<()> {
    debug_assert!(DeliveryState::Held.may_become(DeliveryState::Pending));
    sqlx::query!(
        "UPDATE deliveries d
         SET state = 'pending', reason_code = NULL, lost_owners = 0, updated_at = $3,
             next_attempt_at = greatest(d.next_attempt_at, released.at)
         FROM unnest($1::uuid[], $2::timestamptz[]) AS released (id, at)
         WHERE d.notice_id = released.id AND d.state = 'held'",
        notices,
        from,
        rules.moment.now,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("UPDATE notices SET reason_code = NULL, reason = $2 WHERE id = ANY ($1)", notices, reason)
        .execute(connection)
        .await?;
    Ok(())
}
