//! The office's permits: find them ([`list`]), look at one ([`show`]), write one ([`edit`]), and what is done with one
//! ([`change`]) or with many ([`bulk`]).

mod bulk;
mod change;
mod draft;
mod edit;
mod in_short;
mod list;
mod show;

use axum::Router;
use axum::routing::{get, post};

use super::Pages;
use super::access::User;
use crate::store::changes::ChangeRules;
use crate::store::{Moment, PgConnection};
use crate::web::api::problem::Problem;

/// Where the list is.
const HERE: &str = "/permits";

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/permits", get(list::list))
        .route("/permits/new", get(edit::new).post(edit::create))
        .route("/permits/bulk", post(bulk::bulk))
        .route("/permits/export", post(bulk::export))
        .route("/permits/{id}", get(show::show))
        .route("/permits/{id}/edit", get(edit::edit).post(edit::save))
        .route("/permits/{id}/renew", post(change::renew))
        .route("/permits/{id}/pause", post(change::pause))
        .route("/permits/{id}/archive", post(change::archive))
        .route("/permits/{id}/restore", post(change::restore))
        .route("/permits/{id}/steps", post(change::decide))
}

/// What changes made here go by: their notices wait a little, so that a typo can be mended.
fn rules<'r>(pages: &'r Pages, moment: Moment, user: &'r User) -> ChangeRules<'r> {
    ChangeRules { delay: pages.change_delay, ..pages.api.change_rules(moment, &user.by) }
}

/// Codes and names of the permit types.
async fn types(connection: &mut PgConnection) -> Result<Vec<(String, String)>, Problem> {
    let types = crate::store::permit_types::list_permit_types(connection).await?;
    Ok(types.into_iter().map(|kind| (kind.code, kind.name)).collect())
}
