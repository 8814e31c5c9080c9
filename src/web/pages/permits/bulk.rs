//! What is done with many permits at once: pause, archive, export. Before anything is changed a page says with how many
//! and what that means.

use askama::Template;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::NaiveDate;
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::form::Form;
use super::super::frame::{Frame, shown};
use super::super::listing::Asked;
use super::super::wrongs::sentence;
use super::change::day_of;
use super::list::{self, Refused, filter_of};
use super::{HERE, rules};
use crate::domain::export::{ExportFormat, ExportShape};
use crate::domain::words;
use crate::store::lists::permits::{PermitRow, PermitSort, Sorted, list_sorted_permits, read_permit};
use crate::store::office_log::{Deed, record};
use crate::store::{PgConnection, changes};
use crate::web::api::files::{exported, take_place};
use crate::web::api::problem::{Kind, Problem};

/// Most permits of one bulk action.
const MANY: i64 = 1000;
/// Permits that the page shows as a sample.
const SAMPLE: usize = 10;

words! {
    /// What is done with many permits.
    "action" Verb {
        /// No notices until a day.
        Pause = "pause",
        /// Put away.
        Archive = "archive",
    }
}

#[derive(Template)]
#[template(path = "pages/permits/bulk.html")]
struct BulkPage {
    frame: Frame,
    verb: Verb,
    until: Option<NaiveDate>,
    /// The list from which the form came.
    here: String,
    permits: Vec<(Uuid, String)>,
    sample: Vec<PermitRow>,
    /// What was done, once it was.
    done: Option<Vec<(String, String)>>,
}

/// Asks whether it is meant, and when it is, does it. What is wrong with it is said above the list as it was.
pub(super) async fn bulk(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    match go_on(&pages, &user, &form).await {
        Err(problem) if problem.kind() == Kind::ValidationFailed => show_again(&pages, &user, &form, &problem).await,
        done => done,
    }
}

async fn show_again(pages: &Pages, user: &User, form: &Form, problem: &Problem) -> Result<Response, Problem> {
    let errors = problem.errors().iter().map(|error| {
        let place = match error.pointer.trim_start_matches('/') {
            "ids" => "bulk",
            field => field,
        };
        (place.to_owned(), sentence(&error.detail))
    });
    let refused = Refused {
        errors: errors.collect(),
        ticked: form.all("ids").filter_map(|id| id.parse().ok()).collect(),
        scope: form.text("scope").to_owned(),
        action: form.text("action").to_owned(),
        until: form.text("until").to_owned(),
    };
    let uri = list_of(form).parse().unwrap_or_else(|_| Uri::from_static(HERE));
    let mut connection = pages.api.connection().await?;
    list::show(pages, user, &mut connection, &uri, None, Some(refused)).await
}

/// The list with its filter and place, from which the form came.
fn list_of(form: &Form) -> &str {
    let here = form.text("here");
    if here.starts_with(&format!("{HERE}?")) { here } else { HERE }
}

async fn go_on(pages: &Pages, user: &User, form: &Form) -> Result<Response, Problem> {
    let verb: Verb =
        form.text("action").parse().map_err(|_| Problem::field("/action", "required", "choose what to do"))?;
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    let until = match verb {
        Verb::Pause => match day_of(form, "until") {
            Ok(Some(day)) if day >= moment.today => Some(day),
            _ => {
                let detail = format!("say until when: the last day of the pause, today ({}) or later", moment.today);
                return Err(Problem::field("/until", "not_allowed", detail));
            }
        },
        Verb::Archive => None,
    };
    let permits = chosen(pages, &mut connection, form).await?;
    if permits.is_empty() {
        return Err(Problem::field(
            "/ids",
            "required",
            "tick at least one permit, or choose all that the filter leaves",
        ));
    }
    let done = if form.text("confirm") == "yes" {
        Some(perform(pages, user, &mut connection, verb, until, &permits).await?)
    } else {
        None
    };
    let title = match verb {
        Verb::Pause => "Pause notices",
        Verb::Archive => "Archive permits",
    };
    let page = BulkPage {
        frame: Frame::of(pages, user, HERE, title),
        verb,
        until,
        here: list_of(form).to_owned(),
        sample: permits.iter().take(SAMPLE).cloned().collect(),
        permits: permits.into_iter().map(|permit| (permit.id, permit.permit_number)).collect(),
        done,
    };
    Ok(shown(&page))
}

/// The permits that were marked, or all that the filter of the list leaves.
async fn chosen(pages: &Pages, connection: &mut PgConnection, form: &Form) -> Result<Vec<PermitRow>, Problem> {
    let mut permits = Vec::new();
    if form.text("scope") == "all" {
        let today = pages.api.moment(connection).await?.today;
        let mut asked = listed(form)?;
        let filter = filter_of(connection, &mut asked).await?;
        let sorted = Sorted { by: PermitSort::ExpiresOn, descending: false, after: None };
        let rows = list_sorted_permits(connection, &filter, today, &sorted, MANY + 1).await?;
        if rows.len() as i64 > MANY {
            let detail = format!("the list has more than {MANY} permits; narrow the filter");
            return Err(Problem::field("/scope", "too_many", detail));
        }
        permits.extend(rows.into_iter().map(|(_, row)| row));
    } else {
        for id in form.all("ids") {
            let id = id.parse().map_err(|_| Problem::new(Kind::Malformed, "the form is not whole"))?;
            permits.push(read_permit(connection, id).await?);
        }
    }
    // In the order in which everybody locks.
    permits.sort_by_key(|permit| permit.id);
    Ok(permits)
}

/// The list that the form was a part of.
fn listed(form: &Form) -> Result<Asked, Problem> {
    let address = format!("{HERE}?{}", form.text("query"));
    Asked::of(&address.parse().map_err(|_| Problem::new(Kind::Malformed, "the form is not whole"))?)
}

/// Each permit by itself: one that does not allow it keeps no other from it. Says what became of those that failed.
async fn perform(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    verb: Verb,
    until: Option<NaiveDate>,
    permits: &[PermitRow],
) -> Result<Vec<(String, String)>, Problem> {
    let moment = pages.api.moment(connection).await?;
    let rules = rules(pages, moment, user);
    let mut failed = Vec::new();
    for permit in permits {
        let done = match verb {
            Verb::Pause => {
                let edit = |data: &mut crate::store::permits::PermitData| data.notices_paused_until = until;
                changes::correct(connection, permit.id, None, edit, &rules).await
            }
            Verb::Archive => changes::archive(connection, permit.id, None, &rules).await,
        };
        if let Err(error) = done {
            failed.push((permit.permit_number.clone(), Problem::from(error).detail().to_owned()));
        }
    }
    Ok(failed)
}

/// Permits of the list's filter as a file; who took it is recorded.
pub(super) async fn export(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let format: ExportFormat =
        form.text("format").parse().map_err(|error| Problem::field("/format", "not_allowed", format!("{error}")))?;
    // The choice stands beside every format, and means something for some.
    let bom = format.is_csv() && form.get("bom").is_some();
    let mut connection = pages.api.connection().await?;
    let mut asked = listed(&form)?;
    let filter = filter_of(&mut connection, &mut asked).await?;
    let moment = pages.api.moment(&mut connection).await?;
    record(&mut *connection, Deed::exported(&user.by, format, form.text("query")), moment.now).await?;
    // Back to the others: the file has a connection of its own.
    drop(connection);
    let place = take_place(&pages.api.exports, "files")?;
    let chunks = pages.api.files.export(filter, ExportShape { format, bom }, moment.today).await?;
    Ok(exported(&pages.api, place, chunks, format))
}
