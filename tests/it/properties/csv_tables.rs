//! Tables of permits as the `csv` crate writes them, some cells spoilt: every good row is read as it was meant, every
//! spoilt one is named by row and column, and there is no other.

use chrono::NaiveDate;
use permit_notifier::files::{self, ImportOptions, ReadError, TermRow};
use proptest::{prelude::*, test_runner::TestCaseResult};
use serde::{Deserialize, Serialize};

use super::check;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Spoilt {
    NumberMissing,
    NumberControl,
    NumberLong,
    TypeMissing,
    TypeWithoutLetters,
    NameMissing,
    AddressBad,
    DateMissing,
    DateNone,
    DateTime,
    CellLong,
    RowShort,
    RowLong,
}

impl Spoilt {
    const ALL: [Self; 13] = [
        Self::NumberMissing,
        Self::NumberControl,
        Self::NumberLong,
        Self::TypeMissing,
        Self::TypeWithoutLetters,
        Self::NameMissing,
        Self::AddressBad,
        Self::DateMissing,
        Self::DateNone,
        Self::DateTime,
        Self::CellLong,
        Self::RowShort,
        Self::RowLong,
    ];

    /// Column and reason.
    fn error(self) -> (&'static str, &'static str) {
        match self {
            Self::NumberMissing => ("permit_number", "missing"),
            Self::NumberControl | Self::NumberLong => ("permit_number", "invalid_permit_number"),
            Self::TypeMissing | Self::TypeWithoutLetters => ("permit_type", "missing"),
            Self::NameMissing => ("holder_name", "missing"),
            Self::AddressBad => ("holder_email", "malformed_address"),
            Self::DateMissing => ("expires_on", "missing"),
            Self::DateNone => ("expires_on", "invalid_date"),
            Self::DateTime => ("expires_on", "time_in_date"),
            Self::CellLong => ("description", "cell_too_long"),
            Self::RowShort => ("", "too_few_cells"),
            Self::RowLong => ("", "too_many_cells"),
        }
    }

