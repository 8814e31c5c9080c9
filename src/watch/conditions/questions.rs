//! The questions.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::chance::waits_too_long;
use crate::{
    domain::{
        alarm::AlarmKind,
        fingerprint::differences,
        saying::{counted, which},
    },
    store::{
        Moment, PgConnection, Result,
        alarms::Condition,
        memory,
        scans::missing_run,
        stock,
        watched::{self, Group, HeldSession, LivingProcess},
    },
    telemetry::mask_addresses,
    watch::WatchRules,
};

/// An outcome that nobody has found out for so long is an alarm.
const AMBIGUOUS_FOR: TimeDelta = TimeDelta::hours(1);
/// Replicas may have different versions for so long: that is how one is put in place of the other.
const UPGRADE: i64 = 600;

/// Asks for one kind. Of most at most one stands; of those that people work off there is one for each cause or day, so
/// that an old one that waits does not hide a new one.
pub(super) async fn ask(
    kind: AlarmKind,
    rules: &WatchRules,
    connection: &mut PgConnection,
    moment: Moment,
) -> Result<Vec<Condition>> {
    let zone = rules.zone;
    let one = |detail: Option<String>| one(kind, detail);
    let each = |groups: Vec<Group>, say: &dyn Fn(&Group) -> String| each(kind, &groups, say);
    Ok(match kind {
        AlarmKind::MissingRun => missing(rules, connection, moment).await?,
        AlarmKind::FailedScan => one(failed_scan(connection, zone).await?),
        AlarmKind::Transport => one(watched::transport_trouble(connection)
            .await?
            .map(|fault| format!("Nothing is sent, but for a probe now and then: {}", mask_addresses(&fault)))),
        AlarmKind::DeadLetters => each(watched::failed_by_day(connection, zone, moment.today).await?, &|group| {
            format!("{} failed for good or came back{}.", counted(group.count, "mail"), on_day(&group.subject))
        }),
        AlarmKind::Ambiguous => {
            let until = moment.now - AMBIGUOUS_FOR;
            each(watched::ambiguous_by_day(connection, zone, until, moment.today).await?, &|group| {
                let mails = counted(group.count, "mail");
                format!("Of {mails}{} nobody has found out for more than an hour.", on_day(&group.subject))
            })
        }
        AlarmKind::Held => each(watched::held_by_cause(connection).await?, &|group| {
            let waits = which(group.count, "waits", "wait");
            format!("{} {waits} for a person: {}.", counted(group.count, "notice"), cause(group))
        }),
        AlarmKind::UnsentStatutory => {
            each(watched::unsent_statutory_by_day(connection, moment.today).await?, &|group| {
                let notices = counted(group.count, "notice");
                let their = which(group.count, "its", "their");
                format!("{notices} owed by law passed {their} last day, {}, unsent.", group.subject)
            })
        }
        AlarmKind::OldestPending => {
            let since = stock::oldest_pending(connection, moment.now).await?;
            one(since
                .filter(|since| waits_too_long(rules, *since, moment.now))
                .map(|since| format!("A mail has been due for {}.", counted((moment.now - since).num_hours(), "hour"))))
        }
        AlarmKind::ReplicasDisagree => disagreement(&watched::living_processes(connection).await?),
        AlarmKind::MemoryWentBack => {
            // Not the sentence that each process logs by itself when it first sees it.
            let differs = memory::difference(&memory::compare_marks(connection).await?);
            one(differs.map(|differs| format!("Nothing is sent, and scans hold what they claim, because {differs}.")))
        }
        AlarmKind::LateResult => one(match watched::count_late_results(connection, moment.now).await? {
            0 => None,
            late => Some(format!(
                "The server took {} of which somebody had said that {} had not arrived.",
                counted(late, "mail"),
                which(late, "it", "they")
            )),
        }),
        AlarmKind::DatabaseHeld => one(watched::held_session(connection, rules.held_limits).await?.map(|s| held(&s))),
        AlarmKind::FilesOnly => one(files_only(rules, connection, moment).await?),
    })
}

fn one(kind: AlarmKind, detail: Option<String>) -> Vec<Condition> {
    detail.into_iter().map(|detail| Condition { kind, subject: String::new(), detail }).collect()
}

