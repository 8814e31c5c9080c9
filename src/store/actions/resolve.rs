//! `resolve`: somebody found out whether an ambiguous copy had been accepted.

use chrono::{SecondsFormat, TimeDelta};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    ActionRules, Move, conclude, move_copies,
    open::{Copy, Opened, open},
    words,
};
use crate::{
    domain::{
        attempt::{OWNER_LOST, REPLY_LIMIT, Resolution},
        delivery::{Channel, DeliveryState},
        notice::{NoticeState, ReasonCode},
    },
    store::{
        Result, StoreError,
        cases::{Case, Hold, is_on_permit, load_case, load_suppressed},
        claims::{Authority, Writing, follow_addresses, refresh_states},
        permit_types::keep_schedules,
    },
};

/// What was found out.
#[derive(Debug, Clone, Copy)]
pub struct Resolving<'r> {
    /// Which delivery; needed when several of the notice are ambiguous.
    pub delivery: Option<Uuid>,
    /// Whether it had been accepted.
    pub outcome: Resolution,
    /// How that is known: 1 to 1000 characters.
    pub reason: &'r str,
    /// Who found out: 1 to 200 characters.
    pub by: &'r str,
}

/// Writes the resolution beside the attempt's outcome. Delivered, the copy is sent; not delivered, it is pending and
/// goes through the gate like any other (held, if a person holds the notice), or superseded when the notice or its
/// address is no longer current. Not delivered is refused while the owner may still get the reply.
pub async fn resolve(
    connection: &mut PgConnection,
    notice: Uuid,
    resolving: Resolving<'_>,
    rules: &ActionRules<'_>,
) -> Result<NoticeState> {
    let mut transaction = connection.begin().await?;
    keep_schedules(&mut transaction).await?;
    let opened = open(&mut transaction, notice).await?;
    let copy = choose(&opened, resolving.delivery)?;
    if resolving.outcome == Resolution::NotDelivered
        && let Some(wait) = owner_may_wait(&mut transaction, copy.id).await?
    {
        return Err(too_early(wait, rules));
    }
    let words = (words::reason(resolving.reason)?, words::by(resolving.by)?);
    let state = resolve_locked(&mut transaction, &opened, copy, resolving.outcome, words, rules).await?;
    transaction.commit().await?;
    Ok(state)
}

/// Resolves one ambiguous copy of a notice that is locked with everything around it, while the schedules are kept.
pub(super) async fn resolve_locked(
    connection: &mut PgConnection,
    opened: &Opened,
    copy: &Copy,
    outcome: Resolution,
    (reason, by): (&str, &str),
    rules: &ActionRules<'_>,
) -> Result<NoticeState> {
    write_resolution(connection, copy.id, outcome, reason, by, rules).await?;
    let case = load_case(connection, opened.permit_id, Hold::Look).await?;
    let fate = after(opened, copy, outcome, &case)?;
    match fate {
        Fate::Sent => move_copies(connection, &[copy], Move::to(DeliveryState::Sent, None), rules.moment).await?,
        Fate::Ended(reason) => {
            let step = Move::to(DeliveryState::Superseded, Some(reason));
            move_copies(connection, &[copy], step, rules.moment).await?;
        }
        Fate::Goes => {
            let step = Move { waits_until: Some(rules.moment.now), ..Move::to(DeliveryState::Pending, None) };
            move_copies(connection, &[copy], step, rules.moment).await?;
            if opened.held_reason.is_some() {
                hold_too(connection, copy.id).await?;
            }
        }
    }
    if fate == Fate::Ended(ReasonCode::AddressChanged) {
        make_missing_copies(connection, opened, case, rules).await?;
    }
    let state = conclude(connection, opened.id).await?;
    tracing::info!(notice_key = opened.key, outcome = outcome.as_str(), state = state.as_str(), "resolved");
    Ok(state)
}

/// How long the lost owner of an ambiguous copy may still be in conversation with the server; `None`: not any more.
///
/// An owner that was only slow or stopped wrote its dot within half a lease of its last renewal, or never; since then
/// the server may take ten minutes to accept. To say before that nothing was delivered would be to send twice by our
/// own doing.
///
/// All of this runs in real time, so the row of the process is asked, by the database's clock: business time may have
/// been moved by another `CLOCK`, or stand still, and would then allow it too early or never. It is the last renewal
/// that counts and not the start of the attempt, for a body may be on its way for long under an owner that lives. One
/// that ended in order waited for its replies or dropped its connections.
pub(super) async fn owner_may_wait(connection: &mut PgConnection, delivery: Uuid) -> Result<Option<TimeDelta>> {
    let seconds = sqlx::query_scalar!(
        r#"SELECT ceil(extract(epoch FROM p.renewed_at + make_interval(secs => p.lease_seconds + $3::float8)
                                          - clock_timestamp()))::bigint AS "seconds!"
           FROM attempts a JOIN processes p ON p.boot_id = a.boot_id
           WHERE a.delivery_id = $1 AND a.outcome = 'ambiguous' AND a.reason = $2 AND a.resolution IS NULL
             AND p.ended_at IS NULL"#,
        delivery,
        OWNER_LOST,
        REPLY_LIMIT.as_secs_f64(),
    )
    .fetch_optional(connection)
    .await?;
    Ok(seconds.filter(|seconds| *seconds > 0).map(TimeDelta::seconds))
}

