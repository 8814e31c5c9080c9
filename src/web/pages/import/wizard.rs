//! A file that waits: what was guessed and chosen, what the check came to, and the import itself.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use uuid::Uuid;

use super::choices::{FieldView, StatusView, fields, of_form, statuses};
use super::keep::fetch;
use super::looked::Looked;
use super::report::Report;
use super::{FileView, PATH, check, sentence};
use crate::domain::mapping::MappingWords;
use crate::domain::permit::PermitStatus;
use crate::domain::role::Role;
use crate::domain::saying::counted;
use crate::store::PgConnection;
use crate::store::imports::{count_rejections, read_report};
use crate::store::kept_files::{FileCheck, KeptFile, get_kept_file, note_check, remove_kept_file};
use crate::store::mappings::{SavedMapping, get_mapping, list_mappings};
use crate::web::api::files::{ImportRefused, ImportWords, take_place};
use crate::web::api::problem::{Kind, Problem};
use crate::web::pages::Pages;
use crate::web::pages::access::User;
use crate::web::pages::form::Form;
use crate::web::pages::frame::{Frame, show_as, shown};
use crate::web::pages::path::Path;
use crate::web::pages::words::{Done, Said};
use crate::web::pages::wrongs::Wrongs;

#[derive(Template)]
#[template(path = "pages/import_file.html")]
struct FilePage {
    frame: Frame,
    may_import: bool,
    file: FileView,
    looked: Option<Looked>,
    fields: Vec<FieldView>,
    statuses: Vec<StatusView>,
    all_statuses: &'static [PermitStatus],
    words: ImportWords,
    /// Why the file was refused as a whole.
    refusal: Option<String>,
    /// How files of one kind are read.
    saved: Vec<SavedMapping>,
    /// The name under which somebody wants to save this.
    mapping_name: String,
    /// What the check came to.
    report: Option<Report>,
    import_id: Option<Uuid>,
    /// Rejected rows that are kept.
    kept: u64,
    /// More pending notices than this at once are held; 0 for no limit.
    limit: u64,
    errors: Wrongs,
}

impl FilePage {
    /// The page about a file, with `words` instead of those it was checked with.
    async fn read(
        pages: &Pages,
        user: &User,
        connection: &mut PgConnection,
        file: KeptFile,
        words: Option<ImportWords>,
    ) -> Result<Self, Problem> {
        let report = match file.import_id {
            Some(id) => Some(Report::of(&read_report(connection, id).await?)),
            None => None,
        };
        let kept = match file.import_id {
            Some(id) => count_rejections(connection, id).await?,
            None => 0,
        };
        let words = words.unwrap_or_else(|| words_of(&file));
        let looked = looked(&file);
        Ok(Self {
            frame: Frame::of(pages, user, PATH, format!("Import {}", file.file_name)),
            may_import: user.may(Role::Clerk),
            fields: looked.as_ref().map(|looked| fields(looked, &words)).unwrap_or_default(),
            statuses: looked.as_ref().map(|looked| statuses(looked, &words)).unwrap_or_default(),
            all_statuses: PermitStatus::ALL,
            looked,
            saved: list_mappings(&mut *connection).await?,
            mapping_name: words.mapping.clone().unwrap_or_default(),
            words,
            file: FileView::of(&file, pages),
            refusal: file.refusal,
            report,
            import_id: file.import_id,
            kept,
            limit: pages.api.claim_limit,
            errors: Vec::new(),
        })
    }

    /// Whether the file can be imported as it was checked.
    fn is_ready(&self) -> bool {
        let Some(report) = &self.report else { return false };
        report.rejected == 0 || (self.words.keep_good_rows && report.rejected < report.rows)
    }

    /// Whether what it makes pending is more than may go at once.
    fn holds(&self) -> bool {
        self.limit > 0 && self.report.as_ref().is_some_and(|report| report.notices_claimed > self.limit)
    }

    /// Whether the file is read as it was saved under this name.
    fn is_mapping(&self, name: &str) -> bool {
        self.words.mapping.as_deref() == Some(name)
    }

    /// Whether this format of dates is chosen.
    fn is_format(&self, format: &str) -> bool {
        self.words.date_format.as_deref() == Some(format)
    }

    /// Whether this sheet is the one that is read.
    fn is_sheet(&self, name: &str) -> bool {
        let read = self.looked.as_ref().and_then(|looked| looked.sheet.as_deref());
        self.words.sheet.as_deref().or(read) == Some(name)
    }

