//! Who did what, for administrators: deeds and changes of permits, newest first.

use askama::Template;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use uuid::Uuid;

use super::Pages;
use super::access::User;
use super::differences::{Difference, differences};
use super::frame::{Frame, shown};
use super::listing::{Asked, Listing};
use super::when::{When, when};
use crate::store::PgConnection;
use crate::store::changes::COMMAND;
use crate::store::office_log::{AuditFilter, AuditRow, Subject, list_audit};
use crate::store::people::users::list_users;
use crate::store::tokens::list_tokens;
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;

/// Changes of permits are lines too, and have no [`Subject`].
const PERMIT: &str = "permit";
/// Most tokens that the filter names; the address takes any.
const TOKENS: i64 = 500;

#[derive(Template)]
#[template(path = "pages/audit.html")]
struct AuditPage {
    frame: Frame,
    listing: Listing<Line>,
    /// Everybody who may have done something, as histories name them.
    people: Vec<String>,
    subjects: Vec<&'static str>,
    /// What the filter says.
    by: String,
    subject: String,
}

/// One line.
struct Line {
    row: AuditRow,
    at: When,
    differences: Vec<Difference>,
}

impl Line {
    fn of(row: AuditRow, zone: Tz) -> Self {
        Self { at: when(row.at, zone), differences: differences(row.before.as_ref(), row.after.as_ref()), row }
    }

    /// Where the subject is.
    fn link(&self) -> Option<String> {
        let id = self.row.subject_id;
        match self.row.subject.as_str() {
            PERMIT => id.map(|id| format!("/permits/{id}")),
            "notice" => id.map(|id| format!("/notices/{id}")),
            "import" => id.map(|id| format!("/import/{id}")),
            "permit-type" => Some(format!("/permit-types/{}", self.row.label)),
            _ => None,
        }
    }

    /// What was done, in words.
    fn action(&self) -> String {
        self.row.action.replace('-', " ")
    }
}

pub(super) async fn list(State(pages): State<Pages>, user: User, uri: Uri) -> Result<Response, Problem> {
    let mut asked = Asked::of(&uri)?;
    let (by, subject) = (asked.query.text("by"), asked.query.text("subject"));
    let page = Page::<(DateTime<Utc>, Uuid)>::read(&asked.uri, &mut asked.query)?;
    let mut connection = pages.api.connection().await?;
    let filter = AuditFilter { by: by.clone(), subject: subject.clone() };
    let rows = list_audit(&mut connection, &filter, page.after, page.fetch()).await?;
    let zone = pages.api.zone;
    let subjects = std::iter::once(PERMIT).chain(Subject::ALL.iter().map(|subject| subject.as_str()));
    let view = AuditPage {
        frame: Frame::of(&pages, &user, "/audit", "Audit"),
        listing: Listing::of(&asked, &page, rows, |row| (row.at, row.id)).map(|row| Line::of(row, zone)),
        people: people(&mut connection, by.as_deref()).await?,
        subjects: subjects.collect(),
        by: by.unwrap_or_default(),
        subject: subject.unwrap_or_default(),
    };
    Ok(shown(&view))
}

async fn people(connection: &mut PgConnection, given: Option<&str>) -> Result<Vec<String>, Problem> {
    let users = list_users(&mut *connection).await?.into_iter().map(|user| format!("user:{}", user.email));
    let mut people: Vec<String> = users.collect();
    let tokens = list_tokens(&mut *connection, None, TOKENS).await?;
    people.extend(tokens.into_iter().map(|token| format!("token:{}", token.name)));
    people.push(COMMAND.to_owned());
    people.extend(given.map(str::to_owned));
    people.sort();
    people.dedup();
    Ok(people)
}
