//! All permits of a filter as one file.

use axum::extract::{OriginalUri, State};
use axum::response::Response;

use super::super::Api;
use super::super::access::Caller;
use super::super::files::{exported, take_place};
use super::super::problem::Problem;
use super::super::query::{Query, wrong};
use super::super::session::Db;
use super::super::shapes::words;
use super::{Filters, TAG, read_filter};
use crate::domain::export::{ExportFormat, ExportShape};
use crate::store::office_log::{Deed, record};

/// How the file is written.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "it only describes the parameters")]
pub(super) struct Format {
    /// `csv` unless given: the field names are the header, an import reads it again and changes nothing, and a cell that
    /// a spreadsheet would take for a formula begins with an apostrophe. `xlsx` is the same as a workbook, in which days
    /// are real dates. `json` is a list of permits. `blds` is csv in the columns of BLDS, the Building and Land
    /// Development Specification, without anything about holders and contacts.
    #[param(schema_with = words::<ExportFormat>)]
    format: Option<ExportFormat>,
    /// Put a byte order mark before `csv` or `blds`, for programs that need one to know UTF-8.
    bom: Option<bool>,
}

/// Permits as one file, by last valid day, as they all were at one moment. The file has no pages. A file
/// that ends early, because its reader was too slow or the database went away, is cut off and not closed. Who took which
/// is in the audit.
#[utoipa::path(get, path = "/permits/export", tag = TAG, params(Format, Filters),
    responses((status = 200, description = "The file",
               content((String = "text/csv"), (Vec<super::PermitView> = "application/json"),
                       (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")))))]
pub(super) async fn export(
    State(api): State<Api>,
    caller: Caller,
    mut db: Db,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let mut query = Query::parse(uri.query())?;
    let format = query.parsed("format")?.unwrap_or(ExportFormat::Csv);
    let bom = query.boolean("bom")?.unwrap_or(false);
    if bom && !format.is_csv() {
        return Err(wrong("bom", "is for csv and blds"));
    }
    let filter = read_filter(&mut db, &mut query).await?;
    query.finish()?;
    let moment = api.moment(&mut db).await?;
    // Back to the others: the file has a connection of its own.
    drop(db);
    let place = take_place(&api.exports, "files")?;
    // What only asks has a connection that cannot write.
    let mut connection = api.connection().await?;
    let deed = Deed::exported(&caller.by, format, uri.query().unwrap_or_default());
    record(&mut *connection, deed, moment.now).await?;
    drop(connection);
    let chunks = api.files.export(filter, ExportShape { format, bom }, moment.today).await?;
    Ok(exported(&api, place, chunks, format))
}
