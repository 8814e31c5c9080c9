//! What people do with notices, on whatever page: the same as over the API, and written down.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::form::Form;
use super::super::path::Path;
use super::super::words::Said;
use super::super::wrongs::about;
use super::show_refused;
use crate::domain::delivery::DeliveryState;
use crate::store::lists::notices::NoticeRow;
use crate::store::{Moment, PgConnection};
use crate::web::api::notices::action::Verb;
use crate::web::api::notices::settle;
use crate::web::api::problem::{Kind, Problem};

/// The page of a notice that somebody acts on leads back to where they came from.
const BACK: [&str; 3] = ["/problems", "/notices", "/upcoming"];

/// The fields that actions take.
const FIELDS: [&str; 6] = ["reason", "outcome", "delivery_id", "recipient", "posted_on", "tracking"];

/// What an action takes, from a form in which an empty field says nothing.
fn body_of(verb: Verb, form: &Form) -> Value {
    let takes: &[&str] = match verb {
        Verb::Retry => &[],
        Verb::Cancel | Verb::Hold | Verb::Release => &["reason"],
        Verb::Resolve => &["reason", "outcome", "delivery_id"],
        Verb::Copies => &["reason", "recipient"],
        Verb::Posted => &["delivery_id", "posted_on", "tracking"],
    };
    let given = FIELDS.into_iter().filter(|name| takes.contains(name) && !form.text(name).is_empty());
    let mut body: Map<_, _> = given.map(|name| (name.to_owned(), Value::from(form.text(name)))).collect();
    if verb == Verb::Cancel && form.get("failed_only").is_some() {
        body.insert("failed_only".to_owned(), true.into());
    }
    Value::Object(body)
}

/// Does it as the API does, which writes down who did it.
pub async fn do_with(
    connection: &mut PgConnection,
    pages: &Pages,
    user: &User,
    moment: Moment,
    (id, verb): (Uuid, Verb),
    form: &Form,
) -> Result<(), Problem> {
    settle(connection, id, verb, body_of(verb, form), &user.by, &pages.api.action_rules(moment)).await
}

/// How people call a notice.
pub fn label_of(notice: &NoticeRow) -> String {
    format!("{} {}", notice.permit_number, notice.notice_type)
}

/// What a page says when it is done.
pub fn said(verb: Verb) -> Said {
    match verb {
        Verb::Retry => Said::Retried,
        Verb::Cancel => Said::NoticeCancelled,
        Verb::Hold => Said::NoticeHeld,
        Verb::Release => Said::NoticeReleased,
        Verb::Resolve => Said::Resolved,
        Verb::Copies => Said::CopyAdded,
        Verb::Posted => Said::LetterPosted,
    }
}

/// Where the form was, if it is one of the pages that lead here.
pub fn back(form: &Form, usual: String) -> String {
    let back = form.text("back");
    let is_ours = BACK
        .iter()
        .any(|page| back.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '/'])));
    let is_plain = !back.chars().any(|c| c.is_control() || c == '\\' || c == '#');
    if is_ours && is_plain { back.to_owned() } else { usual }
}

/// Whether a person can do something about it on the page, so that it is shown there.
pub fn is_about_it(problem: &Problem) -> bool {
    matches!(problem.kind(), Kind::WrongState | Kind::BeingSent | Kind::ValidationFailed)
}

/// `POST /notices/{id}/{verb}`.
pub(super) async fn act(
    State(pages): State<Pages>,
    user: User,
    Path((id, verb)): Path<(Uuid, String)>,
    form: Form,
) -> Result<Response, Problem> {
    let verb: Verb = verb.parse().map_err(|_| Problem::new(Kind::NotFound, "there is no such action"))?;
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    match do_with(&mut connection, &pages, &user, moment, (id, verb), &form).await {
        Ok(()) => Ok(said(verb).at(&back(&form, format!("/notices/{id}")))),
        Err(problem) if is_about_it(&problem) => {
            show_refused(&pages, &user, &mut connection, (id, verb), &form, &problem).await
        }
        Err(problem) => Err(problem),
    }
}

/// What is wrong, as pairs of a place on the page, or of another page, and a sentence.
pub fn sentences(verb: Verb, problem: &Problem) -> Vec<(String, String)> {
    if problem.state() == Some(DeliveryState::Suppressed.as_str()) {
        let sentence = "The address is suppressed. Lift that under Suppressions, then send it again.";
        return vec![("/suppressions".to_owned(), sentence.to_owned())];
    }
    if problem.errors().is_empty() {
        return vec![("actions".to_owned(), sentence(problem.detail()))];
    }
    let errors = problem.errors().iter().map(|error| {
        let field = error.pointer.trim_start_matches('/');
        let name = match field {
            "posted_on" => "The day of posting",
            "tracking" => "The tracking number",
            "recipient" => "The address",
            "outcome" => "What was found out",
            _ => "The reason",
        };
        (format!("{verb}-{field}"), about(name, &error.detail))
    });
    errors.collect()
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
