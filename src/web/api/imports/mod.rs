//! `/imports`: permits from a file, what became of its rows, and what it held.

mod upload;

use std::num::NonZeroU64;

use axum::Json as AxumJson;
use axum::extract::{DefaultBodyLimit, OriginalUri, Request, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::access::Caller;
use super::answer::Answer;
use super::body::Json;
use super::files::{ImportWords, Uploaded, attachment, take_place};
use super::problem::Problem;
use super::query::Query;
use super::repeat::{self, Taken};
use super::scans::{ManyReason, ReleasedView, settle_held};
use super::session::Db;
use super::shapes::Id;
use super::{Api, ROOT};
use crate::store::actions::HeldBy;
use crate::store::imports::read_report;

pub use upload::UploadLimits;
pub(in crate::web) use upload::receive_after;

const TAG: &str = "imports";

pub(super) fn routes() -> OpenApiRouter<Api> {
    // The upload has limits of its own.
    let upload = OpenApiRouter::new().routes(routes!(create)).route_layer(DefaultBodyLimit::disable());
    OpenApiRouter::new()
        .merge(upload)
        .routes(routes!(read))
        .routes(routes!(errors))
        .routes(routes!(release))
        .routes(routes!(cancel))
}

/// What became of a file; what `import --json` prints.
#[derive(Debug, ToSchema)]
#[schema(as = ImportReport)]
#[allow(dead_code, reason = "it only describes the answer")]
struct ReportView {
    id: Uuid,
    /// Whether the good rows were applied, even if they changed nothing.
    committed: bool,
    /// Whether nothing was meant to be changed.
    dry_run: bool,
    /// Rows below the header that are not blank.
    rows: u64,
    permits_created: u64,
    /// Known permits with a later date.
    permits_renewed: u64,
    /// Known permits with something else changed.
    permits_updated: u64,
    /// Known permits left alone.
    unchanged: u64,
    /// The part of them that was left alone whatever the file says: its date is an earlier one, or they are archived.
    skipped: u64,
    /// The same by reason.
    #[schema(value_type = Object, example = json!({ "earlier_date": 3 }))]
    skipped_by_reason: Value,
    /// Terms that are not the current ones of their permits.
    history_terms: u64,
    /// Rows that made nothing: what they say of a term is known, or another row says it. Of a file that was applied,
    /// `rows` are these, `rejected`, `history_terms`, and one for each permit.
    repeated: u64,
    /// Permit numbers whose rows contradict each other: the warnings `contradictory_rows` name the first 1,000.
    contradictory_numbers: u64,
    /// Rows with at least one error, and with `keep_good_rows` those of which another row of the same permit has one.
    rejected: u64,
    /// For each reason, how many rows it rejected; `another_row_wrong` are those that have no error themselves.
    #[schema(value_type = Object)]
    rejected_by_reason: Value,
    addresses_cleaned: u64,
    addresses_missing: u64,
    guessed: GuessedView,
    /// Which columns each field came from.
    mapped: Vec<MappedView>,
    types_created: u64,
    /// Notices made pending or held.
    notices_claimed: u64,
    /// The part of them that is held until somebody releases or cancels it.
    notices_held: u64,
    /// Only of a dry run: the mail of the next 30 days because of this file, without what is held.
    would_mail: Option<WouldMailView>,
    /// Only with `complete`: the permits that the file does not name.
    missing: Option<MissingView>,
    /// By row; at most 10,000.
    errors: Vec<RemarkView>,
    warnings: Vec<RemarkView>,
}

/// The columns of one field.
#[derive(Debug, ToSchema)]
#[schema(as = MappedField)]
#[allow(dead_code, reason = "it only describes the answer")]
struct MappedView {
    #[schema(example = "permit_number")]
    field: String,
    #[schema(example = json!(["LICENSE NUMBER"]))]
    columns: Vec<String>,
}

/// Permits that a complete file does not name: of the types that it has, active and not archived. None is changed.
#[derive(Debug, ToSchema)]
#[schema(as = MissingPermits)]
#[allow(dead_code, reason = "it only describes the answer")]
struct MissingView {
    count: u64,
    /// Those of them whose last valid day has passed.
    expired: u64,
    /// Numbers of the first 1,000, those in force before those that are not.
    numbers: Vec<String>,
}

/// The mail that a file would cause.
#[derive(Debug, ToSchema)]
#[schema(as = WouldMail)]
#[allow(dead_code, reason = "it only describes the answer")]
struct WouldMailView {
    messages: u64,
    /// Messages by the day from which they go.
    #[schema(value_type = Object, example = json!({ "2027-03-10": 12 }))]
    by_day: Value,
    /// Messages that would go without the file, and do not.
    no_longer: u64,
}

/// What was guessed about a file.
#[derive(Debug, ToSchema)]
#[schema(as = Guessed)]
#[allow(dead_code, reason = "it only describes the answer")]
struct GuessedView {
    /// `csv` for all text in cells, `xlsx` or `ods`.
    #[schema(example = "csv")]
    format: String,
    /// The sheet of a workbook.
    sheet: Option<String>,
    #[schema(example = "UTF-8")]
    encoding: String,
    /// Null in workbooks.
    #[schema(example = "comma")]
    delimiter: Option<String>,
    /// In strftime.
    #[schema(example = "%m/%d/%Y")]
    date_format: String,
    header_row: u64,
}

/// One error or warning.
#[derive(Debug, ToSchema)]
#[schema(as = ImportRemark)]
#[allow(dead_code, reason = "it only describes the answer")]
struct RemarkView {
    /// Row of the file, the header being row 1; null for the file as a whole.
    row: Option<u64>,
    column: Option<String>,
    /// The cell, cut to 100 characters.
    value: Option<String>,
    #[schema(example = "invalid_date")]
    code: String,
    detail: String,
}

/// How the file is to be read and applied; the options of the command `import`.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "it only describes the parameters")]
struct Options {
    /// Take a field from the column with this header: `FIELD=COLUMN`; may be repeated. The fields are `permit_number`,
    /// `permit_type`, `status`, `holder_name`, `holder_email`, `holder_language`, `site_address`, `description`,
    /// `issued_on`, `effective_on`, `expires_on`, `external_id`, `contact_email`, `contact_name`, `contact_role` and
    /// `contacts`.
    #[param(example = json!(["expires_on=VALID UNTIL"]))]
    map: Option<Vec<String>>,
    /// Read a status word of the file as one of ours: `FROM=TO`; may be repeated.
    status: Option<Vec<String>>,
    /// The type of every permit of the file.
    permit_type: Option<String>,
    /// How dates are written, in strftime. Unless it is given it is guessed, for each column of dates: years have four
    /// digits, months may be names in English, `2027-03-25` is always understood, and what can be read in two ways is
    /// refused. Years of two digits are only read by such a format, as `%m/%d/%y`.
    #[param(example = "%d.%m.%Y")]
    date_format: Option<String>,
    /// Read it as it was saved under this name; what is said besides goes before that.
    mapping: Option<String>,
    /// Report permits that the file does not name, of the types that it has; they are not changed.
    complete: Option<bool>,
    /// The sheet of a workbook that has several.
    sheet: Option<String>,
    /// The row in which the names of the columns stand, counted from 1; guessed unless given.
    #[param(minimum = 1)]
    header_row: Option<u64>,
    /// Tell new permits what is due already, and confirm renewals.
    catch_up: Option<bool>,
    /// Apply the rows that are right although others are not; but none of a permit of which a row is wrong.
    keep_good_rows: Option<bool>,
    /// Change nothing; only the report is recorded.
    dry_run: Option<bool>,
    /// What the file is called; a form may say so itself.
    file_name: Option<String>,
}

/// A form with a file.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
struct ImportForm {
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

fn read_options(uri: &Uri) -> Result<(ImportWords, Option<String>), Problem> {
    let mut query = Query::parse_with_lists(uri.query(), &["map", "status"])?;
    let words = ImportWords {
        map: query.list("map"),
        leave_out: Vec::new(),
        status: query.list("status"),
        permit_type: query.text("permit_type"),
        date_format: query.text("date_format"),
        mapping: query.text("mapping"),
        complete: query.boolean("complete")?.unwrap_or(false),
        sheet: query.text("sheet"),
        header_row: query.parsed::<NonZeroU64>("header_row")?.map(NonZeroU64::get),
        catch_up: query.boolean("catch_up")?.unwrap_or(false),
        keep_good_rows: query.boolean("keep_good_rows")?.unwrap_or(false),
        dry_run: query.boolean("dry_run")?.unwrap_or(false),
    };
    let file_name = query.text("file_name");
    query.finish()?;
    Ok((words, file_name))
}

/// Imports permits from a file: csv, tsv, xlsx or ods.
///
/// All of its rows are imported or, with `keep_good_rows`, the good ones. What is wrong with rows is in the report, and
/// `committed` says whether anything was applied; only a file that is refused as a whole, or an option, is an error. The
/// body is the file itself, with any content type, or a form with one part `file`.
///
/// Columns are found by usual headers; `map=permit_number=LICENSE NO` names another, under the field that it carries.
/// `permit_number`, `permit_type` (or the parameter of that name, for all rows), `holder_name` and `expires_on` are
/// needed.
#[utoipa::path(post, path = "/imports", tag = TAG, params(Options),
    request_body(content(
        (String = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        (Vec<u8> = "application/vnd.oasis.opendocument.spreadsheet"),
        (ImportForm = "multipart/form-data"),
    )),
    responses((status = 201, description = "The report", body = ReportView)))]
async fn create(
    State(api): State<Api>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<Response, Problem> {
    let (words, file_name) = read_options(&uri)?;
    api.files.check(&words).await?;
    let key = repeat::key_of(&caller, &request)?;
    let _place = take_place(&api.imports, "imports")?;
    let (upload, content) = upload::receive(request, file_name, api.uploads).await?;
    let Some(key) = key else {
        return import(&api, &caller, upload, &words).await;
    };
    match repeat::take(&api, key, &hash(&uri, &upload.name, &content)).await? {
        Taken::Known(answer) => Ok(answer),
        Taken::Ours(mut held) => {
            held.for_long().await?;
            let answer = import(&api, &caller, upload, &words).await.unwrap_or_else(IntoResponse::into_response);
            held.finish(answer).await
        }
    }
}

/// What makes two uploads the same: the options, the name and the content. Forms differ in their boundaries.
fn hash(uri: &Uri, name: &str, content: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [uri.query().unwrap_or_default().as_bytes(), name.as_bytes(), content] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

async fn import(api: &Api, caller: &Caller, upload: Uploaded, words: &ImportWords) -> Result<Response, Problem> {
    let report = api.files.import(upload, words, &caller.by).await?;
    let id = report["id"].as_str().unwrap_or_default().to_owned();
    Ok(Answer::created(&format!("{ROOT}/imports/{id}"), &report).into_response())
}

/// The report of an import, as it was given; of those that committed nothing, too.
#[utoipa::path(get, path = "/imports/{id}", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The report", body = ReportView)))]
async fn read(Id(id): Id, mut db: Db, OriginalUri(uri): OriginalUri) -> Result<AxumJson<Value>, Problem> {
    Query::parse(uri.query())?.finish()?;
    Ok(AxumJson(read_report(&mut db, id).await?))
}

/// The rows that were rejected, in the layout of the file and in UTF-8 with a byte order mark, with a last column that
/// says what is wrong with each; at most the first 10,000 rows or 20 MB, and the report says if there are more. With
/// `keep_good_rows` the other rows of their permits are among them, up to as many again. Dates that could be read stand
/// as `YYYY-MM-DD`, what a spreadsheet would take for a formula has an apostrophe before it, which an import takes off
/// again, and a row with fewer cells than the header is filled up with `(no cell)`, which an import refuses.
#[utoipa::path(get, path = "/imports/{id}/errors.csv", tag = TAG, params(("id" = Uuid, Path)),
    responses((status = 200, description = "The rows", body = String, content_type = "text/csv")))]
async fn errors(State(api): State<Api>, Id(id): Id, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    Query::parse(uri.query())?.finish()?;
    let place = take_place(&api.exports, "files")?;
    let chunks = api.files.rejected(id).await?;
    Ok(attachment(&api, place, chunks, &format!("errors-{id}.csv"), "text/csv; charset=utf-8; header=present"))
}

/// Releases what the import held, as far as it is still owed and in time.
#[utoipa::path(post, path = "/imports/{id}/release", tag = TAG, params(("id" = Uuid, Path)), request_body = ManyReason,
    responses((status = 200, description = "What became of it", body = ReleasedView)))]
async fn release(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    Json(body): Json,
) -> Result<Answer, Problem> {
    settle_held(&api, &mut db, HeldBy::Import(id), false, &caller.by, body).await
}

/// Cancels what the import held.
#[utoipa::path(post, path = "/imports/{id}/cancel", tag = TAG, params(("id" = Uuid, Path)), request_body = ManyReason,
    responses((status = 200, description = "What became of it", body = ReleasedView)))]
async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    Id(id): Id,
    mut db: Db,
    Json(body): Json,
) -> Result<Answer, Problem> {
    settle_held(&api, &mut db, HeldBy::Import(id), true, &caller.by, body).await
}
