//! People who sign in: the first administrator, and users who are added by command.

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use url::Url;

use super::App;
use crate::{
    auth::{Secret, password},
    domain::{recipient::EmailAddress, role::Role},
    store::{
        office_log::{Deed, Subject, record},
        people::{
            links::insert_link,
            sessions::end_sessions,
            users::{UserRecord, add_user, find_user, is_last_admin, is_nobody, lock_users, set_password},
        },
        unit,
    },
};

/// Who makes the first administrator.
const FIRST_START: &str = "first-start";

/// What became of a user who was added by command.
pub struct Added {
    /// The link by which they set their password.
    pub link: String,
    /// The account as it was, if there was one.
    pub before: Option<UserRecord>,
}

/// Adds a user, or gives a known one this role and lets them in again; in any case makes a link.
pub async fn add(app: &App<'_>, email: &EmailAddress, role: Role, by: &str) -> Result<Added> {
    let email = email.to_string();
    let now = app.moment(None).await?.now;
    let secret = Secret::generate()?;
    let mut connection = app.pool.acquire().await?;
    let mut work = unit::begin(&mut connection).await?;
    lock_users(&mut work).await?;
    let before = find_user(&mut *work, &email).await?;
    if let Some(known) = &before
        && role != Role::Admin
        && is_last_admin(&mut *work, known).await?
    {
        bail!("{} is the only administrator who can sign in; make another first", known.email);
    }
    let (user, _) = add_user(&mut work, &email, role, by, now).await?;
    if before.as_ref().is_some_and(|known| known.role != role || known.disabled_at.is_some()) {
        // Whoever is signed in as this user must not keep what another role allowed.
        end_sessions(&mut *work, user.id).await?;
    }
    insert_link(&mut work, &secret.hash(), Some(user.id), now).await?;
    for (action, was, is) in deeds(before.as_ref(), role) {
        let (subject, subject_id) = (Subject::User, Some(user.id));
        record(&mut *work, Deed { by, action, subject, subject_id, label: &user.email, before: was, after: is }, now)
            .await?;
    }
    work.commit().await?;
    Ok(Added { link: link(&app.config.public_url(app.config.listen_addr), &secret), before })
}

/// What is recorded, under the names that the page Users gives the same: what was done, what was, what is.
fn deeds(before: Option<&UserRecord>, role: Role) -> Vec<(&'static str, Option<Value>, Option<Value>)> {
    let Some(known) = before else { return vec![("added", None, Some(json!({ "role": role })))] };
    let mut deeds = Vec::new();
    if known.role != role {
        deeds.push(("role-changed", Some(json!({ "role": known.role })), Some(json!({ "role": role }))));
    }
    if known.disabled_at.is_some() {
        deeds.push(("enabled", None, None));
    }
    deeds.push(("link-made", None, None));
    deeds
}

/// Makes sure that somebody can sign in: the administrator that is set, while there is no user. Without one, gives a
/// link by which whoever has it becomes the first.
pub async fn first_admin(app: &App<'_>, public_url: &Url) -> Result<Option<String>> {
    let now = app.moment(None).await?.now;
    let mut connection = app.pool.acquire().await?;
    let mut work = unit::begin(&mut connection).await?;
    lock_users(&mut work).await?;
    if !is_nobody(&mut *work).await? {
        return Ok(None);
    }
    let link = if let Some(admin) = &app.config.first_admin {
        let email = admin.email.to_string();
        password::check(&admin.password, &email).map_err(|refused| anyhow!("ADMIN_PASSWORD {refused}"))?;
        let password = admin.password.clone();
        let hashed = tokio::task::spawn_blocking(move || password::hash(&password));
        let (user, _) = add_user(&mut work, &email, Role::Admin, FIRST_START, now).await?;
        set_password(&mut *work, user.id, &hashed.await.context("a password could not be hashed")??).await?;
        tracing::info!("the first administrator was made from ADMIN_EMAIL");
        None
    } else {
        let secret = Secret::generate()?;
        insert_link(&mut work, &secret.hash(), None, now).await?;
        Some(link(public_url, &secret))
    };
    work.commit().await?;
    Ok(link)
}

/// Makes an administrator with a password of its own; says the password. For an office that nobody else reaches.
pub async fn set_up(app: &App<'_>, email: &str) -> Result<String> {
    let now = app.moment(None).await?.now;
    let password: String = Secret::generate()?.reveal().chars().take(16).collect();
    let mut connection = app.pool.acquire().await?;
    let (user, _) = add_user(&mut connection, email, Role::Admin, FIRST_START, now).await?;
    set_password(&mut *connection, user.id, &password::hash(&password.as_str().into())?).await?;
    Ok(password)
}

fn link(public_url: &Url, secret: &Secret) -> String {
    format!("{public_url}set-password/{}", secret.reveal())
}
