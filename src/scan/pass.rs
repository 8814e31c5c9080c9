//! One pass: take the lock, find what is owed, claim it in batches, record how it ended.
//!
//! 1. A dedicated connection takes the lock; if another has it, that is recorded and this ends.
//! 2. With the lock had, the pass asks again whether the expected time is met.
//! 3. If the memory went back, what is pending is held first ([`crate::store::memory`]), and then what is claimed.
//! 4. Candidates are found once; with a limit, what would become pending is counted before anything is written.
//! 5. Each batch is a transaction of its own on the lock's connection: lock the permits, judge what they are
//!    now, write. A pass that lost its lock lost its connection and can write nothing more.
//! 6. The row of the scan says how it ended; whoever takes the lock next marks a row that could not.

use futures_util::FutureExt;
use uuid::Uuid;

use super::{
    ScanReport, ScanRequest, ScanRules,
    telling::{Telling, alongside},
};
use crate::{
    domain::{
        notice::ReasonCode,
        owed::{Verdict, judge},
        schedule::Schedule,
    },
    outgoing::heartbeat::Beat,
    store::{
        PgConnection, Result, StoreError,
        cases::{Case, Hold, Suppressed, load_cases, load_suppressed},
        claims::{self, Counts, Judged, Writing, follow_addresses, mailable, makes_pending},
        clock::database_now,
        connect::{Purpose, connect, in_time, within},
        memory,
        owing::{Candidates, Sight, find_candidates},
        permit_types::{Schedules, keep_schedules, load_schedules},
        scan_lock::ScanLock,
        scans::{self, NewScan, ScanOutcome},
    },
    telemetry::{mask_addresses, metrics},
};

/// Permits judged and written in one transaction.
pub(super) const BATCH: usize = 1000;

/// Scans once, unless another does or the expected time is met.
pub async fn run_once(rules: &ScanRules, request: ScanRequest) -> Result<ScanReport> {
    run_announced(rules, request, |_| {}).await
}

/// The same; `announce` is told the id as soon as the scan is recorded as running.
pub async fn run_announced(
    rules: &ScanRules,
    request: ScanRequest,
    announce: impl FnOnce(Uuid) + Send,
) -> Result<ScanReport> {
    let report = match ScanLock::try_take(&rules.direct_url).await? {
        Some(mut lock) => {
            let mut telling = Telling::default();
            let report = scan_with_lock(rules, request, &mut lock, announce, &mut telling).await;
            lock.release().await;
            telling.end(rules).await;
            report?
        }
        None => record_held_elsewhere(rules, request).await?,
    };
    log(&report, request);
    Ok(report)
}

fn log(report: &ScanReport, request: ScanRequest) {
    let scheduled_for = request.scheduled_for.map(|at| at.to_rfc3339());
    let lock = if report.outcome == ScanOutcome::HeldElsewhere { "held_elsewhere" } else { "acquired" };
    let counts = report.counts;
    tracing::info!(
        scheduled_for,
        lock,
        outcome = report.outcome.as_str(),
        as_of = %report.as_of,
        claimed = counts.claimed,
        already_claimed = counts.already_claimed,
        revived = counts.revived,
        superseded = counts.superseded,
        skipped = counts.skipped,
        held = counts.held,
        "scan {}",
        report.outcome
    );
    metrics::scan_ended(report.outcome.as_str());
    metrics::notices_claimed(counts.claimed);
    if counts.held > 0 {
        tracing::warn!(
            held = counts.held,
            "{} notices are held: more was due at once than the limit allows, or the memory went back",
            counts.held
        );
    }
}

fn new_scan(rules: &ScanRules, request: ScanRequest, database_now: chrono::DateTime<chrono::Utc>) -> NewScan {
    let moment = rules.moment(database_now, request.as_of);
    let own_day = moment.today == rules.moment(database_now, None).today && request.as_of.is_none();
    NewScan {
        id: Uuid::now_v7(),
        scheduled_for: request.scheduled_for,
        trigger: request.trigger,
        moment,
        own_day,
        boot_id: rules.boot_id,
    }
}

async fn record_held_elsewhere(rules: &ScanRules, request: ScanRequest) -> Result<ScanReport> {
    let mut connection = connect(&rules.direct_url, Purpose::Work).await?;
    let recorded = async {
        let scan = new_scan(rules, request, database_now(&mut connection).await?);
        scans::record_try(&mut connection, &scan, ScanOutcome::HeldElsewhere).await?;
        Ok(report(&scan, ScanOutcome::HeldElsewhere, Counts::default()))
    };
    in_time(recorded).await
}

