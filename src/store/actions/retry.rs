//! `retry`: what failed, bounced or was suppressed goes again.

use std::collections::{HashMap, HashSet};

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    ActionRules, Move, conclude,
    copies::{NewCopy, insert_copy, suppressed_keys},
    explain,
    judging::{self, judge_as_open, refusal},
    move_copies,
    open::{Copy, Opened, lock, read},
};
use crate::{
    domain::{
        delivery::{Channel, DeliveryState},
        notice::{NoticeState, ReasonCode},
        owed::Action,
        recipient::Recipient,
    },
    store::{
        Result, StoreError,
        cases::{Case, Hold, Suppressed, load_case},
        claims::Judged,
        permit_types::keep_schedules,
    },
};

/// Makes the copies that failed or were suppressed pending, with a new budget of attempts; one that was accepted
/// first and came back gets a new copy with the next number in its place. Left alone are copies whose address is
/// still suppressed or no longer on the permit. Refused as [`StoreError::WrongState`] when none is left, when the
/// notice is no longer owed, too late, or held by a person; the sentence says which.
pub async fn retry(connection: &mut PgConnection, notice: Uuid, rules: &ActionRules<'_>) -> Result<NoticeState> {
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    lock(&mut transaction, &[notice]).await?;
    let opened = read(&mut transaction, notice).await?;
    let ended = unsent(&opened);
    if ended.is_empty() {
        return Err(opened.wrong_state("only one that failed, bounced or was suppressed can be sent again"));
    }
    if opened.held_reason.is_some() {
        return Err(opened.wrong_state("a person holds it: release it first"));
    }
    let case = load_case(&mut transaction, opened.permit_id, Hold::Look).await?;
    let actions = judge_as_open(&case, &schedules, &HashSet::from([notice]), rules);
    if let Some(reason) = not_owed(&opened, &case, &actions)? {
        return Err(opened.wrong_state(&format!("it cannot be sent again: {}", reason.sentence())));
    }
    let may_go = reachable(&mut transaction, &opened, &case, ended).await?;
    // What was accepted once must not be sent again under the same Message-ID.
    let (anew, same): (Vec<&Copy>, Vec<&Copy>) =
        may_go.into_iter().partition(|copy| copy.state == DeliveryState::Bounced || copy.is_effective);
    let now = rules.moment.now;
    let step = Move { waits_until: Some(now), anew: true, ..Move::to(DeliveryState::Pending, None) };
    move_copies(&mut transaction, &same, step, rules.moment).await?;
    for copy in anew {
        copy_again(&mut transaction, &opened, copy, rules).await?;
    }
    explain(&mut transaction, notice, None, None, None).await?;
    judging::write(&mut transaction, &[Judged { case: &case, actions: &actions }], &Suppressed::default(), rules)
        .await?;
    let state = conclude(&mut transaction, notice).await?;
    transaction.commit().await?;
    tracing::info!(notice_key = opened.key, state = state.as_str(), "to be sent again, as a person decided");
    Ok(state)
}

/// Of the latest copy to each address, those that ended without reaching it.
fn unsent(opened: &Opened) -> Vec<&Copy> {
    let mut latest: HashMap<&str, &Copy> = HashMap::new();
    for copy in &opened.copies {
        let present = latest.entry(&copy.recipient_key).or_insert(copy);
        if copy.number > present.number {
            *present = copy;
        }
    }
    let mut unsent: Vec<&Copy> = latest
        .into_values()
        .filter(|copy| matches!(copy.state, DeliveryState::Failed | DeliveryState::Bounced | DeliveryState::Suppressed))
        .collect();
    unsent.sort_by_key(|copy| copy.id);
    unsent
}

/// Why the notice may not go any more.
fn not_owed(opened: &Opened, case: &Case, actions: &[Action]) -> Result<Option<ReasonCode>> {
    if let Some(reason) = &opened.superseded {
        return Ok(Some(reason.parse()?));
    }
    if !case.rows.iter().any(|row| row.id == opened.id) {
        return Ok(Some(ReasonCode::PeriodChanged));
    }
    Ok(refusal(actions, opened.id))
}

/// Of those copies, the ones whose address may be written to.
async fn reachable<'o>(
    connection: &mut PgConnection,
    opened: &'o Opened,
    case: &Case,
    copies: Vec<&'o Copy>,
) -> Result<Vec<&'o Copy>> {
    let keys: Vec<String> = copies.iter().map(|copy| copy.recipient_key.clone()).collect();
    let suppressed = suppressed_keys(connection, &keys, opened.class).await?;
    let on_permit: HashSet<String> = case.recipients.iter().map(|recipient| recipient.address.key()).collect();
    let is_known =
        |copy: &Copy| copy.channel == Channel::Letter || copy.by_request || on_permit.contains(&copy.recipient_key);
    let (known, left): (Vec<_>, Vec<_>) = copies.into_iter().partition(|copy| is_known(copy));
    let may_go: Vec<&Copy> = known.into_iter().filter(|copy| !suppressed.contains(&copy.recipient_key)).collect();
    if may_go.is_empty() {
        if left.is_empty() {
            // The notice may wait for something else, such as its letter.
            let why = "the address is suppressed; the notice can be sent there again when that is lifted";
            return Err(StoreError::wrong_state(DeliveryState::Suppressed.as_str(), why));
        }
        let why = ReasonCode::AddressChanged.sentence();
        let why = format!("the notice is {}; it cannot be sent again: {why}", opened.state);
        return Err(StoreError::wrong_state(opened.state.as_str(), why));
    }
    Ok(may_go)
}

async fn copy_again(
    connection: &mut PgConnection,
    opened: &Opened,
    copy: &Copy,
    rules: &ActionRules<'_>,
) -> Result<()> {
    let address = copy.recipient.as_deref().map(str::parse).transpose();
    let address = address.map_err(|error| StoreError::Invalid { field: "recipient", why: format!("{error}") })?;
    let to = address.map(|address| Recipient {
        address,
        name: copy.recipient_name.clone(),
        role: copy.role.clone(),
        language: copy.language.clone(),
    });
    let new = NewCopy {
        notice: opened.id,
        to: to.as_ref(),
        by_request: copy.by_request,
        state: DeliveryState::Pending,
        reason: None,
        waits_until: rules.moment.now,
    };
    insert_copy(connection, &new, rules.moment.now).await?;
    Ok(())
}
