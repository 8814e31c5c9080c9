//! The rows of a sheet, and the cells of a row.

use quick_xml::events::{BytesStart, Event};

use super::super::ROW_BYTES_MAX;
use super::super::archive::Part;
use super::super::cells::Cells;
use super::super::numbers::{self, Written};
use super::super::strings::Strings;
use super::super::styles::Styles;
use super::super::workbook::{HIDDEN_MAX, MERGED_MAX, Merged, NO_COLUMN, ROWS_MAX, letters, place};
use super::super::xml::{Xml, attribute, is_set, push_text};
use crate::files::fault::FileFault;

/// The rows of a sheet.
pub(in crate::files::reading) struct XlsxRows<'f> {
    xml: Xml<Part<'f>>,
    strings: &'f mut Strings,
    styles: &'f Styles,
    from_1904: bool,
    pub cells: Cells,
    cell: Cell,
    /// Number of the row that was begun last.
    row: u64,
    pub hidden_columns: Vec<String>,
    pub merged: Vec<Merged>,
    ended: bool,
}

/// A cell on its way.
#[derive(Debug, Default)]
struct Cell {
    column: usize,
    style: usize,
    kind: Kind,
    formula: bool,
    phonetic: bool,
    /// Whether what comes is of its value.
    open: bool,
    value: String,
    shown: String,
}

/// How the value of a cell is to be taken.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[default]
    Number,
    /// A number of a text in the workbook.
    Shared,
    Text,
    Boolean,
    /// A day in ISO 8601.
    Day,
    /// `#N/A` and its like, as they stand.
    Error,
}

impl<'f> XlsxRows<'f> {
    pub fn new(xml: Xml<Part<'f>>, strings: &'f mut Strings, styles: &'f Styles, from_1904: bool) -> Self {
        Self {
            xml,
            strings,
            styles,
            from_1904,
            cells: Cells::default(),
            cell: Cell::default(),
            row: 0,
            hidden_columns: Vec::new(),
            merged: Vec::new(),
            ended: false,
        }
    }

    /// See [`Xml::progress`].
    pub fn progress(&self) -> (u64, u64) {
        self.xml.progress()
    }

    /// Goes to the next row in which something stands; false behind the last.
    pub fn advance(&mut self) -> Result<bool, FileFault> {
        loop {
            let event = self.xml.next()?;
            match event {
                Event::Start(element) => match element.local_name().as_ref() {
                    "row" => {
                        let number = match attribute(&element, "r").as_ref() {
                            "" => Some(self.row + 1),
                            number => number.parse().ok(),
                        };
                        let number = number.filter(|number| (self.row + 1..=ROWS_MAX).contains(number));
                        self.row = number.ok_or_else(|| FileFault::damaged("the rows of a sheet are out of order"))?;
                        self.cells.begin(self.row);
                        self.cells.hidden = is_set(&element, "hidden");
                        self.cell.column = 0;
                    }
                    "c" => self.cell.begin(&element)?,
                    "f" => self.cell.formula = true,
                    "v" => self.cell.open = true,
                    "t" => self.cell.open = !self.cell.phonetic,
                    "rPh" => self.cell.phonetic = true,
                    "col" if is_set(&element, "hidden") => hide(&mut self.hidden_columns, &element),
                    "mergeCell" if self.merged.len() < MERGED_MAX => {
                        let area = attribute(&element, "ref");
                        let (first, last) = area.split_once(':').unwrap_or((&area, &area));
                        if let (Some((row, column)), Some((last_row, _))) = (place(first), place(last)) {
                            self.merged.push(Merged { row, last_row, column });
                        }
                    }
                    _ => {}
                },
                Event::End(element) => match element.local_name().as_ref() {
                    "v" | "t" => self.cell.open = false,
                    "rPh" => self.cell.phonetic = false,
                    "c" => self.cell.finish(&mut self.cells, self.strings, self.styles, self.from_1904)?,
                    "row" if self.cells.finish() => return Ok(true),
                    "worksheet" => self.ended = true,
                    _ => {}
                },
                Event::Eof if self.ended => return Ok(false),
                Event::Eof => return Err(FileFault::damaged("a sheet is cut off")),
                // A longer text makes its row too long, whatever is cut from it.
                event if self.cell.open && self.cell.value.len() <= ROW_BYTES_MAX => {
                    push_text(&event, &mut self.cell.value)?;
                }
                _ => {}
            }
        }
    }
}