/// Says when in business time, as all other times are shown, and how long that is, which holds where it stands still.
fn too_early(wait: TimeDelta, rules: &ActionRules<'_>) -> StoreError {
    let from = (rules.moment.now + wait).to_rfc3339_opts(SecondsFormat::Secs, true);
    let minutes = (wait.num_seconds() + 59) / 60;
    let why = format!(
        "the process that was sending it may only be slow, and the mail server may still accept it; `not_delivered` \
         is possible from {from} on, in {minutes} min, and `delivered` at once"
    );
    StoreError::wrong_state(DeliveryState::Ambiguous.as_str(), why)
}

/// Which ambiguous copy is meant.
fn choose(opened: &Opened, delivery: Option<Uuid>) -> Result<&Copy> {
    let ambiguous = opened.in_states(&[DeliveryState::Ambiguous]);
    if let Some(id) = delivery {
        let copy = opened.copies.iter().find(|copy| copy.id == id).ok_or(StoreError::NotFound("delivery"))?;
        return match copy.state {
            DeliveryState::Ambiguous => Ok(copy),
            DeliveryState::Sending => Err(StoreError::BeingSent),
            other => {
                let why = format!("the delivery is {other}; only an ambiguous one can be resolved");
                Err(StoreError::wrong_state(other.as_str(), why))
            }
        };
    }
    match ambiguous[..] {
        [] => Err(opened.wrong_state("only an ambiguous one can be resolved")),
        [one] => Ok(one),
        _ => Err(StoreError::Invalid {
            field: "delivery_id",
            why: format!("must be given: {} deliveries of the notice are ambiguous", ambiguous.len()),
        }),
    }
}

async fn write_resolution(
    connection: &mut PgConnection,
    delivery: Uuid,
    outcome: Resolution,
    reason: &str,
    by: &str,
    rules: &ActionRules<'_>,
) -> Result<()> {
    let resolved = sqlx::query!(
        "UPDATE attempts SET resolution = $2, resolved_by = $3, resolution_reason = $4, resolved_at = $5
         WHERE delivery_id = $1 AND outcome = 'ambiguous' AND resolution IS NULL",
        delivery,
        outcome.as_str(),
        by,
        reason,
        rules.moment.now,
    )
    .execute(connection)
    .await?;
    if resolved.rows_affected() != 1 {
        let why = "the delivery has no ambiguous attempt that is open to a resolution";
        return Err(StoreError::wrong_state("resolved", why));
    }
    Ok(())
}

/// What becomes of the copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    Goes,
    Ended(ReasonCode),
}

fn after(opened: &Opened, copy: &Copy, outcome: Resolution, case: &Case) -> Result<Fate> {
    if outcome == Resolution::Delivered {
        return Ok(Fate::Sent);
    }
    if let Some(reason) = &opened.superseded {
        return Ok(Fate::Ended(reason.parse()?));
    }
    let addresses: Vec<String> = case.recipients.iter().map(|recipient| recipient.address.to_string()).collect();
    let stays =
        copy.channel == Channel::Letter || copy.by_request || is_on_permit(&copy.recipient_key, None, &addresses);
    Ok(if stays { Fate::Goes } else { Fate::Ended(ReasonCode::AddressChanged) })
}

/// A person holds the notice: what becomes pending joins what is held.
async fn hold_too(connection: &mut PgConnection, delivery: Uuid) -> Result<()> {
    debug_assert!(DeliveryState::Pending.may_become(DeliveryState::Held));
    sqlx::query!(
        "UPDATE deliveries SET state = 'held', reason_code = $2 WHERE id = $1 AND state = 'pending'",
        delivery,
        ReasonCode::ByPerson.as_str(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A copy to a former address ended unsent: the present address gets one.
async fn make_missing_copies(
    connection: &mut PgConnection,
    opened: &Opened,
    case: Case,
    rules: &ActionRules<'_>,
) -> Result<()> {
    refresh_states(connection, &[opened.id]).await?;
    let cases = [case];
    let suppressed = load_suppressed(connection, &cases).await?;
    let writing =
        Writing { moment: rules.moment, not_before: rules.moment.now, hold: None, scan_id: None, import_id: None };
    follow_addresses(connection, &Authority::new(), &cases, &suppressed, writing).await
}