    /// Whether this row is chosen for the names of the columns.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the template gives a reference")]
    fn is_header_row(&self, row: &u64) -> bool {
        self.words.header_row == Some(*row)
    }

    /// A row that is chosen and is not among the first of the file.
    fn other_header_row(&self) -> Option<u64> {
        let mut shown = self.looked.iter().flat_map(|looked| &looked.first_rows);
        self.words.header_row.filter(|chosen| !shown.any(|row| row.row == *chosen))
    }

    /// A format that is chosen and none of the usual ones.
    fn other_format(&self) -> Option<&str> {
        let usual = self.looked.iter().flat_map(|looked| &looked.date_formats);
        let chosen = self.words.date_format.as_deref()?;
        (!usual.into_iter().any(|known| known.format == chosen)).then_some(chosen)
    }

    /// Why the file cannot be imported as it was checked, with the place of what can be done about it.
    fn obstacles(&self) -> Wrongs {
        let missing = self.fields.iter().find(|field| field.is_missing());
        let refusal = self.refusal.clone().map(|refusal| {
            let without_sheet =
                self.looked.as_ref().is_some_and(|looked| looked.has_sheets() && looked.sheet.is_none());
            let elsewhere = if without_sheet { "sheet" } else { "check" };
            let place = missing.map_or_else(|| elsewhere.to_owned(), |field| format!("field/{}", field.name));
            (place, refusal)
        });
        let rejected = self.report.as_ref().filter(|report| report.rejected > 0 && !self.is_ready()).map(|report| {
            let rows = counted(report.rejected, "row");
            ("errors".to_owned(), format!("{rows} with errors, so nothing can be imported."))
        });
        refusal.into_iter().chain(rejected).collect()
    }

    fn refused(mut self, status: StatusCode) -> Response {
        self.frame = self.frame.with_errors(true);
        show_as(status, &self)
    }
}

/// What the file looks like, as far as it could be read.
fn looked(file: &KeptFile) -> Option<Looked> {
    file.look.clone().and_then(|look| serde_json::from_value(look).ok())
}

/// With what a file was checked.
fn words_of(file: &KeptFile) -> ImportWords {
    serde_json::from_value(file.words.clone()).unwrap_or_default()
}

fn address(id: Uuid) -> String {
    format!("{PATH}/file/{id}")
}

pub(super) async fn show(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    Done(done): Done,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let file = get_kept_file(&mut *connection, id).await?;
    let mut page = FilePage::read(&pages, &user, &mut connection, file, None).await?;
    page.errors = page.obstacles();
    page.frame = page.frame.said(done).with_errors(!page.errors.is_empty());
    Ok(shown(&page))
}

/// Checks again, imports, or discards.
pub(super) async fn act(
    State(pages): State<Pages>,
    user: User,
    Path(id): Path<Uuid>,
    form: Form,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let file = get_kept_file(&mut *connection, id).await?;
    match form.text("do") {
        "discard" => {
            remove_kept_file(&mut connection, id).await?;
            Ok(Said::FileDiscarded.at(PATH))
        }
        "import" => {
            drop(connection);
            import(&pages, &user, file, &form).await
        }
        "use" => {
            drop(connection);
            use_saved(&pages, &user, file, &form).await
        }
        _ => {
            drop(connection);
            check_again(&pages, &user, file, &form).await
        }
    }
}

/// Checks it as the form has it, and saves that first if somebody wants so.
async fn check_again(pages: &Pages, user: &User, file: KeptFile, form: &Form) -> Result<Response, Problem> {
    let looked = looked(&file).unwrap_or_default();
    let words = of_form(form, &looked);
    let saves = form.text("do") == "save";
    let name = form.text("mapping_name");
    let done = match pages.api.files.check(&words).await {
        Ok(()) if saves => pages.api.files.save_mapping(name, &words, &user.by).await,
        done => done,
    };
    if let Err(refused) = done {
        let mut page = option_refused(pages, user, file, words, refused).await?;
        name.clone_into(&mut page.mapping_name);
        return Ok(page.refused(StatusCode::UNPROCESSABLE_ENTITY));
    }
    check_with(pages, user, &file, words).await?;
    Ok(if saves { Said::MappingSaved } else { Said::FileChecked }.at(&address(file.id)))
}

