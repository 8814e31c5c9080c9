//! What is said of a file that is refused: what is wrong, and what can be done about it.

use super::super::fields::Field;
use super::super::option_names::{ImportOption, Surface};
use super::super::options::ColumnChoice;
use super::super::reading::{COLUMNS_MAX, ROW_BYTES_MAX, SheetSeen};
use super::super::remarks::shorten;
use super::FileFault;
use crate::domain::saying::which;

impl FileFault {
    /// What is wrong, as part of a sentence.
    pub fn fact(&self) -> String {
        match self {
            Self::NotFound => "there is no such file".to_owned(),
            Self::Folder => "this is a folder, not a file".to_owned(),
            Self::Io(error) => format!("the file cannot be read ({error})"),
            Self::Empty => "the file is empty".to_owned(),
            Self::HeaderOnly => "the file has a header and no rows below it".to_owned(),
            Self::OtherFormat(what) => format!("this is {what}, not a table"),
            Self::Binary => "the file contains NUL bytes, so it is no text".to_owned(),
            Self::NotUtf8 { row } => format!("row {row} is not UTF-8, as the rest of the file is"),
            Self::NotUtf16 => "the file is UTF-16 at its beginning and not all through".to_owned(),
            Self::Damaged(why) => format!("the workbook is damaged or protected by a password ({why})"),
            Self::TooBig(what) => format!("the workbook {what}"),
            Self::SheetNeeded { sheets, .. } => which_sheet(sheets).0.to_owned(),
            Self::NoSuchSheet { sheet, .. } => format!("the file has no sheet {sheet:?}"),
            Self::NoSheets => "a text file has no sheets".to_owned(),
            Self::NoHeaderRow { row } => {
                format!("row {row}, which was to be the header, is blank or below the end of the file")
            }
            Self::TooManyColumns(count) => format!("the file has {count} columns; at most {COLUMNS_MAX} are read"),
            Self::RowTooLong { row } => {
                format!("row {row} is longer than {ROW_BYTES_MAX} bytes; is a quotation mark in it never closed?")
            }
            Self::UnclosedQuote { row } => {
                format!(
                    "a quotation mark opened in row {row} is never closed, so the rows after it cannot be told apart"
                )
            }
            Self::NoSuchColumn { field, column, saved, .. } => {
                format!("the file has no column {column:?}{}", wanted(*field, saved.as_deref()))
            }
            Self::DuplicateColumn { field, places, names } => format!(
                "{} have the same name or nearly so, and which of them is {field} cannot be told",
                placed(places, names)
            ),
            Self::MissingFields { fields, .. } => {
                let names = fields.iter().map(|field| field.as_str()).collect::<Vec<_>>();
                format!("no column was recognised for {}", names.join(", "))
            }
            Self::AmbiguousDates { columns, .. } => {
                format!("every date in {} can be read in two ways", list(columns))
            }
            Self::MixedDates { column, formats, counts } => format!(
                "the dates in {column:?} are mixed: {}, {}",
                fit_only(counts[0], formats[0]),
                fit_only(counts[1], formats[1])
            ),
            Self::Changed => "the file was changed while it was read".to_owned(),
        }
    }

