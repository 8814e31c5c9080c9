//! Permits as files, a page at a time, and rejected rows as the file they came in.
//!
//! The columns of csv and the members of JSON are the fields of a permit, by the names of the API. In csv the contacts
//! are one cell of JSON, and no cell begins as a formula does.

use chrono::NaiveDate;
use csv::WriterBuilder;
use futures_util::stream::{BoxStream, StreamExt, try_unfold};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::contacts;
use super::formula::guard;
use crate::domain::export::ExportFormat;
use crate::store::imports::{list_rejections, read_layout};
use crate::store::lists::{
    pages::PermitPages,
    permits::{PermitFilter, PermitRow},
};
use crate::store::{PgPool, StoreError};

/// Pieces of a file, in order.
pub type Chunks = BoxStream<'static, Result<Vec<u8>, StoreError>>;

/// The fields of a permit with their values on `today`, in order.
fn fields(row: &PermitRow, today: NaiveDate) -> [(&'static str, Value); 22] {
    let contacts = row.contacts.iter();
    let contacts =
        contacts.map(|one| json!({ "name": one.name, "email": one.email, "role": one.role, "language": one.language }));
    [
        ("id", json!(row.id)),
        ("permit_number", json!(row.permit_number)),
        ("permit_type", json!(row.permit_type)),
        ("status", json!(row.status)),
        ("phase", json!(row.life.phase(today))),
        ("holder_name", json!(row.holder_name)),
        ("holder_email", json!(row.holder_email)),
        ("holder_language", json!(row.holder_language)),
        ("contacts", contacts.collect()),
        ("site_address", json!(row.site_address)),
        ("description", json!(row.description)),
        ("issued_on", json!(row.issued_on)),
        ("effective_on", json!(row.effective_on)),
        ("expires_on", json!(row.life.expires_on)),
        ("notices_from", json!(row.notices_from)),
        ("notices_paused_until", json!(row.notices_paused_until)),
        ("external_id", json!(row.external_id)),
        ("custom", row.custom.clone()),
        ("version", json!(row.version)),
        ("created_at", json!(row.created_at)),
        ("updated_at", json!(row.updated_at)),
        ("archived_at", json!(row.archived_at)),
    ]
}

/// The header of csv; the names of [`fields`].
const HEADER: [&str; 22] = [
    "id",
    "permit_number",
    "permit_type",
    "status",
    "phase",
    "holder_name",
    "holder_email",
    "holder_language",
    "contacts",
    "site_address",
    "description",
    "issued_on",
    "effective_on",
    "expires_on",
    "notices_from",
    "notices_paused_until",
    "external_id",
    "custom",
    "version",
    "created_at",
    "updated_at",
    "archived_at",
];

/// The permits that `filter` leaves, as they all are at this moment. `url` leads to the database directly.
pub async fn export(
    url: &str,
    filter: PermitFilter,
    format: ExportFormat,
    today: NaiveDate,
) -> Result<Chunks, StoreError> {
    let pages = PermitPages::open(url, filter, today).await?;
    let begin = match format {
        ExportFormat::Csv => lines(b',', [HEADER])?,
        ExportFormat::Json => b"[".to_vec(),
    };
    let state = Writing { pages, format, today, begin: Some(begin), any: false };
    Ok(try_unfold(Some(state), |state| async {
        let Some(state) = state else { return Ok(None) };
        state.next().await.map(Some)
    })
    .boxed())
}

/// An export on its way.
struct Writing {
    pages: PermitPages,
    format: ExportFormat,
    today: NaiveDate,
    /// What comes before the first permit.
    begin: Option<Vec<u8>>,
    /// Whether a permit was written.
    any: bool,
}

impl Writing {
    /// The next piece, and what is left.
    async fn next(mut self) -> Result<(Vec<u8>, Option<Self>), StoreError> {
        if let Some(begin) = self.begin.take() {
            return Ok((begin, Some(self)));
        }
        let rows = self.pages.next_page().await?;
        if rows.is_empty() {
            let end = if self.format == ExportFormat::Json { b"\n]\n".to_vec() } else { Vec::new() };
            self.pages.close().await?;
            return Ok((end, None));
        }
        let piece = match self.format {
            ExportFormat::Csv => lines(b',', rows.iter().map(|row| self.cells(row)))?,
            ExportFormat::Json => self.members(&rows),
        };
        self.any = true;
        Ok((piece, Some(self)))
    }

    fn cells(&self, row: &PermitRow) -> Vec<String> {
        let text = |(name, value): (&str, Value)| match value {
            Value::Null => String::new(),
            Value::String(text) => guard(&text).into_owned(),
            Value::Array(_) if name == "contacts" => contacts::write(&row.contacts),
            other => other.to_string(),
        };
        fields(row, self.today).into_iter().map(text).collect()
    }

    fn members(&self, rows: &[PermitRow]) -> Vec<u8> {
        let mut text = String::new();
        for (at, row) in rows.iter().enumerate() {
            text += if self.any || at > 0 { ",\n" } else { "\n" };
            let fields = fields(row, self.today).into_iter().map(|(name, value)| (name.to_owned(), value));
            text += &Value::Object(fields.collect::<Map<_, _>>()).to_string();
        }
        text.into_bytes()
    }
}

/// Lines of csv, each of any number of cells.
fn lines<L: IntoIterator<Item: AsRef<[u8]>>>(
    delimiter: u8,
    lines: impl IntoIterator<Item = L>,
) -> Result<Vec<u8>, StoreError> {
    let mut writer = WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(Vec::new());
    let broken = |error: &dyn std::fmt::Display| StoreError::Invalid { field: "file", why: error.to_string() };
    for line in lines {
        writer.write_record(line).map_err(|error| broken(&error))?;
    }
    writer.into_inner().map_err(|error| broken(&error))
}

/// Rejected rows read at once.
const REJECTED_PAGE: u32 = 500;

/// The rejected rows of an import as a file like the one they came in, with a last column that says what is wrong; a
/// row with fewer cells than the header is filled up, so that this stands in its column. The office's own cells are
/// left as they came.
pub async fn rejected_rows(pool: PgPool, import: Uuid) -> Result<Chunks, StoreError> {
    let layout = read_layout(&mut *pool.acquire().await?, import).await?;
    let (delimiter, width) = (layout.delimiter as u8, layout.header.len());
    let header = layout.header.into_iter().chain(["error".to_owned()]);
    let header = lines(delimiter, [header])?;
    let rows = try_unfold((pool, Some(0)), move |(pool, after)| async move {
        let Some(after) = after else { return Ok(None) };
        let rows = list_rejections(&mut *pool.acquire().await?, import, after, REJECTED_PAGE).await?;
        let next = rows.last().map(|row| row.file_row);
        let cells = rows.into_iter().map(|row| {
            let mut cells = row.cells;
            cells.resize(cells.len().max(width), String::new());
            cells.push(guard(&row.errors).into_owned());
            cells
        });
        Ok(Some((lines(delimiter, cells)?, (pool, next))))
    });
    Ok(futures_util::stream::once(async { Ok(header) }).chain(rows).boxed())
}
