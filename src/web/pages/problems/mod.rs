//! Problems: what needs a person, each kind with what can be done about it, one by one or many at once.

mod many;

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
use super::frame::{Frame, show_as};
use super::listing::{Asked, Listing};
use super::shown::{Tag, capped, hex};
use super::when::{When, when};
use super::words::Done;
use crate::domain::notice::ReasonCode;
use crate::domain::role::Role;
use crate::domain::words;
use crate::store::PgConnection;
use crate::store::actions::HeldBy;
use crate::store::lists::problems::{
    AmbiguousRow, COUNT_MAX, FailedRow, HeldGroup, HeldRow, LetterRow, count_problems, list_ambiguous, list_failed,
    list_held, list_held_groups, list_letters, sample_held,
};
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;

/// Rows of each kind on the page that shows all of them.
const FEW: i64 = 10;
/// Examples of what is held together.
const EXAMPLES: i64 = 5;
/// What is held together by so many scans and imports is shown.
const GROUPS: usize = 20;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/problems", get(show))
        .route("/problems/actions", post(many::act_many))
        .route("/problems/held", post(many::settle_held))
}

words! {
    /// A kind of problem.
    "kind of problem" Sort {
        /// Copies of which nobody knows.
        Ambiguous = "ambiguous",
        /// Copies that could not be sent.
        Failed = "failed",
        /// Notices that are held.
        Held = "held",
        /// Letters to be posted.
        Letters = "letters",
    }
}

#[derive(Template)]
#[template(path = "pages/watch/problems.html")]
struct ProblemsPage {
    frame: Frame,
    /// The one kind that is shown; all of them if none.
    only: Option<Sort>,
    counts: Counts,
    ambiguous: Option<Listing<Ambiguous>>,
    failed: Option<Listing<Failed>>,
    groups: Vec<Group>,
    held: Option<Listing<HeldRow>>,
    letters: Option<Listing<LetterRow>>,
    today: NaiveDate,
    may_act: bool,
    /// This very page, to come back to.
    here: String,
    refused: Refused,
}

/// How many there are, in words.
struct Counts {
    ambiguous: String,
    failed: String,
    held: String,
    letters: String,
    is_none: bool,
}

/// A copy of which nobody knows.
struct Ambiguous {
    row: AmbiguousRow,
    started: When,
    hash: Option<String>,
}

impl Ambiguous {
    /// What the phase says about how far it came.
    fn story(&self) -> &'static str {
        match self.row.phase.as_deref() {
            Some("dot") => "The whole message was handed over; the server's answer to its end never came.",
            Some("body") => "The message was being handed over when the connection was lost.",
            _ => "The process that was sending it ended, and left no word about how far it came.",
        }
    }
}

/// A copy that could not be sent.
struct Failed {
    row: FailedRow,
    tag: Tag,
    why: Option<&'static str>,
    since: When,
}

/// Notices that were held together.
struct Group {
    row: HeldGroup,
    examples: Vec<HeldRow>,
}

impl Group {
    /// The fields of the form that names it.
    fn field(&self) -> (&'static str, String) {
        match self.row.held_by() {
            HeldBy::Scan(id) => ("scan", id.to_string()),
            HeldBy::Import(id) => ("import", id.to_string()),
            HeldBy::Restored => ("restored", "yes".to_owned()),
        }
    }

    /// Whether the examples are all there are.
    fn is_whole(&self) -> bool {
        usize::try_from(self.row.count).is_ok_and(|count| count <= self.examples.len())
    }

    fn is_restored(&self) -> bool {
        self.row.held_by() == HeldBy::Restored
    }

    /// Tells its fields from those of another.
    fn id(&self) -> String {
        let (name, value) = self.field();
        format!("{name}-{value}")
    }
}

/// What somebody may have asked of the page and is shown again with it.
#[derive(Default)]
pub struct Refused {
    pub errors: Vec<(String, String)>,
    pub reason: String,
    /// The notices that were ticked.
    pub ticked: Vec<Uuid>,
}

impl ProblemsPage {
    /// Whether this notice was ticked before something was refused.
    fn is_ticked(&self, notice: &Uuid) -> bool {
        self.refused.ticked.contains(notice)
    }
}

async fn show(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = read(&pages, &user, &mut connection, Asked::of(&uri)?, Refused::default()).await?;
    page.frame = page.frame.said(done);
    Ok(super::frame::shown(&page))
}

