//! Changes of one permit: create, correct, renew, archive, restore.
//!
//! Revoking, pausing and re-addressing are corrections: they write other fields and run the same way.

use chrono::NaiveDate;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{ChangeRules, Renewals, apply};
use crate::store::{
    Result, StoreError,
    cases::lock_permits,
    history::{PermitAction, record_change, record_creation},
    permit_types::keep_schedules,
    permits::{self, Permit, PermitData, Term, get_permit, name_taken},
};

/// Records a permit and what is owed of it at once.
pub async fn create(connection: &mut PgConnection, data: &PermitData, rules: &ChangeRules<'_>) -> Result<Permit> {
    data.check()?;
    let created = create_in_transaction(connection, data, rules).await;
    match created {
        Err(error) => Err(name_taken(connection, error).await),
        created => created,
    }
}

async fn create_in_transaction(
    connection: &mut PgConnection,
    data: &PermitData,
    rules: &ChangeRules<'_>,
) -> Result<Permit> {
    let id = Uuid::now_v7();
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    permits::insert_permit(&mut transaction, id, data, rules.moment.now, rules.moment.today).await?;
    record_creation(&mut transaction, id, rules.by, rules.moment.now).await?;
    apply(&mut transaction, &[id], &schedules, &Renewals::new(), rules).await?;
    let permit = get_permit(&mut transaction, id).await?;
    transaction.commit().await?;
    Ok(permit)
}

/// Locks and reads a permit that is about to change.
async fn open(connection: &mut PgConnection, id: Uuid, expected: Option<i64>) -> Result<Permit> {
    lock_permits(connection, &[id]).await?;
    let permit = get_permit(connection, id).await?;
    match expected {
        Some(version) if version != permit.version => Err(StoreError::Stale { present: permit.version }),
        _ => Ok(permit),
    }
}

/// Rewrites what `edit` changes of a permit: the same term, whatever its dates are now. Without a difference
/// nothing is written and the version stays. `expected` is the version that the caller saw, if it cares.
pub async fn correct(
    connection: &mut PgConnection,
    id: Uuid,
    expected: Option<i64>,
    edit: impl FnOnce(&mut PermitData) + Send,
    rules: &ChangeRules<'_>,
) -> Result<Permit> {
    let done = correct_in_transaction(connection, id, expected, edit, rules).await;
    match done {
        Err(error) => Err(name_taken(connection, error).await),
        done => done,
    }
}

async fn correct_in_transaction(
    connection: &mut PgConnection,
    id: Uuid,
    expected: Option<i64>,
    edit: impl FnOnce(&mut PermitData) + Send,
    rules: &ChangeRules<'_>,
) -> Result<Permit> {
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    let permit = open(&mut transaction, id, expected).await?;
    let mut data = permit.data.clone();
    edit(&mut data);
    if data == permit.data {
        return Ok(permit);
    }
    data.check()?;
    let mut term = permits::present_term(&mut transaction, id).await?;
    term.effective_on = data.effective_on;
    term.expires_on = data.expires_on;
    // The issue date belongs to the term only if it came with it.
    if term.number == 1 || term.issued_on.is_some() {
        term.issued_on = data.issued_on;
    }
    record_change(&mut transaction, id, PermitAction::Corrected, rules.by, rules.moment.now).await?;
    write_term(&mut transaction, id, &data, term, rules).await?;
    permits::update_term(&mut transaction, id, term).await?;
    if data.contacts != permit.data.contacts {
        permits::replace_contacts(&mut transaction, id, &data.contacts).await?;
    }
    apply(&mut transaction, &[id], &schedules, &Renewals::new(), rules).await?;
    let permit = get_permit(&mut transaction, id).await?;
    transaction.commit().await?;
    Ok(permit)
}

async fn write_term(
    connection: &mut PgConnection,
    id: Uuid,
    data: &PermitData,
    term: Term,
    rules: &ChangeRules<'_>,
) -> Result<()> {
    let since = permits::record_period(connection, id, data.expires_on, rules.moment.today).await?;
    let takes_effect_on = term.effective_on.or(term.issued_on);
    permits::update_permit(connection, id, data, takes_effect_on, since, rules.moment.now).await
}

/// Opens a new term, writes its confirmation, and supersedes what is open of the old one. Renewing to the date
/// it already has changes nothing, so that a renewal can be repeated safely.
pub async fn renew(
    connection: &mut PgConnection,
    id: Uuid,
    expected: Option<i64>,
    expires_on: NaiveDate,
    effective_on: Option<NaiveDate>,
    rules: &ChangeRules<'_>,
) -> Result<Permit> {
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    let permit = open(&mut transaction, id, expected).await?;
    if permit.archived_at.is_some() {
        return Err(StoreError::wrong_state("archived", "the permit is archived"));
    }
    let invalid = |why: String| Err(StoreError::Invalid { field: "expires_on", why });
    if expires_on < rules.moment.today {
        return invalid(format!("must be today ({}) or later", rules.moment.today));
    }
    if expires_on == permit.data.expires_on {
        return Ok(permit);
    }
    if expires_on < permit.data.expires_on {
        return Err(StoreError::NotLater { present: permit.data.expires_on });
    }
    let number = permits::present_term(&mut transaction, id).await?.number + 1;
    let term = Term { number, issued_on: None, effective_on, expires_on };
    let data = PermitData { effective_on, expires_on, ..permit.data };
    data.check()?;
    record_change(&mut transaction, id, PermitAction::Renewed, rules.by, rules.moment.now).await?;
    write_term(&mut transaction, id, &data, term, rules).await?;
    permits::insert_term(&mut transaction, id, term, rules.moment.now).await?;
    apply(&mut transaction, &[id], &schedules, &Renewals::from([id]), rules).await?;
    let permit = get_permit(&mut transaction, id).await?;
    transaction.commit().await?;
    Ok(permit)
}

/// Puts a permit away: nothing more is sent, its number stays taken. Archiving twice changes nothing.
pub async fn archive(
    connection: &mut PgConnection,
    id: Uuid,
    expected: Option<i64>,
    rules: &ChangeRules<'_>,
) -> Result<Permit> {
    set_archived(connection, id, expected, true, rules).await
}

/// Brings an archived permit back, and with it what is owed of it.
pub async fn restore(
    connection: &mut PgConnection,
    id: Uuid,
    expected: Option<i64>,
    rules: &ChangeRules<'_>,
) -> Result<Permit> {
    set_archived(connection, id, expected, false, rules).await
}

async fn set_archived(
    connection: &mut PgConnection,
    id: Uuid,
    expected: Option<i64>,
    archived: bool,
    rules: &ChangeRules<'_>,
) -> Result<Permit> {
    let mut transaction = connection.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    let permit = open(&mut transaction, id, expected).await?;
    if permit.archived_at.is_some() == archived {
        return Ok(permit);
    }
    let now = rules.moment.now;
    let action = if archived { PermitAction::Archived } else { PermitAction::Restored };
    record_change(&mut transaction, id, action, rules.by, now).await?;
    permits::set_archived(&mut transaction, id, archived.then_some(now), now).await?;
    apply(&mut transaction, &[id], &schedules, &Renewals::new(), rules).await?;
    let permit = get_permit(&mut transaction, id).await?;
    transaction.commit().await?;
    Ok(permit)
}
