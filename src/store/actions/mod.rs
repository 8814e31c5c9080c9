//! What a person can do with notices: one file per action, each in one transaction.
//!
//! 1. The permit is locked, then its notices and their deliveries, each by id, as a change does.
//! 2. The state is checked, then the input: [`StoreError::WrongState`](super::StoreError::WrongState) names the
//!    present state, [`StoreError::BeingSent`](super::StoreError::BeingSent) says that a copy is in flight, and
//!    [`StoreError::Invalid`](super::StoreError::Invalid) names a field.
//! 3. Deliveries go only where [`DeliveryState::may_become`] lets them, and the notice's state follows.
//!
//! An id that does not exist is [`StoreError::NotFound`](super::StoreError::NotFound).

mod advance;
mod cancel;
mod copies;
mod hold;
mod judging;
mod open;
mod policy;
mod posted;
mod release;
mod release_many;
mod resolve;
mod retry;
mod words;

pub use advance::{Beforehand, write_in_advance};
pub use cancel::{cancel, give_up};
pub use copies::send_copy;
pub use hold::hold;
pub use policy::resolve_by_policy;
pub use posted::{Posting, posted};
pub use release::release;
pub use release_many::{HeldBy, ReleaseProgress, Released, count_held, release_held};
pub use resolve::{Resolving, resolve};
pub use retry::retry;
pub use words::reason as check_reason;

use chrono_tz::Tz;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Moment, Result, StoreError, claims::refresh_states, scans::notify_dispatchers};
use crate::domain::{
    delivery::DeliveryState,
    notice::{NoticeState, ReasonCode},
    window::SendWindow,
};

/// When and by which rules a person acts.
#[derive(Debug, Clone, Copy)]
pub struct ActionRules<'r> {
    /// When, and which day counts as today.
    pub moment: Moment,
    /// When mail may go.
    pub window: Option<&'r SendWindow>,
    /// The office's zone, in which days begin.
    pub zone: Tz,
}

/// Moves copies to another state; their leases end with it. `waits_until` moves their next attempt, if given;
/// `anew` gives them a new budget of attempts.
struct Move {
    to: DeliveryState,
    reason: Option<ReasonCode>,
    waits_until: Option<chrono::DateTime<chrono::Utc>>,
    anew: bool,
}

impl Move {
    fn to(to: DeliveryState, reason: Option<ReasonCode>) -> Self {
        Self { to, reason, waits_until: None, anew: false }
    }
}

async fn move_copies(connection: &mut PgConnection, copies: &[&open::Copy], step: Move, moment: Moment) -> Result<()> {
    if let Some(copy) = copies.iter().find(|copy| !copy.state.may_become(step.to)) {
        let why = format!("a {} copy cannot become {}", copy.state, step.to);
        return Err(StoreError::wrong_state(copy.state.as_str(), why));
    }
    let ids: Vec<Uuid> = copies.iter().map(|copy| copy.id).collect();
    sqlx::query!(
        "UPDATE deliveries
         SET state = $2, reason_code = $3, next_attempt_at = coalesce($4, next_attempt_at),
             attempt_count = CASE WHEN $5 THEN 0 ELSE attempt_count END,
             lost_owners = CASE WHEN $5 THEN 0 ELSE lost_owners END,
             lease_token = NULL, lease_owner = NULL, updated_at = $6
         WHERE id = ANY ($1)",
        &ids,
        step.to.as_str(),
        step.reason.map(ReasonCode::as_str),
        step.waits_until,
        step.anew,
        moment.now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes why a notice is as it is now, and whether a person holds it.
async fn explain(
    connection: &mut PgConnection,
    notice: Uuid,
    code: Option<ReasonCode>,
    reason: Option<&str>,
    held_reason: Option<&str>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE notices SET reason_code = $2, reason = $3, held_reason = $4 WHERE id = $1",
        notice,
        code.map(ReasonCode::as_str),
        reason,
        held_reason,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Lets the notice's state follow from its copies, tells dispatchers if something may go, and says the state.
async fn conclude(connection: &mut PgConnection, notice: Uuid) -> Result<NoticeState> {
    refresh_states(connection, &[notice]).await?;
    let state =
        sqlx::query_scalar!("SELECT state FROM notices WHERE id = $1", notice).fetch_one(&mut *connection).await?;
    let state: NoticeState = state.parse()?;
    if state == NoticeState::Pending {
        notify_dispatchers(connection).await?;
    }
    Ok(state)
}
