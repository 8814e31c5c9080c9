//! Writing a permit: a new one, or changes of one, with what is wrong beside the fields, and both versions beside each
//! other when somebody else was quicker.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use uuid::Uuid;

use super::super::Pages;
use super::super::access::User;
use super::super::form::Form;
use super::super::frame::{Frame, show_as, shown};
use super::super::path::Path;
use super::super::words::Said;
use super::draft::{ContactDraft, Draft, errors_of};
use super::{HERE, rules, types};
use crate::domain::permit::PermitStatus;
use crate::store::history::list_changes;
use crate::store::lists::permits::read_permit;
use crate::store::{PgConnection, changes};
use crate::web::api::permits::write;
use crate::web::api::problem::{Kind, Problem};

/// Empty rows for contacts, beside those that are there.
const MORE_CONTACTS: usize = 2;

#[derive(Template)]
#[template(path = "pages/permits/edit.html")]
struct EditPage {
    frame: Frame,
    /// The permit; `None`: a new one.
    id: Option<Uuid>,
    /// The version that was read.
    version: i64,
    draft: Draft,
    types: Vec<(String, String)>,
    statuses: &'static [PermitStatus],
    errors: Vec<(String, String)>,
    /// What somebody else made of it meanwhile.
    theirs: Option<Theirs>,
    delay_minutes: i64,
}

/// What somebody else made of the permit meanwhile.
struct Theirs {
    /// Who, if it is known.
    by: String,
    /// Field, what stands in this form, what is there now.
    differences: Vec<(&'static str, String, String)>,
}

impl EditPage {
    async fn of(
        pages: &Pages,
        user: &User,
        connection: &mut PgConnection,
        subject: Option<(Uuid, i64)>,
        mut draft: Draft,
    ) -> Result<Self, Problem> {
        let title = match subject {
            None => "New permit".to_owned(),
            Some(_) => format!("Edit permit {}", draft.permit_number),
        };
        draft.contacts.extend(std::iter::repeat_n(ContactDraft::default(), MORE_CONTACTS));
        Ok(Self {
            frame: Frame::of(pages, user, HERE, title),
            id: subject.map(|(id, _)| id),
            version: subject.map_or(0, |(_, version)| version),
            draft,
            types: types(connection).await?,
            statuses: PermitStatus::ALL,
            errors: Vec::new(),
            theirs: None,
            delay_minutes: pages.change_delay.num_minutes(),
        })
    }

    fn with_errors(mut self, errors: Vec<(String, String)>) -> Self {
        self.frame = self.frame.with_errors(true);
        Self { errors, ..self }
    }

    /// What is wrong with one field; pairs of its place and a sentence.
    fn wrong(&self, field: &str) -> std::vec::IntoIter<&str> {
        let of_field = self.errors.iter().filter(|(known, _)| known == field);
        of_field.map(|(_, sentence)| sentence.as_str()).collect::<Vec<_>>().into_iter()
    }

    /// The same of a contact, counted from 1.
    fn wrong_of_contact(&self, number: impl std::fmt::Display, field: &str) -> Vec<&str> {
        self.wrong(&format!("contact-{number}-{field}")).collect()
    }

    fn is_wrong(&self, field: &str) -> bool {
        self.wrong(field).next().is_some()
    }
}

/// The empty form.
pub(super) async fn new(State(pages): State<Pages>, user: User) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let draft = Draft { status: "active".to_owned(), ..Draft::default() };
    Ok(shown(&EditPage::of(&pages, &user, &mut connection, None, draft).await?))
}

/// Records a new permit.
pub(super) async fn create(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let draft = Draft::of_form(&form);
    let mut connection = pages.api.connection().await?;
    let created = async {
        let data = write::read(&mut connection, draft.body(None), None).await?;
        let moment = pages.api.moment(&mut connection).await?;
        Ok::<_, Problem>(changes::create(&mut connection, &data, &rules(&pages, moment, &user)).await?)
    }
    .await;
    match created {
        Ok(permit) => Ok(Said::PermitCreated.at(&format!("{HERE}/{}", permit.id))),
        Err(problem) => {
            let errors = told_beside_fields(&mut connection, &problem).await?;
            let page = EditPage::of(&pages, &user, &mut connection, None, draft).await?;
            Ok(show_as(problem.kind().status(), &page.with_errors(errors)))
        }
    }
}

/// The form with what is there.
pub(super) async fn edit(State(pages): State<Pages>, user: User, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let row = read_permit(&mut connection, id).await?;
    let draft = Draft::of_row(&row);
    Ok(shown(&EditPage::of(&pages, &user, &mut connection, Some((id, row.version)), draft).await?))
}

/// Writes the changes, if nobody else has changed the permit since the form was opened.
pub(super) async fn save(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let draft = Draft::of_form(&form);
    let version: i64 =
        form.text("version").parse().map_err(|_| Problem::new(Kind::Malformed, "the form is not whole"))?;
    let mut connection = pages.api.connection().await?;
    let saved = async {
        let custom = read_permit(&mut connection, id).await?.custom;
        let data = write::read(&mut connection, draft.body(Some(custom)), None).await?;
        let moment = pages.api.moment(&mut connection).await?;
        let edit = |permit: &mut crate::store::permits::PermitData| *permit = data;
        changes::correct(&mut connection, id, Some(version), edit, &rules(&pages, moment, &user)).await?;
        Ok::<_, Problem>(())
    }
    .await;
    match saved {
        Ok(()) => Ok(Said::PermitSaved.at(&format!("{HERE}/{id}"))),
        Err(problem) if problem.kind() == Kind::Stale => conflict(&pages, &user, &mut connection, id, draft).await,
        Err(problem) => {
            let errors = told_beside_fields(&mut connection, &problem).await?;
            let page = EditPage::of(&pages, &user, &mut connection, Some((id, version)), draft).await?;
            Ok(show_as(problem.kind().status(), &page.with_errors(errors)))
        }
    }
}

/// Shows what was written here and what somebody else wrote meanwhile; nothing is lost.
async fn conflict(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    id: Uuid,
    draft: Draft,
) -> Result<Response, Problem> {
    let row = read_permit(connection, id).await?;
    let latest = list_changes(&mut *connection, id, None, 1).await?;
    let by = latest.into_iter().next().map(|change| change.by).unwrap_or_default();
    let differences = draft.differences(&Draft::of_row(&row));
    let mut page = EditPage::of(pages, user, connection, Some((id, row.version)), draft).await?;
    page.theirs = Some(Theirs { by, differences });
    page.frame = page.frame.with_errors(true);
    Ok(show_as(StatusCode::CONFLICT, &page))
}

/// What is said beside fields; other problems are not about what was filled in.
async fn told_beside_fields(
    connection: &mut PgConnection,
    problem: &Problem,
) -> Result<Vec<(String, String)>, Problem> {
    match problem.kind() {
        Kind::ValidationFailed => Ok(errors_of(problem)),
        Kind::PermitNumberTaken => {
            let mut errors = vec![("permit_number".to_owned(), "The permit number is taken.".to_owned())];
            // Who takes the number may have given it back since.
            if let Some(id) = problem.permit() {
                let permit = read_permit(connection, id).await?;
                let place = if permit.archived_at.is_some() { ", which is archived" } else { "" };
                let sentence = format!("{} of {} has it{place}.", permit.permit_number, permit.holder_name);
                errors.push((format!("{HERE}/{id}"), sentence));
            }
            Ok(errors)
        }
        _ => Err(problem.clone()),
    }
}
