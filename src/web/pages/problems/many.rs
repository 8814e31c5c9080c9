//! The same with many notices at once: those that are ticked, or all that were held together.

use axum::extract::State;
use axum::response::Response;
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::form::Form;
use super::super::notices::act::{back, do_with, is_about_it, sentences};
use super::super::words::Said;
use super::{Refused, show_refused};
use crate::domain::saying::counted;
use crate::store::actions::{HeldBy, release_held};
use crate::store::lists::notices::{in_order_of_permits, name_notice};
use crate::web::api::notices::action::Verb;
use crate::web::api::problem::{Kind, Problem};

/// Most notices of one request.
const MANY: usize = 200;

/// `POST /problems/actions`: each ticked notice is done or not by itself; the page says which were not.
pub(super) async fn act_many(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let back = back(&form, "/problems".to_owned());
    let mut connection = pages.api.connection().await?;
    let verb = form.text("action").parse::<Verb>().ok();
    // What the others take belongs to one notice alone.
    let verb = verb.filter(|verb| matches!(verb, Verb::Retry | Verb::Cancel | Verb::Release));
    let verb = verb.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such action for many"))?;
    let ids: Vec<Uuid> = form.all("notice").filter_map(|id| id.parse().ok()).collect();
    let refused = |errors| Refused { errors, reason: form.text("reason").to_owned(), ticked: ids.clone() };
    let unprocessable = Kind::ValidationFailed.status();
    if ids.is_empty() {
        let errors = vec![("main".to_owned(), "Tick the notices that are meant.".to_owned())];
        return show_refused(&pages, &user, &mut connection, &back, unprocessable, refused(errors)).await;
    }
    if ids.len() > MANY {
        let errors = vec![("main".to_owned(), format!("Tick at most {MANY} notices at once; nothing was done."))];
        return show_refused(&pages, &user, &mut connection, &back, unprocessable, refused(errors)).await;
    }
    if verb == Verb::Cancel && form.text("reason").is_empty() {
        let errors = vec![(form.text("field").to_owned(), "Give the reason.".to_owned())];
        return show_refused(&pages, &user, &mut connection, &back, unprocessable, refused(errors)).await;
    }
    let moment = pages.api.moment(&mut connection).await?;
    let mut errors = Vec::new();
    let notices = in_order_of_permits(&mut connection, &ids).await?;
    let mut done = 0;
    for id in notices.iter().copied() {
        match do_with(&mut connection, &pages, &user, moment, (id, verb), &form).await {
            Ok(()) => done += 1,
            Err(problem) if is_about_it(&problem) => {
                let (name, _) = name_notice(&mut *connection, id).await?;
                for (place, sentence) in sentences(verb, &problem) {
                    let place = if place.starts_with('/') { place } else { "main".to_owned() };
                    errors.push((place, format!("{name}: {sentence}")));
                }
            }
            Err(problem) => return Err(problem),
        }
    }
    if errors.is_empty() {
        return Ok(Said::ManyDone.at(&back));
    }
    if done > 0 {
        let said = format!("It was done with {done} of {}.", counted(notices.len(), "notice"));
        errors.insert(0, ("main".to_owned(), said));
    }
    show_refused(&pages, &user, &mut connection, &back, Kind::WrongState.status(), refused(errors)).await
}

/// `POST /problems/held`: releases or cancels what a scan or an import held, or what is held because the memory went
/// back.
pub(super) async fn settle_held(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let back = back(&form, "/problems?kind=held".to_owned());
    let mut connection = pages.api.connection().await?;
    let held_by = held_by(&form)?;
    let cancels = match form.text("action") {
        "release" => false,
        "cancel" => true,
        _ => return Err(Problem::new(Kind::NotFound, "there is no such action for many")),
    };
    let moment = pages.api.moment(&mut connection).await?;
    let rules = pages.api.action_rules(moment);
    let reason = form.text("reason");
    let done = release_held(&mut connection, held_by, cancels, reason, &user.by, &rules, |_| {}).await;
    match done.map_err(Problem::from) {
        Ok(_) => Ok(if cancels { Said::HeldCancelled } else { Said::HeldReleased }.at(&back)),
        Err(problem) if is_about_it(&problem) => {
            let field = format!("reason-{}", form.text("field"));
            let verb = if cancels { Verb::Cancel } else { Verb::Release };
            let errors = sentences(verb, &problem).into_iter().map(|(_, sentence)| (field.clone(), sentence)).collect();
            let refused = Refused { errors, reason: reason.to_owned(), ticked: Vec::new() };
            show_refused(&pages, &user, &mut connection, &back, problem.kind().status(), refused).await
        }
        Err(problem) => Err(problem),
    }
}

/// What the form names.
fn held_by(form: &Form) -> Result<HeldBy, Problem> {
    let id = |name| form.text(name).parse::<Uuid>().ok();
    match (id("scan"), id("import"), form.text("restored")) {
        (Some(scan), None, "") => Ok(HeldBy::Scan(scan)),
        (None, Some(import), "") => Ok(HeldBy::Import(import)),
        (None, None, "yes") => Ok(HeldBy::Restored),
        _ => Err(Problem::new(Kind::Malformed, "the form does not say whose held notices are meant")),
    }
}
