//! What needs the operator at this moment.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use super::WatchRules;
use crate::{
    domain::{
        alarm::AlarmKind,
        calendar::{first_shown, plus_days, start_of_day},
        fingerprint::differences,
        window::SendWindow,
    },
    store::{
        Moment, PgConnection, Result,
        alarms::Condition,
        lists::problems::count_problems,
        memory,
        scans::missing_run,
        stock,
        watched::{self, LivingProcess},
    },
    telemetry::mask_addresses,
};

/// An outcome that nobody has found out for so long is an alarm.
const AMBIGUOUS_FOR: TimeDelta = TimeDelta::hours(1);
/// Replicas may have different versions for so long: that is how one is put in place of the other.
const UPGRADE: i64 = 600;
/// A mail has had its chance when it might have gone for so long.
const CHANCE: TimeDelta = TimeDelta::hours(1);

/// Everything that is wrong at `moment`.
pub async fn conditions(rules: &WatchRules, connection: &mut PgConnection, moment: Moment) -> Result<Vec<Condition>> {
    let mut found = Vec::new();
    scans(rules, connection, moment, &mut found).await?;
    mails(rules, connection, moment, &mut found).await?;
    people(connection, moment, &mut found).await?;
    service(rules, connection, moment, &mut found).await?;
    Ok(found)
}

fn condition(kind: AlarmKind, detail: impl Into<String>) -> Condition {
    Condition { kind, subject: String::new(), detail: detail.into() }
}

fn local(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%H:%M %Z on %-d %B %Y").to_string()
}

async fn scans(
    rules: &WatchRules,
    connection: &mut PgConnection,
    moment: Moment,
    found: &mut Vec<Condition>,
) -> Result<()> {
    if let Some(expected) = missing_run(connection, &rules.schedule, rules.grace, moment.now).await? {
        let late = (moment.now - expected).num_minutes();
        let at = local(expected, rules.zone);
        found.push(Condition {
            kind: AlarmKind::MissingRun,
            subject: expected.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            detail: format!("The scan expected at {at} has not completed; it is {late} minutes late."),
        });
    }
    if let Some(failed) = watched::failed_scan(connection).await? {
        let at = local(failed.started_at, rules.zone);
        let why = mask_addresses(&failed.error.unwrap_or_default());
        let what = if failed.outcome == "failed" { "failed" } else { "broke off" };
        found.push(condition(AlarmKind::FailedScan, format!("The scan that began at {at} {what}: {why}.")));
    }
    Ok(())
}

async fn mails(
    rules: &WatchRules,
    connection: &mut PgConnection,
    moment: Moment,
    found: &mut Vec<Condition>,
) -> Result<()> {
    if let Some((fault, _)) = watched::transport_fault(connection).await? {
        let said = mask_addresses(&fault);
        found.push(condition(AlarmKind::Transport, format!("Nothing is sent, but for a probe now and then: {said}")));
    }
    if let Some(since) = stock::oldest_pending(connection, moment.now).await?
        && waits_too_long(rules, since, moment.now)
    {
        let hours = (moment.now - since).num_hours();
        found.push(condition(AlarmKind::OldestPending, format!("A mail has been due for {hours} hours.")));
    }
    let kept = watched::count_kept_as_files(connection, moment).await?;
    // In a trial that is as it should be.
    let back = if rules.mails_everybody { watched::count_kept_back(connection, moment).await? } else { 0 };
    let unsent = [(kept, "only files"), (back, "kept back by a trial")].into_iter().filter(|(count, _)| *count > 0);
    let is = |count| if count == 1 { "is" } else { "are" };
    let unsent: Vec<String> =
        unsent.map(|(count, why)| format!("{} {} {why}", many(count, "mail"), is(count))).collect();
    if !unsent.is_empty() {
        let detail = format!("Of what could still be sent to its holder, {}.", unsent.join(", and "));
        found.push(condition(AlarmKind::FilesOnly, detail));
    }
    let late = watched::count_late_results(connection, moment.now).await?;
    if late > 0 {
        let detail =
            format!("The server took {} of which somebody had said that they had not arrived.", many(late, "mail"));
        found.push(condition(AlarmKind::LateResult, detail));
    }
    Ok(())
}

