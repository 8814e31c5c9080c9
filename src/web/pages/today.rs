//! Today: whether the service did what it should, and what needs a hand.

use std::collections::HashMap;
use std::sync::Mutex;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use chrono_tz::Tz;

use super::Pages;
use super::access::User;
use super::chart::Chart;
use super::frame::{self, Frame};
use super::scans::{Standing, standing};
use super::shown::{Tag, capped};
use super::when::{When, when};
use super::words::Done;
use crate::domain::calendar::{plus_days, start_of_day};
use crate::domain::role::Role;
use crate::store::alarms::{Alarm, list_cleared, list_standing, list_undelivered};
use crate::store::lists::counts::{Waiting, count_accepted, count_due, count_expiring, count_waiting};
use crate::store::lists::problems::{COUNT_MAX, ProblemCounts, count_problems};
use crate::store::{Moment, PgConnection};
use crate::web::api::problem::Problem;

/// Weeks of each chart.
const WEEKS: i64 = 12;
/// Alarms that are over and are still shown.
const PAST_ALARMS: i64 = 10;

#[derive(Template)]
#[template(path = "pages/watch/today.html")]
struct TodayPage {
    frame: Frame,
    today: NaiveDate,
    scan: Standing,
    /// Notices that are due today, by state.
    due: Vec<(Tag, i64)>,
    due_count: i64,
    sent_today: i64,
    waiting: Waiting,
    /// Letters to be posted.
    letters: i64,
    problems: Vec<Line>,
    /// What the operator was told of and still stands.
    alarms: Vec<AlarmView>,
    /// What is over of it.
    past_alarms: Vec<AlarmView>,
    /// Surface, number and reason of messages about alarms that could not be delivered.
    untold: Vec<(String, i64, String)>,
    charts: [Chart; 2],
    may_act: bool,
}

/// An alarm as it is shown.
struct AlarmView {
    alarm: Alarm,
    raised: When,
    cleared: Option<When>,
}

impl AlarmView {
    fn of(alarm: Alarm, zone: Tz) -> Self {
        let cleared = alarm.cleared_at.map(|at| when(at, zone));
        Self { raised: when(alarm.raised_at, zone), cleared, alarm }
    }

    /// What the operator does, in pieces; one that names a page has its path.
    fn advice(&self) -> Vec<(&'static str, &'static str)> {
        let text = self.alarm.kind.advice();
        let pages = [("page Problems", "/problems"), ("page Notices", "/notices"), ("page Scans", "/scans")];
        let named = pages.into_iter().find_map(|(name, path)| Some((text.split_once(name)?, name, path)));
        match named {
            Some(((before, after), name, path)) => vec![(before, ""), (name, path), (after, "")],
            None => vec![(text, "")],
        }
    }
}

/// One kind of problem: how many there are, and the one thing to do about it.
struct Line {
    name: &'static str,
    count: String,
    what: &'static str,
    path: &'static str,
    action: &'static str,
}

/// Mails of weeks that have ended, by first day: their number does not change any more.
#[derive(Debug, Default)]
pub struct Weeks(Mutex<HashMap<NaiveDate, i64>>);

pub(super) async fn show(State(pages): State<Pages>, user: User, Done(done): Done) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    let counts = count_problems(&mut connection).await?;
    let due = count_due(&mut connection, moment.today).await?;
    let (sent_today, sent) = sent(&pages, &mut connection, moment).await?;
    let shown = |alarms: Vec<Alarm>| alarms.into_iter().map(|alarm| AlarmView::of(alarm, pages.api.zone)).collect();
    let page = TodayPage {
        frame: Frame::of(&pages, &user, "/", "Today").said(done),
        today: moment.today,
        scan: standing(&pages, &mut connection, moment.now).await?,
        due_count: due.iter().map(|of_state| of_state.count).sum(),
        due: due.into_iter().map(|of_state| (Tag::of(&of_state.state), of_state.count)).collect(),
        sent_today,
        waiting: count_waiting(&mut connection, moment.now).await?,
        letters: counts.letters,
        problems: problems(&counts),
        alarms: shown(list_standing(&mut connection).await?),
        past_alarms: shown(list_cleared(&mut connection, PAST_ALARMS).await?),
        untold: list_undelivered(&mut connection).await?,
        charts: [sent, expiring(&mut connection, moment.today).await?],
        may_act: user.may(Role::Clerk),
    };
    Ok(frame::shown(&page))
}

