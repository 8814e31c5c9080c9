//! Sheets of an Excel workbook (ECMA-376), row by row.

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::QName;

use super::super::fault::FileFault;
use super::ROW_BYTES_MAX;
use super::archive::{Archive, Part};
use super::cells::Cells;
use super::numbers::{self, Written};
use super::strings::Strings;
use super::styles::Styles;
use super::workbook::{HIDDEN_MAX, MERGED_MAX, Merged, NO_COLUMN, ROWS_MAX, SheetSeen, letters, place};
use super::xml::{Xml, attribute, is_set, push_text};

/// Most sheets of a workbook.
const SHEETS_MAX: usize = 1_000;

/// What is known of a workbook.
#[derive(Debug)]
pub(super) struct Xlsx {
    /// The part of each sheet.
    parts: Vec<String>,
    strings_part: Option<String>,
    styles_part: Option<String>,
    from_1904: bool,
    strings: Strings,
    styles: Styles,
}

/// A relation of one part to another.
struct Relation {
    id: String,
    kind: String,
    target: String,
}

impl Xlsx {
    /// Finds the sheets.
    pub fn open(archive: &mut Archive) -> Result<(Self, Vec<SheetSeen>), FileFault> {
        let roots = relations(archive, "")?;
        let book = roots.into_iter().find(|one| one.kind == "officeDocument").map(|one| one.target);
        let book = book.ok_or(FileFault::OtherFormat("an Office file without sheets"))?;
        let relations = relations(archive, &book)?;
        let part = |kind: &str| relations.iter().find(|one| one.kind == kind).map(|one| one.target.clone());
        let (mut parts, mut sheets, mut from_1904) = (Vec::new(), Vec::new(), false);
        archive.each_element(&book, |element| {
            match element.local_name().as_ref() {
                "workbookPr" => from_1904 = is_set(element, "date1904"),
                "sheet" => {
                    let id = attribute_id(element);
                    // Sheets of charts and dialogues have no rows.
                    if let Some(found) = relations.iter().find(|one| one.id == id && one.kind == "worksheet") {
                        let hidden = !matches!(attribute(element, "state").as_ref(), "" | "visible");
                        let name = attribute(element, "name").into_owned();
                        sheets.push(SheetSeen { name, hidden, empty: true });
                        parts.push(found.target.clone());
                    }
                }
                _ => {}
            }
            if parts.len() > SHEETS_MAX { Err(FileFault::TooBig("has more sheets than are read")) } else { Ok(()) }
        })?;
        if parts.is_empty() {
            return Err(FileFault::OtherFormat("an Office file without sheets"));
        }
        for (part, sheet) in parts.iter().zip(&mut sheets) {
            sheet.empty = is_empty(archive.stream(part)?)?;
        }
        let (strings_part, styles_part) = (part("sharedStrings"), part("styles"));
        let (strings, styles) = (Strings::none(), Styles::default());
        Ok((Self { parts, strings_part, styles_part, from_1904, strings, styles }, sheets))
    }

    /// Reads what the cells point to.
    pub fn prepare(&mut self, archive: &mut Archive) -> Result<(), FileFault> {
        if let Some(part) = self.strings_part.as_ref().filter(|part| archive.has(part)) {
            self.strings = Strings::read(archive, part)?;
        }
        if let Some(part) = self.styles_part.as_ref().filter(|part| archive.has(part)) {
            self.styles = Styles::read(archive, part)?;
        }
        Ok(())
    }

    /// All rows of a sheet.
    pub fn rows<'f>(&'f mut self, archive: &'f mut Archive, sheet: usize) -> Result<XlsxRows<'f>, FileFault> {
        Ok(XlsxRows {
            xml: archive.stream(&self.parts[sheet])?,
            strings: &mut self.strings,
            styles: &self.styles,
            from_1904: self.from_1904,
            cells: Cells::default(),
            cell: Cell::default(),
            row: 0,
            hidden_columns: Vec::new(),
            merged: Vec::new(),
            ended: false,
        })
    }
}

/// The id by which a sheet names its part: `r:id`, beside a `sheetId` that is another thing.
fn attribute_id(element: &BytesStart<'_>) -> String {
    let is_id = |name: QName<'_>| name.local_name().as_ref() == "id" && name.prefix().is_some();
    let id = element.attributes().with_checks(false).flatten().find(|one| is_id(one.key));
    id.map(|one| one.value.into_owned()).unwrap_or_default()
}

/// The relations of `part`, or those of the whole archive.
fn relations(archive: &mut Archive, part: &str) -> Result<Vec<Relation>, FileFault> {
    let (folder, name) = part.rsplit_once('/').map_or(("", part), |(folder, name)| (folder, name));
    let of = if folder.is_empty() { format!("_rels/{name}.rels") } else { format!("{folder}/_rels/{name}.rels") };
    let mut relations = Vec::new();
    archive.each_element(&of, |element| {
        if element.local_name().as_ref() == "Relationship" && relations.len() < 10 * SHEETS_MAX {
            let kind = attribute(element, "Type");
            relations.push(Relation {
                id: attribute(element, "Id").into_owned(),
                kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
                target: target(folder, &attribute(element, "Target")),
            });
        }
        Ok(())
    })?;
    Ok(relations)
}

/// The part that a relation from `folder` names.
fn target(folder: &str, target: &str) -> String {
    if let Some(whole) = target.strip_prefix('/') {
        return whole.to_owned();
    }
    let mut steps: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in target.split('/') {
        match step {
            "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}

/// Whether no cell of a sheet has a value.
fn is_empty(mut xml: Xml<Part<'_>>) -> Result<bool, FileFault> {
    let (mut in_cell, mut is_value) = (false, false);
    loop {
        match xml.next()? {
            Event::Start(element) => match element.local_name().as_ref() {
                "c" => in_cell = true,
                "v" | "t" => is_value = in_cell,
                _ => {}
            },
            Event::End(element) => match element.local_name().as_ref() {
                "c" => in_cell = false,
                "v" | "t" => is_value = false,
                "sheetData" => return Ok(true),
                _ => {}
            },
            Event::Text(text) if is_value && !text.trim().is_empty() => return Ok(false),
            Event::CData(_) | Event::GeneralRef(_) if is_value => return Ok(false),
            Event::Eof => return Ok(true),
            _ => {}
        }
    }
}

/// The rows of a sheet.
pub(super) struct XlsxRows<'f> {
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

impl XlsxRows<'_> {
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
            Kind::Day => is_day = write_iso(&self.value, &mut self.shown),
            Kind::Error => self.shown.push_str(&self.value),
        }
        cells.put(column, &self.shown, is_day)
    }
}

/// A moment in ISO 8601 as other days are written; false, and as it stands, when it is none.
pub(super) fn write_iso(value: &str, text: &mut String) -> bool {
    let value = value.trim();
    let moment = value.parse::<chrono::NaiveDateTime>().ok();
    let moment = moment.or_else(|| value.parse::<chrono::NaiveDate>().ok()?.and_hms_opt(0, 0, 0));
    match moment {
        Some(moment) => numbers::write_moment(moment, text),
        None => text.push_str(value),
    }
    moment.is_some()
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
