//! The one transaction in which a staged file becomes permits, terms and notices.

use chrono::{DateTime, Days, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    contradictions::{Contradictions, find_contradictions},
    crowded::{Crowded, find_crowded},
    foresee::{self, Foreseen, Messages},
    missing::{Missing, find_missing},
    plan::{self, Tally},
    record::{self, FileKept},
    write,
};
use crate::domain::calendar::day_in;
use crate::store::{
    Moment, Result, StoreError,
    changes::{ChangeRules, Renewals, apply_many},
    clock::database_now,
    history,
    office_log::{self, Deed, Subject},
    permit_types::{keep_schedules, load_schedules},
    scans::notify_dispatchers,
};

/// What is to be applied, and how.
#[derive(Debug, Clone, Copy)]
pub struct Job<'j> {
    /// The import, whose rows are staged.
    pub id: Uuid,
    /// The file.
    pub file: FileKept<'j>,
    /// How many rows are staged.
    pub rows: u64,
    /// Business time of its start.
    pub at: DateTime<Utc>,
    /// What the database's clock showed then.
    pub began: DateTime<Utc>,
    /// The office's zone.
    pub zone: Tz,
    /// Names of the fields that the file has, and `contacts` if it has columns for them.
    pub given: &'j [String],
    /// Whether what is past is owed all the same, and renewals are confirmed.
    pub catch_up: bool,
    /// Whether the file calls itself complete, so that permits which it does not name are missing.
    pub complete: bool,
    /// Whether all is taken back at the end.
    pub dry_run: bool,
    /// In which windows, and up to which limit. When is found anew once nothing else has to be waited for.
    pub rules: &'j ChangeRules<'j>,
}

impl Job<'_> {
    /// Whether it matters what the database thinks how many rows there are.
    pub(super) fn is_large(&self) -> bool {
        self.rows >= MANY
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// What became of the permits.
    pub permits: Tally,
    /// Terms recorded that are not current.
    pub history_terms: u64,
    /// Rows that made nothing, because what they say of a term was known or another row of the file says it.
    pub repeated: u64,
    /// Permit numbers whose rows contradict each other.
    pub contradictions: Contradictions,
    /// Permit types recorded for the first time.
    pub types_created: u64,
    /// Notices made pending or held.
    pub notices_claimed: u64,
    /// The part of them that is held.
    pub held: u64,
    /// Of a dry run: what mail of the days to come the file changes.
    pub would_mail: Option<Foreseen>,
    /// Of a file that calls itself complete: the permits that it does not name.
    pub missing: Option<Missing>,
    /// Row and number of the first [`ARCHIVED_LISTED`] archived permits that the file names.
    pub archived: Vec<(u64, String)>,
    /// Permits with contacts of the file for which there is no room.
    pub crowded: Vec<Crowded>,
}

/// How the transaction ended.
#[derive(Debug)]
pub enum Commit {
    /// Recorded.
    Done(Applied),
    /// Taken back, as a dry run asks.
    DryRun(Applied),
    /// The commit was not answered; [`super::is_recorded`] knows.
    Unanswered(Applied, StoreError),
}

/// Key of the transaction lock that lets one import apply at a time.
const LOCK: i64 = 8_099_005_319_141_944_951;
/// From so many rows on an import is large.
const MANY: u64 = 1000;
/// How many archived permits are listed.
pub const ARCHIVED_LISTED: u32 = 1000;
/// How often the transaction is begun anew because somebody else was in the way.
const TRIES: usize = 5;

/// Applies what is staged. `report` makes the report that is recorded; `waits` hears when another import is waited for,
/// and when no longer.
pub async fn apply(
    connection: &mut PgConnection,
    job: &Job<'_>,
    report: impl Fn(&Applied) -> Value,
    mut waits: impl FnMut(bool),
) -> Result<Commit> {
    let mut tries = 1;
    loop {
        match apply_once(connection, job, &report, &mut waits).await {
            Ok(Some(commit)) => {
                if let Commit::Done(applied) = &commit {
                    refresh_statistics(connection, applied).await;
                }
                return Ok(commit);
            }
            Ok(None) if tries < TRIES => {}
            Err(error) if tries < TRIES && was_in_the_way(&error) => {}
            Ok(None) => {
                let why = "the same permit numbers are being recorded elsewhere";
                return Err(StoreError::wrong_state("busy", why));
            }
            Err(error) => return Err(error),
        }
        tries += 1;
    }
}

