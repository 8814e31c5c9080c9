//! The import wizard: a file is sent, checked as often as somebody changes how it is read, and then imported.
//!
//! 1. [`keep`] takes the file. It waits in the database, because the next request may reach another replica; what nobody
//!    imports is removed by the next upload a day later.
//! 2. [`check`] imports it as a dry run and notes what came out, so that looking at the page costs nothing.
//! 3. What is imported is the file as it was checked, with the same options; [`wizard`] refuses if somebody else has
//!    checked it otherwise meanwhile.
//! 4. [`report`] shows what became of it, as of every import, and settles what it held.

mod check;
mod choices;
mod keep;
mod looked;
mod report;
mod wizard;

use askama::Template;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use uuid::Uuid;

use super::Pages;
use super::access::User;
use super::frame::{Frame, show_as, shown};
use super::listing::{Asked, Listing};
use super::path::Path;
use super::when::{When, when};
use super::words::{Done, Said};
use super::wrongs::{Wrongs, sentence};
use crate::domain::role::Role;
use crate::domain::saying::counted;
use crate::store::PgConnection;
use crate::store::kept_files::{KeptFile, list_kept_files};
use crate::store::lists::imports::{ImportRow, list_imports};
use crate::store::mappings::{SavedMapping, list_mappings, remove_mapping};
use crate::web::api::page::Page;
use crate::web::api::problem::Problem;

const PATH: &str = "/import";
/// Most files that wait at once.
const KEPT_MAX: usize = 20;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        // The upload has limits of its own.
        .route("/import", get(list).post(keep::upload).layer(DefaultBodyLimit::disable()))
        .route("/import/file/{id}", get(wizard::show).post(wizard::act))
        .route("/import/mappings/{id}/remove", post(remove_saved))
        .route("/import/{id}", get(report::read))
        .route("/import/{id}/errors.csv", get(report::errors))
        .route("/import/{id}/release", post(report::release))
        .route("/import/{id}/cancel", post(report::cancel))
}

#[derive(Template)]
#[template(path = "pages/import.html")]
struct ImportPage {
    frame: Frame,
    may_import: bool,
    waiting: Vec<FileView>,
    /// How files of one kind are read.
    saved: Vec<SavedMapping>,
    listing: Listing<Past>,
    /// Whether files that were only checked are listed too.
    checks: bool,
    /// Largest file.
    most: String,
    errors: Wrongs,
}

/// A file that waits.
struct FileView {
    id: Uuid,
    name: String,
    size: String,
    by: String,
    at: When,
    was_refused: bool,
}

impl FileView {
    fn of(file: &KeptFile, pages: &Pages) -> Self {
        Self {
            id: file.id,
            name: file.file_name.clone(),
            size: size(file.bytes.unsigned_abs()),
            by: file.kept_by.clone(),
            at: when(file.kept_at, pages.api.zone),
            was_refused: file.refusal.is_some(),
        }
    }
}

/// An import that was.
struct Past {
    row: ImportRow,
    at: When,
}

impl ImportPage {
    async fn read(pages: &Pages, user: &User, connection: &mut PgConnection, uri: &Uri) -> Result<Self, Problem> {
        let mut asked = Asked::of(uri)?;
        let checks = asked.query.text("checks").is_some();
        let page = Page::<Uuid>::read(&asked.uri, &mut asked.query)?;
        let now = pages.api.moment(connection).await?.now;
        let rows = list_imports(connection, checks, page.after, page.fetch()).await?;
        let zone = pages.api.zone;
        let files = list_kept_files(&mut *connection, now).await?;
        Ok(Self {
            frame: Frame::of(pages, user, PATH, "Import"),
            may_import: user.may(Role::Clerk),
            waiting: files.iter().map(|file| FileView::of(file, pages)).collect(),
            saved: list_mappings(&mut *connection).await?,
            listing: Listing::of(&asked, &page, rows, |row| row.id)
                .map(|row| Past { at: when(row.started_at, zone), row }),
            checks,
            most: size(pages.api.uploads.bytes),
            errors: Vec::new(),
        })
    }
}

async fn list(State(pages): State<Pages>, user: User, uri: Uri, Done(done): Done) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = ImportPage::read(&pages, &user, &mut connection, &uri).await?;
    page.frame = page.frame.said(done);
    Ok(shown(&page))
}

/// Removes a saved mapping.
async fn remove_saved(State(pages): State<Pages>, user: User, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let now = pages.api.moment(&mut connection).await?.now;
    remove_mapping(&mut connection, id, &user.by, now).await?;
    Ok(Said::MappingRemoved.at(PATH))
}

/// The page with what is wrong with an upload.
async fn not_taken(pages: &Pages, user: &User, status: StatusCode, sentence: String) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let mut page = ImportPage::read(pages, user, &mut connection, &Uri::from_static(PATH)).await?;
    page.errors.push(("file".to_owned(), sentence));
    page.frame = page.frame.with_errors(true);
    Ok(show_as(status, &page))
}

/// A size for people.
fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{} {name}", bytes.div_ceil(*unit)),
        None => counted(bytes, "byte"),
    }
}
