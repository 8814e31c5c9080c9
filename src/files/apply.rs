//! An import from the file to the commit: read and stage, then apply in one transaction, and report.

use chrono_tz::Tz;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::feed::{Part, Stopped, read_into};
use super::fields::Field;
use super::remarks::{Reason, Remark};
use super::{ImportOptions, ImportReport, Input, ReadError, Reading, contradictions, held};
use crate::domain::saying::which;
use crate::domain::window::SendWindow;
use crate::store::changes::ChangeRules;
use crate::store::clock::database_now;
use crate::store::connect::{Purpose, connect};
use crate::store::imports::{self, Applied, Beginning, CONTACTS_MAX, Commit, FileKept, FileLayout, Job, staging};
use crate::store::{Moment, PgConnection, StoreError};
use crate::telemetry::metrics;

/// How an import is applied.
#[derive(Debug, Clone, Copy)]
pub struct ImportRules<'r> {
    /// Business time, and the day of the import, at its start.
    pub moment: Moment,
    /// The office's zone, in which it may be another day by the time that the rows are applied.
    pub zone: Tz,
    /// When mail may go.
    pub window: Option<&'r SendWindow>,
    /// More pending notices than this are held, all of the import; 0 for no limit.
    pub claim_limit: u64,
    /// Whether new permits are told what is past already, and renewals are confirmed.
    pub catch_up: bool,
    /// Whether the file calls itself complete, so that permits which it does not name are reported; none is changed.
    pub complete: bool,
    /// Whether everything but the report is taken back at the end.
    pub dry_run: bool,
    /// Who imports.
    pub by: &'r str,
}

/// Why an import committed nothing; what is wrong with rows is in the report instead.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file as a whole is refused.
    #[error(transparent)]
    File(#[from] ReadError),
    /// No connection.
    #[error("the database cannot be used: {0}")]
    Unusable(#[source] StoreError),
    /// The database was away, or cut us off.
    #[error("the database was not reachable or broke off, and nothing was imported; import the file again")]
    Away(#[source] StoreError),
    /// Others held the permits too long, or took the same numbers.
    #[error("other changes of the same permits were in the way, and nothing was imported; import the file again")]
    InTheWay(#[source] StoreError),
    /// The connection broke while committing, and the database could not be asked again.
    #[error(
        "the database broke off just as the import was committed; whether import {0} is recorded can be seen there"
    )]
    Unknown(Uuid),
    /// The database refused, for a reason that is in the log.
    #[error("the database refused the import, and nothing was imported; the log says why")]
    Refused(#[source] StoreError),
    /// The thread that reads the file ended by a fault of ours.
    #[error("reading the file broke off by a fault of this program, and nothing was imported")]
    Broken,
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        if imports::was_in_the_way(&error) || matches!(error, StoreError::WrongState { .. }) {
            return Self::InTheWay(error);
        }
        if error.is_transient() {
            return Self::Away(error);
        }
        tracing::error!("an import was refused by the database: {error}");
        Self::Refused(error)
    }
}

/// What an import is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Looking through the file, in bytes.
    Looking,
    /// Reading rows and staging the good ones.
    Reading,
    /// Waiting until another import is applied, before these are.
    Waiting,
    /// Applying them, in one go.
    Applying,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What it is at.
    pub phase: Phase,
    /// Bytes looked through; rows read; permits applied.
    pub done: u64,
    /// Out of how many.
    pub total: u64,
}

