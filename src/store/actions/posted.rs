//! `posted`: a person brought a letter to the post.

use chrono::NaiveDate;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    ActionRules, Move, conclude, move_copies,
    open::{Copy, Opened, open},
    words,
};
use crate::{
    domain::{
        attempt::{Outcome, Transport},
        calendar::day_in,
        delivery::{Channel, DeliveryState},
        notice::NoticeState,
    },
    store::{Result, StoreError},
};

/// What was posted, by whom and when.
#[derive(Debug, Clone, Copy)]
pub struct Posting<'p> {
    /// Which letter; needed when several of the notice are pending.
    pub delivery: Option<Uuid>,
    /// The day, not after today and not before the notice was recorded.
    pub posted_on: NaiveDate,
    /// The post's number for it: 1 to 200 characters.
    pub tracking: Option<&'p str>,
    /// Who posted it: 1 to 200 characters.
    pub by: &'p str,
}

/// Makes a pending letter sent, with an accepted attempt whose response says who posted it, when, and the tracking
/// number.
pub async fn posted(
    connection: &mut PgConnection,
    notice: Uuid,
    posting: Posting<'_>,
    rules: &ActionRules<'_>,
) -> Result<NoticeState> {
    let mut transaction = connection.begin().await?;
    let opened = open(&mut transaction, notice).await?;
    let letter = choose(&opened, posting.delivery)?;
    let proof = proof(&opened, &posting, rules)?;
    insert_attempt(&mut transaction, &opened, letter, &proof, rules).await?;
    move_copies(&mut transaction, &[letter], Move::to(DeliveryState::Sent, None), rules.moment).await?;
    let state = conclude(&mut transaction, notice).await?;
    transaction.commit().await?;
    tracing::info!(notice_key = opened.key, state = state.as_str(), "a letter was posted");
    Ok(state)
}

/// Which pending letter is meant.
fn choose(opened: &Opened, delivery: Option<Uuid>) -> Result<&Copy> {
    let is_pending_letter = |copy: &Copy| copy.channel == Channel::Letter && copy.state == DeliveryState::Pending;
    if let Some(id) = delivery {
        let copy = opened.copies.iter().find(|copy| copy.id == id).ok_or(StoreError::NotFound("delivery"))?;
        if is_pending_letter(copy) {
            return Ok(copy);
        }
        let why = format!("the delivery ({}) is {}; only a pending letter can be posted", copy.channel, copy.state);
        return Err(StoreError::wrong_state(copy.state.as_str(), why));
    }
    let letters: Vec<&Copy> = opened.copies.iter().filter(|copy| is_pending_letter(copy)).collect();
    match letters[..] {
        [] => Err(opened.wrong_state("only one with a pending letter can be posted")),
        [one] => Ok(one),
        _ => Err(StoreError::Invalid {
            field: "delivery_id",
            why: format!("must be given: {} letters of the notice are pending", letters.len()),
        }),
    }
}

/// The proof in words, from input that is right.
fn proof(opened: &Opened, posting: &Posting<'_>, rules: &ActionRules<'_>) -> Result<String> {
    let today = rules.moment.today;
    let recorded = day_in(opened.created_at, rules.zone).min(today);
    if posting.posted_on > today || posting.posted_on < recorded {
        let why = format!("must be from {recorded}, when the notice was recorded, to today ({today})");
        return Err(StoreError::Invalid { field: "posted_on", why });
    }
    let (by, on) = (words::by(posting.by)?, posting.posted_on);
    Ok(match posting.tracking.map(words::tracking).transpose()? {
        Some(tracking) => format!("posted on {on} by {by}, tracking number {tracking}"),
        None => format!("posted on {on} by {by}"),
    })
}

async fn insert_attempt(
    connection: &mut PgConnection,
    opened: &Opened,
    letter: &Copy,
    proof: &str,
    rules: &ActionRules<'_>,
) -> Result<()> {
    // No process made it: the nil boot id is no one's.
    sqlx::query!(
        "INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, response, started_at,
                               finished_at)
         SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5, $6, $7, $8, $8 FROM attempts WHERE delivery_id = $2",
        Uuid::now_v7(),
        letter.id,
        opened.key,
        Uuid::nil(),
        Transport::Letter.as_str(),
        Outcome::Accepted.as_str(),
        proof,
        rules.moment.now,
    )
    .execute(connection)
    .await?;
    Ok(())
}