fn report(scan: &NewScan, outcome: ScanOutcome, counts: Counts) -> ScanReport {
    ScanReport { id: Some(scan.id), outcome, as_of: scan.moment.today, counts, dry_run: false, items: None }
}

async fn scan_with_lock<'r>(
    rules: &'r ScanRules,
    request: ScanRequest,
    lock: &mut ScanLock,
    announce: impl FnOnce(Uuid) + Send,
    telling: &mut Telling<'r>,
) -> Result<ScanReport> {
    let (scan, begun) = in_time(begin(rules, request, lock.connection())).await?;
    if !begun {
        return Ok(report(&scan, ScanOutcome::AlreadyDone, Counts::default()));
    }
    announce(scan.id);
    // A scan of another day proves nothing about today.
    let tells = |beat| scan.own_day.then_some((beat, scan.id));
    telling.start = tells(Beat::Started).map(|(beat, id)| rules.heartbeat.beat(beat, id).boxed());
    let done = match alongside(&mut telling.start, claim_all(rules, &scan, lock)).await {
        Ok(counts) => in_time(complete(rules, &scan, counts, lock.connection())).await.map(|()| counts),
        Err(error) => Err(error),
    };
    match done {
        Ok(counts) => {
            telling.end = tells(Beat::Completed);
            Ok(report(&scan, ScanOutcome::Completed, counts))
        }
        Err(error) => {
            record_failure(rules, &scan, &error.to_string()).await;
            // Whoever was asked to stop did not fail: another goes on.
            telling.end = tells(Beat::Failed).filter(|_| !matches!(error, StoreError::Stopping));
            Err(error)
        }
    }
}

/// Writes that the scan runs, or that its time is met already.
async fn begin(rules: &ScanRules, request: ScanRequest, connection: &mut PgConnection) -> Result<(NewScan, bool)> {
    let scan = new_scan(rules, request, database_now(&mut *connection).await?);
    scans::abandon_others(connection, scan.id, scan.moment.now).await?;
    if let Some(expected) = request.scheduled_for
        && scans::is_met(connection, expected, scan.moment.now).await?
    {
        scans::record_try(connection, &scan, ScanOutcome::AlreadyDone).await?;
        return Ok((scan, false));
    }
    scans::begin_scan(connection, &scan).await?;
    Ok((scan, true))
}

async fn complete(rules: &ScanRules, scan: &NewScan, counts: Counts, connection: &mut PgConnection) -> Result<()> {
    let ended = rules.moment(database_now(&mut *connection).await?, None).now;
    scans::finish_scan(connection, scan.id, ScanOutcome::Completed, counts, None, ended).await?;
    scans::notify_dispatchers(connection).await?;
    metrics::scan_succeeded(ended.timestamp());
    Ok(())
}

/// Writes that a scan failed, on a fresh connection: the lock's own may be what failed. If that fails too, the
/// next one to take the lock marks the row.
async fn record_failure(rules: &ScanRules, scan: &NewScan, error: &str) {
    let scheduled_for = scan.scheduled_for.map(|at| at.to_rfc3339());
    // What the database says may repeat a row.
    let error = &mask_addresses(error);
    tracing::error!(scheduled_for, lock = "acquired", outcome = "failed", "scan failed: {error}");
    metrics::scan_ended(ScanOutcome::Failed.as_str());
    let written = async {
        let mut connection = connect(&rules.direct_url, Purpose::Work).await?;
        let now = rules.moment(database_now(&mut connection).await?, None).now;
        let counts = Counts::default();
        scans::finish_scan(&mut connection, scan.id, ScanOutcome::Failed, counts, Some(error), now).await
    };
    if let Err(error) = in_time(written).await {
        tracing::warn!("the failure of the scan could not be recorded: {error}");
    }
}

async fn claim_all(rules: &ScanRules, scan: &NewScan, lock: &mut ScanLock) -> Result<Counts> {
    let (candidates, hold) = within(rules.patience, search(rules, scan, lock.connection())).await?;
    let mut counts = Counts { already_claimed: candidates.already, ..Counts::default() };
    for batch in candidates.permits.chunks(BATCH) {
        if rules.stop.is_cancelled() {
            return Err(StoreError::Stopping);
        }
        counts += within(rules.patience, claim_batch(rules, scan, lock, batch, hold)).await?;
    }
    for batch in candidates.unserved.chunks(BATCH) {
        within(rules.patience, serve_batch(rules, scan, lock, batch, hold)).await?;
    }
    Ok(counts)
}

