//! All permits of a filter as one file.

use axum::extract::{OriginalUri, State};
use axum::response::Response;

use super::super::Api;
use super::super::files::{attachment, take_place};
use super::super::problem::Problem;
use super::super::query::{Query, wrong};
use super::super::session::Db;
use super::super::shapes::words;
use super::{Filters, TAG, read_filter};
use crate::domain::export::ExportFormat;

/// How the file is written.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "it only describes the parameters")]
pub(super) struct Format {
    /// `csv` unless given. A csv file has the field names as its header and is read by an import again, which then
    /// changes nothing; a cell that a spreadsheet would take for a formula begins with an apostrophe. `json` is a list
    /// of permits.
    #[param(schema_with = words::<ExportFormat>)]
    format: Option<ExportFormat>,
}

/// Permits as one file, by last valid day, as they all were at one moment. The file has no pages. A file
/// that ends early, because its reader was too slow or the database went away, is cut off and not closed.
#[utoipa::path(get, path = "/permits/export", tag = TAG, params(Format, Filters),
    responses((status = 200, description = "The file",
               content((String = "text/csv"), (Vec<super::PermitView> = "application/json")))))]
pub(super) async fn export(
    State(api): State<Api>,
    mut db: Db,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut query = Query::parse(uri.query())?;
    let format = match query.text("format").as_deref() {
        None => ExportFormat::Csv,
        Some("xlsx" | "blds") => return Err(wrong("format", "xlsx and blds come later; csv and json are written now")),
        Some(text) => text.parse().map_err(|error: crate::domain::UnknownWord| wrong("format", &error.to_string()))?,
    };
    let filter = read_filter(&mut db, &mut query).await?;
    query.finish()?;
    let today = api.moment(&mut db).await?.today;
    // Back to the others: the file has a connection of its own.
    drop(db);
    let place = take_place(&api.exports, "files")?;
    let chunks = api.files.export(filter, format, today).await?;
    Ok(match format {
        ExportFormat::Csv => attachment(&api, place, chunks, "permits.csv", "text/csv; charset=utf-8; header=present"),
        ExportFormat::Json => attachment(&api, place, chunks, "permits.json", "application/json"),
    })
}
