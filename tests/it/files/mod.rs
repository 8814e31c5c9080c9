//! Files as offices hand them over, up to the database: what is read, what is guessed, and what is refused.

mod account;
mod columns;
mod dates;
mod encodings;
mod heads;
mod odd_books;
mod options;
mod reading;
mod register;
mod sheets;
mod words;
mod workbook;

use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use permit_notifier::files::{self, FileFault, ImportOptions, ReadError, Reading, Reason, TermRow};
use tempfile::TempDir;

const HEADER: &str = "permit_number,permit_type,holder_name,holder_email,expires_on\n";

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("permits.csv");
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples").join(name)
}

fn plain() -> ImportOptions {
    options(&[], &[], None, false)
}

fn options(map: &[&str], status: &[&str], date_format: Option<&str>, keep_good_rows: bool) -> ImportOptions {
    ImportOptions::parse(map, status, None, date_format, keep_good_rows).unwrap()
}

fn read_path(path: &Path, options: &ImportOptions) -> Result<(Reading, Vec<TermRow>), ReadError> {
    let mut terms = Vec::new();
    let reading = files::read(path, options, |term| {
        terms.push(term);
        Ok::<_, ReadError>(())
    })?;
    Ok((reading, terms))
}

fn read(content: impl AsRef<[u8]>, options: &ImportOptions) -> Result<(Reading, Vec<TermRow>), ReadError> {
    read_path(&Desk::new().file(content), options)
}

fn refused(content: impl AsRef<[u8]>) -> FileFault {
    read(content, &plain()).unwrap_err().fault
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Row, column and reason of each error.
fn errors(reading: &Reading) -> Vec<(u64, &str, Reason)> {
    let place = |error: &'_ files::Remark| error.row.unwrap();
    reading.errors.iter().map(|error| (place(error), error.column.as_deref().unwrap_or(""), error.code)).collect()
}

/// One permit a row, each with this date of expiry.
fn with_dates(dates: &[&str]) -> String {
    let rows = dates.iter().enumerate().map(|(i, date)| format!("P-{i},Food,Ann,ann@example.org,{date}\n"));
    HEADER.to_owned() + rows.collect::<String>().as_str()
}

/// One permit a row, each with this cell of addresses.
fn with_addresses(cells: &[&str]) -> String {
    let rows = cells.iter().enumerate().map(|(i, cell)| format!("P-{i},Food,Ann,\"{cell}\",2026-05-01\n"));
    HEADER.to_owned() + rows.collect::<String>().as_str()
}
