//! One permit: what it says, what will be sent and why, what was sent, and who changed what.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::frame::{Frame, show_as, shown};
use super::super::path::Path;
use super::super::shown::answered;
use super::super::when::{When, when, with_days};
use super::super::words::Done;
use super::super::wrongs::sentence;
use super::HERE;
use super::draft::{errors_of, name_of};
use super::in_short::{Sentence, in_short};
use crate::domain::notice::NoticeState;
use crate::domain::phase::Phase;
use crate::domain::role::Role;
use crate::domain::saying::who;
use crate::store::history::{PermitChange, list_changes};
use crate::store::lists::notices::{NoticeFilter, NoticeRow, list_notices};
use crate::store::lists::permits::{PermitRow, read_permit};
use crate::store::lists::timeline::{TimelineAttempt, list_attempts};
use crate::store::permits::{Term, list_terms};
use crate::store::{Moment, PgConnection};
use crate::web::api::permits::view::differences;
use crate::web::api::problem::Problem;
use crate::web::prospects::read_ahead;

/// Most notices, attempts and changes that the page shows.
const SHOWN: i64 = 200;

#[derive(Template)]
#[template(path = "pages/permits/show.html")]
struct ShowPage {
    frame: Frame,
    permit: PermitRow,
    phase: Phase,
    today: NaiveDate,
    is_paused: bool,
    sentences: Vec<Sentence>,
    steps: Vec<Step>,
    notices: Vec<NoticeRow>,
    terms: Vec<Term>,
    events: Vec<Event>,
    may_change: bool,
    custom: Option<String>,
    delay_minutes: i64,
    errors: Vec<(String, String)>,
}

impl ShowPage {
    fn wrong(&self, field: &str) -> impl Iterator<Item = &str> {
        self.errors.iter().filter(move |(known, _)| known == field).map(|(_, sentence)| sentence.as_str())
    }
}

/// What will become of a step of the schedule.
#[derive(Debug)]
pub(super) struct Step {
    pub notice_type: String,
    due_on: Option<NaiveDate>,
    pub send_by: Option<NaiveDate>,
    state: Option<NoticeState>,
    pub notice: Option<Uuid>,
    pub goes_on: Option<NaiveDate>,
    pub is_letter: bool,
    why: String,
    /// A person may decide about it before it is due.
    is_open: bool,
}

/// Something that happened to the permit.
struct Event {
    at: DateTime<Utc>,
    when: When,
    /// What happened, in a few words.
    what: String,
    /// Who did it.
    by: Option<String>,
    /// More about it, a line each.
    lines: Vec<String>,
    /// Where more is.
    link: Option<String>,
}

