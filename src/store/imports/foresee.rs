//! What mail a file causes in the days to come, as far as it can be told inside the transaction that applies it.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{apply::Job, write};
use crate::{
    domain::{outlook::outlook, schedule::Schedule},
    store::{
        Result,
        cases::{Hold, load_cases, load_suppressed},
        permit_types::load_schedules,
    },
};

/// How many days are looked ahead, today included.
pub const DAYS_AHEAD: u64 = 30;
/// Permits judged at once.
const BATCH: usize = 1000;

/// Messages to permits of the import by the day from which they go, if nothing else changes. What is held is not
/// counted.
pub(super) async fn messages_by_day(connection: &mut PgConnection, job: &Job<'_>) -> Result<BTreeMap<NaiveDate, u64>> {
    let (today, window) = (job.rules.moment.today, job.rules.window);
    let last = today.checked_add_days(Days::new(DAYS_AHEAD - 1)).unwrap_or(today);
    // A step is brought forward by less than a week.
    let horizon = last.checked_add_days(Days::new(if window.is_some() { 7 } else { 0 })).unwrap_or(last);
    let affected = write::find_affected(connection, job.id, job.catch_up, today, horizon).await?;
    let permits: Vec<Uuid> = affected.iter().map(|one| one.permit_id).collect();
    let schedules = load_schedules(&mut *connection).await?;
    let nothing = Schedule::default();
    let mut days = BTreeMap::new();
    for batch in permits.chunks(BATCH) {
        let cases = load_cases(connection, batch, Hold::Look).await?;
        let suppressed = load_suppressed(connection, &cases).await?;
        for case in &cases {
            let schedule = schedules.get(&case.permit_type).unwrap_or(&nothing);
            for prospect in outlook(&case.standing, schedule, &case.rows, today, window) {
                let Some(day) = prospect.goes_on else { continue };
                let day = window.map_or(day, |window| window.next_window_day_on_or_after(day));
                let step = schedule.steps().iter().find(|step| step.notice_type == prospect.notice_type);
                let Some(step) = step.filter(|_| day <= last) else { continue };
                let mailed = case.recipients.iter().filter(|one| !suppressed.forbids(step.class, &one.address));
                *days.entry(day).or_default() += mailed.count() as u64;
            }
        }
    }
    days.retain(|_, messages| *messages > 0);
    Ok(days)
}