fn hide(hidden: &mut Vec<String>, column: &BytesStart<'_>) {
    let bound = |name: &str| attribute(column, name).parse::<usize>().unwrap_or(0);
    let (first, last) = (bound("min").max(1), bound("max").min(NO_COLUMN));
    // All columns from some place on are hidden to show where the table ends.
    if last < NO_COLUMN {
        hidden.extend((first..=last).map(|column| letters(column - 1)));
        hidden.truncate(HIDDEN_MAX);
    }
}

impl Cell {
    /// The column is told, or is the next one.
    fn begin(&mut self, element: &BytesStart<'_>) -> Result<(), FileFault> {
        self.value.clear();
        (self.formula, self.phonetic, self.open) = (false, false, false);
        (self.style, self.kind) = (0, Kind::Number);
        for one in element.attributes().with_checks(false).flatten() {
            match one.key.as_ref() {
                "r" => {
                    let found = place(&one.value).filter(|(_, column)| *column < NO_COLUMN);
                    self.column = found.ok_or_else(|| FileFault::damaged("a cell has no place in its sheet"))?.1;
                }
                "s" => self.style = one.value.parse().unwrap_or(0),
                "t" => {
                    self.kind = match one.value.as_ref() {
                        "s" => Kind::Shared,
                        "str" | "inlineStr" => Kind::Text,
                        "b" => Kind::Boolean,
                        "d" => Kind::Day,
                        "e" => Kind::Error,
                        _ => Kind::Number,
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(
        &mut self,
        cells: &mut Cells,
        strings: &mut Strings,
        styles: &Styles,
        from_1904: bool,
    ) -> Result<(), FileFault> {
        cells.formulas += u32::from(self.formula);
        // A formula whose value is an empty text has one.
        cells.valueless += u32::from(self.formula && self.value.is_empty() && self.kind != Kind::Text);
        let column = self.column;
        self.column += 1;
        if self.value.is_empty() {
            return Ok(());
        }
        self.shown.clear();
        let mut is_day = false;
        match self.kind {
            Kind::Number => match numbers::write(&self.value, styles.format(self.style), from_1904, &mut self.shown) {
                Written::Day => is_day = true,
                Written::Overlong => cells.overlong += 1,
                Written::Number => {}
            },
            Kind::Shared => {
                let number = self.value.trim().parse().ok();
                let mut text = std::mem::take(&mut self.value);
                text.clear();
                let known = number.map(|number| strings.push(number, &mut text)).transpose()?;
                self.value = text;
                if known != Some(true) {
                    return Err(FileFault::damaged("a cell points to a text that is not there"));
                }
                unescape(&self.value, &mut self.shown);
            }
            Kind::Text => unescape(&self.value, &mut self.shown),
            Kind::Boolean => self.shown.push_str(if self.value.trim() == "0" { "FALSE" } else { "TRUE" }),
            Kind::Day => is_day = numbers::write_iso(&self.value, &mut self.shown),
            Kind::Error => self.shown.push_str(&self.value),
        }
        cells.put(column, &self.shown, is_day)
    }
}

/// Line ends and tabs that XML would not keep are written as `_x000D_`, and an underscore that only looks like that as
/// `_x005F_`. Other control characters are left in their disguise: no permit needs them.
fn unescape(value: &str, text: &mut String) {
    let mut rest = value;
    while let Some(at) = rest.find("_x") {
        text.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 7).filter(|code| code.ends_with('_')).map(|code| &code[..4]);
        let sign = match code.and_then(|code| u32::from_str_radix(code, 16).ok()) {
            Some(0x0D) => Some('\r'),
            Some(0x0A) => Some('\n'),
            Some(0x09) => Some('\t'),
            Some(0x5F) => Some('_'),
            _ => None,
        };
        if let Some(sign) = sign {
            text.push(sign);
            rest = &rest[at + 7..];
        } else {
            text.push_str("_x");
            rest = &rest[at + 2..];
        }
    }
    text.push_str(rest);
}