pub(super) async fn show(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = read(&pages, &user, &mut connection, id).await?;
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

/// Where the steps stand.
pub(super) const OUTLOOK: &str = "outlook";

/// The page with what is wrong with what was wanted of the permit. `field` is the place of what is about no other one.
pub(super) async fn page_with_fault(
    pages: &Pages,
    user: &User,
    id: Uuid,
    field: &'static str,
    problem: &Problem,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = read(pages, user, &mut connection, id).await?;
    page.errors = errors_of(problem);
    if page.errors.is_empty() {
        page.errors.push((field.to_owned(), sentence(problem.detail())));
    }
    // What is not on the page cannot be led to: an archived permit has one button only, and each step fields of its own.
    let fields: &[&str] = if page.permit.archived_at.is_some() {
        &["archive"]
    } else {
        &["archive", "expires_on", "effective_on", "notices_paused_until"]
    };
    for (place, _) in page.errors.iter_mut().filter(|(place, _)| !fields.contains(&place.as_str())) {
        (if field == OUTLOOK { OUTLOOK } else { "main" }).clone_into(place);
    }
    page.frame = page.frame.with_errors(true);
    Ok(show_as(problem.kind().status(), &page))
}

async fn read(pages: &Pages, user: &User, connection: &mut PgConnection, id: Uuid) -> Result<ShowPage, Problem> {
    let moment = pages.api.moment(connection).await?;
    let permit = read_permit(connection, id).await?;
    let steps = read_steps(pages, connection, id, moment).await?;
    let filter = NoticeFilter { permit_id: Some(id), ..NoticeFilter::default() };
    let notices = list_notices(connection, &filter, None, SHOWN).await?;
    let mut terms = list_terms(connection, id).await?;
    terms.reverse();
    let changes = list_changes(&mut *connection, id, None, SHOWN).await?;
    let attempts = list_attempts(connection, id, SHOWN).await?;
    let of_term: Vec<_> = notices.iter().filter(|notice| notice.expires_on == permit.life.expires_on).collect();
    let has_custom = permit.custom.as_object().is_some_and(|custom| !custom.is_empty());
    Ok(ShowPage {
        frame: Frame::of(pages, user, HERE, format!("Permit {}", permit.permit_number)),
        phase: permit.life.phase(moment.today),
        today: moment.today,
        sentences: in_short(&steps, &of_term),
        is_paused: permit.notices_paused_until.is_some_and(|until| until >= moment.today),
        custom: has_custom.then(|| format!("{:#}", permit.custom)),
        events: events(pages, &notices, changes, attempts),
        permit,
        steps,
        notices,
        terms,
        may_change: user.may(Role::Clerk),
        delay_minutes: pages.change_delay.num_minutes(),
        errors: Vec::new(),
    })
}

async fn read_steps(
    pages: &Pages,
    connection: &mut PgConnection,
    id: Uuid,
    moment: Moment,
) -> Result<Vec<Step>, Problem> {
    let ahead = read_ahead(connection, id, moment.today, pages.api.window.as_ref()).await?;
    let steps = ahead.into_iter().map(|step| Step {
        state: step.notice.map(|(_, state)| state),
        notice: step.notice.map(|(id, _)| id),
        is_open: step.notice.is_none() && step.goes_on.is_some_and(|day| day > moment.today),
        notice_type: step.notice_type.to_string(),
        due_on: step.due_on,
        send_by: step.send_by,
        goes_on: step.goes_on,
        is_letter: step.is_letter,
        why: with_days(&step.why),
    });
    Ok(steps.collect())
}

/// Everything that happened, newest first.
fn events(
    pages: &Pages,
    notices: &[NoticeRow],
    changes: Vec<PermitChange>,
    attempts: Vec<TimelineAttempt>,
) -> Vec<Event> {
    let event = |at: DateTime<Utc>, what: String| Event {
        at,
        when: when(at, pages.api.zone),
        what,
        by: None,
        lines: Vec::new(),
        link: None,
    };
    let edits = changes.into_iter().map(|change| {
        let compared = change.before.as_ref().zip(change.after.as_ref());
        let lines = compared.map(|(before, after)| change_lines(before, after)).unwrap_or_default();
        let what = format!("Permit {}", change.action);
        let link = change.import_id.map(|import| format!("/import/{import}"));
        Event { by: Some(change.by), lines, link, ..event(change.at, what) }
    });
    let claimed = notices.iter().map(|notice| {
        let what = format!("Notice {} for {} recorded, now {}", notice.notice_type, notice.expires_on, notice.state);
        let link = Some(format!("/notices/{}", notice.id));
        Event { lines: notice.reason.iter().cloned().collect(), link, ..event(notice.created_at, what) }
    });
    let tried = attempts.into_iter().map(|attempt| {
        let whom = attempt.recipient.clone().unwrap_or_else(|| "the post".to_owned());
        let what = format!("{} to {whom}: {}", attempt.notice_type, attempt.outcome);
        let link = Some(format!("/notices/{}", attempt.notice_id));
        Event { lines: attempt_lines(&attempt), link, ..event(attempt.started_at, what) }
    });
    let mut all: Vec<Event> = edits.chain(claimed).chain(tried).collect();
    all.sort_by_key(|event| std::cmp::Reverse(event.at));
    all
}

fn attempt_lines(attempt: &TimelineAttempt) -> Vec<String> {
    let said = attempt.response.as_deref();
    let said = said.map(|words| format!("The server said: {}", answered(attempt.smtp_code, None, Some(words))));
    let found = attempt.resolution.as_ref().map(|resolution| {
        format!(
            "Found out: {}, by {}",
            resolution.replace('_', " "),
            attempt.resolved_by.as_deref().map_or_else(|| "nobody".to_owned(), who)
        )
    });
    said.into_iter().chain(found).collect()
}

/// Each field that changed, as one line.
fn change_lines(before: &Value, after: &Value) -> Vec<String> {
    let shown = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let changes = differences(before, after);
    changes
        .iter()
        .map(|(field, change)| format!("{}: {} → {}", name_of(field), shown(&change["from"]), shown(&change["to"])))
        .collect()
}
