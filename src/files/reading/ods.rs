//! Sheets of an OpenDocument workbook, row by row. All of them are one document, of which those before are passed over.

use std::collections::HashSet;

use quick_xml::events::{BytesStart, Event};

use super::super::fault::FileFault;
use super::archive::{Archive, Part};
use super::cells::Cells;
use super::numbers::{self, NumberFormat, Written};
use super::workbook::{HIDDEN_MAX, MERGED_MAX, Merged, NO_COLUMN, ROWS_MAX, SheetSeen, letters};
use super::xml::{Xml, attribute, push_text};
use super::{COLUMNS_MAX, ROW_BYTES_MAX};

const CONTENT: &str = "content.xml";
/// Most sheets of a workbook.
const SHEETS_MAX: usize = 1_000;
/// Longest name of one.
const NAME_CHARS: usize = 1_000;
/// Most styles by which sheets can be hidden.
const STYLES_MAX: usize = 10_000;

/// What is drawn over a sheet, or noted beside a cell: not of its rows, though text stands in it.
fn is_beside(element: &str) -> bool {
    matches!(
        element,
        "annotation"
            | "shapes"
            | "forms"
            | "frame"
            | "custom-shape"
            | "g"
            | "rect"
            | "line"
            | "polyline"
            | "polygon"
            | "path"
            | "ellipse"
            | "circle"
            | "control"
            | "connector"
            | "caption"
            | "measure"
    )
}

/// Finds the sheets.
pub(super) fn sheets(archive: &mut Archive) -> Result<Vec<SheetSeen>, FileFault> {
    let mut xml = archive.stream(CONTENT)?;
    let (mut sheets, mut style, mut hiding) = (Vec::<SheetSeen>::new(), String::new(), HashSet::new());
    let (mut tables, mut beside) = (0, 0);
    loop {
        match xml.next()? {
            Event::Start(element) => match element.local_name().as_ref() {
                _ if beside > 0 => beside += 1,
                "style" => style = short(&element, "name"),
                "table-properties" if attribute(&element, "display") == "false" && hiding.len() < STYLES_MAX => {
                    hiding.insert(style.clone());
                }
                "table" => {
                    tables += 1;
                    if tables == 1 {
                        let hidden = hiding.contains(attribute(&element, "style-name").as_ref());
                        sheets.push(SheetSeen { name: short(&element, "name"), hidden, empty: true });
                    }
                    if sheets.len() > SHEETS_MAX {
                        return Err(FileFault::TooBig("has more sheets than are read"));
                    }
                }
                // A value has a type or, if nobody calculates, at least a paragraph.
                "table-cell" if tables > 0 && !attribute(&element, "value-type").is_empty() => fill(&mut sheets),
                "p" if tables > 0 => fill(&mut sheets),
                name if is_beside(name) => beside = 1,
                _ => {}
            },
            Event::End(_) if beside > 0 => beside -= 1,
            Event::End(element) if element.local_name().as_ref() == "table" => tables -= 1,
            Event::Eof if sheets.is_empty() => return Err(FileFault::damaged("it has no sheets")),
            Event::Eof => return Ok(sheets),
            _ => {}
        }
    }
}

/// All rows of a sheet.
pub(super) fn rows(archive: &mut Archive, sheet: usize) -> Result<OdsRows<'_>, FileFault> {
    Ok(OdsRows {
        xml: archive.stream(CONTENT)?,
        before: sheet,
        tables: 0,
        beside: 0,
        next: 1,
        again: 0,
        column: 0,
        columns: 0,
        cell: Cell::default(),
        cells: Cells::default(),
        hidden_columns: Vec::new(),
        merged: Vec::new(),
        ended: false,
    })
}

/// A name of which thousands are kept.
fn short(element: &BytesStart<'_>, name: &str) -> String {
    attribute(element, name).chars().take(NAME_CHARS).collect()
}

