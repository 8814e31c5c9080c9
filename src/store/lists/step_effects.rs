//! What a change of a schedule takes from permits that have a step of it still to come.

use std::collections::HashMap;

use chrono::NaiveDate;
use sqlx::PgConnection;

use crate::{
    domain::{
        notice::{NoticeClass, NoticeType},
        schedule::{Schedule, Step},
    },
    store::Result,
};

/// Permits of one step are counted up to so many.
pub const COUNT_MAX: i64 = 10_000;

/// What becomes of a step that is owed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays, and is owed to nobody.
    SwitchedOff,
    /// It is not there any more.
    Removed,
    /// It falls due so many days after expiry, negative before.
    Moved { from: i32, to: i32 },
}

/// A step that would not come as it does now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEffect {
    pub notice_type: NoticeType,
    /// As it is now.
    pub class: NoticeClass,
    pub fate: Fate,
    /// Permits that have it still to come, at most [`COUNT_MAX`]; `None` of a confirmation, which has no day beforehand.
    pub permits: Option<i64>,
}

/// The steps that a change takes away or moves, and how many permits have each still to come.
pub(super) async fn foresee_steps(
    connection: &mut PgConnection,
    code: &str,
    (before, after): (&Schedule, &Schedule),
    today: NaiveDate,
) -> Result<Vec<StepEffect>> {
    let touched: Vec<(&Step, Fate)> =
        before.steps().iter().filter_map(|step| Some((step, fate(step, after)?))).collect();
    let (names, offsets): (Vec<String>, Vec<i32>) =
        touched.iter().filter_map(|(step, _)| Some((step.notice_type.as_str().to_owned(), step.offset_days?))).unzip();
    let counts = count_to_come(connection, code, &names, &offsets, today).await?;
    let effects = touched.into_iter().map(|(step, fate)| StepEffect {
        notice_type: step.notice_type.clone(),
        class: step.class,
        fate,
        permits: counts.get(step.notice_type.as_str()).copied(),
    });
    Ok(effects.collect())
}

/// `None` of a step that is owed to nobody now, or comes as before.
fn fate(step: &Step, after: &Schedule) -> Option<Fate> {
    if !step.enabled {
        return None;
    }
    let Some(then) = after.step(&step.notice_type) else { return Some(Fate::Removed) };
    match (step.offset_days, then.offset_days) {
        _ if !then.enabled => Some(Fate::SwitchedOff),
        (Some(from), Some(to)) if from != to => Some(Fate::Moved { from, to }),
        _ => None,
    }
}

/// How many permits are owed each of these steps today or later and have not had it yet.
async fn count_to_come(
    connection: &mut PgConnection,
    code: &str,
    names: &[String],
    offsets: &[i32],
    today: NaiveDate,
) -> Result<HashMap<String, i64>> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query!(
        r#"SELECT s.notice_type AS "notice_type!",
                  (SELECT count(*) FROM (
                       SELECT FROM permits p
                       WHERE p.permit_type = $1 AND p.status = 'active' AND p.archived_at IS NULL
                         AND p.expires_on >= $4::date - s.offset_days
                         AND (p.takes_effect_on IS NULL OR p.expires_on + s.offset_days > p.takes_effect_on)
                         AND (p.notices_from IS NULL OR p.expires_on + s.offset_days >= p.notices_from)
                         AND (s.offset_days <= 0 OR p.expires_on + s.offset_days >= p.period_since)
                         AND NOT EXISTS (SELECT FROM notices n
                                         WHERE n.permit_id = p.id AND n.expires_on = p.expires_on
                                           AND n.notice_type = s.notice_type AND n.state NOT IN ('pending', 'held'))
                       LIMIT $5) found) AS "permits!"
           FROM unnest($2::text[], $3::integer[]) AS s (notice_type, offset_days)"#,
        code,
        names,
        offsets,
        today,
        COUNT_MAX,
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().map(|row| (row.notice_type, row.permits)).collect())
}
