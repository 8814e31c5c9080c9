//! A workbook of either format: its sheets, and which of them is read.

use std::fs::File;

use serde::Serialize;

use super::super::fault::FileFault;
use super::super::remarks::{Reason, Remark};
use super::FileFormat;
use super::archive::Archive;
use super::cells::Cells;
use super::ods::{self, OdsRows};
use super::xlsx::{Xlsx, XlsxRows};
use crate::domain::saying::{counted, which};

/// A sheet of a workbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SheetSeen {
    /// Its name.
    pub name: String,
    /// Whether the program that shows the workbook hides it.
    pub hidden: bool,
    /// Whether nothing stands in it; not looked at in a workbook of Excel when somebody says which sheet is to be read.
    pub empty: bool,
}

/// A workbook, and the sheet of it that is read.
#[derive(Debug)]
pub(super) struct Workbook {
    archive: Archive,
    kind: Kind,
    sheets: Vec<SheetSeen>,
    chosen: usize,
}

#[derive(Debug)]
enum Kind {
    Xlsx(Xlsx),
    Ods,
}

/// The rows of one sheet.
pub(super) enum SheetRows<'f> {
    Xlsx(XlsxRows<'f>),
    Ods(OdsRows<'f>),
}

/// The last row that a sheet can have.
pub(super) const ROWS_MAX: u64 = 1_048_576;
/// The first column that no sheet has.
pub(super) const NO_COLUMN: usize = 16_384;

impl Workbook {
    /// Opens a zip archive as a workbook, and its sheet `wanted`, or else the only one in which anything stands.
    pub fn open(file: File, wanted: Option<&str>) -> Result<Self, FileFault> {
        const ODS: &str = "application/vnd.oasis.opendocument.spreadsheet";
        let mut archive = Archive::open(file)?;
        let (kind, sheets) = if archive.text("mimetype").is_some_and(|kind| kind.starts_with(ODS)) {
            (Kind::Ods, ods::sheets(&mut archive)?)
        } else if archive.has("xl/workbook.bin") {
            return Err(FileFault::OtherFormat("a binary Excel workbook (xlsb)"));
        } else if archive.has("[Content_Types].xml") && archive.has("_rels/.rels") {
            let (xlsx, sheets) = Xlsx::open(&mut archive, wanted.is_some())?;
            (Kind::Xlsx(xlsx), sheets)
        } else {
            return Err(FileFault::OtherFormat("a zip archive"));
        };
        let chosen = choose(&sheets, wanted)?;
        let mut workbook = Self { archive, kind, sheets, chosen };
        workbook.prepare()?;
        Ok(workbook)
    }

    fn prepare(&mut self) -> Result<(), FileFault> {
        match &mut self.kind {
            Kind::Xlsx(xlsx) => xlsx.prepare(&mut self.archive),
            Kind::Ods => Ok(()),
        }
    }

    /// All rows of the sheet that is read.
    pub fn rows(&mut self) -> Result<SheetRows<'_>, FileFault> {
        Ok(match &mut self.kind {
            Kind::Xlsx(xlsx) => SheetRows::Xlsx(xlsx.rows(&mut self.archive, self.chosen)?),
            Kind::Ods => SheetRows::Ods(ods::rows(&mut self.archive, self.chosen)?),
        })
    }

    pub fn format(&self) -> FileFormat {
        match self.kind {
            Kind::Xlsx(_) => FileFormat::Xlsx,
            Kind::Ods => FileFormat::Ods,
        }
    }

    /// The name of the sheet that is read.
    pub fn sheet(&self) -> &str {
        &self.sheets[self.chosen].name
    }

    pub fn sheets(&self) -> &[SheetSeen] {
        &self.sheets
    }

    /// Sheets with something in them that are not read.
    pub fn remark(&self) -> Option<Remark> {
        let others = self.sheets.iter().enumerate().filter(|(at, sheet)| *at != self.chosen && !sheet.empty);
        let names: Vec<String> = others.map(|(_, sheet)| sheet.described()).collect();
        let detail = format!("only the sheet {:?} is read, and not {}", self.sheet(), names.join(", "));
        (!names.is_empty()).then(|| Remark::whole(Reason::OtherSheets, detail))
    }
}

impl SheetSeen {
    fn described(&self) -> String {
        format!("{:?}{}", self.name, if self.hidden { " (hidden)" } else { "" })
    }
}