fn each(kind: AlarmKind, groups: &[Group], say: &dyn Fn(&Group) -> String) -> Vec<Condition> {
    groups.iter().map(|group| Condition { kind, subject: group.subject.clone(), detail: say(group) }).collect()
}

fn on_day(subject: &str) -> String {
    if subject == watched::OLDER { " two weeks ago or earlier".to_owned() } else { format!(" on {subject}") }
}

/// Why notices are held, from the subject of their alarm.
fn cause(group: &Group) -> String {
    let subject = group.subject.as_str();
    match subject.split_once(' ') {
        Some(("scan", id)) => format!("the scan {id} found more than SCAN_CLAIM_LIMIT"),
        Some(("import", id)) => format!("the import {id} made more due than SCAN_CLAIM_LIMIT"),
        _ if subject == watched::RESTORED => "the database was restored or moved".to_owned(),
        _ if subject == watched::DIED => {
            format!("processes died three times in the midst of {}", which(group.count, "it", "them"))
        }
        _ => format!("somebody holds {}", which(group.count, "it", "them")),
    }
}

fn local(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%H:%M %Z on %-d %B %Y").to_string()
}

async fn missing(rules: &WatchRules, connection: &mut PgConnection, moment: Moment) -> Result<Vec<Condition>> {
    let expected = missing_run(connection, &rules.schedule, rules.grace, moment.now).await?;
    let condition = expected.map(|expected| Condition {
        kind: AlarmKind::MissingRun,
        subject: expected.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        detail: format!(
            "The scan expected at {} has not completed; it is {} late.",
            local(expected, rules.zone),
            counted((moment.now - expected).num_minutes(), "minute")
        ),
    });
    Ok(condition.into_iter().collect())
}

async fn failed_scan(connection: &mut PgConnection, zone: Tz) -> Result<Option<String>> {
    let failed = watched::failed_scan(connection).await?;
    Ok(failed.map(|failed| {
        let at = local(failed.started_at, zone);
        let why = mask_addresses(&failed.error.unwrap_or_default());
        let what = if failed.outcome == "failed" { "failed" } else { "broke off" };
        format!("The scan that began at {at} {what}: {why}.")
    }))
}

async fn files_only(rules: &WatchRules, connection: &mut PgConnection, moment: Moment) -> Result<Option<String>> {
    let kept = watched::count_kept_as_files(connection, moment).await?;
    // In a trial that is as it should be.
    let back = if rules.mails_everybody { watched::count_kept_back(connection, moment).await? } else { 0 };
    let unsent = [(kept, "only files"), (back, "kept back by a trial")].into_iter().filter(|(count, _)| *count > 0);
    let unsent: Vec<String> =
        unsent.map(|(count, why)| format!("{} {} {why}", counted(count, "mail"), which(count, "is", "are"))).collect();
    let detail = || format!("Of what could still be sent to its holder, {}.", unsent.join(", and "));
    Ok((!unsent.is_empty()).then(detail))
}

fn held(session: &HeldSession) -> String {
    format!(
        "Session {} ({}, {}) has kept a transaction open for {}.",
        session.pid,
        if session.application.is_empty() { "without a name" } else { &session.application },
        session.state,
        counted(session.seconds, "second")
    )
}

/// In what living processes differ. A version alone may differ for a while, from when the last of them came; whether a
/// process of it starts again and again does not matter.
fn disagreement(processes: &[LivingProcess]) -> Vec<Condition> {
    let differing = differences(processes.iter().map(|process| process.fingerprint.as_str()));
    if differing.is_empty() {
        return Vec::new();
    }
    let oldest_of = |version: &str| {
        processes.iter().filter(|process| process.version == version).map(|process| process.seconds).max()
    };
    let newest_came = processes.iter().filter_map(|process| oldest_of(&process.version)).min().unwrap_or_default();
    if differing == ["version"] && newest_came < UPGRADE {
        return Vec::new();
    }
    let differing = differing.join(", ");
    let detail = format!("Not all of them have the same {differing}.");
    vec![Condition { kind: AlarmKind::ReplicasDisagree, subject: differing, detail }]
}
