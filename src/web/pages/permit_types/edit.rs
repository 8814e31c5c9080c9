//! One permit type: its form, the lines of its schedule, and what a change would mean before it is made.
//!
//! 1. Every button of the form sends all of it; those that add or remove a line only show the form again.
//! 2. `check` reads it as the API reads a body, makes the change in a transaction that is taken back, and shows what
//!    would become of notices. That page carries the form along.
//! 3. `save` makes it, under the version that was seen. Whoever comes second sees what the first one changed.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::draft::{Draft, StepDraft, label};
use super::{PATH, rules};
use crate::domain::notice::NoticeClass;
use crate::domain::permit::PermitTypeCode;
use crate::domain::role::Role;
use crate::domain::saying::{noun, which};
use crate::store::lists::permit_types::{Effects, Expected, TypeData, TypeRow, foresee_type, read_type};
use crate::store::lists::step_effects::{COUNT_MAX, Fate, StepEffect};
use crate::store::{PgConnection, StoreError};
use crate::web::api::permit_types::{read_body, said, save};
use crate::web::api::problem::{Kind, Problem};
use crate::web::pages::Pages;
use crate::web::pages::access::User;
use crate::web::pages::differences::{Difference, differences};
use crate::web::pages::form::Form;
use crate::web::pages::frame::{Frame, show_as, shown};
use crate::web::pages::path::Code;
use crate::web::pages::shown::capped;
use crate::web::pages::words::{Done, Said};
use crate::web::pages::wrongs::{Wrongs, wrongs_of};

#[derive(Template)]
#[template(path = "pages/permit_type.html")]
struct TypePage {
    frame: Frame,
    may_change: bool,
    row: TypeRow,
    draft: Draft,
    classes: &'static [NoticeClass],
    errors: Wrongs,
    /// What somebody else made different from what is filled in, if they came first.
    theirs: Option<Vec<Difference>>,
}

/// What a change would mean.
#[derive(Template)]
#[template(path = "pages/permit_type_check.html")]
struct CheckPage {
    frame: Frame,
    row: TypeRow,
    changes: Vec<Difference>,
    effects: Effects,
    /// More pending notices than this at once are held; 0 for no limit.
    limit: u64,
    /// The form.
    fields: Vec<(String, String)>,
}

impl CheckPage {
    fn holds(&self) -> bool {
        self.limit > 0 && self.effects.due_after > self.limit
    }

    /// What becomes of a step that permits have still to come: their number, if there is one, and a sentence.
    fn to_come(step: &StepEffect) -> (Option<String>, String) {
        let (count, name) = (step.permits.map(|permits| capped(permits, COUNT_MAX)), &step.notice_type);
        let lost = match step.fate {
            Fate::SwitchedOff => "it is switched off",
            Fate::Removed => "it is removed",
            Fate::Moved { .. } => "",
        };
        let what = match (&count, step.fate) {
            (None, _) => format!("{name} would go to nobody who renews, because {lost}."),
            (Some(count), fate) => {
                let becomes = match fate {
                    Fate::Moved { from, to } => format!("get it on another day: day {to} instead of day {from}."),
                    _ => format!("no longer get it, because {lost}."),
                };
                let (permits, have) = (noun(count, "active permit"), which(count, "has", "have"));
                format!("{permits} {have} {name} still to come and would {becomes}")
            }
        };
        let law = if step.class == NoticeClass::Statutory { " It is statutory: owed by law." } else { "" };
        (count, format!("{what}{law}"))
    }
}

impl TypePage {
    fn of(pages: &Pages, user: &User, row: TypeRow, draft: Draft) -> Self {
        Self {
            frame: Frame::of(pages, user, PATH, row.name.clone()),
            may_change: user.may(Role::Admin),
            row,
            draft,
            classes: NoticeClass::ALL,
            errors: Vec::new(),
            theirs: None,
        }
    }

    /// Whether something is wrong with the field of this name.
    fn is_wrong(&self, name: &str) -> bool {
        self.errors.iter().any(|(known, _)| known == name)
    }
}

