//! One notice that will be sent: its mails as they will look, and keeping it back.

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use chrono::NaiveDate;
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::form::Form;
use super::super::frame::{self, Frame};
use super::super::listing::Asked;
use super::super::notices::act::{back, is_about_it};
use super::super::notices::mail::{MailView, PreviewPage, html_of};
use super::super::path::{Path, missing};
use super::super::words::Said;
use super::forecast::field_of;
use super::{Refused, show_refused};
use crate::domain::copies::{Owed, copies};
use crate::domain::notice::NoticeKey;
use crate::domain::outlook::outlook;
use crate::store::actions::Beforehand;
use crate::store::cases::{Hold, load_case, load_suppressed};
use crate::store::leases::Leased;
use crate::store::lists::upcoming::read_mail_facts;
use crate::store::permit_types::load_schedules;
use crate::store::{PgConnection, StoreError};
use crate::web::api::permits::ahead::decide_recorded;
use crate::web::api::problem::{Kind, Problem};

/// A step of a permit, as it will be mailed.
struct Ahead {
    permit_number: String,
    /// The day on which it goes.
    day: NaiveDate,
    mails: Vec<Leased>,
}

/// Reads what the mails of a step that has no notice will say.
async fn read(pages: &Pages, connection: &mut PgConnection, permit: Uuid, step: &str) -> Result<Ahead, Problem> {
    let today = pages.api.moment(connection).await?.today;
    let case = load_case(connection, permit, Hold::Look).await?;
    let schedules = load_schedules(&mut *connection).await?;
    let missing = || StoreError::NotFound("step of the permit's schedule");
    let schedule = schedules.get(&case.permit_type).ok_or_else(missing)?;
    let window = pages.api.window.as_ref();
    let prospects = outlook(&case.standing, schedule, &case.rows, today, window);
    let prospect = prospects.into_iter().find(|prospect| prospect.notice_type.as_str() == step).ok_or_else(missing)?;
    let class = schedule.step(&prospect.notice_type).ok_or_else(missing)?.class;
    let due_on = prospect.due_on.unwrap_or(today);
    let day = prospect.goes_on.unwrap_or(due_on.max(today));
    let facts = read_mail_facts(connection, permit).await?;
    let cases = [case];
    let suppressed = load_suppressed(connection, &cases).await?;
    let [case] = cases;
    let owed = copies(class, &case.recipients, |r| suppressed.forbids(class, &r.address));
    let mails = owed.into_iter().filter_map(|copy| match copy {
        Owed::Mail(recipient) => Some(recipient.clone()),
        Owed::Suppressed(_) | Owed::Letter => None,
    });
    let mails = mails.map(|recipient| Leased {
        // There is no delivery yet; what a mail says does not depend on its id.
        delivery_id: Uuid::nil(),
        token: Uuid::nil(),
        notice_id: Uuid::nil(),
        key: NoticeKey {
            permit_id: permit,
            notice_type: prospect.notice_type.clone(),
            expires_on: case.standing.expires_on,
        },
        class,
        due_on,
        recipient,
        copy: 1,
        message_id: None,
        version: facts.version,
        type_version: facts.type_version,
        permit_number: case.permit_number.clone(),
        permit_type: facts.permit_type.clone(),
        holder_name: facts.holder_name.clone(),
        site_address: facts.site_address.clone(),
        description: facts.description.clone(),
        renewal_url: facts.renewal_url.clone(),
        office_contact: facts.office_contact.clone(),
        grace_days: facts.grace_days,
    });
    Ok(Ahead { permit_number: case.permit_number.clone(), day, mails: mails.collect() })
}

/// `GET /upcoming/{permit}/{step}`: its mails as they will look.
pub(super) async fn preview(
    State(pages): State<Pages>,
    user: User,
    Path((permit, step)): Path<(Uuid, String)>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    Asked::of(&uri)?.query.finish()?;
    let mut connection = pages.api.connection().await?;
    let ahead = read(&pages, &mut connection, permit, &step).await?;
    let mails = ahead
        .mails
        .iter()
        .enumerate()
        .map(|(place, copy)| MailView::of(&pages, copy, ahead.day, format!("/upcoming/{permit}/{step}/{place}")));
    let page = PreviewPage {
        frame: Frame::of(&pages, &user, "/upcoming", format!("What the mails of {} {step} say", ahead.permit_number)),
        mails: mails.collect(),
        day: ahead.day,
        back: format!("/upcoming?day={}", ahead.day),
        back_name: ahead.day.format("%A, %-d %B %Y").to_string(),
    };
    Ok(frame::shown(&page))
}

/// `GET /upcoming/{permit}/{step}/{place}`: the HTML of one of them alone.
pub(super) async fn html(
    State(pages): State<Pages>,
    _user: User,
    Path((permit, step, place)): Path<(Uuid, String, usize)>,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let ahead = read(&pages, &mut connection, permit, &step).await?;
    let copy = ahead.mails.get(place).ok_or(StoreError::NotFound("mail"))?;
    html_of(pages.api.mails.preview(copy, ahead.day))
}

/// `POST /upcoming/{permit}/{step}`: holds or cancels the notice of a step whose day has not come.
pub(super) async fn decide(
    State(pages): State<Pages>,
    user: User,
    Path((permit, step)): Path<(Uuid, String)>,
    form: Form,
) -> Result<Response, Problem> {
    let (beforehand, said) = match form.text("action") {
        "hold" => (Beforehand::Hold, Said::NoticeHeld),
        "cancel" => (Beforehand::Cancel, Said::NoticeCancelled),
        _ => return Err(Problem::new(Kind::NotFound, "there is no such action")),
    };
    let mut connection = pages.api.connection().await?;
    let moment = pages.api.moment(&mut connection).await?;
    let rules = pages.api.action_rules(moment);
    let reason = form.text("reason");
    let decided = decide_recorded(&mut connection, permit, &step, (beforehand, reason), &user.by, &rules).await;
    match decided.map_err(Problem::from) {
        Ok(notice) => Ok(said.at(&back(&form, format!("/notices/{notice}")))),
        Err(problem) if problem.errors().iter().any(|error| error.pointer == "/notice_type") => Err(missing()),
        Err(problem) if is_about_it(&problem) => {
            let back = back(&form, "/upcoming".to_owned());
            let refused = Refused { field: field_of(permit, &step), reason: reason.to_owned() };
            show_refused(&pages, &user, &mut connection, &back, refused, &problem).await
        }
        Err(problem) => Err(problem),
    }
}
