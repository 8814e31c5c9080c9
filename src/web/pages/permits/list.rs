//! Finding permits among many.

use askama::Template;
use axum::extract::{OriginalUri, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::frame::{Frame, show_as};
use super::super::listing::{Asked, Listing, Order};
use super::super::words::{Done, Said};
use super::super::wrongs::Wrongs;
use super::{HERE, types};
use crate::domain::phase::Phase;
use crate::domain::role::Role;
use crate::store::PgConnection;
use crate::store::lists::permits::{PermitFilter, PermitRow, PermitSort, Sorted, count_permits, list_sorted_permits};
use crate::web::api::page::Page;
use crate::web::api::permits::read_filter;
use crate::web::api::problem::{Kind, Problem};
use crate::web::api::query::wrong;

/// More are not counted: to know that there are many is enough, and soon known.
const COUNTED: i64 = 1001;

#[derive(Template)]
#[template(path = "pages/permits/list.html")]
struct ListPage<'a> {
    frame: Frame,
    filter: Given,
    order: Order<'a>,
    listing: Listing<PermitRow>,
    phases: Vec<Phase>,
    count: i64,
    types: Vec<(String, String)>,
    may_change: bool,
    /// The address of the list without its place, for what is done with all of it.
    query: String,
    is_filtered: bool,
    /// This very page, to come back to.
    here: String,
    refused: Refused,
}

/// What somebody wanted of permits of the list and is shown again with it.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub errors: Wrongs,
    /// The permits that were ticked.
    pub ticked: Vec<Uuid>,
    pub scope: String,
    pub action: String,
    pub until: String,
}

impl ListPage<'_> {
    fn is_ticked(&self, permit: &Uuid) -> bool {
        self.refused.ticked.contains(permit)
    }
}

/// What the filter has in its fields, as it was typed.
struct Given {
    q: String,
    permit_type: String,
    status: String,
    phase: String,
    expires_from: String,
    expires_to: String,
    archived: String,
    sort: String,
}

impl Given {
    fn of(asked: &Asked) -> Self {
        Self {
            q: asked.given("q"),
            permit_type: asked.given("permit_type"),
            status: asked.given("status"),
            phase: asked.given("phase"),
            expires_from: asked.given("expires_from"),
            expires_to: asked.given("expires_to"),
            archived: asked.given("archived"),
            sort: asked.given("sort"),
        }
    }

    fn is_anything(&self) -> bool {
        let fields = [&self.q, &self.permit_type, &self.status, &self.phase, &self.expires_from, &self.expires_to];
        fields.iter().any(|field| !field.is_empty()) || !self.archived.is_empty()
    }
}

/// Reads the filter of a list. What is archived is left out unless it is asked for.
pub(super) async fn filter_of(connection: &mut PgConnection, asked: &mut Asked) -> Result<PermitFilter, Problem> {
    let archived = match asked.query.text("archived").as_deref() {
        None => Some(false),
        Some("only") => Some(true),
        Some("any") => None,
        Some(_) => return Err(wrong("archived", "must be only or any")),
    };
    let filter = read_filter(connection, &mut asked.query).await?;
    Ok(PermitFilter { archived, ..filter })
}

/// Permits of a filter, page by page.
pub(super) async fn list(
    State(pages): State<Pages>,
    user: User,
    Done(done): Done,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    show(&pages, &user, &mut connection, &uri, done, None).await
}

/// The list of an address, after what was done, or with what was wrong with what somebody wanted.
pub(super) async fn show(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    uri: &Uri,
    done: Option<Said>,
    refused: Option<Refused>,
) -> Result<Response, Problem> {
    let mut asked = Asked::of(uri)?;
    let filter = filter_of(connection, &mut asked).await?;
    let (by, descending) = match asked.query.text("sort") {
        None => (PermitSort::ExpiresOn, false),
        Some(sort) => {
            let column = sort.trim_start_matches('-').parse::<PermitSort>();
            (column.map_err(|error| wrong("sort", &error.to_string()))?, sort.starts_with('-'))
        }
    };
    let page = Page::<(String, Uuid)>::read(&asked.uri, &mut asked.query)?;
    let asked = asked.read()?;
    if page.after.as_ref().is_some_and(|(key, _)| !by.is_possible(key)) {
        return Err(wrong("cursor", "is none of ours; begin without one"));
    }
    let today = pages.api.moment(connection).await?.today;
    let sorted = Sorted { by, descending, after: page.after.clone() };
    let rows = list_sorted_permits(connection, &filter, today, &sorted, page.fetch()).await?;
    let count = count_permits(connection, &filter, today, COUNTED).await?;
    let listing = Listing::of(&asked, &page, rows, |(key, row)| (key.clone(), row.id));
    let phases = listing.rows.iter().map(|(_, row)| row.life.phase(today)).collect();
    let given = Given::of(&asked);
    let status = if refused.is_some() { Kind::ValidationFailed.status() } else { StatusCode::OK };
    let frame = Frame::of(pages, user, HERE, "Permits").said(done).with_errors(refused.is_some());
    let shown_page = ListPage {
        frame,
        is_filtered: given.is_anything(),
        filter: given,
        order: Order::of(&asked, "expires_on"),
        listing: listing.map(|(_, row)| row),
        phases,
        count,
        types: types(connection).await?,
        may_change: user.may(Role::Clerk),
        query: asked.with("", &[]).trim_start_matches('?').to_owned(),
        here: asked.uri.to_string(),
        refused: refused.unwrap_or_default(),
    };
    Ok(show_as(status, &shown_page))
}
