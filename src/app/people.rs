//! People who sign in: the first administrator, and users who are added by command.

use anyhow::{Context, Result, anyhow};
use serde_json::json;
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
            users::{add_user, is_nobody, lock_users, set_password},
        },
        unit,
    },
};

/// Who makes the first administrator.
const FIRST_START: &str = "first-start";

/// Adds a user, or gives a known one this role; gives the link by which they set their password.
pub async fn add(app: &App<'_>, email: &EmailAddress, role: Role, by: &str) -> Result<String> {
    let email = email.to_string();
    let now = app.moment(None).await?.now;
    let secret = Secret::generate()?;
    let mut connection = app.pool.acquire().await?;
    let mut work = unit::begin(&mut connection).await?;
    let (user, is_new) = add_user(&mut work, &email, role, by, now).await?;
    if !is_new {
        // Whoever is signed in as this user must not keep what another role allowed.
        end_sessions(&mut *work, user.id).await?;
    }
    insert_link(&mut work, &secret.hash(), Some(user.id), now).await?;
    let deed = Deed {
        by,
        action: "added",
        subject: Subject::User,
        subject_id: Some(user.id),
        label: &email,
        before: None,
        after: Some(json!({ "role": role })),
    };
    record(&mut *work, deed, now).await?;
    work.commit().await?;
    Ok(link(&app.config.public_url(app.config.listen_addr), &secret))
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
