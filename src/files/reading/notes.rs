//! What a sheet holds that nobody sees in its rows: counted, with the first places, and said as warnings.

use super::super::remarks::{Reason, Remark};
use super::workbook::SheetRows;
use crate::domain::saying::which;

/// Rows that are named.
const NAMED: usize = 5;

/// How often something was met, and where first.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    rows: usize,
    first: Vec<u64>,
}

impl Tally {
    fn add(&mut self, count: u32, row: u64) {
        if count == 0 {
            return;
        }
        self.count += u64::from(count);
        self.rows += 1;
        if self.first.len() < NAMED {
            self.first.push(row);
        }
    }

    /// `what` is put after the count, as a word for one and one for several.
    fn say(&self, code: Reason, one: &str, many: &str, then: &str) -> Option<Remark> {
        let (what, count) = if self.count == 1 { (one, "one".to_owned()) } else { (many, self.count.to_string()) };
        let rows = self.first.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let more = if self.rows > self.first.len() { ", …" } else { "" };
        let word = if self.first.len() == 1 { "row" } else { "rows" };
        (self.count > 0).then(|| Remark::whole(code, format!("{count} {what} ({word} {rows}{more}){then}")))
    }
}

/// The account of the rows that were read.
#[derive(Debug, Default)]
pub(super) struct Notes {
    hidden: Tally,
    formulas: Tally,
    valueless: Tally,
    overlong: Tally,
    beyond: Tally,
}

impl Notes {
    /// Takes note of the row where `sheet` is.
    pub fn take(&mut self, sheet: &SheetRows<'_>) {
        let cells = sheet.cells();
        let row = cells.number;
        self.hidden.add(u32::from(cells.hidden), row);
        self.formulas.add(cells.formulas, row);
        self.valueless.add(cells.valueless, row);
        self.overlong.add(cells.overlong, row);
        self.beyond.add(u32::from(cells.beyond), row);
    }

    /// The warnings; `header_row` is the one below which the sheet was read.
    pub fn remarks(&self, sheet: &SheetRows<'_>, header_row: u64) -> Vec<Remark> {
        let tallies = [
            self.hidden.say(
                Reason::HiddenRows,
                "row is hidden",
                "rows are hidden",
                which(self.hidden.count, " and is read like the others", " and are read like the others"),
            ),
            self.formulas.say(
                Reason::Formulas,
                "cell is a formula",
                "cells are formulas",
                ", of which the value is taken that was saved with the file",
            ),
            self.valueless.say(
                Reason::FormulasWithoutValue,
                "formula has no value in the file",
                "formulas have no value in the file",
                ", so their cells are empty; open the file in a spreadsheet program and save it again",
            ),
            self.overlong.say(
                Reason::DigitsLost,
                "number has more than 15 digits",
                "numbers have more than 15 digits",
                ", of which spreadsheets keep 15; identifiers belong into cells that are formatted as text",
            ),
            self.beyond.say(
                Reason::BesideTable,
                "row has cells",
                "rows have cells",
                " right of the last column that has a name; they are not read",
            ),
        ];
        let hidden = sheet.hidden_columns();
        let columns = (!hidden.is_empty()).then(|| {
            let detail = format!(
                "{} read like the others: {}",
                which(hidden.len(), "a hidden column is", "hidden columns are"),
                hidden.join(", ")
            );
            Remark::whole(Reason::HiddenColumns, detail)
        });
        tallies.into_iter().flatten().chain(columns).chain(sheet.merged(header_row)).collect()
    }
}