/// Everything that needs a person, the kinds without any left out.
fn problems(counts: &ProblemCounts) -> Vec<Line> {
    let line = |name, count, what, path, action| Line { name, count: capped(count, COUNT_MAX), what, path, action };
    let lines = [
        (
            counts.ambiguous,
            line(
                "Ambiguous",
                counts.ambiguous,
                "It may or may not have arrived; the service does not send it again by itself.",
                "/problems?kind=ambiguous",
                "Find out, and say so",
            ),
        ),
        (
            counts.failed,
            line(
                "Could not be sent",
                counts.failed,
                "The mail server refused it for good, or all attempts are used up.",
                "/problems?kind=failed",
                "Send again or give up",
            ),
        ),
        (
            counts.held,
            line(
                "Held",
                counts.held,
                "It waits until a person releases or cancels it.",
                "/problems?kind=held",
                "Release or cancel",
            ),
        ),
        (
            counts.letters,
            line(
                "Letters to post",
                counts.letters,
                "The notice is owed by law, and nobody on the permit can be mailed.",
                "/problems?kind=letters",
                "Post, and say when",
            ),
        ),
    ];
    lines.into_iter().filter(|(count, _)| *count > 0).map(|(_, line)| line).collect()
}

/// The Monday on or before `day`.
fn monday(day: NaiveDate) -> NaiveDate {
    plus_days(day, -i64::from(day.weekday().num_days_from_monday()))
}

/// How many mails were accepted today, and in each of the last weeks.
async fn sent(pages: &Pages, connection: &mut PgConnection, moment: Moment) -> Result<(i64, Chart), Problem> {
    let this_week = monday(moment.today);
    let weeks: Vec<NaiveDate> = (0..WEEKS).rev().map(|ago| plus_days(this_week, -7 * ago)).collect();
    let known = pages.weeks.known(&weeks);
    let asked: Vec<NaiveDate> = weeks.iter().copied().filter(|week| !known.contains_key(week)).collect();
    let zone = pages.api.zone;
    let mut spans: Vec<_> = asked.iter().map(|week| span(*week, 7, zone)).collect();
    spans.push(span(moment.today, 1, zone));
    let mut counts = count_accepted(connection, &spans).await?;
    let today = counts.pop().unwrap_or_default();
    let counted: HashMap<NaiveDate, i64> = asked.into_iter().zip(counts).collect();
    // A week is kept when a day has passed since its end: until then a process may still write of it.
    pages.weeks.keep(counted.iter().filter(|(week, _)| plus_days(**week, 8) <= moment.today));
    let bars: Vec<_> = weeks
        .into_iter()
        .map(|week| (week, known.get(&week).or_else(|| counted.get(&week)).copied().unwrap_or_default()))
        .collect();
    Ok((today, Chart::new("sent", "Mails sent per week", "Mails accepted by the mail server", &bars)))
}

fn span(first: NaiveDate, days: i64, zone: Tz) -> (DateTime<Utc>, DateTime<Utc>) {
    (start_of_day(first, zone), start_of_day(plus_days(first, days), zone))
}

async fn expiring(connection: &mut PgConnection, today: NaiveDate) -> Result<Chart, Problem> {
    let weeks: Vec<NaiveDate> = (0..WEEKS).map(|ahead| plus_days(monday(today), 7 * ahead)).collect();
    let spans: Vec<_> = weeks.iter().map(|week| (*week, plus_days(*week, 6))).collect();
    let counts = count_expiring(connection, &spans).await?;
    let bars: Vec<_> = weeks.into_iter().zip(counts).collect();
    Ok(Chart::new("expiring", "Active permits that expire per week", "Active permits that expire", &bars))
}

impl Weeks {
    fn known(&self, weeks: &[NaiveDate]) -> HashMap<NaiveDate, i64> {
        let kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        weeks.iter().filter_map(|week| Some((*week, *kept.get(week)?))).collect()
    }

    fn keep<'w>(&self, counted: impl Iterator<Item = (&'w NaiveDate, &'w i64)>) {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.extend(counted.map(|(week, count)| (*week, *count)));
        // Business time moves on, and in tests back and forth.
        if kept.len() > 1000 {
            kept.clear();
        }
    }
}
