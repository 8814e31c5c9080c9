//! `copies`: one more copy, to the same or another address, because a person asks for it.

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    ActionRules, conclude,
    open::{Opened, open},
    words,
};
use crate::{
    domain::{
        copies::LETTER_KEY,
        delivery::{Channel, DeliveryState},
        notice::{NoticeClass, NoticeState, ReasonCode},
        recipient::{EmailAddress, HOLDER, Recipient},
        timetable::{NotOwed, barred},
    },
    store::{
        Result, StoreError,
        cases::{Case, Hold, load_case},
        claims::refresh_states,
    },
};

/// Role of somebody who is not on the permit and is sent a copy by request.
const OTHER: &str = "copy";

/// A copy to be made.
pub(super) struct NewCopy<'n> {
    pub notice: Uuid,
    pub to: Option<&'n Recipient>,
    pub by_request: bool,
    pub state: DeliveryState,
    pub reason: Option<ReasonCode>,
    pub waits_until: DateTime<Utc>,
}

/// Adds one copy, with the next number for its address; says which.
pub(super) async fn insert_copy(connection: &mut PgConnection, copy: &NewCopy<'_>, now: DateTime<Utc>) -> Result<Uuid> {
    let key = copy.to.map_or_else(|| LETTER_KEY.to_owned(), |to| to.address.key());
    let channel = if copy.to.is_some() { Channel::Email } else { Channel::Letter };
    let id = Uuid::now_v7();
    sqlx::query!(
        "INSERT INTO deliveries (id, notice_id, copy, channel, recipient, recipient_key, recipient_name, role, language,
                                 by_request, state, reason_code, send_by, next_attempt_at, created_at, updated_at)
         SELECT $1, n.id, coalesce((SELECT max(copy) FROM deliveries WHERE notice_id = n.id AND recipient_key = $5), 0) + 1,
                $3, $4, $5, $6, $7, $8, $9, $10, $11, n.send_by, $12, $13, $13
         FROM notices n WHERE n.id = $2",
        id,
        copy.notice,
        channel.as_str(),
        copy.to.map(|to| to.address.to_string()),
        key,
        copy.to.map_or("", |to| &to.name),
        copy.to.map_or(HOLDER, |to| &to.role),
        copy.to.map_or("en", |to| &to.language),
        copy.by_request,
        copy.state.as_str(),
        copy.reason.map(ReasonCode::as_str),
        copy.waits_until,
        now,
    )
    .execute(connection)
    .await?;
    Ok(id)
}

/// Sends one more copy of a notice, whatever its state: to `recipient` (a well-formed address), or else to the
/// holder, by letter if a statutory notice has no address. `reason`: 1 to 1000 characters. Says the new delivery and
/// the notice's state. A copy that may not go now is recorded as what it ends as, with the reason; one of a notice
/// that is held, or waits for its day, is held or waits with it.
pub async fn send_copy(
    connection: &mut PgConnection,
    notice: Uuid,
    recipient: Option<&str>,
    reason: &str,
    rules: &ActionRules<'_>,
) -> Result<(Uuid, NoticeState)> {
    let mut transaction = connection.begin().await?;
    let opened = open(&mut transaction, notice).await?;
    let reason = words::reason(reason)?;
    let case = load_case(&mut transaction, opened.permit_id, Hold::Look).await?;
    let to = addressee(&opened, &case, recipient)?;
    let (state, code) = standing(&mut transaction, &opened, &case, to.as_ref(), rules).await?;
    let waits = opened.copies.iter().filter(|copy| copy.state == DeliveryState::Pending);
    let waits_until = waits.map(|copy| copy.next_attempt_at).min().unwrap_or_default().max(rules.moment.now);
    let copy = NewCopy { notice, to: to.as_ref(), by_request: true, state, reason: code, waits_until };
    let id = insert_copy(&mut transaction, &copy, rules.moment.now).await?;
    if state == DeliveryState::Pending {
        // First the state: one that ended must say why.
        refresh_states(&mut transaction, &[notice]).await?;
        say_why(&mut transaction, notice, reason).await?;
    }
    let state = conclude(&mut transaction, notice).await?;
    transaction.commit().await?;
    tracing::info!(notice_key = opened.key, state = state.as_str(), "one more copy was asked for");
    Ok((id, state))
}

