//! Rows that are right, of permits of which another row is wrong. What the wrong one says is not known: it may be that
//! the permit was renewed or revoked. So nothing is done with the permit, and all of its rows go to the file of errors. Of
//! a row with a cell too many or too few it is not even known which cell is the number: it holds back every permit of
//! which it has the number anywhere.

use uuid::Uuid;

use super::apply::ImportError;
use super::dates::ColumnDates;
use super::fault::FileFault;
use super::fields::Field;
use super::mapping::Mapping;
use super::reading::Source;
use super::rejected::{Columns, Kept, REJECTED_KEPT, not_kept_words};
use super::remarks::{REMARKS_KEPT, Reason, Remark, shorten};
use super::{ReadError, Reading};
use crate::domain::saying::which;
use crate::store::PgConnection;
use crate::store::imports::staging::{self, HeldBack, HeldRow, RejectedRow};

/// Rejected rows staged at once.
const BATCH: usize = 500;

/// The file once more, read as it was before.
#[derive(Debug)]
pub(super) struct Again {
    pub source: Source,
    pub mapping: Mapping,
    pub dates: ColumnDates,
}

/// Holds them back, now that all rows are staged, and takes them into the account as rejected.
pub(super) async fn hold_back(
    connection: &mut PgConnection,
    import: Uuid,
    reading: &mut Reading,
    again: Again,
) -> Result<(), ImportError> {
    let held = staging::hold_back(connection, import, REJECTED_KEPT).await?;
    reading.nameless += held.nameless;
    if held.rows == 0 {
        return Ok(());
    }
    let column = reading.column_of(Field::PermitNumber);
    let whole: Vec<(u64, Remark)> =
        held.first.iter().filter(|row| row.whole).map(|row| remark(row, column.as_deref())).collect();
    let again = tokio::task::spawn_blocking(move || look_up(again, &whole)).await;
    let kept = again.map_err(|_| ImportError::Broken)??;
    for batch in kept.chunks(BATCH) {
        staging::insert_rejected(connection, import, batch).await?;
    }
    account(reading, &held, column.as_deref(), kept.len() as u64);
    Ok(())
}

fn remark(row: &HeldRow, column: Option<&str>) -> (u64, Remark) {
    let remark = Remark {
        row: Some(row.file_row),
        column: column.map(str::to_owned),
        value: column.is_some().then(|| shorten(&row.permit_number)),
        code: Reason::AnotherRowWrong,
        detail: "another row of this permit is wrong, so none of its rows is imported".to_owned(),
    };
    (row.file_row, remark)
}

/// These rows of the file, with what is to be said of them, as far as there is room for them.
fn look_up(mut file: Again, wanted: &[(u64, Remark)]) -> Result<Vec<RejectedRow>, ReadError> {
    let path = file.source.path().to_owned();
    look_up_rows(&mut file, wanted).map_err(|fault| ReadError::new(&path, fault))
}

fn look_up_rows(file: &mut Again, wanted: &[(u64, Remark)]) -> Result<Vec<RejectedRow>, FileFault> {
    let Again { source, mapping, dates } = file;
    let columns = Columns { mapping, dates, width: source.header().len() };
    let mut found = Vec::new();
    let mut kept = Kept::default();
    let mut wanted = wanted.iter().peekable();
    let mut rows = source.rows()?;
    while let Some((number, remark)) = wanted.peek() {
        let Some(row) = rows.next_row()? else { return Err(FileFault::Changed) };
        if row.number == *number {
            let row = kept.take(&row, &columns, std::slice::from_ref(remark));
            found.extend(row.kept.then_some(row));
            wanted.next();
        }
    }
    drop(rows);
    if source.changed()? { Err(FileFault::Changed) } else { Ok(found) }
}

fn account(reading: &mut Reading, held: &HeldBack, column: Option<&str>, kept: u64) {
    reading.rejected += held.rows;
    reading.rejected_by_reason.insert(Reason::AnotherRowWrong, held.rows);
    let room = REMARKS_KEPT.saturating_sub(reading.errors.len());
    reading.errors.extend(held.first.iter().take(room).map(|row| remark(row, column).1));
    reading.errors.sort_by_key(|error| error.row);
    let listed = held.first.len().min(room) as u64;
    if held.rows > listed {
        let detail = format!(
            "{} further {} counted and not listed",
            held.rows - listed,
            which(held.rows - listed, "error is", "errors are")
        );
        reading.warnings.push(Remark::whole(Reason::ListShortened, detail));
    }
    if held.rows > kept {
        reading.warnings.push(Remark::whole(Reason::ListShortened, not_kept_words(held.rows - kept)));
    }
}
