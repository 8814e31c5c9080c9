//! Sheets of an Excel workbook (ECMA-376), row by row.

mod sheet;

use std::collections::HashSet;

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::QName;

use super::archive::{Archive, Part};
use super::strings::Strings;
use super::styles::Styles;
use super::workbook::SheetSeen;
use super::xml::{Xml, attribute, is_set};
use crate::files::fault::FileFault;
pub(super) use sheet::XlsxRows;

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
    /// Finds the sheets. Whether one is empty is looked at unless somebody said which is to be read.
    pub fn open(archive: &mut Archive, is_said: bool) -> Result<(Self, Vec<SheetSeen>), FileFault> {
        let roots = relations(archive, "")?;
        let book = roots.into_iter().find(|one| one.kind == "officeDocument").map(|one| one.target);
        let book = book.ok_or(FileFault::OtherFormat("an Office file without sheets"))?;
        let relations = relations(archive, &book)?;
        let part = |kind: &str| relations.iter().find(|one| one.kind == kind).map(|one| one.target.clone());
        let (mut parts, mut sheets, mut from_1904) = (Vec::new(), Vec::new(), false);
        let mut known = HashSet::new();
        archive.each_element(&book, |element| {
            match element.local_name().as_ref() {
                "workbookPr" => from_1904 = is_set(element, "date1904"),
                "sheet" => {
                    let id = attribute_id(element);
                    // Sheets of charts and dialogues have no rows.
                    if let Some(found) = relations.iter().find(|one| one.id == id && one.kind == "worksheet") {
                        let hidden = !matches!(attribute(element, "state").as_ref(), "" | "visible");
                        let name = attribute(element, "name").into_owned();
                        sheets.push(SheetSeen { name, hidden, empty: false });
                        if !known.insert(found.target.clone()) {
                            return Err(FileFault::damaged("two of its sheets are one part"));
                        }
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
        for (part, sheet) in parts.iter().zip(&mut sheets).filter(|_| !is_said) {
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
        let xml = archive.stream(&self.parts[sheet])?;
        Ok(XlsxRows::new(xml, &mut self.strings, &self.styles, self.from_1904))
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

/// Whether no cell of a sheet has a value. One that is long without any is not looked at to its end, and not empty.
fn is_empty(mut xml: Xml<Part<'_>>) -> Result<bool, FileFault> {
    const LOOKED_AT: u64 = 64 << 20;
    let (mut in_cell, mut is_value) = (false, false);
    loop {
        if xml.progress().0 > LOOKED_AT {
            return Ok(false);
        }
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