/// Whom the copy goes to; `None` is a letter.
fn addressee(opened: &Opened, case: &Case, recipient: Option<&str>) -> Result<Option<Recipient>> {
    let invalid = |why: String| StoreError::Invalid { field: "recipient", why };
    let Some(text) = recipient else {
        let holder = case.recipients.iter().find(|recipient| recipient.role == HOLDER);
        if holder.is_none() && opened.class == NoticeClass::Courtesy {
            return Err(invalid("must be given: the permit has no address of its holder".to_owned()));
        }
        return Ok(holder.cloned());
    };
    let address: EmailAddress = text.parse().map_err(|error| invalid(format!("{error}")))?;
    let key = address.key();
    if let Some(known) = case.recipients.iter().find(|recipient| recipient.address.key() == key) {
        return Ok(Some(Recipient { address, ..known.clone() }));
    }
    let former = opened.copies.iter().rfind(|copy| copy.recipient_key == key);
    let language = opened.copies.first().map_or_else(|| "en".to_owned(), |copy| copy.language.clone());
    Ok(Some(match former {
        Some(copy) => Recipient {
            address,
            name: copy.recipient_name.clone(),
            role: copy.role.clone(),
            language: copy.language.clone(),
        },
        None => Recipient { address, name: String::new(), role: OTHER.to_owned(), language },
    }))
}

/// What the copy is from the start.
async fn standing(
    connection: &mut PgConnection,
    opened: &Opened,
    case: &Case,
    to: Option<&Recipient>,
    rules: &ActionRules<'_>,
) -> Result<(DeliveryState, Option<ReasonCode>)> {
    use DeliveryState as S;
    let superseded = opened.superseded.as_deref().map(str::parse).transpose()?;
    let barred = match barred(&case.standing, rules.moment.today) {
        Some(NotOwed::Archived) => Some(ReasonCode::Archived),
        Some(NotOwed::Paused(_)) => Some(ReasonCode::Paused),
        Some(_) => Some(ReasonCode::NotActive),
        None => None,
    };
    if let Some(reason) = superseded.or(barred) {
        return Ok((S::Superseded, Some(reason)));
    }
    if rules.moment.today > opened.send_by {
        return Ok((S::Skipped, Some(ReasonCode::TooLate)));
    }
    if let Some(to) = to
        && !suppressed_keys(connection, &[to.address.key()], opened.class).await?.is_empty()
    {
        return Ok((S::Suppressed, Some(ReasonCode::Suppressed)));
    }
    Ok(match opened.state {
        NoticeState::Held if opened.held_reason.is_some() => (S::Held, Some(ReasonCode::ByPerson)),
        NoticeState::Held => (S::Held, Some(opened.reason.unwrap_or(ReasonCode::ClaimLimit))),
        _ => (S::Pending, None),
    })
}

/// Which of these addresses must not be sent a notice of this class.
pub(super) async fn suppressed_keys(
    connection: &mut PgConnection,
    keys: &[String],
    class: NoticeClass,
) -> Result<Vec<String>> {
    let found = sqlx::query_scalar!(
        "SELECT DISTINCT address FROM suppressions WHERE address = ANY ($1) AND (class = 'all' OR $2)",
        keys,
        class == NoticeClass::Courtesy,
    );
    Ok(found.fetch_all(connection).await?)
}

/// The reason stands with the notice, and what had ended it before does not any more.
async fn say_why(connection: &mut PgConnection, notice: Uuid, reason: &str) -> Result<()> {
    sqlx::query!("UPDATE notices SET reason_code = NULL, reason = $2 WHERE id = $1", notice, reason)
        .execute(connection)
        .await?;
    Ok(())
}