/// Imports a file. `url` leads to the database directly, without a pooler between.
///
/// Rows that are wrong are in the report, and without `keep_good_rows` nothing is committed then. Every permit of
/// the good rows is counted once: created, renewed, updated or unchanged. The report is recorded, with the rejected
/// rows, whatever became of the permits; only a file that is refused as a whole leaves nothing.
pub async fn import(
    url: &str,
    file: Input,
    options: &ImportOptions,
    rules: &ImportRules<'_>,
    mut progress: impl FnMut(Progress),
) -> Result<ImportReport, ImportError> {
    let (parts, mut incoming) = mpsc::channel(2);
    let words = options.clone();
    let name = file.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let reader = tokio::task::spawn_blocking(move || read_into(file, &words, &parts));
    let opened = loop {
        match incoming.recv().await {
            Some(Part::Looked { done, total }) => progress(Progress { phase: Phase::Looking, done, total }),
            other => break other,
        }
    };
    let Some(Part::Opened { total, layout }) = opened else {
        return Err(reader.await.map_or(ImportError::Broken, |read| refusal(read.err())));
    };
    progress(Progress { phase: Phase::Reading, done: 0, total });
    let mut connection = connect(url, Purpose::Bulk).await.map_err(|error| ImportError::Unusable(error.into()))?;
    let id = Uuid::now_v7();
    let began = database_now(&mut connection).await.map_err(StoreError::from)?;
    staging::open(&mut connection, id).await?;
    let mut good = 0;
    while let Some(part) = incoming.recv().await {
        match part {
            Part::Opened { .. } | Part::Looked { .. } => {}
            Part::Rows(rows) => {
                staging::insert_rows(&mut connection, id, &rows).await?;
                good += rows.len() as u64;
                progress(Progress { phase: Phase::Reading, done: good, total });
            }
            Part::Rejected(rows) => staging::insert_rejected(&mut connection, id, &rows).await?,
        }
    }
    let (mut reading, source) = match reader.await {
        Ok(Ok(read)) => read,
        Ok(Err(stopped)) => {
            let _ = staging::remove(&mut connection, id).await;
            return Err(refusal(Some(stopped)));
        }
        Err(_) => return Err(ImportError::Broken),
    };
    let held = if options.keep_good_rows() && reading.rejected > 0 {
        held::hold_back(&mut connection, id, &mut reading, source).await
    } else {
        Ok(())
    };
    let import = Import { url, name, layout, id, began, options, rules };
    let report = match held {
        Ok(()) => import.apply(&mut connection, reading, &mut progress).await,
        Err(error) => Err(error),
    };
    // After a failure the connection may be gone; the next import removes what this leaves.
    let _ = staging::remove(&mut connection, id).await;
    report
}

fn refusal(stopped: Option<Stopped>) -> ImportError {
    match stopped {
        Some(Stopped::File(error)) => ImportError::File(error),
        _ => ImportError::Broken,
    }
}

/// One import whose rows are staged.
struct Import<'i> {
    url: &'i str,
    /// Name of the file without its folder.
    name: String,
    layout: FileLayout,
    id: Uuid,
    began: chrono::DateTime<chrono::Utc>,
    options: &'i ImportOptions,
    rules: &'i ImportRules<'i>,
}