/// Finds what may be owed, and why what is claimed of it is held, if it is.
async fn search(
    rules: &ScanRules,
    scan: &NewScan,
    connection: &mut PgConnection,
) -> Result<(Candidates, Option<ReasonCode>)> {
    if memory::went_back(connection).await? {
        memory::hold_pending(connection, scan.moment.now).await?;
    }
    let sight = sight(rules, scan, connection).await?;
    let candidates = find_candidates(connection, sight).await?;
    let hold = reason_to_hold(rules, scan, connection, &candidates.permits).await?;
    Ok((candidates, hold))
}

/// What a scan looks at, given what was looked at before.
pub(super) async fn sight(rules: &ScanRules, scan: &NewScan, connection: &mut PgConnection) -> Result<Sight> {
    let last = scans::last_completed_day(connection).await?;
    Ok(rules.sight(scan.moment.today, last))
}

/// Why what is claimed is held, if it is.
pub(super) async fn reason_to_hold(
    rules: &ScanRules,
    scan: &NewScan,
    connection: &mut PgConnection,
    permits: &[Uuid],
) -> Result<Option<ReasonCode>> {
    if memory::went_back(connection).await? {
        return Ok(Some(ReasonCode::MemoryWentBack));
    }
    let exceeds = exceeds_limit(rules, scan, connection, permits).await?;
    Ok(exceeds.then_some(ReasonCode::ClaimLimit))
}

/// Whether more would become pending than the limit allows; counts no further than that.
async fn exceeds_limit(
    rules: &ScanRules,
    scan: &NewScan,
    connection: &mut PgConnection,
    permits: &[Uuid],
) -> Result<bool> {
    if rules.claim_limit == 0 {
        return Ok(false);
    }
    let schedules = load_schedules(&mut *connection).await?;
    let mut wanted = 0;
    for batch in permits.chunks(BATCH) {
        let cases = load_cases(connection, batch, Hold::Look).await?;
        let suppressed = load_suppressed(connection, &cases).await?;
        for case in &cases {
            let actions = decide(rules, scan, case, &schedules, &suppressed).actions;
            wanted += actions.iter().filter(|action| makes_pending(case, action)).count() as u64;
        }
        if wanted > rules.claim_limit {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn decide(
    rules: &ScanRules,
    scan: &NewScan,
    case: &Case,
    schedules: &Schedules,
    suppressed: &Suppressed,
) -> Verdict {
    let nothing = Schedule::default();
    let schedule = schedules.get(&case.permit_type).unwrap_or(&nothing);
    let verdict = judge(&case.standing, schedule, &case.rows, scan.moment.today, rules.window.as_ref());
    Verdict { actions: mailable(case, verdict.actions, suppressed), already: verdict.already }
}

async fn claim_batch(
    rules: &ScanRules,
    scan: &NewScan,
    lock: &mut ScanLock,
    permits: &[Uuid],
    hold: Option<ReasonCode>,
) -> Result<Counts> {
    let (mut transaction, authority) = lock.begin().await?;
    let schedules = keep_schedules(&mut transaction).await?;
    let cases = load_cases(&mut transaction, permits, Hold::Share).await?;
    let suppressed = load_suppressed(&mut transaction, &cases).await?;
    let verdicts: Vec<Verdict> = cases.iter().map(|case| decide(rules, scan, case, &schedules, &suppressed)).collect();
    let judged: Vec<Judged<'_>> =
        cases.iter().zip(&verdicts).map(|(case, verdict)| Judged { case, actions: &verdict.actions }).collect();
    let now = rules.moment(database_now(&mut *transaction).await?, None).now;
    let writing = writing(scan, now, hold);
    let counts = claims::write(&mut transaction, authority, &judged, &suppressed, writing).await?;
    transaction.commit().await?;
    Ok(counts)
}

fn writing(scan: &NewScan, now: chrono::DateTime<chrono::Utc>, hold: Option<ReasonCode>) -> Writing {
    let moment = crate::store::Moment { now, today: scan.moment.today };
    Writing { moment, not_before: now, hold, scan_id: Some(scan.id), import_id: None }
}

/// Makes the copies that are missing because one to a former address ended unsent.
async fn serve_batch(
    rules: &ScanRules,
    scan: &NewScan,
    lock: &mut ScanLock,
    permits: &[Uuid],
    hold: Option<ReasonCode>,
) -> Result<()> {
    let (mut transaction, authority) = lock.begin().await?;
    // No copy may come to a step that is being removed.
    keep_schedules(&mut transaction).await?;
    let cases = load_cases(&mut transaction, permits, Hold::Share).await?;
    let suppressed = load_suppressed(&mut transaction, &cases).await?;
    let now = rules.moment(database_now(&mut *transaction).await?, None).now;
    follow_addresses(&mut transaction, authority, &cases, &suppressed, writing(scan, now, hold)).await?;
    transaction.commit().await?;
    Ok(())
}