    /// What can be done about it, with the options' names for those who read it there.
    pub fn advice(&self, surface: Surface) -> Option<String> {
        let map = |field: &dyn std::fmt::Display| surface.option_with(ImportOption::Map, &format!("{field}=COLUMN"));
        let dates = |format: &str| surface.option_with(ImportOption::DateFormat, format);
        Some(match self {
            Self::OtherFormat(_) | Self::Binary => "save it as csv, xlsx or ods and import that".to_owned(),
            Self::NotUtf8 { .. } | Self::NotUtf16 => "save the file as csv in UTF-8 and import that".to_owned(),
            Self::Damaged(_) => "open it, save it anew, and import that".to_owned(),
            Self::TooBig(_) => "save the sheet with the permits as csv and import that".to_owned(),
            Self::SheetNeeded { sheets, names } => {
                let sheet = surface.option_with(ImportOption::Sheet, "NAME");
                format!("say with {sheet} {}; the sheets are {}", which_sheet(sheets).1, list(names))
            }
            Self::NoSuchSheet { sheets, .. } => format!("its sheets are {}", list(sheets)),
            Self::NoSheets => format!("leave out {}", surface.option(ImportOption::Sheet)),
            Self::NoSuchColumn { field, columns, saved, .. } => {
                let other = saved.as_ref().map(|_| format!("choose another with {}; ", map(field)));
                format!("{}its columns are {}", other.unwrap_or_default(), quoted(columns))
            }
            Self::DuplicateColumn { field, .. } => format!("rename one, or choose another with {}", map(field)),
            Self::MissingFields { fields, columns, taken } => {
                let field: &dyn std::fmt::Display = if let [only] = &fields[..] { only } else { &"FIELD" };
                let taken = taken.iter().map(|ColumnChoice { field, column }| {
                    let map = surface.option(ImportOption::Map);
                    format!("{:?} is taken by {map} for {field}; ", shorten(column))
                });
                let taken: String = taken.collect();
                let one_type = surface.option_with(ImportOption::PermitType, "TYPE");
                let or_type =
                    fields.contains(&Field::PermitType).then(|| format!(", or give all rows one type with {one_type}"));
                let or_type = or_type.unwrap_or_default();
                format!("{taken}name it with {}{or_type}; the file's columns are {}", map(field), quoted(columns))
            }
            Self::AmbiguousDates { formats, .. } => {
                format!("say which with {} or {}", dates(formats[0]), dates(formats[1]))
            }
            Self::MixedDates { .. } => {
                format!("make them alike, or say with {} which is right", surface.option(ImportOption::DateFormat))
            }
            Self::Changed => "import it again".to_owned(),
            Self::NotFound
            | Self::Folder
            | Self::Io(_)
            | Self::Empty
            | Self::HeaderOnly
            | Self::NoHeaderRow { .. }
            | Self::TooManyColumns(_)
            | Self::RowTooLong { .. }
            | Self::UnclosedQuote { .. } => return None,
        })
    }
}

/// Why no sheet is taken unasked, and what there is to say. Those that stand open are several; or all in which something
/// stands are hidden.
fn which_sheet(sheets: &[SheetSeen]) -> (&'static str, &'static str) {
    match sheets.iter().filter(|sheet| !sheet.empty).collect::<Vec<_>>()[..] {
        [only] if only.hidden => ("the only sheet with something in it is hidden", "that it is to be read"),
        _ => ("several sheets have something in them", "which is to be read"),
    }
}

fn wanted(field: Field, saved: Option<&str>) -> String {
    match saved {
        None => format!(" for {field}"),
        Some(name) => format!(", from which the saved mapping {name:?} reads {field}"),
    }
}

/// Columns by place and name.
fn placed(places: &[usize], names: &[String]) -> String {
    let one = |(place, name): (&usize, &String)| format!("column {place} {:?}", shorten(name));
    list(&places.iter().zip(names).map(one).collect::<Vec<_>>())
}

fn fit_only(count: u64, format: &str) -> String {
    format!("{count} {} only {format}", which(count, "fits", "fit"))
}

/// Column names for a sentence, each in quotes.
pub(in crate::files) fn quoted(columns: &[impl AsRef<str>]) -> String {
    some_of(columns, |column| format!("{:?}", shorten(column)))
}

/// Names for a sentence.
pub(in crate::files) fn list(names: &[impl AsRef<str>]) -> String {
    some_of(names, shorten)
}

/// A file may have a thousand columns, a sentence may not.
fn some_of(names: &[impl AsRef<str>], show: impl Fn(&str) -> String) -> String {
    const NAMED: usize = 60;
    let said = names.iter().take(NAMED).map(|name| show(name.as_ref())).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => said,
        more => format!("{said} and {more} more"),
    }
}