/// The page as it is, with what was wrong with what somebody wanted.
async fn show_refused(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    back: &str,
    status: StatusCode,
    refused: Refused,
) -> Result<Response, Problem> {
    let uri = back.parse().unwrap_or_else(|_| axum::http::Uri::from_static("/problems"));
    let mut page = read(pages, user, connection, Asked::of(&uri)?, refused).await?;
    // The form of what is held no more is gone.
    let fields: Vec<String> = page.groups.iter().map(|group| format!("reason-{}", group.id())).collect();
    for (place, _) in page.refused.errors.iter_mut().filter(|(place, _)| place.starts_with("reason-")) {
        if !fields.contains(place) {
            "main".clone_into(place);
        }
    }
    page.frame = page.frame.with_errors(true);
    Ok(show_as(status, &page))
}

async fn read(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    mut asked: Asked,
    refused: Refused,
) -> Result<ProblemsPage, Problem> {
    let only: Option<Sort> = asked.query.parsed("kind")?;
    let wants = |kind: Sort| only.is_none_or(|only| only == kind);
    let counts = count_problems(connection).await?;
    let letters = if wants(Sort::Letters) { Some(letters(connection, &mut asked, only).await?) } else { None };
    // Letters stand in an order of their own; the cursor of the other lists is an id.
    let cursor = match only {
        Some(Sort::Letters) | None => None,
        Some(_) => Some(Page::<Uuid>::read(&asked.uri, &mut asked.query)?),
    };
    let place = cursor.unwrap_or(Page::<Uuid>::read(&plain(), &mut plain_query()?)?);
    let limit = if only.is_some() { place.fetch() } else { FEW };
    let zone = pages.api.zone;
    let ambiguous = if wants(Sort::Ambiguous) {
        let rows = list_ambiguous(connection, place.after, limit).await?.into_iter().map(|row| Ambiguous {
            started: when(row.started_at, zone),
            hash: row.payload_sha256.as_deref().map(hex),
            row,
        });
        Some(Listing::of(&asked, &place, rows.collect(), |row| row.row.delivery_id))
    } else {
        None
    };
    let failed = if wants(Sort::Failed) {
        let rows = list_failed(connection, place.after, limit).await?.into_iter().map(|row| Failed {
            tag: Tag::of(&row.state),
            why: row.reason_code.as_deref().and_then(|code| code.parse::<ReasonCode>().ok()).map(ReasonCode::sentence),
            since: when(row.updated_at, zone),
            row,
        });
        Some(Listing::of(&asked, &place, rows.collect(), |row| row.row.delivery_id))
    } else {
        None
    };
    let (groups, held) = if wants(Sort::Held) {
        let rows = list_held(connection, place.after, limit).await?;
        (groups(connection).await?, Some(Listing::of(&asked, &place, rows, |row| row.notice_id)))
    } else {
        (Vec::new(), None)
    };
    let here = asked.uri.to_string();
    asked.query.finish()?;
    Ok(ProblemsPage {
        frame: Frame::of(pages, user, "/problems", "Problems"),
        only,
        counts: Counts {
            ambiguous: capped(counts.ambiguous, COUNT_MAX),
            failed: capped(counts.failed, COUNT_MAX),
            held: capped(counts.held, COUNT_MAX),
            letters: capped(counts.letters, COUNT_MAX),
            is_none: counts == crate::store::lists::problems::ProblemCounts::default(),
        },
        ambiguous,
        failed,
        groups,
        held,
        letters,
        today: pages.api.moment(connection).await?.today,
        may_act: user.may(Role::Clerk),
        here,
        refused,
    })
}

async fn letters(
    connection: &mut PgConnection,
    asked: &mut Asked,
    only: Option<Sort>,
) -> Result<Listing<LetterRow>, Problem> {
    let place = if only.is_some() {
        Page::<(NaiveDate, Uuid)>::read(&asked.uri, &mut asked.query)?
    } else {
        Page::read(&plain(), &mut plain_query()?)?
    };
    let limit = if only.is_some() { place.fetch() } else { FEW };
    let rows = list_letters(connection, place.after, limit).await?;
    Ok(Listing::of(asked, &place, rows, |row| (row.send_by, row.delivery_id)))
}

/// The page that shows the beginning of each kind.
fn plain() -> axum::http::Uri {
    axum::http::Uri::from_static("/problems")
}

fn plain_query() -> Result<crate::web::api::query::Query, Problem> {
    crate::web::api::query::Query::parse(None)
}

async fn groups(connection: &mut PgConnection) -> Result<Vec<Group>, Problem> {
    let mut groups = Vec::new();
    for row in list_held_groups(connection).await?.into_iter().take(GROUPS) {
        let examples = sample_held(connection, row.held_by(), EXAMPLES).await?;
        groups.push(Group { row, examples });
    }
    Ok(groups)
}