impl Import<'_> {
    async fn apply(
        &self,
        connection: &mut PgConnection,
        reading: Reading,
        progress: &mut impl FnMut(Progress),
    ) -> Result<ImportReport, ImportError> {
        let given = given(&reading);
        let number_column = reading.column_of(Field::PermitNumber);
        let (nameless, rows) = (reading.nameless, reading.rows - reading.rejected);
        let wanted =
            if self.options.keep_good_rows() { reading.rejected < reading.rows } else { reading.rejected == 0 };
        let mut report = ImportReport::of(reading, self.rules.dry_run);
        report.id = Some(self.id);
        if !wanted {
            self.record(connection, &report).await?;
            return Ok(report);
        }
        let total = staging::mark_current(connection, self.id).await?;
        progress(Progress { phase: Phase::Applying, done: 0, total });
        let changes = ChangeRules {
            claim_limit: self.rules.claim_limit,
            import_id: Some(self.id),
            by: self.rules.by,
            ..ChangeRules::at(self.rules.moment, self.rules.window)
        };
        let job = Job {
            id: self.id,
            file: self.file(),
            rows,
            at: self.rules.moment.now,
            began: self.began,
            zone: self.rules.zone,
            given: &given,
            catch_up: self.rules.catch_up,
            complete: self.rules.complete,
            dry_run: self.rules.dry_run,
            rules: &changes,
        };
        report.warnings.extend(nameless_remarks(nameless, self.rules.complete));
        let full = |applied: &Applied| self.report(report.clone(), applied, number_column.as_deref());
        let json = |applied: &Applied| serde_json::to_value(full(applied)).unwrap_or_default();
        let waits = |waits| {
            let phase = if waits { Phase::Waiting } else { Phase::Applying };
            progress(Progress { phase, done: 0, total });
        };
        let applied = match imports::apply(connection, &job, json, waits).await? {
            Commit::Done(applied) => applied,
            Commit::DryRun(applied) => {
                self.record(connection, &full(&applied)).await?;
                applied
            }
            Commit::Unanswered(applied, error) => self.ask_again(error).await.map(|()| applied)?,
        };
        progress(Progress { phase: Phase::Applying, done: total, total });
        let report = full(&applied);
        self.log(&report, &applied);
        Ok(report)
    }

    fn file(&self) -> FileKept<'_> {
        FileKept { name: &self.name, delimiter: self.layout.delimiter, header: &self.layout.header }
    }

    /// Records what committed nothing.
    async fn record(&self, connection: &mut PgConnection, report: &ImportReport) -> Result<(), ImportError> {
        let began = Beginning { by: self.rules.by, at: self.rules.moment.now, by_database: self.began };
        let report = serde_json::to_value(report).unwrap_or_default();
        let dry_run = self.rules.dry_run;
        Ok(imports::record_uncommitted(connection, self.id, self.file(), dry_run, began, &report).await?)
    }

    /// Finds out whether a commit without an answer was one.
    async fn ask_again(&self, error: StoreError) -> Result<(), ImportError> {
        let unknown = ImportError::Unknown(self.id);
        let Ok(mut connection) = connect(self.url, Purpose::Bulk).await else { return Err(unknown) };
        match imports::is_recorded(&mut connection, self.id).await {
            Ok(recorded) => recorded.then_some(()).ok_or_else(|| error.into()),
            Err(_) => Err(unknown),
        }
    }

    fn report(&self, mut report: ImportReport, applied: &Applied, number_column: Option<&str>) -> ImportReport {
        report.applied(applied);
        report.committed = !self.rules.dry_run;
        report.warnings.extend(applied.archived.iter().map(|(row, number)| Remark {
            row: Some(*row),
            column: number_column.map(str::to_owned),
            value: Some(number.clone()),
            code: Reason::ArchivedPermit,
            detail: "the permit is archived and was left as it is; restore it to change it".to_owned(),
        }));
        report.warnings.extend(applied.crowded.iter().map(|crowded| Remark {
            row: Some(crowded.row),
            column: number_column.map(str::to_owned),
            value: Some(crowded.number.clone()),
            code: Reason::InvalidContacts,
            detail: format!(
                "a permit has at most {CONTACTS_MAX} contacts, so {} of this row {} left out beside those who stay",
                crowded.left_out,
                which(crowded.left_out, "is", "are")
            ),
        }));
        report.warnings.extend(contradictions::remarks(&applied.contradictions, number_column));
        let unlisted = applied.permits.archived - applied.archived.len() as u64;
        if unlisted > 0 {
            let detail = format!(
                "{unlisted} further archived {} left as {}",
                which(unlisted, "permit was", "permits were"),
                which(unlisted, "it is", "they are")
            );
            report.warnings.push(Remark { row: None, column: None, value: None, code: Reason::ArchivedPermit, detail });
        }
        // Stable: those about the whole file first, then by row.
        report.warnings.sort_by_key(|warning| warning.row);
        report
    }

    fn log(&self, report: &ImportReport, applied: &Applied) {
        if !report.committed {
            return;
        }
        metrics::notices_claimed(applied.notices_claimed);
        tracing::info!(import = %self.id, claimed = applied.notices_claimed, "imported {} rows", report.rows);
        if applied.held > 0 {
            metrics::set_alarm("held", true);
            tracing::warn!(import = %self.id, "{} notices are held: the import owes more than the limit", applied.held);
        }
    }
}

/// The fields about which the file says something, by name; `contacts` when it has columns for them.
fn given(reading: &Reading) -> Vec<String> {
    let has = |field: &Field| reading.mapped.iter().any(|mapped| mapped.field == *field);
    let contacts = has(&Field::ContactEmail) || has(&Field::ContactName);
    let fields = reading.mapped.iter().map(|mapped| mapped.field.to_string());
    fields.chain(contacts.then(|| "contacts".to_owned())).collect()
}

/// What is to be said of rejected rows of which nobody knows the permit, when the others are applied.
fn nameless_remarks(rows: u64, complete: bool) -> Vec<Remark> {
    if rows == 0 {
        return Vec::new();
    }
    let nameless = format!("{rows} rejected {} no permit number that can be told", which(rows, "row has", "rows have"));
    let without = format!(
        "{nameless}, so no other rows of the same permits are held back: what was imported of these may be out of date"
    );
    let unsure = format!("{nameless}, so permits that are said to be missing may be in the file");
    let remarks = [Remark::whole(Reason::RowsWithoutNumber, without), Remark::whole(Reason::MissingUnsure, unsure)];
    remarks.into_iter().take(if complete { 2 } else { 1 }).collect()
}
