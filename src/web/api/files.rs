//! Files as the API takes and gives them. Reading and writing them is the work of another part, given by the
//! composition root.

use std::fmt::Debug;
use std::fs::File;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, unfold};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Duration, timeout};
use uuid::Uuid;

use super::Api;
use super::problem::{Kind, Problem};
use crate::domain::export::{ExportFormat, ExportShape};
use crate::store::StoreError;
use crate::store::lists::permits::PermitFilter;

/// Pieces of a file, in order.
pub type Chunks = BoxStream<'static, Result<Vec<u8>, StoreError>>;

/// Imports and exports by this process, as the API asks for them.
pub trait Files: Debug + Send + Sync {
    /// Looks at the words of an import; the file is not needed for that.
    fn check<'a>(&'a self, words: &'a ImportWords) -> BoxFuture<'a, Result<(), ImportRefused>>;

    /// Saves what the words say about reading a file, under a name.
    fn save_mapping<'a>(
        &'a self,
        name: &'a str,
        words: &'a ImportWords,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), ImportRefused>>;

    /// Imports a file, as the command does; the report is what the command prints.
    fn import<'a>(
        &'a self,
        upload: Uploaded,
        words: &'a ImportWords,
        by: &'a str,
    ) -> BoxFuture<'a, Result<Value, ImportRefused>>;

    /// What a file looks like with these words, as pages show it before anything is imported.
    fn look<'a>(&'a self, upload: Uploaded, words: &'a ImportWords) -> BoxFuture<'a, Result<Value, ImportRefused>>;

    /// The rows that an import rejected, as a csv file.
    fn rejected(&self, import: Uuid) -> BoxFuture<'_, Result<Chunks, StoreError>>;

    /// The permits that a filter leaves.
    fn export(
        &self,
        filter: PermitFilter,
        shape: ExportShape,
        today: NaiveDate,
    ) -> BoxFuture<'_, Result<Chunks, StoreError>>;
}

/// How a file is to be imported, in the caller's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one option of an import")]
pub struct ImportWords {
    /// Each `FIELD=COLUMN`.
    pub map: Vec<String>,
    /// Fields for which no column is looked for.
    pub leave_out: Vec<String>,
    /// Each `FROM=TO`.
    pub status: Vec<String>,
    /// The type of every permit.
    pub permit_type: Option<String>,
    /// In strftime.
    pub date_format: Option<String>,
    /// The name of a saved mapping, which is asked where nothing else is said.
    pub mapping: Option<String>,
    /// The sheet of a workbook.
    pub sheet: Option<String>,
    /// The row in which the names of the columns stand.
    pub header_row: Option<u64>,
    /// Whether new permits are told what is past already, and renewals are confirmed.
    pub catch_up: bool,
    /// Whether good rows are applied although others are wrong.
    pub keep_good_rows: bool,
    /// Whether the file calls itself complete.
    pub complete: bool,
    /// Whether nothing is changed.
    pub dry_run: bool,
}

/// A file that was sent.
#[derive(Debug)]
pub struct Uploaded {
    /// Without a name of its own on the disk.
    pub file: File,
    /// What the sender calls it.
    pub name: String,
}

/// Why a file was not imported.
#[derive(Debug)]
pub enum ImportRefused {
    /// An option.
    Option {
        /// The query parameter.
        parameter: String,
        /// What is allowed.
        why: String,
    },
    /// The file as a whole.
    File {
        /// For programs.
        code: &'static str,
        /// What is wrong.
        fact: String,
        /// What can be done about it.
        advice: Option<String>,
    },
    /// The database was away, or others were in the way; nothing was imported.
    Busy,
    /// The database broke off while committing; whether it did is not known.
    Unknown(Uuid),
    /// A fault of ours, which is in the log.
    Fault,
}

impl From<ImportRefused> for Problem {
    fn from(refused: ImportRefused) -> Self {
        match refused {
            ImportRefused::Option { parameter, why } => Self::field(format!("/{parameter}"), "not_allowed", why),
            ImportRefused::File { code, fact, advice } => Self::field("", code, joined(fact, advice)),
            ImportRefused::Busy => busy("the database is away or busy, and nothing was imported"),
            ImportRefused::Unknown(id) => Self::new(
                Kind::Internal,
                format!(
                    "the database broke off just as the import was committed; read import {id} to see whether it was"
                ),
            ),
            ImportRefused::Fault => Self::new(Kind::Internal, "the service has a fault, which is in its log"),
        }
    }
}

/// What is wrong with a file and what can be done about it.
pub fn joined(fact: String, advice: Option<String>) -> String {
    match advice {
        Some(advice) => format!("{fact}; {advice}"),
        None => fact,
    }
}

/// Not now.
pub fn busy(detail: &str) -> Problem {
    Problem::new(Kind::Unavailable, detail).header(header::RETRY_AFTER, HeaderValue::from_static("5"))
}

/// One of the places for long work of this sort, if one is free.
pub fn take_place(places: &std::sync::Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit, Problem> {
    let place = std::sync::Arc::clone(places).try_acquire_owned();
    place.map_err(|_| busy(&format!("this process works on as many {what} as it may; try again in a moment")))
}

/// How long a reader may take for one piece, and for the whole file: what is read is a snapshot of the database, which
/// cannot tidy up behind it.
const PIECE_LIMIT: Duration = Duration::from_secs(30);
const FILE_LIMIT: Duration = Duration::from_mins(15);

/// An answer that is a file. It ends early, and visibly so, when the reader is too slow or the database goes away.
pub fn attachment(api: &Api, place: OwnedSemaphorePermit, chunks: Chunks, name: &str, content_type: &str) -> Response {
    // An empty piece is the end: a channel that closes without it was cut off.
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    api.requests.spawn(async move {
        let _place = place;
        if timeout(FILE_LIMIT, pump(chunks, &sender)).await.is_err() {
            tracing::warn!("a file was cut off: its reader took longer than {} s", FILE_LIMIT.as_secs());
        }
    });
    let body = unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(piece) if piece.is_empty() => None,
            Some(piece) => Some((Ok(piece), Some(receiver))),
            None => Some((Err(std::io::Error::other("the file was cut off")), None)),
        }
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(content_type).into_iter().map(|value| (header::CONTENT_TYPE, value)));
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    headers.extend(disposition.into_iter().map(|value| (header::CONTENT_DISPOSITION, value)));
    response
}

/// Permits as a file.
pub fn exported(api: &Api, place: OwnedSemaphorePermit, chunks: Chunks, format: ExportFormat) -> Response {
    attachment(api, place, chunks, format.file_name(), format.media_type())
}

async fn pump(mut chunks: Chunks, sender: &mpsc::Sender<Bytes>) {
    loop {
        let chunk = tokio::select! {
            chunk = chunks.next() => chunk,
            // The reader has gone, perhaps long before there is anything to give out.
            () = sender.closed() => return,
        };
        let Some(chunk) = chunk else { break };
        let bytes = match chunk {
            Ok(bytes) if bytes.is_empty() => continue,
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => return tracing::warn!("a file was cut off: {error}"),
        };
        match timeout(PIECE_LIMIT, sender.send(bytes)).await {
            Ok(Ok(())) => {}
            // The reader has gone.
            Ok(Err(_)) => return,
            Err(_) => {
                return tracing::warn!("a file was cut off: its reader took nothing for {} s", PIECE_LIMIT.as_secs());
            }
        }
    }
    let _ = timeout(PIECE_LIMIT, sender.send(Bytes::new())).await;
}
