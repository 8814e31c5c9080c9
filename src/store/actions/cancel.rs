//! `cancel`: a person decides that a notice is not sent, or that what failed of it is not tried again.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    ActionRules, Move, conclude, explain, move_copies,
    open::{Copy, open},
    words,
};
use crate::{
    domain::{
        delivery::DeliveryState,
        notice::{NoticeState, ReasonCode},
    },
    store::{Result, claims::cancel_former_copies},
};

/// Cancels every copy that is pending, held or failed; the notice is never owed again. `reason`: 1 to 1000
/// characters.
pub async fn cancel(
    connection: &mut PgConnection,
    notice: Uuid,
    reason: &str,
    rules: &ActionRules<'_>,
) -> Result<NoticeState> {
    let mut transaction = connection.begin().await?;
    let opened = open(&mut transaction, notice).await?;
    opened.refuse_in_flight()?;
    let unsent = opened.in_states(&[DeliveryState::Pending, DeliveryState::Held, DeliveryState::Failed]);
    if unsent.is_empty() {
        return Err(opened.wrong_state("only one that is pending, held or failed can be cancelled"));
    }
    let reason = words::reason(reason)?;
    let step = Move::to(DeliveryState::Cancelled, Some(ReasonCode::ByPerson));
    move_copies(&mut transaction, &unsent, step, rules.moment).await?;
    cancel_former_copies(&mut transaction, &[notice], rules.moment.now).await?;
    explain(&mut transaction, notice, Some(ReasonCode::ByPerson), Some(reason), None).await?;
    let state = conclude(&mut transaction, notice).await?;
    transaction.commit().await?;
    tracing::info!(notice_key = opened.key, state = state.as_str(), "cancelled by a person");
    Ok(state)
}

/// Cancels the copies that failed, and no other: the mail to an address that was corrected meanwhile, or the letter in
/// place of it, goes its way. `reason` as for [`cancel`].
pub async fn give_up(
    connection: &mut PgConnection,
    notice: Uuid,
    reason: &str,
    rules: &ActionRules<'_>,
) -> Result<NoticeState> {
    use DeliveryState as S;
    let mut transaction = connection.begin().await?;
    let opened = open(&mut transaction, notice).await?;
    let failed = opened.in_states(&[DeliveryState::Failed]);
    if failed.is_empty() {
        return Err(opened.wrong_state("no copy of it has failed"));
    }
    let reason = words::reason(reason)?;
    let step = Move::to(DeliveryState::Cancelled, Some(ReasonCode::ByPerson));
    move_copies(&mut transaction, &failed, step, rules.moment).await?;
    // Unless another copy goes on, has gone, failed in another way, or comes back with its notice, this is how the notice
    // ends, and why.
    let may_come_back = opened.superseded.is_some();
    let is_over = |copy: &Copy| match copy.state {
        S::Superseded => !may_come_back,
        state => matches!(state, S::Failed | S::Cancelled | S::Skipped),
    };
    if opened.copies.iter().all(is_over) {
        cancel_former_copies(&mut transaction, &[notice], rules.moment.now).await?;
        explain(&mut transaction, notice, Some(ReasonCode::ByPerson), Some(reason), None).await?;
    }
    let state = conclude(&mut transaction, notice).await?;
    transaction.commit().await?;
    tracing::info!(notice_key = opened.key, state = state.as_str(), "what failed was given up by a person");
    Ok(state)
}