pub(super) async fn read(
    State(pages): State<Pages>,
    user: User,
    Code(code): Code,
    Done(done): Done,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let row = read_type(&mut connection, code.as_str()).await?;
    let draft = Draft::of_row(&row);
    let mut page = TypePage::of(&pages, &user, row, draft);
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

/// What a button of the form is for.
enum Wanted {
    Edit,
    Add,
    Remove(usize),
    Check,
    Save,
}

impl Wanted {
    fn of(text: &str) -> Self {
        match text {
            "edit" => Self::Edit,
            "add" => Self::Add,
            "save" => Self::Save,
            other => other.strip_prefix("remove-").and_then(|at| at.parse().ok()).map_or(Self::Check, Self::Remove),
        }
    }
}

pub(super) async fn write(
    State(pages): State<Pages>,
    user: User,
    Code(code): Code,
    form: Form,
) -> Result<Response, Problem> {
    let mut draft = Draft::of_form(&form);
    let mut connection = pages.api.connection().await?;
    let saves = match Wanted::of(form.text("do")) {
        Wanted::Check => false,
        Wanted::Save => true,
        only_shows => {
            match only_shows {
                Wanted::Add => draft.steps.push(StepDraft::default()),
                Wanted::Remove(at) if at < draft.steps.len() => drop(draft.steps.remove(at)),
                _ => {}
            }
            let row = read_type(&mut connection, code.as_str()).await?;
            return Ok(shown(&TypePage::of(&pages, &user, row, draft)));
        }
    };
    draft = draft.without_blanks();
    let expected = expected(&draft)?;
    let data = match data(&draft) {
        Ok(data) => data,
        Err(problem) => return refused(&pages, &user, &mut connection, &code, draft, problem).await,
    };
    let moment = pages.api.moment(&mut connection).await?;
    let rules = rules(&pages, &user, moment);
    let done = if saves {
        save(&mut connection, &code, expected, &data, &rules).await.map(|_| None)
    } else {
        foresee_type(&mut connection, &code, expected, &data, &rules).await.map(Some)
    };
    match done {
        Ok(None) => Ok(Said::TypeChanged.at(&format!("{PATH}/{code}"))),
        Ok(Some(effects)) => check(&pages, &user, &mut connection, &code, draft, data, effects).await,
        Err(StoreError::Stale { .. }) => conflict(&pages, &user, &mut connection, &code, draft, data).await,
        Err(error) => refused(&pages, &user, &mut connection, &code, draft, error.into()).await,
    }
}

/// The version that was seen: the form carries it.
fn expected(draft: &Draft) -> Result<Expected, Problem> {
    let version = draft.version.parse().map_err(|_| Problem::new(Kind::Malformed, "the form has no version"))?;
    Ok(Expected::Version(version))
}

/// What is filled in, if it is right.
fn data(draft: &Draft) -> Result<TypeData, Problem> {
    let (data, schedule) = read_body(draft.body())?;
    Ok(TypeData { schedule: schedule.unwrap_or_default(), ..data })
}

/// The permit type as it would be.
fn changed(row: &TypeRow, data: TypeData) -> TypeRow {
    let TypeData { name, renewal_url, office_contact, grace_days, schedule } = data;
    TypeRow { name, renewal_url, office_contact, grace_days, schedule, ..row.clone() }
}

async fn check(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    code: &PermitTypeCode,
    draft: Draft,
    data: TypeData,
    effects: Effects,
) -> Result<Response, Problem> {
    let row = read_type(connection, code.as_str()).await?;
    let changes = differences(Some(&said(&row)), Some(&said(&changed(&row, data))));
    let page = CheckPage {
        frame: Frame::of(pages, user, PATH, format!("Change {}?", row.name)),
        row,
        changes,
        effects,
        limit: pages.api.claim_limit,
        fields: draft.fields(),
    };
    Ok(shown(&page))
}

/// The form again, with what is wrong beside its fields.
async fn refused(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    code: &PermitTypeCode,
    draft: Draft,
    problem: Problem,
) -> Result<Response, Problem> {
    let errors = wrongs_of(problem, label)?;
    let row = read_type(connection, code.as_str()).await?;
    let mut page = TypePage::of(pages, user, row, draft);
    page.errors = errors;
    page.frame = page.frame.with_errors(true);
    Ok(show_as(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// The form again, with what somebody else has changed. Sent once more it takes the place of theirs.
async fn conflict(
    pages: &Pages,
    user: &User,
    connection: &mut PgConnection,
    code: &PermitTypeCode,
    mut draft: Draft,
    data: TypeData,
) -> Result<Response, Problem> {
    let row = read_type(connection, code.as_str()).await?;
    let theirs = differences(Some(&said(&row)), Some(&said(&changed(&row, data))));
    draft.version = row.version.to_string();
    let mut page = TypePage::of(pages, user, row, draft);
    page.theirs = Some(theirs);
    page.frame = page.frame.with_errors(true);
    Ok(show_as(StatusCode::CONFLICT, &page))
}