/// After many new rows the next import or scan must not plan as if there were none; autovacuum comes later.
async fn refresh_statistics(connection: &mut PgConnection, applied: &Applied) {
    let Tally { created, renewed, updated, .. } = applied.permits;
    if created + renewed + updated < MANY {
        return;
    }
    let refreshed =
        sqlx::query!("ANALYZE permits, contacts, terms, expiry_periods, notices, deliveries").execute(connection).await;
    if let Err(error) = refreshed {
        tracing::warn!("the statistics of the tables could not be refreshed after an import: {error}");
    }
}

/// Whether others held what this needed, so that trying again may help.
pub fn was_in_the_way(error: &StoreError) -> bool {
    let StoreError::Database(sqlx::Error::Database(error)) = error else { return false };
    error.code().is_some_and(|code| matches!(code.as_ref(), "40001" | "40P01" | "55P03"))
}

/// None when somebody else took one of the numbers between the plan and the insert.
async fn apply_once(
    connection: &mut PgConnection,
    job: &Job<'_>,
    report: &impl Fn(&Applied) -> Value,
    waits: &mut impl FnMut(bool),
) -> Result<Option<Commit>> {
    let mut transaction = connection.begin().await?;
    wait_for_imports(&mut transaction, waits).await?;
    let moment = moment_now(&mut transaction, job).await?;
    let rules = ChangeRules { moment, ..job.rules.clone() };
    let job = &Job { rules: &rules, ..*job };
    let Some((mut applied, before)) = write_all(&mut transaction, job).await? else {
        transaction.rollback().await?;
        return Ok(None);
    };
    if job.complete {
        applied.missing = Some(find_missing(&mut transaction, job.id, job.rules.moment.today).await?);
    }
    if let Some(before) = before {
        let after = foresee::messages(&mut transaction, job).await?;
        applied.would_mail = Some(Foreseen::between(before, after));
        transaction.rollback().await?;
        return Ok(Some(Commit::DryRun(applied)));
    }
    record::finish_import(&mut transaction, job.id, job.began, &report(&applied)).await?;
    office_log::record(&mut *transaction, deed(job, &applied), job.rules.moment.now).await?;
    if applied.notices_claimed > 0 {
        notify_dispatchers(&mut transaction).await?;
    }
    Ok(Some(match transaction.commit().await {
        Ok(()) => Commit::Done(applied),
        Err(error) => Commit::Unanswered(applied, error.into()),
    }))
}

/// What the audit says of it: the changes of its permits are one line there.
fn deed<'j>(job: &'j Job<'_>, applied: &Applied) -> Deed<'j> {
    let Tally { created, renewed, updated, unchanged, .. } = applied.permits;
    let (claimed, held) = (applied.notices_claimed, applied.held);
    let after = json!({
        "permits created": created, "permits renewed": renewed, "permits updated": updated,
        "permits unchanged": unchanged, "notices claimed": claimed, "notices held": held,
    });
    Deed {
        by: job.rules.by,
        action: "imported",
        subject: Subject::Import,
        subject_id: Some(job.id),
        label: job.file.name,
        before: None,
        after: Some(after),
    }
}