/// By its exact name, else without regard to case and outer blanks; without a name the only one with something in it,
/// of which hidden ones are never taken unasked.
fn choose(sheets: &[SheetSeen], wanted: Option<&str>) -> Result<usize, FileFault> {
    let described = || sheets.iter().map(SheetSeen::described).collect();
    if let Some(wanted) = wanted {
        let exact = sheets.iter().position(|sheet| sheet.name == wanted);
        let alike = |sheet: &SheetSeen| sheet.name.trim().to_lowercase() == wanted.trim().to_lowercase();
        let found = exact.or_else(|| sheets.iter().position(alike));
        return found.ok_or_else(|| FileFault::NoSuchSheet { sheet: wanted.to_owned(), sheets: described() });
    }
    let full: Vec<usize> = (0..sheets.len()).filter(|&at| !sheets[at].empty).collect();
    let shown: Vec<usize> = full.iter().copied().filter(|&at| !sheets[at].hidden).collect();
    match shown[..] {
        [only] => Ok(only),
        [] if full.is_empty() => Err(FileFault::Empty),
        _ => Err(FileFault::SheetNeeded { sheets: sheets.to_vec(), names: described() }),
    }
}

impl SheetRows<'_> {
    /// Goes to the next row in which something stands; false behind the last.
    pub fn advance(&mut self) -> Result<bool, FileFault> {
        match self {
            Self::Xlsx(rows) => rows.advance(),
            Self::Ods(rows) => rows.advance(),
        }
    }

    /// The row where it is.
    pub fn cells(&self) -> &Cells {
        match self {
            Self::Xlsx(rows) => &rows.cells,
            Self::Ods(rows) => &rows.cells,
        }
    }

    /// How many bytes of its part were taken, and how many it has.
    pub fn progress(&self) -> (u64, u64) {
        match self {
            Self::Xlsx(rows) => rows.progress(),
            Self::Ods(rows) => rows.progress(),
        }
    }

    /// Says how many columns the header has.
    pub fn set_width(&mut self, width: usize) {
        match self {
            Self::Xlsx(rows) => rows.cells.set_width(width),
            Self::Ods(rows) => rows.cells.set_width(width),
        }
    }

    /// Columns that are hidden, by their letters.
    pub fn hidden_columns(&self) -> &[String] {
        match self {
            Self::Xlsx(rows) => &rows.hidden_columns,
            Self::Ods(rows) => &rows.hidden_columns,
        }
    }

    /// Merged cells below the header; known when the sheet was read to its end.
    pub fn merged(&self, header_row: u64) -> Option<Remark> {
        let merged = match self {
            Self::Xlsx(rows) => &rows.merged,
            Self::Ods(rows) => &rows.merged,
        };
        let below = || merged.iter().filter(|area| area.last_row > header_row);
        let count = below().count();
        let first: Vec<String> = below().take(5).map(|area| format!("{}{}", letters(area.column), area.row)).collect();
        let more = if count > first.len() { ", …" } else { "" };
        let detail = format!(
            "{} of merged cells ({}{more}) {} value in {} first cell alone; the others are empty",
            counted(count, "area"),
            first.join(", "),
            which(count, "has its", "have their"),
            which(count, "its", "their")
        );
        (count > 0).then(|| Remark::whole(Reason::MergedCells, detail))
    }
}

/// Merged cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merged {
    pub row: u64,
    pub last_row: u64,
    pub column: usize,
}

/// Most merged areas of which account is kept.
pub(super) const MERGED_MAX: usize = 10_000;
/// Most hidden columns that are named.
pub(super) const HIDDEN_MAX: usize = 20;

/// A column as sheets name it, from 0.
pub(super) fn letters(column: usize) -> String {
    let mut left = column + 1;
    let mut letters = Vec::new();
    while left > 0 {
        letters.push(char::from(b'A' + ((left - 1) % 26) as u8));
        left = (left - 1) / 26;
    }
    letters.iter().rev().collect()
}

/// Row and column (from 0) of a cell such as `B7`.
pub(super) fn place(reference: &str) -> Option<(u64, usize)> {
    let digits = reference.find(|c: char| c.is_ascii_digit())?;
    let (letters, row) = reference.split_at(digits);
    let mut column = 0_usize;
    for letter in letters.bytes().filter(|&byte| byte != b'$') {
        let value = letter.to_ascii_uppercase().checked_sub(b'A').filter(|value| *value < 26)?;
        column = column * 26 + usize::from(value) + 1;
        if column > NO_COLUMN {
            return None;
        }
    }
    Some((row.trim_start_matches('$').parse().ok()?, column.checked_sub(1)?))
}
