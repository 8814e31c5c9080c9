//! Permit types: a list, and each with what it owes.

mod draft;
mod edit;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use super::Pages;
use super::access::User;
use super::form::Form;
use super::frame::{Frame, show_as, shown};
use super::when::{When, when};
use super::words::{Done, Said};
use super::wrongs::{Wrongs, given, plain, wrongs_of};
use crate::domain::permit::PermitTypeCode;
use crate::domain::role::Role;
use crate::domain::schedule::Schedule;
use crate::store::Moment;
use crate::store::PgConnection;
use crate::store::changes::ChangeRules;
use crate::store::lists::permit_types::{Expected, TypeRow, Written, list_types};
use crate::web::api::permit_types::{read_body, save};
use crate::web::api::problem::Problem;

const PATH: &str = "/permit-types";
/// There are few; more are not listed.
const LISTED: i64 = 1000;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(list).post(add)).route("/permit-types/{code}", get(edit::read).post(edit::write))
}

#[derive(Template)]
#[template(path = "pages/permit_types.html")]
struct TypesPage {
    frame: Frame,
    may_change: bool,
    types: Vec<Row>,
    /// What was filled in, and what is wrong with it.
    filled: Form,
    errors: Wrongs,
}

struct Row {
    row: TypeRow,
    changed: When,
}

impl Row {
    fn enabled(&self) -> usize {
        self.row.schedule.steps().iter().filter(|step| step.enabled).count()
    }
}

impl TypesPage {
    async fn read(pages: &Pages, user: &User, connection: &mut PgConnection) -> Result<Self, Problem> {
        let rows = list_types(connection, None, LISTED).await?;
        let zone = pages.api.zone;
        let types = rows.into_iter().map(|row| Row { changed: when(row.updated_at, zone), row });
        Ok(Self {
            frame: Frame::of(pages, user, PATH, "Permit types"),
            may_change: user.may(Role::Admin),
            types: types.collect(),
            filled: Form::default(),
            errors: Vec::new(),
        })
    }
}

async fn list(State(pages): State<Pages>, user: User, Done(done): Done) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = TypesPage::read(&pages, &user, &mut connection).await?;
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

/// Makes a permit type with the usual schedule.
async fn add(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    match try_add(&pages, &user, &mut connection, &form).await {
        Ok(code) => Ok(Said::TypeMade.at(&format!("{PATH}/{code}"))),
        Err(problem) => {
            let errors = wrongs_of(problem, plain)?;
            let mut page = TypesPage::read(&pages, &user, &mut connection).await?;
            (page.filled, page.errors) = (form, errors);
            page.frame = page.frame.with_errors(true);
            Ok(show_as(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

async fn try_add(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    form: &Form,
) -> Result<PermitTypeCode, Problem> {
    let refused = |why: String| Problem::field("/code", "not_allowed", why);
    let code = form.text("code").parse::<PermitTypeCode>().map_err(|error| refused(error.to_string()));
    let data = read_body(json!({ "name": given(form, "name") }));
    let (code, mut data) = match (code, data) {
        (Ok(code), Ok((data, _))) => (code, data),
        (Err(code), Err(data)) => return Err(Problem::fields([data.errors(), code.errors()].concat())),
        (Err(problem), _) | (_, Err(problem)) => return Err(problem),
    };
    data.schedule = Schedule::usual();
    let moment = pages.api.moment(connection).await?;
    let (written, _) = save(connection, &code, Expected::None, &data, &rules(pages, user, moment)).await?;
    match written {
        Written::NeedsVersion => Err(refused("there is a permit type with this code already".to_owned())),
        Written::Made | Written::Changed => Ok(code),
    }
}

/// What a change by this person goes by.
fn rules<'r>(pages: &'r Pages, user: &'r User, moment: Moment) -> ChangeRules<'r> {
    ChangeRules { delay: pages.change_delay, ..pages.api.change_rules(moment, &user.by) }
}
