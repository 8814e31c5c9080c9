//! Notices: what was, is and will be sent; one of them with every attempt, the very bytes, and what can be done about it.

pub(super) mod act;
pub(super) mod mail;

use askama::Template;
use axum::Router;
use axum::extract::{OriginalUri, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use chrono::NaiveDate;
use uuid::Uuid;

use super::Pages;
use super::access::User;
use super::form::Form;
use super::frame::{Frame, show_as};
use super::listing::{Asked, Listing};
use super::path::Path;
use super::shown::{Tag, answered, hex};
use super::when::{When, when};
use super::words::Done;
use crate::domain::calendar::{plus_days, start_of_day};
use crate::domain::delivery::Channel;
use crate::domain::notice::{NoticeState, ReasonCode};
use crate::domain::role::Role;
use crate::store::PgConnection;
use crate::store::lists::notices::{AttemptRow, DeliveryRow, NoticeFilter, NoticeRow, list_notices, read_notice};
use crate::store::purge::REMOVED;
use crate::web::api::notices::action::Verb;
use crate::web::api::notices::read_filter;
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/notices", get(list))
        .route("/notices/{id}", get(show))
        .route("/notices/{id}/preview", get(mail::preview))
        .route("/notices/{id}/preview/{delivery}", get(mail::html))
        .route("/notices/{id}/message/{delivery}", get(mail::bytes))
        .route("/notices/{id}/{verb}", post(act::act))
}

#[derive(Template)]
#[template(path = "pages/watch/notices.html")]
struct NoticesPage {
    frame: Frame,
    list: Listing<Brief>,
    states: &'static [NoticeState],
    /// What the filter has, as it was typed.
    state: String,
    notice_type: String,
    due_from: String,
    due_to: String,
    sent_on: String,
    channels: &'static [Channel],
    channel: String,
    /// Only those of one permit are shown.
    permit_id: String,
    is_filtered: bool,
}

/// A notice in a list.
struct Brief {
    row: NoticeRow,
    tag: Tag,
    to: String,
}

impl Brief {
    fn of(row: NoticeRow) -> Self {
        let to: Vec<&str> = row.deliveries.iter().map(|copy| copy.recipient.as_deref().unwrap_or("letter")).collect();
        Self { tag: Tag::of(&row.state), to: to.join(", "), row }
    }
}

async fn list(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut asked = Asked::of(&uri)?;
    let zone = pages.api.zone;
    let sent_on = asked.query.date("sent_on")?;
    let filter = NoticeFilter {
        accepted: sent_on.map(|day| (start_of_day(day, zone), start_of_day(plus_days(day, 1), zone))),
        channel: asked.query.parsed("channel")?,
        ..read_filter(&mut asked.query)?
    };
    let page = Page::<Uuid>::read(&asked.uri, &mut asked.query)?;
    let mut connection = pages.api.connection().await?;
    let rows = list_notices(&mut connection, &filter, page.after, page.fetch()).await?;
    let list = Listing::of(&asked, &page, rows.into_iter().map(Brief::of).collect(), |notice| notice.row.id);
    let given = |name| asked.given(name);
    let page = NoticesPage {
        frame: Frame::of(&pages, &user, "/notices", "Notices").said(done),
        list,
        states: NoticeState::ALL,
        state: given("state"),
        notice_type: given("notice_type"),
        due_from: given("due_from"),
        due_to: given("due_to"),
        sent_on: given("sent_on"),
        channels: Channel::ALL,
        channel: given("channel"),
        permit_id: given("permit_id"),
        is_filtered: filter != NoticeFilter::default(),
    };
    asked.query.finish()?;
    Ok(super::frame::shown(&page))
}

#[derive(Template)]
#[template(path = "pages/watch/notice.html")]
struct NoticePage {
    frame: Frame,
    notice: NoticeRow,
    tag: Tag,
    /// Why it is as it is.
    why: Option<String>,
    created: When,
    superseded: Option<When>,
    copies: Vec<Copy>,
    may: May,
    today: NaiveDate,
    /// What was refused, and what had been typed.
    errors: Vec<(String, String)>,
    given: Given,
}

/// What the state allows.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each stands for a form of the page")]
struct May {
    act: bool,
    retry: bool,
    cancel: bool,
    /// What failed can be given up while another copy goes on.
    give_up: bool,
    hold: bool,
    release: bool,
    preview: bool,
    /// A copy is on its way at this moment.
    waits: bool,
}

/// What somebody had typed before it was refused.
#[derive(Default)]
struct Given {
    verb: String,
    reason: String,
    recipient: String,
    posted_on: String,
    tracking: String,
}

impl Given {
    /// What had been typed into the form of this action.
    fn reason(&self, verb: &str) -> &str {
        if self.verb == verb { &self.reason } else { "" }
    }
}

/// One copy of a notice.
struct Copy {
    row: DeliveryRow,
    tag: Tag,
    to: String,
    /// Why it is as it is.
    why: Option<&'static str>,
    hash: Option<String>,
    next: When,
    attempts: Vec<Attempt>,
    is_letter: bool,
}

