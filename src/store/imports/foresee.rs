//! What a file changes about the mail of the days to come, as far as it can be told inside the transaction that applies
//! it: the mail to its permits is foreseen before they are written and after, and compared.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use chrono::{Days, NaiveDate};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{apply::Job, write};
use crate::{
    domain::{outlook::outlook, schedule::Schedule},
    store::{
        Result,
        cases::{Case, Hold, load_cases, load_suppressed},
        permit_types::load_schedules,
    },
};

/// How many days are looked ahead, today included.
pub const DAYS_AHEAD: u64 = 30;
/// Permits judged at once.
const BATCH: usize = 1000;

/// Messages of the days to come with their days, by a hash of what makes each one: permit, period, step and address. The
/// permits of a large file have many, so nothing else is kept of them.
pub(super) type Messages = HashMap<u64, NaiveDate>;

/// What a file changes about the mail of the days to come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Foreseen {
    /// Messages that go because of it, by the day from which they go.
    pub by_day: BTreeMap<NaiveDate, u64>,
    /// Messages that would have gone without it, and do not.
    pub no_longer: u64,
}

impl Foreseen {
    /// What differs. A message that goes on another day is one more and one less.
    pub(super) fn between(mut before: Messages, after: Messages) -> Self {
        let mut by_day = BTreeMap::new();
        for (message, day) in after {
            if before.get(&message) == Some(&day) {
                before.remove(&message);
            } else {
                *by_day.entry(day).or_default() += 1;
            }
        }
        Self { by_day, no_longer: before.len() as u64 }
    }
}

/// Messages to permits of the import that it changes, as things are now and if nothing else changes. What is held is not
/// counted.
pub(super) async fn messages(connection: &mut PgConnection, job: &Job<'_>) -> Result<Messages> {
    let (today, window) = (job.rules.moment.today, job.rules.window);
    let last = today.checked_add_days(Days::new(DAYS_AHEAD - 1)).unwrap_or(today);
    // A step is brought forward by less than a week.
    let horizon = last.checked_add_days(Days::new(if window.is_some() { 7 } else { 0 })).unwrap_or(last);
    write::allow_nested_loops(connection, !job.is_large()).await?;
    let affected = write::find_affected(connection, job.id, job.catch_up, today, horizon).await?;
    write::allow_nested_loops(connection, true).await?;
    let permits: Vec<Uuid> = affected.iter().map(|one| one.permit_id).collect();
    let schedules = load_schedules(&mut *connection).await?;
    let nothing = Schedule::default();
    let mut messages = Messages::new();
    for batch in permits.chunks(BATCH) {
        let cases = load_cases(connection, batch, Hold::Look).await?;
        let suppressed = load_suppressed(connection, &cases).await?;
        let reached = reached(connection, &cases).await?;
        for case in &cases {
            let schedule = schedules.get(&case.permit_type).unwrap_or(&nothing);
            for prospect in outlook(&case.standing, schedule, &case.rows, today, window) {
                let Some(day) = prospect.goes_on else { continue };
                let day = window.map_or(day, |window| window.next_window_day_on_or_after(day));
                let step = schedule.steps().iter().find(|step| step.notice_type == prospect.notice_type);
                let Some(step) = step.filter(|_| day <= last) else { continue };
                let row = prospect.row.map(|row| case.rows[row].id);
                let mailed = case.recipients.iter().filter(|one| !suppressed.forbids(step.class, &one.address));
                let keys = mailed.map(|one| one.address.key());
                let keys = keys.filter(|key| row.is_none_or(|row| !reached.contains(&(row, key.clone()))));
                let notice = (case.permit_id, case.standing.expires_on, &step.notice_type);
                messages.extend(keys.map(|key| (hash(&(notice, key)), day)));
            }
        }
    }
    Ok(messages)
}

/// Who has a copy of a notice that is open still, or may have, or cannot be reached: nothing more goes there.
async fn reached(connection: &mut PgConnection, cases: &[Case]) -> Result<HashSet<(Uuid, String)>> {
    let notices: Vec<Uuid> = cases.iter().flat_map(|case| case.rows.iter().map(|row| row.id)).collect();
    let rows = sqlx::query!(
        "SELECT notice_id, recipient_key FROM deliveries
         WHERE notice_id = ANY ($1) AND state NOT IN ('pending', 'held', 'superseded')",
        &notices,
    );
    Ok(rows.fetch_all(connection).await?.into_iter().map(|row| (row.notice_id, row.recipient_key)).collect())
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