async fn people(connection: &mut PgConnection, moment: Moment, found: &mut Vec<Condition>) -> Result<()> {
    let counts = count_problems(connection).await?;
    if counts.failed > 0 {
        let detail = format!("{} failed for good or came back.", many(counts.failed, "mail"));
        found.push(condition(AlarmKind::DeadLetters, detail));
    }
    if counts.held > 0 {
        found.push(condition(AlarmKind::Held, format!("{} wait for a person.", many(counts.held, "notice"))));
    }
    let ambiguous = watched::count_ambiguous_before(connection, moment.now - AMBIGUOUS_FOR).await?;
    if ambiguous > 0 {
        let detail = format!("Of {} nobody has found out for more than an hour.", many(ambiguous, "mail"));
        found.push(condition(AlarmKind::Ambiguous, detail));
    }
    let unsent = watched::count_unsent_statutory(connection, moment.today).await?;
    if unsent > 0 {
        let detail = format!("{} owed by law passed their last day unsent.", many(unsent, "notice"));
        found.push(condition(AlarmKind::UnsentStatutory, detail));
    }
    Ok(())
}

/// Counts in the store end at a thousand or more.
fn many(count: i64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        2..1000 => format!("{count} {what}s"),
        _ => format!("1000 {what}s or more"),
    }
}

async fn service(
    rules: &WatchRules,
    connection: &mut PgConnection,
    _: Moment,
    found: &mut Vec<Condition>,
) -> Result<()> {
    if let Some(differences) = disagreement(&watched::living_processes(connection).await?) {
        let detail = format!("Not all of them have the same {}.", differences.join(", "));
        found.push(condition(AlarmKind::ReplicasDisagree, detail));
    }
    if let Some(differs) = memory::difference(&memory::compare_marks(connection).await?) {
        // Not the sentence that each process logs by itself when it first sees it.
        let detail = format!("Nothing is sent, and scans hold what they claim, because {differs}.");
        found.push(condition(AlarmKind::MemoryWentBack, detail));
    }
    if let Some(session) = watched::held_session(connection, rules.held_limits).await? {
        let detail = format!(
            "Session {} ({}, {}) has kept a transaction open for {} seconds.",
            session.pid,
            if session.application.is_empty() { "without a name" } else { &session.application },
            session.state,
            session.seconds
        );
        found.push(condition(AlarmKind::DatabaseHeld, detail));
    }
    Ok(())
}

/// In what living processes differ. A version alone may differ for a while.
fn disagreement(processes: &[LivingProcess]) -> Option<Vec<&'static str>> {
    let differing = differences(processes.iter().map(|process| process.fingerprint.as_str()));
    let youngest = processes.iter().map(|process| process.seconds).min()?;
    let is_upgrade = differing == ["version"] && youngest < UPGRADE;
    (!differing.is_empty() && !is_upgrade).then_some(differing)
}

/// Whether a mail that has been due since then is late. With a window it must have had its chance: over a long weekend
/// nothing is wrong.
fn waits_too_long(rules: &WatchRules, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    let chance = CHANCE.min(rules.oldest_pending);
    now - since >= rules.oldest_pending
        && rules.window.as_ref().is_none_or(|window| open_time(window, rules.zone, since, now) >= chance)
}

/// How long the window was open between two instants; longer than two months counts as that.
pub fn open_time(window: &SendWindow, zone: Tz, since: DateTime<Utc>, now: DateTime<Utc>) -> TimeDelta {
    let day = |at: DateTime<Utc>| at.with_timezone(&zone).date_naive();
    let first = day(since).max(plus_days(day(now), -62));
    let days = std::iter::successors(Some(first), |day| Some(plus_days(*day, 1))).take_while(|at| *at <= day(now));
    days.filter(|day| window.is_window_day(*day)).map(|day| open_on(window, zone, day, since, now)).sum()
}

fn open_on(window: &SendWindow, zone: Tz, day: NaiveDate, since: DateTime<Utc>, now: DateTime<Utc>) -> TimeDelta {
    let opens = first_shown(day.and_time(window.from()), zone);
    let closes = match window.until() {
        Some(until) => first_shown(day.and_time(until), zone),
        None => Some(start_of_day(plus_days(day, 1), zone)),
    };
    let Some((opens, closes)) = opens.zip(closes) else { return TimeDelta::zero() };
    (closes.min(now) - opens.max(since)).max(TimeDelta::zero())
}