/// One try.
struct Attempt {
    row: AttemptRow,
    tag: Tag,
    started: When,
    finished: Option<When>,
    resolved: Option<When>,
    hash: Option<String>,
    /// The very bytes are kept.
    has_message: bool,
}

impl Attempt {
    /// What the server said.
    fn answered(&self) -> String {
        answered(self.row.smtp_code, self.row.enhanced_code.as_deref(), self.row.response.as_deref())
    }
}

impl Copy {
    fn of(mut row: DeliveryRow, pages: &Pages) -> Self {
        let zone = pages.api.zone;
        let attempts = std::mem::take(&mut row.attempts).into_iter().map(|row| Attempt {
            tag: Tag::of(&row.outcome),
            started: when(row.started_at, zone),
            finished: row.finished_at.map(|at| when(at, zone)),
            resolved: row.resolved_at.map(|at| when(at, zone)),
            hash: row.payload_sha256.as_deref().map(hex),
            has_message: row.has_message,
            row,
        });
        Self {
            tag: Tag::of(&row.state),
            to: row.recipient.clone().unwrap_or_else(|| "a letter".to_owned()),
            why: row.reason_code.as_deref().and_then(|code| code.parse::<ReasonCode>().ok()).map(ReasonCode::sentence),
            hash: row.payload_sha256.as_deref().map(hex),
            next: when(row.next_attempt_at, zone),
            attempts: attempts.collect(),
            is_letter: row.channel == "letter",
            row,
        }
    }

    fn is(&self, state: &str) -> bool {
        self.row.state == state
    }

    /// Tells the fields of one copy's form from those of another.
    fn short_id(&self) -> String {
        self.row.id.simple().to_string()
    }
}

impl May {
    fn of(user: &User, copies: &[Copy]) -> Self {
        let any = |states: &[&str]| copies.iter().any(|copy| states.iter().any(|state| copy.is(state)));
        let waits = any(&["sending"]);
        // A tombstone is only looked at.
        let is_over = copies.iter().any(|copy| copy.row.recipient.as_deref() == Some(REMOVED));
        if is_over {
            return Self { waits, ..Self::default() };
        }
        Self {
            act: user.may(Role::Clerk),
            retry: any(&["failed", "bounced", "suppressed"]),
            cancel: !waits && any(&["pending", "held", "failed"]),
            give_up: any(&["failed"]) && any(&["pending", "held"]),
            hold: !waits && any(&["pending"]),
            release: any(&["held"]),
            preview: copies.iter().any(|copy| !copy.is_letter),
            waits,
        }
    }
}

impl NoticePage {
    async fn read(pages: &Pages, user: &User, connection: &mut PgConnection, id: Uuid) -> Result<Self, Problem> {
        let mut notice = read_notice(connection, id).await?;
        let zone = pages.api.zone;
        let deliveries = std::mem::take(&mut notice.deliveries);
        let copies: Vec<Copy> = deliveries.into_iter().map(|row| Copy::of(row, pages)).collect();
        let sentence =
            || notice.reason_code.as_deref()?.parse::<ReasonCode>().ok().map(|code| code.sentence().to_owned());
        Ok(Self {
            frame: Frame::of(pages, user, "/notices", act::label_of(&notice)),
            tag: Tag::of(&notice.state),
            why: notice.reason.clone().or_else(sentence),
            created: when(notice.created_at, zone),
            superseded: notice.superseded_at.map(|at| when(at, zone)),
            may: May::of(user, &copies),
            copies,
            today: pages.api.moment(connection).await?.today,
            notice,
            errors: Vec::new(),
            given: Given::default(),
        })
    }
}

async fn show(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = NoticePage::read(&pages, &user, &mut connection, id).await?;
    page.frame = page.frame.said(done);
    Ok(super::frame::shown(&page))
}

/// The notice as it is, with what was wrong with what somebody wanted of it.
async fn show_refused(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    (id, verb): (Uuid, Verb),
    form: &Form,
    problem: &Problem,
) -> Result<Response, Problem> {
    let mut page = NoticePage::read(pages, user, connection, id).await?;
    page.errors = act::sentences(verb, problem);
    // What is asked of one copy stands with that copy, and what is wrong with a field at that field.
    if let Ok(delivery) = form.text("delivery_id").parse::<Uuid>() {
        let copy = delivery.simple();
        let place_of = |place: &str| match place {
            "actions" => format!("copy-{copy}"),
            page if page.starts_with('/') => page.to_owned(),
            field => format!("{field}-{copy}"),
        };
        page.errors.iter_mut().for_each(|(place, _)| *place = place_of(place));
    }
    page.given = Given {
        verb: verb.as_str().to_owned(),
        reason: form.text("reason").to_owned(),
        recipient: form.text("recipient").to_owned(),
        posted_on: form.text("posted_on").to_owned(),
        tracking: form.text("tracking").to_owned(),
    };
    page.frame = page.frame.with_errors(true);
    let status: StatusCode = problem.kind().status();
    Ok(show_as(status, &page))
}