/// Checks it as files of its kind are read, whatever the form has.
async fn use_saved(pages: &Pages, user: &User, file: KeptFile, form: &Form) -> Result<Response, Problem> {
    let id: Uuid = form.text("mapping").parse().map_err(|_| Problem::new(Kind::Malformed, "the form is not whole"))?;
    let mut connection = pages.api.connection().await?;
    let saved = get_mapping(&mut *connection, id).await?;
    drop(connection);
    // So that the form shows what is chosen. The name stays with it, to be named where the file does not fit.
    let chosen: MappingWords = serde_json::from_value(saved.words).unwrap_or_default();
    let MappingWords { map, leave_out, status, permit_type, date_format, sheet, header_row } = chosen;
    let mapping = Some(saved.name);
    let (sheet, header_row) = looked(&file).unwrap_or_default().place(sheet, header_row);
    let chosen = ImportWords { map, leave_out, status, permit_type, date_format, ..words_of(&file) };
    let words = ImportWords { mapping, sheet, header_row, ..chosen };
    if let Err(refused) = pages.api.files.check(&words).await {
        let page = option_refused(pages, user, file, words, refused).await?;
        return Ok(page.refused(StatusCode::UNPROCESSABLE_ENTITY));
    }
    check_with(pages, user, &file, words).await?;
    Ok(Said::FileChecked.at(&address(file.id)))
}

async fn check_with(pages: &Pages, user: &User, file: &KeptFile, words: ImportWords) -> Result<(), Problem> {
    let _place = take_place(&pages.api.imports, "imports")?;
    let upload = fetch(pages, file.id, &file.file_name).await?;
    check::check(pages, user, file, upload, words).await
}

/// The page with what is wrong with one option.
async fn option_refused(
    pages: &Pages,
    user: &User,
    file: KeptFile,
    words: ImportWords,
    refused: ImportRefused,
) -> Result<FilePage, Problem> {
    let errors = vec![wrong_option(refused)?];
    let mut connection = pages.api.connection().await?;
    let page = FilePage::read(pages, user, &mut connection, file, Some(words)).await?;
    Ok(FilePage { errors, ..page })
}

/// What is wrong with one option, beside its field.
fn wrong_option(refused: ImportRefused) -> Result<(String, String), Problem> {
    match refused {
        // What is saved has its name in a field of another name than the API's.
        ImportRefused::Option { parameter, why } if parameter == "save_mapping" => {
            Ok(("mapping_name".to_owned(), sentence(&why)))
        }
        ImportRefused::Option { parameter, why } => Ok((parameter, sentence(&why))),
        other => Err(other.into()),
    }
}

/// Imports the file as it was checked.
async fn import(pages: &Pages, user: &User, file: KeptFile, form: &Form) -> Result<Response, Problem> {
    let checked = file.import_id.map(|id| id.to_string());
    if checked.is_none() || checked.as_deref() != form.get("checked") {
        let why = "The file was checked otherwise meanwhile. Look at what came out now, and import it then.";
        return refused(pages, user, file, StatusCode::CONFLICT, why.to_owned()).await;
    }
    let _place = take_place(&pages.api.imports, "imports")?;
    let upload = fetch(pages, file.id, &file.file_name).await?;
    // What a saved mapping said when it was used stands in the words; it may say something else by now.
    let words = ImportWords { dry_run: false, mapping: None, ..words_of(&file) };
    let report = match pages.api.files.import(upload, &words, &user.by).await {
        Ok(report) => report,
        // Whether it was committed is to be seen in the list of imports.
        Err(ImportRefused::Unknown(id)) => return Err(ImportRefused::Unknown(id).into()),
        Err(other) => {
            let problem = Problem::from(other);
            return refused(pages, user, file, problem.kind().status(), sentence(problem.detail())).await;
        }
    };
    let mut connection = pages.api.connection().await?;
    let id = check::id_of(&report);
    if report["committed"].as_bool() != Some(true) {
        // Rows that were right when it was checked are not any more, or the other way round.
        let found = FileCheck { words: file.words.clone(), look: None, import_id: id, refusal: None };
        note_check(&mut connection, file.id, &found).await?;
        return Ok(Redirect::to(&address(file.id)).into_response());
    }
    remove_kept_file(&mut connection, file.id).await?;
    Ok(Said::Imported.at(&format!("{PATH}/{}", id.unwrap_or_default())))
}

async fn refused(
    pages: &Pages,
    user: &User,
    file: KeptFile,
    status: StatusCode,
    why: String,
) -> Result<Response, Problem> {
    let mut connection = pages.api.connection().await?;
    let page = FilePage::read(pages, user, &mut connection, file, None).await?;
    Ok(FilePage { errors: vec![("check".to_owned(), why)], ..page }.refused(status))
}
