//! Upcoming: day by day what will be sent and to whom, each mail as it will look, and keeping one back in time.

mod forecast;
mod one;

use askama::Template;
use axum::Router;
use axum::extract::{OriginalUri, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use chrono::NaiveDate;

use super::Pages;
use super::access::User;
use super::frame::{self, Frame};
use super::listing::{Asked, Listing};
use super::notices::act::sentences;
use super::words::Done;
use crate::domain::calendar::plus_days;
use crate::domain::role::Role;
use crate::store::PgConnection;
use crate::store::lists::upcoming::{Decided, count_decided};
use crate::web::api::notices::action::Verb;
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;
use crate::web::api::query::wrong;
use forecast::{Going, Outline, Tally};

/// Days of an overview.
const DAYS: i64 = 14;
/// Nobody plans further ahead than the longest step.
const AHEAD: i64 = 3650;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/upcoming", get(show))
        .route("/upcoming/{permit}/{step}", get(one::preview).post(one::decide))
        .route("/upcoming/{permit}/{step}/{place}", get(one::html))
}

#[derive(Template)]
#[template(path = "pages/watch/upcoming.html")]
struct UpcomingPage {
    frame: Frame,
    today: NaiveDate,
    days: Vec<DayView>,
    /// Some permits were too many to judge one by one.
    is_rough: bool,
    from: NaiveDate,
    earlier: Option<NaiveDate>,
    later: NaiveDate,
    limit: u64,
}

/// One day of the overview.
struct DayView {
    day: NaiveDate,
    tallies: Vec<Tally>,
    count: i64,
    /// The day on which mail leaves, if not on this one.
    leaves: Option<NaiveDate>,
    /// More than is sent without a person's word.
    is_held: bool,
}

#[derive(Template)]
#[template(path = "pages/watch/upcoming_day.html")]
struct DayPage {
    frame: Frame,
    day: NaiveDate,
    list: Listing<Going>,
    decided: Decided,
    leaves: Option<NaiveDate>,
    is_rough: bool,
    may_act: bool,
    here: String,
    errors: Vec<(String, String)>,
    refused: Option<Refused>,
}

/// What somebody wanted to keep back, and was refused.
struct Refused {
    /// Tells its fields from those of another, as [`Going::field`].
    field: String,
    /// What was typed.
    reason: String,
}

impl DayPage {
    /// What was typed for this one, if it is the one that was refused.
    fn typed(&self, going: &Going) -> Option<&str> {
        self.refused.as_ref().filter(|refused| refused.field == going.field()).map(|refused| refused.reason.as_str())
    }
}

async fn show(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut asked = Asked::of(&uri)?;
    let mut connection = pages.api.connection().await?;
    let today = pages.api.moment(&mut connection).await?.today;
    let within = |name: &'static str, day: Option<NaiveDate>| match day {
        Some(day) if day < today || day > plus_days(today, AHEAD) => {
            Err(wrong(name, &format!("must be a day from {today} to {}", plus_days(today, AHEAD))))
        }
        day => Ok(day),
    };
    if let Some(day) = within("day", asked.query.date("day")?)? {
        let mut page = read_day(&pages, &user, &mut connection, asked, (day, today)).await?;
        page.frame = page.frame.said(done);
        return Ok(frame::shown(&page));
    }
    let from = within("from", asked.query.date("from")?)?.unwrap_or(today);
    asked.query.finish()?;
    let to = plus_days(from, DAYS - 1);
    let outline = Outline::read(&pages, &mut connection, today).await?;
    let tallies = outline.tally(&mut connection, from, to).await?;
    let limit = pages.api.claim_limit;
    let days = (0..DAYS).map(|ahead| {
        let day = plus_days(from, ahead);
        let tallies: Vec<Tally> = tallies.iter().filter(|tally| tally.day == day).cloned().collect();
        let count = tallies.iter().map(|tally| tally.count).sum();
        let claimed: i64 = tallies.iter().filter(|tally| !tally.is_recorded).map(|tally| tally.count).sum();
        let is_held = limit > 0 && claimed.unsigned_abs() > limit;
        DayView { day, tallies, count, leaves: leaves(&pages, day), is_held }
    });
    let page = UpcomingPage {
        frame: Frame::of(&pages, &user, "/upcoming", "Upcoming").said(done),
        today,
        days: days.collect(),
        is_rough: outline.is_rough(),
        from,
        earlier: (from > today).then(|| plus_days(from, -DAYS).max(today)),
        later: plus_days(from, DAYS),
        limit,
    };
    Ok(frame::shown(&page))
}

/// The day from which somebody wanted to keep something back, with why that was refused.
async fn show_refused(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    back: &str,
    refused: Refused,
    problem: &Problem,
) -> Result<Response, Problem> {
    let uri: Uri = back.parse().unwrap_or_else(|_| Uri::from_static("/upcoming"));
    let mut asked = Asked::of(&uri)?;
    let Some(day) = asked.query.date("day")? else { return Err(problem.clone()) };
    let today = pages.api.moment(connection).await?.today;
    let mut page = read_day(pages, user, connection, asked, (day, today)).await?;
    let is_listed = page.list.rows.iter().any(|going| going.field() == refused.field);
    let place = if is_listed { format!("reason-{}", refused.field) } else { "main".to_owned() };
    page.errors = sentences(Verb::Hold, problem).into_iter().map(|(_, sentence)| (place.clone(), sentence)).collect();
    page.refused = Some(refused);
    page.frame = page.frame.with_errors(true);
    Ok(frame::show_as(problem.kind().status(), &page))
}

async fn read_day(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    mut asked: Asked,
    (day, today): (NaiveDate, NaiveDate),
) -> Result<DayPage, Problem> {
    let place = Page::<String>::read(&asked.uri, &mut asked.query)?;
    let outline = Outline::read(pages, connection, today).await?;
    let found = outline.find(connection, day, place.after.as_deref(), place.fetch()).await?;
    let found = Listing::of(&asked, &place, found, |permit| permit.number_key.clone());
    let ids: Vec<_> = found.rows.iter().map(|permit| permit.id).collect();
    let list = Listing {
        rows: outline.going(connection, &ids, day).await?,
        first: found.first,
        next: found.next,
        is_later: found.is_later,
    };
    let here = asked.uri.to_string();
    asked.query.finish()?;
    Ok(DayPage {
        frame: Frame::of(pages, user, "/upcoming", format!("Upcoming on {}", day.format("%A, %-d %B %Y"))),
        day,
        list,
        decided: count_decided(connection, day).await?,
        leaves: leaves(pages, day),
        is_rough: outline.is_rough(),
        may_act: user.may(Role::Clerk),
        here,
        errors: Vec::new(),
        refused: None,
    })
}

/// The day on which mail that is found on `day` leaves, if it has to wait for the sending window.
fn leaves(pages: &Pages, day: NaiveDate) -> Option<NaiveDate> {
    let window = pages.api.window.as_ref()?;
    Some(window.next_window_day_on_or_after(day)).filter(|leaves| *leaves != day)
}