/// One import applies at a time; a large one before this may take its minutes, everything else may not.
async fn wait_for_imports(connection: &mut PgConnection, waits: &mut impl FnMut(bool)) -> Result<()> {
    sqlx::query!(
        r#"SELECT set_config('lock_timeout', '30min', true) AS "patience!", set_config('work_mem', '64MB', true) AS "memory!""#
    )
    .fetch_one(&mut *connection)
    .await?;
    let free = sqlx::query_scalar!(r#"SELECT pg_try_advisory_xact_lock($1) AS "free!""#, LOCK);
    if !free.fetch_one(&mut *connection).await? {
        waits(true);
        sqlx::query!(r#"SELECT pg_advisory_xact_lock($1) IS NULL AS "locked!""#, LOCK)
            .fetch_one(&mut *connection)
            .await?;
        waits(false);
    }
    sqlx::query!(r#"SELECT set_config('lock_timeout', '30s', true) AS "patience!""#).fetch_one(connection).await?;
    Ok(())
}

/// What it is by now. The file may have been long in reading, and the wait for another import long too: what asks for
/// changes since then has to find those of this one, and midnight may have passed.
async fn moment_now(connection: &mut PgConnection, job: &Job<'_>) -> Result<Moment> {
    let now = job.at + (database_now(connection).await? - job.began);
    Ok(Moment { now, today: day_in(now, job.zone) })
}

/// What was done, and of a dry run what mail was to come before that.
async fn write_all(connection: &mut PgConnection, job: &Job<'_>) -> Result<Option<(Applied, Option<Messages>)>> {
    let (id, given, moment) = (job.id, job.given, job.rules.moment);
    keep_schedules(connection).await?;
    plan::analyze(connection).await?;
    plan::plan_permits(connection, id, given).await?;
    plan::analyze(connection).await?;
    plan::lock_planned(connection, id).await?;
    if plan::forget_stale(connection, id).await? > 0 {
        plan::plan_permits(connection, id, given).await?;
    }
    plan::lock_notices(connection, id).await?;
    let before = if job.dry_run { Some(foresee::messages(connection, job).await?) } else { None };
    let types_created = plan::create_types(connection, id, moment.now).await?;
    let permits = plan::tally(connection, id).await?;
    let archived = plan::list_archived(connection, id, ARCHIVED_LISTED).await?;
    let alone = job.rows == permits.all();
    let contradictions = if alone { Contradictions::default() } else { find_contradictions(connection, id).await? };
    record::insert_import(connection, id, job.file, job.rules.by, job.at).await?;
    let notices_from = (!job.catch_up).then_some(moment.today);
    write::allow_nested_loops(connection, !job.is_large()).await?;
    let created = write::insert_permits(connection, id, notices_from, moment.today, moment.now).await?;
    if created < permits.created {
        return Ok(None);
    }
    if job.is_large() {
        write::count_permits(connection, created).await?;
    }
    history::record_import_creations(connection, id, job.rules.by, moment.now).await?;
    history::record_import_changes(connection, id, job.rules.by, moment.now).await?;
    let terms = write::insert_terms(connection, id, moment.now).await?;
    write::insert_periods(connection, id, moment.today).await?;
    write::correct_terms(connection, id, given).await?;
    write::update_permits(connection, id, given, moment.now).await?;
    write::replace_contacts(connection, id).await?;
    let crowded = find_crowded(connection, id).await?;
    let (notices_claimed, held) = write_notices(connection, job).await?;
    let history_terms = terms - permits.created - permits.renewed;
    let applied = Applied {
        permits,
        history_terms,
        repeated: job.rows.saturating_sub(permits.all() + history_terms),
        contradictions,
        types_created,
        notices_claimed,
        held,
        archived,
        crowded,
        ..Applied::default()
    };
    Ok(Some((applied, before)))
}

/// Writes what becomes of notices; says how many are pending or held because of it, and how many of them held.
async fn write_notices(connection: &mut PgConnection, job: &Job<'_>) -> Result<(u64, u64)> {
    let today = job.rules.moment.today;
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    let horizon = job.rules.window.map(|window| window.next_window_day_on_or_after(tomorrow));
    let horizon = horizon.and_then(|day| day.pred_opt()).unwrap_or(today);
    let affected = write::find_affected(connection, job.id, job.catch_up, today, horizon).await?;
    write::allow_nested_loops(connection, true).await?;
    let permits: Vec<Uuid> = affected.iter().map(|one| one.permit_id).collect();
    let confirmed = affected.iter().filter(|one| job.catch_up && one.renewed);
    let renewals: Renewals = confirmed.map(|one| one.permit_id).collect();
    let schedules = load_schedules(&mut *connection).await?;
    let counts = apply_many(connection, &permits, &schedules, &renewals, job.rules).await?.counts;
    Ok((counts.claimed + counts.revived, counts.held))
}
