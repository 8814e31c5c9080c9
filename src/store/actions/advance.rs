//! `hold` and `cancel` in advance: the row of a step that is not yet due, written by a person.

use chrono::NaiveDate;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{ActionRules, words};
use crate::{
    domain::{
        copies::copies,
        notice::{NoticeClass, NoticeKey, NoticeState, NoticeType, ReasonCode},
        permit::PermitStatus,
        schedule::Schedule,
        timetable::{Slot, not_owed, timetable},
    },
    store::{
        Result, StoreError,
        cases::{Case, Hold, load_case, load_suppressed},
        claims::{DeliveryColumns, insert_deliveries},
        permit_types::keep_schedules,
    },
};

/// What is decided about a step before it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beforehand {
    /// Its notice is held. Released before its day, it waits for that day.
    Hold,
    /// Its notice is not sent.
    Cancel,
}

/// Writes the row of a dated step that is owed in the present period and not yet due; gives the notice's id. A step
/// that is due, not owed, or has a row is refused as [`StoreError::WrongState`], a name that is no dated step of the
/// permit's schedule as [`StoreError::Invalid`]. `reason`: 1 to 1000 characters.
pub async fn write_in_advance(
    connection: &mut PgConnection,
    permit: Uuid,
    notice_type: &str,
    action: Beforehand,
    reason: &str,
    rules: &ActionRules<'_>,
) -> Result<Uuid> {
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    let case = load_case(&mut transaction, permit, Hold::Change).await?;
    check_permit(&case)?;
    let nothing = Schedule::default();
    let schedule = schedules.get(&case.permit_type).unwrap_or(&nothing);
    let slots = timetable(schedule, case.standing.expires_on, rules.window);
    let slot = find_slot(&slots, notice_type)?;
    check_step(&case, slot, rules.moment.today)?;
    let reason = words::reason(reason)?;
    let new = New { id: Uuid::now_v7(), slot, action, reason };
    insert_notice(&mut transaction, &case, &new, rules).await?;
    if action == Beforehand::Hold {
        insert_copies(&mut transaction, case, &new, rules).await?;
    }
    transaction.commit().await?;
    Ok(new.id)
}

struct New<'n> {
    id: Uuid,
    slot: &'n Slot<'n>,
    action: Beforehand,
    reason: &'n str,
}

fn check_permit(case: &Case) -> Result<()> {
    let wrong =
        |state: &str| Err(StoreError::wrong_state(state, format!("the permit is {state}; nothing is owed of it")));
    if case.standing.archived {
        return wrong("archived");
    }
    match case.standing.status {
        PermitStatus::Active => Ok(()),
        other => wrong(other.as_str()),
    }
}

fn find_slot<'s>(slots: &'s [Slot<'s>], notice_type: &str) -> Result<&'s Slot<'s>> {
    let found = slots.iter().find(|slot| slot.step.notice_type.as_str() == notice_type);
    found.ok_or_else(|| {
        let known: Vec<&str> = slots.iter().map(|slot| slot.step.notice_type.as_str()).collect();
        let why = format!("must be a dated step of the permit's schedule that is switched on: {}", known.join(", "));
        StoreError::Invalid { field: "notice_type", why }
    })
}

fn check_step(case: &Case, slot: &Slot<'_>, today: NaiveDate) -> Result<()> {
    let wrong = |state: &str, why: String| Err(StoreError::wrong_state(state, why));
    let of_step = |notice_type: &NoticeType| *notice_type == slot.step.notice_type;
    let present = case.rows.iter().filter(|row| row.expires_on == case.standing.expires_on);
    if let Some(row) = present.into_iter().find(|row| of_step(&row.notice_type)) {
        return wrong(row.state.as_str(), format!("the step has a notice already, which is {}", row.state));
    }
    if let Some(reason) = not_owed(&case.standing, slot) {
        return wrong("not_owed", format!("the step is not owed: {reason}"));
    }
    if slot.first_day <= today {
        let why = format!("the step is due since {}; the next scan decides about it", slot.first_day);
        return wrong("due", why);
    }
    Ok(())
}

async fn insert_notice(
    connection: &mut PgConnection,
    case: &Case,
    new: &New<'_>,
    rules: &ActionRules<'_>,
) -> Result<()> {
    let (permit_id, expires_on) = (case.permit_id, case.standing.expires_on);
    let step = new.slot.step;
    let key = NoticeKey { permit_id, notice_type: step.notice_type.clone(), expires_on };
    let (state, held_reason) = match new.action {
        Beforehand::Hold => (NoticeState::Held, Some(new.reason)),
        Beforehand::Cancel => (NoticeState::Cancelled, None),
    };
    sqlx::query!(
        "INSERT INTO notices (id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by,
                              brought_forward, in_advance, state, reason_code, reason, held_reason, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, true, $10, $11, $12, $13, $14)",
        new.id,
        key.to_string(),
        permit_id,
        step.notice_type.as_str(),
        expires_on,
        step.class.as_str(),
        new.slot.due_on,
        new.slot.send_by,
        new.slot.is_brought_forward(),
        state.as_str(),
        ReasonCode::ByPerson.as_str(),
        new.reason,
        held_reason,
        rules.moment.now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_copies(
    connection: &mut PgConnection,
    case: Case,
    new: &New<'_>,
    rules: &ActionRules<'_>,
) -> Result<()> {
    let class: NoticeClass = new.slot.step.class;
    let cases = [case];
    let suppressed = load_suppressed(connection, &cases).await?;
    let owed = copies(class, &cases[0].recipients, |r| suppressed.forbids(class, &r.address));
    if owed.is_empty() {
        let why = format!("the notice would be skipped: {}", ReasonCode::NoAddress.sentence());
        return Err(StoreError::wrong_state(ReasonCode::NoAddress.as_str(), why));
    }
    let mut columns = DeliveryColumns::default();
    for copy in &owed {
        columns.push(new.id, new.slot.send_by, copy, Some(ReasonCode::ByPerson));
    }
    insert_deliveries(connection, columns, rules.moment.now, rules.moment.now).await
}