fn fill(sheets: &mut [SheetSeen]) {
    if let Some(sheet) = sheets.last_mut() {
        sheet.empty = false;
    }
}

/// The rows of a sheet.
pub(super) struct OdsRows<'f> {
    xml: Xml<Part<'f>>,
    /// Sheets that come before the one.
    before: usize,
    /// Tables that are open; in a cell there may be a further one.
    tables: usize,
    /// Elements that are open and not of the rows.
    beside: usize,
    /// Number of the row that begins next.
    next: u64,
    /// How often the row that is there stands once more.
    again: u64,
    /// Where the next cell is.
    column: usize,
    /// Columns described so far.
    columns: usize,
    cell: Cell,
    pub cells: Cells,
    pub hidden_columns: Vec<String>,
    pub merged: Vec<Merged>,
    ended: bool,
}

/// A cell on its way.
#[derive(Debug, Default)]
struct Cell {
    kind: String,
    value: String,
    formula: bool,
    times: usize,
    paragraphs: usize,
    /// Whether what comes is of its text.
    open: bool,
    text: String,
    shown: String,
}

impl OdsRows<'_> {
    /// See [`Xml::progress`].
    pub fn progress(&self) -> (u64, u64) {
        self.xml.progress()
    }

    /// Goes to the next row in which something stands; false behind the last.
    pub fn advance(&mut self) -> Result<bool, FileFault> {
        if self.again > 0 {
            self.again -= 1;
            self.cells.number += 1;
            return if self.cells.number > ROWS_MAX { Err(too_many_rows()) } else { Ok(true) };
        }
        while !self.ended {
            match self.xml.next()? {
                Event::Start(element) => {
                    let name = element.local_name();
                    let name = name.as_ref();
                    if self.beside > 0 || (self.tables > 0 && (name == "table" || is_beside(name))) {
                        self.beside += 1;
                    } else if name == "table" && self.before > 0 {
                        self.before -= 1;
                        self.beside = 1;
                    } else if name == "table" {
                        self.tables = 1;
                    } else if self.tables == 1 {
                        match name {
                            "table-column" => {
                                let times = repeated(&element, "number-columns-repeated");
                                if is_hidden(&element) && times < NO_COLUMN / 2 {
                                    self.hidden_columns.extend((self.columns..self.columns + times).map(letters));
                                    self.hidden_columns.truncate(HIDDEN_MAX);
                                }
                                self.columns = (self.columns + times).min(NO_COLUMN);
                            }
                            "table-row" => {
                                let times = repeated(&element, "number-rows-repeated") as u64;
                                self.cells.begin(self.next);
                                self.cells.hidden = is_hidden(&element);
                                self.again = times - 1;
                                self.next = self.next.saturating_add(times);
                                self.column = 0;
                            }
                            "table-cell" | "covered-table-cell" => {
                                self.cell.begin(&element);
                                let rows = repeated(&element, "number-rows-spanned");
                                let is_merged = rows > 1 || repeated(&element, "number-columns-spanned") > 1;
                                if is_merged && self.merged.len() < MERGED_MAX {
                                    let (row, column) = (self.cells.number, self.column);
                                    self.merged.push(Merged { row, last_row: row + rows as u64 - 1, column });
                                }
                            }
                            _ => self.cell.take_mark(name, &element),
                        }
                    }
                }
                Event::End(element) => {
                    let name = element.local_name();
                    match name.as_ref() {
                        _ if self.beside > 0 => self.beside -= 1,
                        "table-cell" | "covered-table-cell" => {
                            self.cell.finish(self.column, &mut self.cells)?;
                            self.column = self.column.saturating_add(self.cell.times).min(NO_COLUMN);
                        }
                        "p" => self.cell.open = false,
                        "table-row" if self.cells.finish() => {
                            return if self.cells.number > ROWS_MAX { Err(too_many_rows()) } else { Ok(true) };
                        }
                        "table-row" => self.again = 0,
                        "table" => self.ended = true,
                        _ => {}
                    }
                }
                Event::Eof => return Err(FileFault::damaged("a sheet is cut off")),
                event if self.cell.is_open() && self.beside == 0 => push_text(&event, &mut self.cell.text)?,
                _ => {}
            }
        }
        Ok(false)
    }
}

