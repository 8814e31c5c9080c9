//! Permit types and their schedules.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};

use super::Result;
use crate::domain::{
    notice::NoticeType,
    permit::PermitTypeCode,
    schedule::{Schedule, Step},
};

/// A permit type without its schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermitType {
    /// Short name.
    pub code: String,
    /// Name for people.
    pub name: String,
    /// Where a holder renews.
    pub renewal_url: Option<String>,
    /// Whom a holder asks.
    pub office_contact: Option<String>,
    /// Days of grace after expiry.
    pub grace_days: i32,
}

/// Schedules by permit type code.
pub type Schedules = HashMap<String, Schedule>;

/// The code of the type with this code, or else with this name, whose case makes no difference.
pub async fn find_permit_type(executor: impl PgExecutor<'_>, text: &str) -> Result<Option<String>> {
    let code = sqlx::query_scalar!(
        "SELECT code FROM permit_types WHERE code = $1 OR lower(name) = lower($1) ORDER BY code = $1 DESC LIMIT 1",
        text
    );
    Ok(code.fetch_optional(executor).await?)
}

/// Every permit type, by name.
pub async fn list_permit_types(executor: impl PgExecutor<'_>) -> Result<Vec<PermitType>> {
    let types = sqlx::query_as!(
        PermitType,
        "SELECT code, name, renewal_url, office_contact, grace_days FROM permit_types ORDER BY lower(name)"
    );
    Ok(types.fetch_all(executor).await?)
}

/// Key of the transaction lock between those who judge by schedules (shared) and those who change them.
/// Taken before any permit is locked.
const LOCK: i64 = 8_099_005_319_141_944_950;

/// All schedules, which stay as they are until this transaction ends.
pub async fn keep_schedules(connection: &mut PgConnection) -> Result<Schedules> {
    sqlx::query!(r#"SELECT pg_advisory_xact_lock_shared($1) IS NULL AS "locked!""#, LOCK)
        .fetch_one(&mut *connection)
        .await?;
    load_schedules(connection).await
}

/// Waits until nobody judges by the schedules, and keeps others from it until this transaction ends.
pub(super) async fn lock_schedules(connection: &mut PgConnection) -> Result<()> {
    sqlx::query!(r#"SELECT pg_advisory_xact_lock($1) IS NULL AS "locked!""#, LOCK).fetch_one(connection).await?;
    Ok(())
}

/// All schedules, as they are at this moment; there are few permit types.
pub async fn load_schedules(executor: impl PgExecutor<'_>) -> Result<Schedules> {
    let rows = sqlx::query!(
        "SELECT t.code, s.notice_type AS \"notice_type?\", s.offset_days, s.class AS \"class?\",
                s.late_by_days AS \"late_by_days?\", s.enabled AS \"enabled?\"
         FROM permit_types t LEFT JOIN schedule_steps s ON s.permit_type = t.code
         ORDER BY t.code, s.position"
    )
    .fetch_all(executor)
    .await?;
    let mut steps: HashMap<String, Vec<Step>> = HashMap::new();
    for row in rows {
        let of_type = steps.entry(row.code).or_default();
        let (Some(notice_type), Some(class)) = (row.notice_type, row.class) else { continue };
        of_type.push(Step {
            notice_type: parse_notice_type(&notice_type)?,
            offset_days: row.offset_days,
            class: class.parse()?,
            late_by_days: row.late_by_days.unwrap_or_default(),
            enabled: row.enabled.unwrap_or_default(),
        });
    }
    let checked = steps.into_iter().map(|(code, steps)| {
        let schedule =
            Schedule::new(steps).map_err(|error| super::StoreError::Invalid { field: "steps", why: error.to_string() });
        Ok((code, schedule?))
    });
    checked.collect()
}

/// Reads a notice type from the database.
pub(super) fn parse_notice_type(text: &str) -> Result<NoticeType> {
    text.parse().map_err(|_| {
        super::StoreError::Unknown(crate::domain::UnknownWord {
            what: "notice type",
            found: text.to_owned(),
            allowed: "1 to 40 lower-case letters, digits and dashes".to_owned(),
        })
    })
}

/// Makes a permit type with the usual schedule, unless its code or name is taken. Says whether it was made.
pub async fn create_permit_type(
    connection: &mut PgConnection,
    code: &PermitTypeCode,
    name: &str,
    now: DateTime<Utc>,
) -> Result<bool> {
    let made = sqlx::query!(
        "INSERT INTO permit_types (code, name, created_at, updated_at) VALUES ($1, $2, $3, $3)
         ON CONFLICT DO NOTHING",
        code.as_str(),
        name,
        now,
    )
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if made == 1 {
        insert_steps(connection, code.as_str(), &Schedule::usual()).await?;
    }
    Ok(made == 1)
}

/// Changes what mails of a permit type say: where to renew, whom to ask, days of grace.
pub async fn describe_permit_type(
    executor: impl PgExecutor<'_>,
    code: &str,
    renewal_url: Option<&str>,
    office_contact: Option<&str>,
    grace_days: i32,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE permit_types SET renewal_url = $2, office_contact = $3, grace_days = $4, version = version + 1,
                updated_at = $5
         WHERE code = $1",
        code,
        renewal_url,
        office_contact,
        grace_days,
        now,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// Puts `schedule` in the place of a permit type's present one. What that makes of open notices is
/// [`super::changes::reschedule`]'s to do, in the same transaction.
pub(super) async fn replace_steps(
    connection: &mut PgConnection,
    code: &str,
    schedule: &Schedule,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!("DELETE FROM schedule_steps WHERE permit_type = $1", code).execute(&mut *connection).await?;
    insert_steps(connection, code, schedule).await?;
    sqlx::query!("UPDATE permit_types SET version = version + 1, updated_at = $2 WHERE code = $1", code, now)
        .execute(connection)
        .await?;
    Ok(())
}

/// Gives a permit type the steps of `schedule`; it has none yet.
pub(super) async fn insert_steps(connection: &mut PgConnection, code: &str, schedule: &Schedule) -> Result<()> {
    for (position, step) in schedule.steps().iter().enumerate() {
        sqlx::query!(
            "INSERT INTO schedule_steps (permit_type, position, notice_type, offset_days, class, late_by_days, enabled)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            code,
            position as i32,
            step.notice_type.as_str(),
            step.offset_days,
            step.class.as_str(),
            step.late_by_days,
            step.enabled,
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
