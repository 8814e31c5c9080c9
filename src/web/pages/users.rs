//! Who may sign in, for administrators.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::Pages;
use super::access::User;
use super::form::Form;
use super::frame::{Frame, show_as, shown};
use super::path::Path;
use super::visit::no_randomness;
use super::words::{Done, Said};
use super::wrongs::about;
use crate::auth::Secret;
use crate::domain::recipient::EmailAddress;
use crate::domain::role::Role;
use crate::store::office_log::{Deed, Subject, record};
use crate::store::people::links::insert_link;
use crate::store::people::sessions::end_sessions;
use crate::store::people::users::{
    UserRecord, add_user, email_key, get_user, is_last_admin, list_users, lock_users, set_disabled, set_role,
};
use crate::store::{PgConnection, unit};
use crate::web::api::problem::{Kind, Problem};

#[derive(Template)]
#[template(path = "pages/users.html")]
struct UsersPage {
    frame: Frame,
    users: Vec<UserRecord>,
    roles: &'static [Role],
    me: Uuid,
    /// A link that was just made, and for whom; it is shown this once.
    link: Option<(String, String)>,
    /// What was filled in, and what is wrong with it.
    email: String,
    role: String,
    errors: Vec<(&'static str, String)>,
}

impl UsersPage {
    async fn read(pages: &Pages, user: &User, connection: &mut PgConnection) -> Result<Self, Problem> {
        Ok(Self {
            frame: Frame::of(pages, user, "/users", "Users"),
            users: list_users(connection).await?,
            roles: Role::ALL,
            me: user.who.user,
            link: None,
            email: String::new(),
            role: Role::Clerk.as_str().to_owned(),
            errors: Vec::new(),
        })
    }
}

pub(super) async fn list(State(pages): State<Pages>, user: User, Done(done): Done) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = UsersPage::read(&pages, &user, &mut connection).await?;
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

/// Adds a user, and shows the link by which they set their password.
pub(super) async fn add(State(pages): State<Pages>, user: User, form: Form) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let email = form.text("email").parse::<EmailAddress>().map(|email| email.to_string());
    let role = form.text("role").parse::<Role>();
    let (Ok(email), Ok(role)) = (&email, &role) else {
        let mut page = UsersPage::read(&pages, &user, &mut connection).await?;
        page.errors.extend(email.err().map(|error| ("email", about("The email address", &error.to_string()))));
        page.errors.extend(role.err().map(|error| ("role", format!("The role: {error}."))));
        (page.email, page.role) = (form.text("email").to_owned(), form.text("role").to_owned());
        page.frame = page.frame.with_errors(true);
        return Ok(show_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    lock_users(&mut work).await?;
    let known = list_users(&mut *work)
        .await?
        .into_iter()
        .find(|known| known.disabled_at.is_none() && email_key(&known.email) == email_key(email));
    if known.is_some() {
        drop(work);
        let mut page = UsersPage::read(&pages, &user, &mut connection).await?;
        page.errors.push(("email", "There is a user with this email address already.".to_owned()));
        form.text("email").clone_into(&mut page.email);
        page.frame = page.frame.with_errors(true);
        return Ok(show_as(StatusCode::CONFLICT, &page));
    }
    let (added, _) = add_user(&mut work, email, *role, &user.by, now).await?;
    let link = link_for(&pages, &mut work, &added, now).await?;
    record(&mut *work, deed(&user, "added", &added, None, Some(json!({ "role": role }))), now).await?;
    work.commit().await.map_err(Problem::from)?;
    let mut page = UsersPage::read(&pages, &user, &mut connection).await?;
    page.link = Some((link, added.email));
    Ok(show_as(StatusCode::CREATED, &page))
}

/// Makes a new link for somebody who forgot their password or never set one.
pub(super) async fn new_link(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    let subject = get_user(&mut *work, id).await?;
    if subject.disabled_at.is_some() {
        return Err(Problem::new(Kind::WrongState, "the user is disabled; enable them first"));
    }
    let link = link_for(&pages, &mut work, &subject, now).await?;
    record(&mut *work, deed(&user, "link-made", &subject, None, None), now).await?;
    work.commit().await.map_err(Problem::from)?;
    let mut page = UsersPage::read(&pages, &user, &mut connection).await?;
    page.link = Some((link, subject.email));
    Ok(show_as(StatusCode::CREATED, &page))
}

async fn link_for(
    pages: &Pages,
    connection: &mut PgConnection,
    user: &UserRecord,
    now: DateTime<Utc>,
) -> Result<String, Problem> {
    let secret = Secret::generate().map_err(no_randomness)?;
    insert_link(connection, &secret.hash(), Some(user.id), now).await?;
    Ok(format!("{}set-password/{}", pages.public_url, secret.reveal()))
}

pub(super) async fn change_role(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let role: Role =
        form.text("role").parse().map_err(|error| Problem::field("/role", "not_allowed", format!("{error}")))?;
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    lock_users(&mut work).await?;
    let subject = get_user(&mut *work, id).await?;
    if role != Role::Admin {
        keep_an_admin(&mut work, &subject).await?;
    }
    set_role(&mut *work, id, role).await?;
    // Whoever is signed in as this user must not keep what another role allowed.
    end_sessions(&mut *work, id).await?;
    let (before, after) = (json!({ "role": subject.role }), json!({ "role": role }));
    record(&mut *work, deed(&user, "role-changed", &subject, Some(before), Some(after)), now).await?;
    work.commit().await.map_err(Problem::from)?;
    Ok(Said::RoleChanged.at("/users"))
}

/// Shuts somebody out, at once and everywhere.
pub(super) async fn disable(State(pages): State<Pages>, user: User, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    lock_users(&mut work).await?;
    let subject = get_user(&mut *work, id).await?;
    keep_an_admin(&mut work, &subject).await?;
    if subject.disabled_at.is_none() {
        set_disabled(&mut *work, id, Some(now)).await?;
        end_sessions(&mut *work, id).await?;
        record(&mut *work, deed(&user, "disabled", &subject, None, None), now).await?;
    }
    work.commit().await.map_err(Problem::from)?;
    Ok(Said::UserDisabled.at("/users"))
}

pub(super) async fn enable(State(pages): State<Pages>, user: User, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    let mut work = unit::begin(&mut connection).await?;
    let subject = get_user(&mut *work, id).await?;
    if subject.disabled_at.is_some() {
        set_disabled(&mut *work, id, None).await?;
        record(&mut *work, deed(&user, "enabled", &subject, None, None), now).await?;
    }
    work.commit().await.map_err(Problem::from)?;
    Ok(Said::UserEnabled.at("/users"))
}

/// Without an administrator nobody could let anybody in again.
async fn keep_an_admin(connection: &mut PgConnection, subject: &UserRecord) -> Result<(), Problem> {
    if is_last_admin(connection, subject).await? {
        return Err(Problem::new(
            Kind::WrongState,
            "this is the only administrator who can sign in; make another first",
        ));
    }
    Ok(())
}

fn deed<'d>(
    user: &'d User,
    action: &'d str,
    subject: &'d UserRecord,
    before: Option<serde_json::Value>,
    after: Option<serde_json::Value>,
) -> Deed<'d> {
    Deed {
        by: &user.by,
        action,
        subject: Subject::User,
        subject_id: Some(subject.id),
        label: &subject.email,
        before,
        after,
    }
}
