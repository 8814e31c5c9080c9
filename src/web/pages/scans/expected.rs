//! The times at which scans were expected, and which scan met them.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::super::Pages;
use super::super::shown::Tag;
use super::super::when::{When, when};
use super::ScanView;
use crate::domain::saying::counted;
use crate::store::PgConnection;
use crate::store::lists::scans::{Meeting, last_completed, list_meetings, list_scans, running_scan};
use crate::store::scans::{expected_since, missing_run};
use crate::web::api::problem::Problem;

/// How far back expected times are shown, and how many at most.
const DAYS: i64 = 14;
const TIMES: usize = 60;

/// Whether scans run as they should.
pub struct Standing {
    /// The last one that completed.
    pub last: Option<ScanView>,
    /// The last try, if it is another one.
    pub tried: Option<ScanView>,
    /// The one that runs now.
    pub running: Option<Uuid>,
    pub next: Option<When>,
    /// The expected time that no scan has met although its grace is over.
    pub missing: Option<When>,
    /// No process has scanned by this schedule yet.
    pub is_new: bool,
}

/// How it stands at `now`.
pub async fn standing(pages: &Pages, connection: &mut PgConnection, now: DateTime<Utc>) -> Result<Standing, Problem> {
    let at = |instant| when(instant, pages.api.zone);
    let since = since(pages, connection).await?;
    let last = last_completed(connection).await?;
    let tried = list_scans(connection, None, 1).await?.pop();
    let tried =
        tried.filter(|tried| last.as_ref().is_none_or(|last| last.id != tried.id) && tried.outcome != "running");
    Ok(Standing {
        missing: missing_run(connection, &pages.schedule, pages.grace, now).await?.map(at),
        last: last.map(|row| ScanView::of(row, pages)),
        tried: tried.map(|row| ScanView::of(row, pages)),
        running: running_scan(connection).await?,
        next: pages.schedule.next_expected(now).map(at),
        is_new: since.is_none(),
    })
}

async fn since(pages: &Pages, connection: &mut PgConnection) -> Result<Option<DateTime<Utc>>, Problem> {
    let zone = pages.schedule.zone();
    Ok(expected_since(connection, pages.schedule.expression(), zone.name()).await?)
}

/// One expected time, and what became of it.
pub struct Expectation {
    pub at: When,
    pub tag: Tag,
    /// The scan that met it, and when it ended.
    pub by: Option<(Uuid, When)>,
    pub why: String,
}

/// The expected times of the last days, the latest first.
pub async fn expectations(
    pages: &Pages,
    connection: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Vec<Expectation>, Problem> {
    let Some(since) = since(pages, connection).await? else { return Ok(Vec::new()) };
    let from = since.max(now - TimeDelta::days(DAYS));
    let times = std::iter::successors(pages.schedule.last_expected(now), |time| {
        pages.schedule.last_expected(*time - TimeDelta::seconds(1))
    });
    let times: Vec<DateTime<Utc>> = times.take_while(|time| *time >= from).take(TIMES).collect();
    let Some(first) = times.last() else { return Ok(Vec::new()) };
    let meetings = list_meetings(connection, *first, now).await?;
    let judged = times.iter().enumerate().map(|(place, time)| {
        let next = place.checked_sub(1).and_then(|later| times.get(later)).copied();
        let met = meetings.iter().find(|meeting| meeting.started_at >= *time);
        judge(pages, *time, next, met, now)
    });
    Ok(judged.collect())
}

/// What became of the expected time before `next`; `met` is the first scan since it that completed.
fn judge(
    pages: &Pages,
    time: DateTime<Utc>,
    next: Option<DateTime<Utc>>,
    met: Option<&Meeting>,
    now: DateTime<Utc>,
) -> Expectation {
    let zone = pages.api.zone;
    let until = time + pages.grace;
    let (tag, why) = match met {
        Some(met) if met.finished_at <= until => (Tag::new("met", "good"), String::new()),
        Some(met) if next.is_none_or(|next| met.started_at < next) => {
            let minutes = (met.finished_at - time).num_minutes();
            (Tag::new("late", "warn"), format!("It ended {} after it was expected.", counted(minutes, "minute")))
        }
        Some(_) => {
            let why = "No scan ran before the next expected time; a later one found what was due.";
            (Tag::new("missed", "bad"), why.to_owned())
        }
        None if now <= until => (Tag::new("expected", ""), "It may still come in time.".to_owned()),
        None => {
            (Tag::new("missing", "bad"), "No scan has completed since. Scan now, or look why none runs.".to_owned())
        }
    };
    let by = met.map(|met| (met.id, when(met.finished_at, zone)));
    Expectation { at: when(time, zone), tag, by, why }
}