    /// Nothing else is looked at in such a row.
    fn is_shape(self) -> bool {
        matches!(self, Self::CellLong | Self::RowShort | Self::RowLong)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    number: String,
    kind: String,
    name: String,
    /// Name, or none, and address of each.
    people: Vec<(String, String)>,
    between: String,
    description: String,
    expires_on: NaiveDate,
    spoilt: Vec<Spoilt>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Table {
    delimiter: char,
    line_end: String,
    quote_all: bool,
    byte_order_mark: bool,
    separator_line: bool,
    lines: Vec<Line>,
}

const HEADER: [&str; 6] = ["permit_number", "permit_type", "holder_name", "holder_email", "description", "expires_on"];

/// A cell without the apostrophe that keeps a spreadsheet from taking it for a formula.
fn meant(cell: &str) -> &str {
    let quoted = cell.len() - cell.trim_start_matches('\'').len();
    let first = cell[quoted..].chars().next();
    if quoted > 0 && first.is_some_and(|c| "=+-@\t\r".contains(c)) { &cell[1..] } else { cell }
}

impl Line {
    /// The faults, at most one a column, and one of the whole row alone.
    fn faults(&self) -> Vec<Spoilt> {
        if let Some(shape) = self.spoilt.iter().find(|spoilt| spoilt.is_shape()) {
            return vec![*shape];
        }
        let mut faults: Vec<Spoilt> = Vec::new();
        for spoilt in &self.spoilt {
            if faults.iter().all(|other| other.error().0 != spoilt.error().0) {
                faults.push(*spoilt);
            }
        }
        faults
    }

    fn cells(&self) -> Vec<String> {
        let person = |(name, address): &(String, String)| {
            if name.is_empty() { address.clone() } else { format!("{name} <{address}>") }
        };
        let people = self.people.iter().map(person).collect::<Vec<_>>().join(&self.between);
        let date = self.expires_on.to_string();
        let mut cells =
            vec![self.number.clone(), self.kind.clone(), self.name.clone(), people, self.description.clone(), date];
        for spoilt in self.faults() {
            match spoilt {
                Spoilt::NumberMissing => cells[0] = " ".into(),
                Spoilt::NumberControl => cells[0].insert(1, '\u{1b}'),
                Spoilt::NumberLong => cells[0] = "9".repeat(101),
                Spoilt::TypeMissing => cells[1] = "\u{1}\t".into(),
                Spoilt::TypeWithoutLetters => cells[1] = "-- ! --".into(),
                Spoilt::NameMissing => cells[2] = "\r\n".into(),
                Spoilt::AddressBad => cells[3] = "ann@@example".into(),
                Spoilt::DateMissing => cells[5].clear(),
                Spoilt::DateNone => cells[5] = "2026-02-30".into(),
                Spoilt::DateTime => cells[5].push_str(" 10:30"),
                Spoilt::CellLong => cells[4] = "é".repeat(10_001),
                Spoilt::RowShort => drop(cells.pop()),
                Spoilt::RowLong => cells.push("x".into()),
            }
        }
        cells
    }

    fn is_read_as(&self, term: &TermRow) -> TestCaseResult {
        let one_line = |text: &str| {
            let words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(" ")
        };
        prop_assert_eq!(term.permit_number.as_str(), meant(&self.number).trim());
        prop_assert_eq!(&term.permit_type_name, &one_line(meant(&self.kind)));
        prop_assert_eq!(&term.holder_name, &one_line(meant(&self.name)));
        let unix = meant(&self.description).replace("\r\n", "\n").replace('\r', "\n");
        let kept: String = unix.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
        prop_assert_eq!(term.description.as_deref().unwrap_or_default(), kept.trim());
        prop_assert_eq!(term.expires_on, self.expires_on);
        let mut people: Vec<&(String, String)> = Vec::new();
        for person in &self.people {
            if people.iter().all(|(_, address)| !address.eq_ignore_ascii_case(&person.1)) {
                people.push(person);
            }
        }
        let as_written = |address: &str| {
            let (local, domain) = address.split_once('@').unwrap();
            format!("{local}@{}", domain.to_ascii_lowercase())
        };
        let mut people = people.into_iter().map(|(name, address)| (name.clone(), as_written(address)));
        prop_assert_eq!(term.holder_email.as_ref().map(ToString::to_string), people.next().map(|(_, address)| address));
        let contacts =
            term.contacts.iter().map(|contact| (contact.name.clone(), contact.email.as_ref().unwrap().to_string()));
        prop_assert_eq!(contacts.collect::<Vec<_>>(), people.collect::<Vec<_>>());
        Ok(())
    }
}

impl Table {
    fn bytes(&self) -> Vec<u8> {
        let mut head = Vec::new();
        if self.byte_order_mark {
            head.extend_from_slice("\u{feff}".as_bytes());
        }
        if self.separator_line {
            head.extend_from_slice(format!("sep={}\r\n", self.delimiter).as_bytes());
        }
        let end = match self.line_end.as_bytes() {
            [byte] => csv::Terminator::Any(*byte),
            _ => csv::Terminator::CRLF,
        };
        let style = if self.quote_all { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary };
        let mut writer = csv::WriterBuilder::new()
            .delimiter(u8::try_from(self.delimiter).unwrap())
            .terminator(end)
            .quote_style(style)
            .flexible(true)
            .from_writer(head);
        writer.write_record(HEADER).unwrap();
        for line in &self.lines {
            writer.write_record(line.cells()).unwrap();
        }
        writer.into_inner().unwrap()
    }
}

fn line() -> impl Strategy<Value = Line> {
    let text = || {
        let pieces = prop::sample::select(vec![
            ",", ";", "\t", "|", "\"", "\"\"", "\r", "\n", "\r\n", " ", "'", "=1+1", "é", "名", "\u{202e}", "\u{feff}",
            "\u{1}", "x", "7",
        ]);
        prop_oneof![prop::collection::vec(pieces, 0..10).prop_map(|pieces| pieces.concat()), "[^\0]{0,20}"]
    };
    // With a digit it is no word for nothing.
    let number = "[A-Z0-9][0-9][A-Z0-9é,;|\"' ./-]{0,12}";
    let address = "[A-Za-z0-9]{1,8}([.+_-][a-z0-9]{1,4})?@[A-Za-z]{2,8}\\.(example|EXAMPLE|org)";
    let person = (prop_oneof![Just(String::new()), "[A-Z][a-z]{1,6}( [A-Z][.])?"], address);
    let alone = prop::collection::vec(address.prop_map(|address| (String::new(), address)), 0..4);
    let people = prop_oneof![
        (prop::collection::vec(person, 0..4), prop::sample::select(vec!["; ", ";", ",", ", ", "\n", " ;; "])),
        (alone, prop::sample::select(vec![" ", " and ", "\r\n", " / ", " | ", "\t"])),
    ];
    let spoilt = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::collection::vec(prop::sample::select(Spoilt::ALL.to_vec()), 1..4),
    ];
    let date = (2000..2100, 1_u32..366).prop_map(|(year, day)| NaiveDate::from_yo_opt(year, day).unwrap());
    (number, text(), text(), people, text(), date, spoilt).prop_map(
        |(number, kind, name, (people, between), description, expires_on, spoilt)| Line {
            number,
            kind: format!("Food{kind}"),
            name: format!("{name}Ann"),
            people,
            between: between.to_owned(),
            description,
            expires_on,
            spoilt,
        },
    )
}

fn table() -> impl Strategy<Value = Table> {
    let written = (
        prop::sample::select(vec![',', ';', '\t', '|']),
        prop::sample::select(vec!["\n", "\r", "\r\n"]),
        any::<[bool; 3]>(),
    );
    (written, prop::collection::vec(line(), 1..12)).prop_map(|((delimiter, end, flags), lines)| Table {
        delimiter,
        line_end: end.to_owned(),
        quote_all: flags[0],
        byte_order_mark: flags[1],
        separator_line: flags[2],
        lines,
    })
}

#[test]
fn every_row_of_a_table_is_read_as_it_was_meant_or_named_with_its_fault() {
    let desk = tempfile::tempdir().unwrap();
    let path = desk.path().join("permits.csv");
    check("csv-tables", 250, table(), |table| {
        std::fs::write(&path, table.bytes()).unwrap();
        let mut terms = Vec::new();
        let reading = files::read(&path, &ImportOptions::default(), |term| {
            terms.push(term);
            Ok::<_, ReadError>(())
        });
        let reading = reading.map_err(|error| TestCaseError::fail(error.to_string()))?;
        // The number under which a spreadsheet shows the first row below the header.
        let first = if table.separator_line { 3 } else { 2 };
        prop_assert_eq!(reading.guessed.header_row, first - 1);
        let numbered = || (first..).zip(&table.lines);
        let mut errors: Vec<_> = numbered()
            .flat_map(|(row, line)| {
                line.faults().into_iter().map(move |fault| (Some(row), fault.error().0, fault.error().1))
            })
            .collect();
        let said = reading.errors.iter();
        let mut said: Vec<_> =
            said.map(|error| (error.row, error.column.as_deref().unwrap_or_default(), error.code.as_str())).collect();
        errors.sort_unstable();
        said.sort_unstable();
        prop_assert_eq!(said, errors);
        let good: Vec<_> = numbered().filter(|(_, line)| line.faults().is_empty()).collect();
        prop_assert_eq!(
            terms.iter().map(|term| term.row).collect::<Vec<_>>(),
            good.iter().map(|(row, _)| *row).collect::<Vec<_>>()
        );
        for ((_, line), term) in good.iter().zip(&terms) {
            line.is_read_as(term)?;
        }
        prop_assert_eq!(reading.rows, table.lines.len() as u64);
        prop_assert_eq!(reading.rejected, (table.lines.len() - good.len()) as u64);
        Ok(())
    });
}
