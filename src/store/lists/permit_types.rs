//! Permit types as they are shown and written whole.

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};

use crate::{
    domain::{permit::PermitTypeCode, schedule::Schedule},
    store::{
        Result, StoreError,
        changes::{ChangeRules, count_due, reschedule},
        claims::Counts,
        lists::step_effects::{StepEffect, foresee_steps},
        permit_types::{create_permit_type, load_schedules, lock_schedules},
    },
};

/// A permit type with its schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeRow {
    pub code: String,
    pub name: String,
    pub renewal_url: Option<String>,
    pub office_contact: Option<String>,
    pub grace_days: i32,
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub schedule: Schedule,
}

/// What is written of a permit type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeData {
    pub name: String,
    pub renewal_url: Option<String>,
    pub office_contact: Option<String>,
    pub grace_days: i32,
    pub schedule: Schedule,
}

struct Row {
    code: String,
    name: String,
    renewal_url: Option<String>,
    office_contact: Option<String>,
    grace_days: i32,
    version: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl Row {
    fn with(self, schedule: Schedule) -> TypeRow {
        let Self { code, name, renewal_url, office_contact, grace_days, version, created_at, updated_at } = self;
        TypeRow { code, name, renewal_url, office_contact, grace_days, version, created_at, updated_at, schedule }
    }
}

/// Up to `limit` permit types after the one with the code `after`, by code.
pub async fn list_types(connection: &mut PgConnection, after: Option<&str>, limit: i64) -> Result<Vec<TypeRow>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT code, name, renewal_url, office_contact, grace_days, version, created_at, updated_at
         FROM permit_types WHERE $1::text IS NULL OR code > $1 ORDER BY code LIMIT $2",
        after,
        limit,
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut schedules = load_schedules(connection).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let schedule = schedules.remove(&row.code).unwrap_or_default();
            row.with(schedule)
        })
        .collect())
}

/// One permit type.
pub async fn read_type(connection: &mut PgConnection, code: &str) -> Result<TypeRow> {
    let row = sqlx::query_as!(
        Row,
        "SELECT code, name, renewal_url, office_contact, grace_days, version, created_at, updated_at
         FROM permit_types WHERE code = $1",
        code,
    );
    let row = row.fetch_optional(&mut *connection).await?.ok_or(StoreError::NotFound("permit type"))?;
    let schedule = load_schedules(connection).await?.remove(code).unwrap_or_default();
    Ok(row.with(schedule))
}

/// What the caller saw of a permit type before writing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// That there is none.
    None,
    /// Whatever is there.
    Any,
    /// This version.
    Version(i64),
}

/// What a change of a permit type means for notices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effects {
    /// Open notices that end.
    pub superseded: u64,
    /// Open notices that end because they are past their last day.
    pub skipped: u64,
    /// What a scan would make pending as things are.
    pub due_before: u64,
    /// What a scan would make pending after the change.
    pub due_after: u64,
    /// What has still to come and would not come as it does now.
    pub steps: Vec<StepEffect>,
}

/// What writing this would mean for notices: it is done, counted, and taken back.
pub async fn foresee_type(
    connection: &mut PgConnection,
    code: &PermitTypeCode,
    expected: Expected,
    data: &TypeData,
    rules: &ChangeRules<'_>,
) -> Result<Effects> {
    let mut transaction = connection.begin().await?;
    let due_before = count_due(&mut transaction, code.as_str(), rules).await?;
    let present = read_type(&mut transaction, code.as_str()).await?.schedule;
    let steps = foresee_steps(&mut transaction, code.as_str(), (&present, &data.schedule), rules.moment.today).await?;
    let (_, counts) = write_type(&mut transaction, code, expected, data, rules).await?;
    let due_after = count_due(&mut transaction, code.as_str(), rules).await?;
    transaction.rollback().await?;
    Ok(Effects { superseded: counts.superseded, skipped: counts.skipped, due_before, due_after, steps })
}

/// Writes a permit type over, or makes it if there was to be none. A change makes one version more. Says also what
/// became of open notices.
pub async fn write_type(
    connection: &mut PgConnection,
    code: &PermitTypeCode,
    expected: Expected,
    data: &TypeData,
    rules: &ChangeRules<'_>,
) -> Result<(Written, Counts)> {
    let mut transaction = connection.begin().await?;
    // Before everything else: who changes permits holds it too, and then waits for types that are being made.
    lock_schedules(&mut transaction).await?;
    let made =
        expected == Expected::None && create_permit_type(&mut transaction, code, &data.name, rules.moment.now).await?;
    let present = match read_type(&mut transaction, code.as_str()).await {
        // Neither made nor there: the name is another's.
        Err(StoreError::NotFound(_)) if expected == Expected::None => return Err(name_taken(&data.name)),
        present => present?,
    };
    match expected {
        Expected::None if !made => return Ok((Written::NeedsVersion, Counts::default())),
        Expected::Version(version) if version != present.version => {
            return Err(StoreError::Stale { present: present.version });
        }
        _ => {}
    }
    if is_same(&present, data) {
        transaction.commit().await?;
        return Ok((if made { Written::Made } else { Written::Changed }, Counts::default()));
    }
    describe(&mut transaction, code.as_str(), data, rules.moment.now).await?;
    let counts = if present.schedule == data.schedule {
        Counts::default()
    } else {
        reschedule(&mut transaction, code.as_str(), &data.schedule, rules).await?
    };
    let version = if made { 1 } else { present.version + 1 };
    sqlx::query!("UPDATE permit_types SET version = $2 WHERE code = $1", code.as_str(), version)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok((if made { Written::Made } else { Written::Changed }, counts))
}

/// How writing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is new.
    Made,
    /// It was there.
    Changed,
    /// It is there, and the caller does not say which version it has seen.
    NeedsVersion,
}

fn is_same(present: &TypeRow, data: &TypeData) -> bool {
    present.name == data.name
        && present.renewal_url == data.renewal_url
        && present.office_contact == data.office_contact
        && present.grace_days == data.grace_days
        && present.schedule == data.schedule
}

fn name_taken(name: &str) -> StoreError {
    StoreError::Invalid { field: "name", why: format!("the name {name:?} belongs to another permit type") }
}

async fn describe(connection: &mut PgConnection, code: &str, data: &TypeData, now: DateTime<Utc>) -> Result<()> {
    let described = sqlx::query!(
        "UPDATE permit_types SET name = $2, renewal_url = $3, office_contact = $4, grace_days = $5, updated_at = $6
         WHERE code = $1",
        code,
        data.name,
        data.renewal_url,
        data.office_contact,
        data.grace_days,
        now,
    )
    .execute(connection)
    .await;
    match described {
        Err(error) if crate::store::connect::violated(&error) == Some("permit_types_name_key") => {
            Err(name_taken(&data.name))
        }
        described => Ok(described.map(drop)?),
    }
}
