//! Access tokens of the API, for administrators.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use chrono::NaiveDate;
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
use crate::domain::scope::Scope;
use crate::store::PgConnection;
use crate::store::tokens::{TokenRecord, list_tokens};
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;
use crate::web::api::tokens::{end, make, read_body};

const PATH: &str = "/tokens";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(list).post(create)).route("/tokens/{id}/revoke", post(revoke))
}

#[derive(Template)]
#[template(path = "pages/tokens.html")]
struct TokensPage {
    frame: Frame,
    listing: Listing<Row>,
    scopes: &'static [Scope],
    today: NaiveDate,
    /// A token that was just made, and its name; it is shown this once.
    made: Option<(String, String)>,
    /// What was filled in, and what is wrong with it.
    filled: Form,
    errors: Wrongs,
}

struct Row {
    token: TokenRecord,
    made: When,
    used: Option<When>,
    revoked: Option<When>,
    is_expired: bool,
}

impl TokensPage {
    async fn read(pages: &Pages, user: &User, connection: &mut PgConnection, uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Asked::of(uri)?;
        let page = Page::<Uuid>::read(&asked.uri, &mut asked.query)?;
        let today = pages.api.moment(connection).await?.today;
        let rows = list_tokens(&mut *connection, page.after, page.fetch()).await?;
        let zone = pages.api.zone;
        let show = |token: TokenRecord| Row {
            made: when(token.created_at, zone),
            used: token.last_used_at.map(|at| when(at, zone)),
            revoked: token.revoked_at.map(|at| when(at, zone)),
            is_expired: token.expires_on.is_some_and(|last| last < today),
            token,
        };
        Ok(Self {
            frame: Frame::of(pages, user, PATH, "Tokens"),
            listing: Listing::of(&asked, &page, rows, |token| token.id).map(show),
            scopes: Scope::ALL,
            today,
            made: None,
            filled: Form::default(),
            errors: Vec::new(),
        })
    }
}

async fn list(State(pages): State<Pages>, user: User, uri: Uri, Done(done): Done) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = TokensPage::read(&pages, &user, &mut connection, &uri).await?;
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

/// Makes a token, and shows it.
async fn create(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    let [name, scope, expires_on] = ["name", "scope", "expires_on"].map(|name| given(&form, name));
    let uri = Uri::from_static(PATH);
    let wanted = match read_body(json!({ "name": name, "scope": scope, "expires_on": expires_on }), moment.today) {
        Ok(wanted) => wanted,
        Err(problem) => {
            let errors = wrongs_of(problem, plain)?;
            let mut page = TokensPage::read(&pages, &user, &mut connection, &uri).await?;
            (page.filled, page.errors) = (form, errors);
            page.frame = page.frame.with_errors(true);
            return Ok(show_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
    };
    let (token, kept) = make(&mut connection, &wanted, &user.by, moment.now).await?;
    let mut page = TokensPage::read(&pages, &user, &mut connection, &uri).await?;
    page.made = Some((token.reveal().to_owned(), kept.name));
    Ok(show_as(StatusCode::CREATED, &page))
}

async fn revoke(State(pages): State<Pages>, user: User, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    end(&pages.api, &mut connection, id, &user.by).await?;
    Ok(Said::TokenRevoked.at(PATH))
}
