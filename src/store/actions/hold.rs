//! `hold`: a person keeps a pending notice back.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{ActionRules, Move, conclude, explain, move_copies, open::open, words};
use crate::{
    domain::{
        delivery::DeliveryState,
        notice::{NoticeState, ReasonCode},
    },
    store::Result,
};

/// Holds every pending copy until a person releases or cancels the notice; a change that supersedes it meanwhile and
/// ends again brings it back held. `reason`: 1 to 1000 characters.
pub async fn hold(
    connection: &mut PgConnection,
    notice: Uuid,
    reason: &str,
    rules: &ActionRules<'_>,
) -> Result<NoticeState> {
    let mut transaction = connection.begin().await?;
    let opened = open(&mut transaction, notice).await?;
    opened.refuse_in_flight()?;
    let pending = opened.in_states(&[DeliveryState::Pending]);
    if pending.is_empty() {
        return Err(opened.wrong_state("only a pending one can be held"));
    }
    let reason = words::reason(reason)?;
    let step = Move::to(DeliveryState::Held, Some(ReasonCode::ByPerson));
    move_copies(&mut transaction, &pending, step, rules.moment).await?;
    explain(&mut transaction, notice, Some(ReasonCode::ByPerson), Some(reason), Some(reason)).await?;
    let state = conclude(&mut transaction, notice).await?;
    transaction.commit().await?;
    tracing::info!(notice_key = opened.key, state = state.as_str(), "held by a person");
    Ok(state)
}
