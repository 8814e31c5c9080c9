//! What is done with one permit besides writing it: renew, pause, archive, restore, and hold or skip a step in advance.

use axum::extract::State;
use axum::response::Response;
use chrono::NaiveDate;
use serde_json::json;
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::form::Form;
use super::super::path::Path;
use super::super::words::Said;
use super::show::{OUTLOOK, page_with_fault};
use super::{HERE, rules};
use crate::store::actions::Beforehand;
use crate::store::changes;
use crate::web::api::fields::date;
use crate::web::api::permits::ahead::decide_recorded;
use crate::web::api::permits::write::read_renewal;
use crate::web::api::problem::{Kind, Problem};

fn at(id: Uuid) -> String {
    format!("{HERE}/{id}")
}

/// The version of the permit that the form was made from.
fn version(form: &Form) -> Option<i64> {
    form.text("version").parse().ok()
}

/// After what was done, the permit; or the permit with why it was not, and the field it is about.
async fn answer(
    pages: &Pages,
    user: &User,
    id: Uuid,
    field: &'static str,
    done: Result<Said, Problem>,
) -> Result<Response, Problem> {
    match done {
        Ok(said) => Ok(said.at(&at(id))),
        Err(problem) if matches!(problem.kind(), Kind::NotFound | Kind::Internal | Kind::Unavailable) => Err(problem),
        Err(problem) => page_with_fault(pages, user, id, field, &problem).await,
    }
}

pub(super) async fn renew(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let done = async {
        let text = |name: &str| Some(form.text(name)).filter(|text| !text.is_empty());
        let body = json!({ "expires_on": text("expires_on"), "effective_on": text("effective_on") });
        let (expires_on, effective_on) = read_renewal(body)?;
        let mut connection = pages.api.connection().await?;
        let moment = pages.api.moment(&mut connection).await?;
        let rules = rules(&pages, moment, &user);
        changes::renew(&mut connection, id, version(&form), expires_on, effective_on, &rules).await?;
        Ok(Said::PermitRenewed)
    }
    .await;
    answer(&pages, &user, id, "expires_on", done).await
}

/// Pauses notices until a day, or lets them go on when none is given.
pub(super) async fn pause(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let done = async {
        let until = day_of(&form, "notices_paused_until")?;
        let mut connection = pages.api.connection().await?;
        let moment = pages.api.moment(&mut connection).await?;
        if until.is_some_and(|until| until < moment.today) {
            let detail = format!("must be today ({}) or later", moment.today);
            return Err(Problem::field("/notices_paused_until", "not_allowed", detail));
        }
        let edit = |permit: &mut crate::store::permits::PermitData| permit.notices_paused_until = until;
        changes::correct(&mut connection, id, version(&form), edit, &rules(&pages, moment, &user)).await?;
        Ok(if until.is_some() { Said::PermitPaused } else { Said::PermitResumed })
    }
    .await;
    answer(&pages, &user, id, "notices_paused_until", done).await
}

/// The day in a field, which may be empty.
pub(super) fn day_of(form: &Form, field: &'static str) -> Result<Option<NaiveDate>, Problem> {
    match form.text(field) {
        "" => Ok(None),
        text => match date(&text.into()) {
            Ok(day) => Ok(Some(day)),
            Err((code, detail)) => Err(Problem::field(format!("/{field}"), code, detail)),
        },
    }
}

pub(super) async fn archive(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let done = async {
        let mut connection = pages.api.connection().await?;
        let moment = pages.api.moment(&mut connection).await?;
        changes::archive(&mut connection, id, version(&form), &rules(&pages, moment, &user)).await?;
        Ok(Said::PermitArchived)
    }
    .await;
    answer(&pages, &user, id, "archive", done).await
}

pub(super) async fn restore(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let done = async {
        let mut connection = pages.api.connection().await?;
        let moment = pages.api.moment(&mut connection).await?;
        changes::restore(&mut connection, id, version(&form), &rules(&pages, moment, &user)).await?;
        Ok(Said::PermitRestored)
    }
    .await;
    answer(&pages, &user, id, "archive", done).await
}

/// Holds or skips a step before it is due.
pub(super) async fn decide(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let done = async {
        let (beforehand, said) = match form.text("action") {
            "hold" => (Beforehand::Hold, Said::StepHeld),
            "cancel" => (Beforehand::Cancel, Said::StepSkipped),
            _ => return Err(Problem::field("/action", "not_allowed", "must be hold or cancel")),
        };
        let (step, reason) = (form.text("notice_type"), form.text("reason"));
        let mut connection = pages.api.connection().await?;
        let moment = pages.api.moment(&mut connection).await?;
        let rules = pages.api.action_rules(moment);
        decide_recorded(&mut connection, id, step, (beforehand, reason), &user.by, &rules).await?;
        Ok(said)
    }
    .await;
    answer(&pages, &user, id, OUTLOOK, done).await
}
