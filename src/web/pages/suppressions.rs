//! Addresses that must not be mailed.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json;
use uuid::Uuid;

use super::Pages;
use super::access::User;
use super::form::Form;
use super::frame::{Frame, show_as, shown};
use super::listing::{Asked, Listing};
use super::path::Path;
use super::when::{When, when};
use super::words::{Done, Said};
use super::wrongs::{Wrongs, given, plain, wrongs_of};
use crate::domain::recipient::SuppressionClass;
use crate::domain::role::Role;
use crate::store::PgConnection;
use crate::store::suppressions::{SuppressionRow, list_suppressions};
use crate::web::api::fields::{line, read_object};
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;
use crate::web::api::suppressions::{add as suppress, end, read_body};

const PATH: &str = "/suppressions";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(list).post(add)).route("/suppressions/{id}/lift", post(lift))
}

#[derive(Template)]
#[template(path = "pages/suppressions.html")]
struct SuppressionsPage {
    frame: Frame,
    may_change: bool,
    /// What is looked for.
    q: String,
    listing: Listing<Entry>,
    classes: &'static [SuppressionClass],
    /// What was filled in, and what is wrong with it.
    filled: Form,
    errors: Wrongs,
    /// The one that somebody tried to lift.
    lifting: Option<Uuid>,
}

struct Entry {
    row: SuppressionRow,
    since: When,
    /// What wrote it, for people.
    source: String,
}

impl Entry {
    fn is(&self, id: Option<&Uuid>) -> bool {
        id == Some(&self.row.id)
    }
}

impl SuppressionsPage {
    async fn read(pages: &Pages, user: &User, connection: &mut PgConnection, uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Asked::of(uri)?;
        let q = asked.query.text("q").map(|q| q.trim().to_owned());
        let page = Page::<Uuid>::read(&asked.uri, &mut asked.query)?;
        let rows = list_suppressions(connection, q.as_deref(), page.after, page.fetch()).await?;
        let zone = pages.api.zone;
        let show = |row: SuppressionRow| Entry {
            since: when(row.created_at, zone),
            source: if row.source == "refused" { "a mail server refused it".to_owned() } else { row.source.clone() },
            row,
        };
        Ok(Self {
            frame: Frame::of(pages, user, PATH, "Suppressions"),
            may_change: user.may(Role::Clerk),
            q: q.unwrap_or_default(),
            listing: Listing::of(&asked, &page, rows, |row| row.id).map(show),
            classes: SuppressionClass::ALL,
            filled: Form::default(),
            errors: Vec::new(),
            lifting: None,
        })
    }

    /// The page after a refusal, with what was filled in.
    fn refused(mut self, filled: Form, errors: Wrongs) -> Response {
        self.frame = self.frame.with_errors(true);
        (self.filled, self.errors) = (filled, errors);
        show_as(StatusCode::UNPROCESSABLE_ENTITY, &self)
    }
}

async fn list(State(pages): State<Pages>, user: User, uri: Uri, Done(done): Done) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = SuppressionsPage::read(&pages, &user, &mut connection, &uri).await?;
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

async fn add(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let [address, class, reason] = ["address", "class", "reason"].map(|name| given(&form, name));
    let wanted = match read_body(json!({ "address": address, "class": class, "reason": reason })) {
        Ok(wanted) => wanted,
        Err(problem) => {
            let errors = wrongs_of(problem, plain)?;
            let page = SuppressionsPage::read(&pages, &user, &mut connection, &Uri::from_static(PATH)).await?;
            return Ok(page.refused(form, errors));
        }
    };
    let now = pages.api.moment(&mut connection).await?.now;
    let (_, is_new) = suppress(&mut connection, &wanted, &user.by, now).await?;
    Ok(if is_new { Said::Suppressed } else { Said::SuppressedAlready }.at(PATH))
}

async fn lift(State(pages): State<Pages>, user: User, Path(id): Path<Uuid>, form: Form) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let body = json!({ "reason": given(&form, "reason") });
    let reason = match read_object(body, |fields| fields.required("reason", line(1000))) {
        Ok(reason) => reason,
        Err(problem) => {
            let sentences = wrongs_of(problem, plain)?;
            let mut page = SuppressionsPage::read(&pages, &user, &mut connection, &Uri::from_static(PATH)).await?;
            page.lifting = Some(id);
            // Lifted meanwhile, or on another page of the list, it has no field here.
            let is_shown = page.listing.rows.iter().any(|entry| entry.row.id == id);
            let place = if is_shown { format!("reason-{id}") } else { "main".to_owned() };
            let errors = sentences.into_iter().map(|(_, sentence)| (place.clone(), sentence)).collect();
            return Ok(page.refused(form, errors));
        }
    };
    let now = pages.api.moment(&mut connection).await?.now;
    end(&mut connection, id, Some(&reason), &user.by, now).await?;
    Ok(Said::SuppressionLifted.at(PATH))
}