fn too_many_rows() -> FileFault {
    FileFault::TooBig("has more rows than a sheet can have")
}

fn is_hidden(element: &BytesStart<'_>) -> bool {
    matches!(attribute(element, "visibility").as_ref(), "collapse" | "filter")
}

/// A count that is 1 when it is not said.
fn repeated(element: &BytesStart<'_>, name: &str) -> usize {
    attribute(element, name).parse::<u32>().unwrap_or(1).max(1) as usize
}

impl Cell {
    fn begin(&mut self, element: &BytesStart<'_>) {
        self.kind.clear();
        self.value.clear();
        self.text.clear();
        (self.formula, self.times, self.paragraphs, self.open) = (false, 1, 0, false);
        for one in element.attributes().with_checks(false).flatten() {
            match one.key.local_name().as_ref() {
                "value-type" if self.kind.is_empty() => self.kind.push_str(&one.value),
                "value" | "date-value" | "boolean-value" => self.value.push_str(&one.value),
                "formula" => self.formula = true,
                "number-columns-repeated" => self.times = one.value.parse::<u32>().unwrap_or(1).max(1) as usize,
                _ => {}
            }
        }
    }

    /// Whether what comes is of its text. A longer one makes its row too long, whatever is cut from it.
    fn is_open(&self) -> bool {
        self.open && self.text.len() <= ROW_BYTES_MAX
    }

    /// Paragraphs, and what stands for white space that XML would not keep.
    fn take_mark(&mut self, name: &str, element: &BytesStart<'_>) {
        match name {
            "p" => {
                if self.paragraphs > 0 && self.text.len() <= ROW_BYTES_MAX {
                    self.text.push('\n');
                }
                self.paragraphs += 1;
                self.open = true;
            }
            "s" if self.is_open() => self.text.extend(std::iter::repeat_n(' ', repeated(element, "c").min(1_000))),
            "tab" if self.is_open() => self.text.push('\t'),
            "line-break" if self.is_open() => self.text.push('\n'),
            _ => {}
        }
    }

    fn finish(&mut self, column: usize, cells: &mut Cells) -> Result<(), FileFault> {
        self.shown.clear();
        let mut is_day = false;
        match self.kind.as_str() {
            "float" | "currency" if has_leading_zeros(&self.text, &self.value) => self.shown.push_str(&self.text),
            "float" | "currency" => {
                let written = numbers::write(&self.value, &NumberFormat::Plain, false, &mut self.shown);
                cells.overlong += u32::from(written == Written::Overlong);
            }
            "percentage" => drop(numbers::write(&self.value, &NumberFormat::Percent, false, &mut self.shown)),
            "date" => is_day = numbers::write_iso(&self.value, &mut self.shown),
            "boolean" => self.shown.push_str(if self.value == "true" { "TRUE" } else { "FALSE" }),
            _ => self.shown.push_str(&self.text),
        }
        if self.formula {
            cells.formulas += 1;
            cells.valueless += u32::from(self.shown.is_empty() && self.kind != "string");
        }
        if self.shown.is_empty() {
            return Ok(());
        }
        for at in column..column + self.times.min(COLUMNS_MAX + 1) {
            cells.put(at, &self.shown, is_day)?;
        }
        Ok(())
    }
}

/// Whether the format of a cell shows its number with zeros in front, as identifiers have them.
fn has_leading_zeros(text: &str, value: &str) -> bool {
    let is_digits = text.starts_with('0') && text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && text.parse::<f64>().ok() == value.parse().ok()
}
