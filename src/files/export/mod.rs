//! Permits as files, a page at a time, and rejected rows as the file they came in.
//!
//! The columns of csv and of a workbook and the members of JSON are the fields of a permit, by the names of the API
//! (`fields`); BLDS has columns of its own (`blds`). In csv and workbooks the contacts are one cell of JSON, and no cell
//! begins as a formula does.

mod blds;
mod fields;
pub mod xlsx;

use std::borrow::Cow;
use std::fs::File;

use chrono::NaiveDate;
use csv::WriterBuilder;
use futures_util::stream::{BoxStream, StreamExt, try_unfold};
use tokio::io::AsyncReadExt;
use uuid::Uuid;

use super::formula::{guard, unguard};
use super::rejected::{ERROR, NO_CELL};
use crate::domain::export::{ExportFormat, ExportShape};
use crate::store::imports::{list_rejections, read_layout};
use crate::store::lists::{
    pages::PermitPages,
    permits::{PermitFilter, PermitRow},
};
use crate::store::{PgPool, StoreError};
use xlsx::{Book, SHEET_ROWS};

/// Pieces of a file, in order; some may be empty.
pub type Chunks = BoxStream<'static, Result<Vec<u8>, StoreError>>;

/// The mark by which some programs know UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The permits that `filter` leaves, as they all are at this moment. `url` leads to the database directly.
pub async fn export(
    url: &str,
    filter: PermitFilter,
    shape: ExportShape,
    today: NaiveDate,
) -> Result<Chunks, StoreError> {
    let pages = PermitPages::open(url, filter, today).await?;
    let ExportShape { format, bom } = shape;
    let mut begin = if bom && format.is_csv() { BOM.to_vec() } else { Vec::new() };
    match format {
        ExportFormat::Csv => begin.extend(lines(b',', [fields::HEADER])?),
        ExportFormat::Blds => begin.extend(lines(b',', [blds::HEADER])?),
        ExportFormat::Json => begin.push(b'['),
        ExportFormat::Xlsx => return workbook(pages, today),
    }
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
        let today = self.today;
        let piece = match self.format {
            ExportFormat::Json => self.members(&rows),
            ExportFormat::Blds => lines(b',', rows.iter().map(|row| blds::texts(row, today)))?,
            ExportFormat::Csv | ExportFormat::Xlsx => lines(b',', rows.iter().map(|row| fields::texts(row, today)))?,
        };
        self.any = true;
        Ok((piece, Some(self)))
    }

    fn members(&self, rows: &[PermitRow]) -> Vec<u8> {
        let mut text = String::new();
        for (at, row) in rows.iter().enumerate() {
            text += if self.any || at > 0 { ",\n" } else { "\n" };
            text += &fields::object(row, self.today).to_string();
        }
        text.into_bytes()
    }
}

/// Where a workbook is.
enum Stage {
    /// Rows are written to its temporary file.
    Writing(Box<(PermitPages, Book)>),
    /// The whole is read out.
    Reading(tokio::fs::File),
}

/// A workbook: all of it is written before its first byte is given out.
fn workbook(pages: PermitPages, today: NaiveDate) -> Result<Chunks, StoreError> {
    let book = Book::new(&fields::HEADER, SHEET_ROWS).map_err(|error| broken(&error))?;
    Ok(try_unfold(Stage::Writing(Box::new((pages, book))), move |stage| next_of_workbook(stage, today)).boxed())
}

async fn next_of_workbook(stage: Stage, today: NaiveDate) -> Result<Option<(Vec<u8>, Stage)>, StoreError> {
    const PIECE: usize = 64 << 10;
    match stage {
        Stage::Writing(parts) => {
            let (mut pages, book) = *parts;
            let rows = pages.next_page().await?;
            if rows.is_empty() {
                pages.close().await?;
                let file: File = beside(move || book.finish()).await?;
                return Ok(Some((Vec::new(), Stage::Reading(tokio::fs::File::from_std(file)))));
            }
            let book = beside(move || add_all(book, &rows, today)).await?;
            Ok(Some((Vec::new(), Stage::Writing(Box::new((pages, book))))))
        }
        Stage::Reading(mut file) => {
            let mut piece = Vec::with_capacity(PIECE);
            (&mut file).take(PIECE as u64).read_to_end(&mut piece).await.map_err(|error| broken(&error))?;
            Ok((!piece.is_empty()).then_some((piece, Stage::Reading(file))))
        }
    }
}

fn add_all(mut book: Book, rows: &[PermitRow], today: NaiveDate) -> Result<Book, rust_xlsxwriter::XlsxError> {
    for row in rows {
        book.add(fields::cells(row, today))?;
    }
    Ok(book)
}

/// Work with the disk, on a thread that may block.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, rust_xlsxwriter::XlsxError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| broken(&error))?;
    done.map_err(|error| broken(&error))
}

fn broken(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Invalid { field: "file", why: error.to_string() }
}

/// Lines of csv, each of any number of cells.
fn lines<L: IntoIterator<Item: AsRef<[u8]>>>(
    delimiter: u8,
    lines: impl IntoIterator<Item = L>,
) -> Result<Vec<u8>, StoreError> {
    let mut writer = WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(|error| broken(&error))?;
    }
    writer.into_inner().map_err(|error| broken(&error))
}

/// Rejected rows read at once.
const REJECTED_PAGE: u32 = 500;

/// The rejected rows of an import as a file like the one they came in, with a last column that says what is wrong; a
/// row with fewer cells than the header is filled up, so that this stands in its column, with what an import refuses. It
/// begins with the mark by which Excel knows UTF-8, and no cell of it is a formula, whatever the file was in which the cell
/// came.
pub async fn rejected_rows(pool: PgPool, import: Uuid) -> Result<Chunks, StoreError> {
    let layout = read_layout(&mut *pool.acquire().await?, import).await?;
    let (delimiter, width) = (layout.delimiter as u8, layout.header.len());
    let header = layout.header.iter().map(|name| guard(unguard(name))).chain([ERROR.into()]);
    let header = [BOM, &lines(delimiter, [header.map(Cow::into_owned)])?].concat();
    let rows = try_unfold((pool, Some(0)), move |(pool, after)| async move {
        let Some(after) = after else { return Ok(None) };
        let rows = list_rejections(&mut *pool.acquire().await?, import, after, REJECTED_PAGE).await?;
        let next = rows.last().map(|row| row.file_row);
        let cells = rows.into_iter().map(|row| {
            let mut cells: Vec<String> = row.cells.iter().map(|cell| guard(unguard(cell)).into_owned()).collect();
            cells.resize(cells.len().max(width), NO_CELL.to_owned());
            cells.push(guard(&row.errors).into_owned());
            cells
        });
        Ok(Some((lines(delimiter, cells)?, (pool, next))))
    });
    Ok(futures_util::stream::once(async { Ok(header) }).chain(rows).boxed())
}
