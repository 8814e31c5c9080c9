//! Workbooks: what is read out of cells, which sheet, and what is said about what nobody sees.

use permit_notifier::files::{FileFault, FileFormat, ImportOptions, Reading, Reason, TermRow};
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook, Worksheet};

use super::{day, errors, options, plain, read, read_path, refused, sample};
use crate::support::workbook::{ods, ods_table};

const NAMES: [&str; 5] = ["permit_number", "permit_type", "holder_name", "holder_email", "expires_on"];

/// A workbook with one sheet, in which the header stands.
fn workbook(fill: impl FnOnce(&mut Worksheet)) -> Vec<u8> {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    sheet.write_row(0, 0, NAMES).unwrap();
    fill(sheet);
    book.save_to_buffer().unwrap()
}

fn date(text: &str) -> ExcelDateTime {
    ExcelDateTime::parse_from_str(text).unwrap()
}

/// One permit a row whose date of expiry is a day by its format, or a text.
fn with_cells(days: &[&str], texts: &[&str]) -> Vec<u8> {
    workbook(|sheet| {
        let format = Format::new().set_num_format("dd/mm/yyyy");
        for (row, day) in (1..).zip(days.iter().chain(texts)) {
            sheet.write_row(row, 0, ["", "Food", "Ann", ""]).unwrap();
            sheet.write_number(row, 0, row).unwrap();
            if row as usize <= days.len() {
                sheet.write_datetime_with_format(row, 4, date(day), &format).unwrap();
            } else {
                sheet.write_string(row, 4, *day).unwrap();
            }
        }
    })
}

fn warned(reading: &Reading, code: Reason) -> &str {
    let found = reading.warnings.iter().find(|warning| warning.code == code);
    &found.unwrap_or_else(|| panic!("no {code} in {:?}", reading.warnings)).detail
}

fn read_book(bytes: &[u8]) -> (Reading, Vec<TermRow>) {
    read(bytes, &plain()).unwrap()
}

#[test]
fn identifiers_keep_their_digits_and_their_zeros() {
    let number = |format: &str| Format::new().set_num_format(format);
    let book = workbook(|sheet| {
        let cells: [(f64, &str); 10] = [
            (2_210_526.0, "General"),
            (1e6, "#,##0"),
            (123.0, "00000"),
            (21_380_001.0, "00000-0000"),
            (1_234.0, "\"P-\"000000"),
            (123_456_789_012_345.0, "0"),
            (4.52, "0.00"),
            (7.0, "0.00E+00"),
            (12.0, "\"P-\"0"),
            (13.0, "\"P-\"General"),
        ];
        for (row, (value, format)) in (1..).zip(cells) {
            sheet.write_row(row, 0, ["", "Food", "Ann", "", "2026-05-01"]).unwrap();
            sheet.write_number_with_format(row, 0, value, &number(format)).unwrap();
        }
        sheet.write_row(11, 0, ["00042", "Food", "Ann", "", "2026-05-01"]).unwrap();
    });
    let (reading, terms) = read_book(&book);
    let numbers: Vec<&str> = terms.iter().map(|term| term.permit_number.as_str()).collect();
    let expected = [
        "2210526",
        "1000000",
        "00123",
        "02138-0001",
        "P-001234",
        "123456789012345",
        "4.52",
        "7",
        "P-12",
        "P-13",
        "00042",
    ];
    assert_eq!(numbers, expected);
    assert_eq!((reading.guessed.format, reading.guessed.sheet.as_deref()), (FileFormat::Xlsx, Some("Sheet1")));
    assert_eq!((reading.guessed.delimiter, reading.warnings.len()), (None, 0));
}

#[test]
fn a_number_of_more_digits_than_a_sheet_keeps_is_pointed_out() {
    let book = workbook(|sheet| {
        sheet.write_row(1, 0, ["", "Food", "Ann", "", "2026-05-01"]).unwrap();
        sheet.write_number(1, 0, 1_234_567_890_123_456_768.0).unwrap();
    });
    assert!(warned(&read_book(&book).0, Reason::DigitsLost).starts_with("one number has more than 15 digits (row 2)"));
}

#[test]
fn other_values_are_what_people_see() {
    let book = workbook(|sheet| {
        sheet.write_row(1, 0, ["1", "", "", "", "2026-05-01"]).unwrap();
        sheet.write_boolean(1, 1, true).unwrap();
        sheet.write_number_with_format(1, 2, 0.125, &Format::new().set_num_format("0.0%")).unwrap();
        sheet.write_row(2, 0, ["2", "", "", "", "2026-05-01"]).unwrap();
        sheet.write_number_with_format(2, 1, 0.5625, &Format::new().set_num_format("hh:mm")).unwrap();
        sheet.write_string(2, 2, "two\nlines & <more> _x0041_").unwrap();
    });
    let (_, terms) = read_book(&book);
    assert_eq!((terms[0].permit_type_name.as_str(), terms[0].holder_name.as_str()), ("TRUE", "12.5%"));
    let seen = (terms[1].permit_type_name.as_str(), terms[1].holder_name.as_str());
    assert_eq!(seen, ("13:30:00", "two lines & <more> _x0041_"));
}

#[test]
fn days_are_days_whatever_their_format_and_bare_numbers_are_not() {
    let book = workbook(|sheet| {
        for (row, format) in (1..).zip(["dd/mm/yyyy", "mmm d, yy", "m/d/yy", "[$-409]d-mmm-yyyy;@", "yyyy\\-mm"]) {
            sheet.write_row(row, 0, ["", "Food", "Ann", ""]).unwrap();
            sheet.write_number(row, 0, row).unwrap();
            sheet.write_number_with_format(row, 4, 46_143.0, &Format::new().set_num_format(format)).unwrap();
        }
        sheet.write_row(6, 0, ["6", "Food", "Ann", ""]).unwrap();
        sheet.write_number(6, 4, 46_143.0).unwrap();
        sheet.write_row(7, 0, ["7", "Food", "Ann", "", "46143"]).unwrap();
        sheet.write_row(8, 0, ["8", "Food", "Ann", ""]).unwrap();
        let with_time = Format::new().set_num_format("yyyy-mm-dd hh:mm");
        sheet.write_number_with_format(8, 4, 46_143.5, &with_time).unwrap();
    });
    let (reading, terms) = read_book(&book);
    assert!(terms.len() == 5 && terms.iter().all(|term| term.expires_on == day("2026-05-01")), "{terms:?}");
    let wrong = [Reason::InvalidDate, Reason::InvalidDate, Reason::TimeInDate];
    assert_eq!(
        errors(&reading),
        [(7, "expires_on", wrong[0]), (8, "expires_on", wrong[1]), (9, "expires_on", wrong[2])]
    );
    assert_eq!(reading.errors[0].detail, "a bare number is no date; format the column as dates in the spreadsheet");
    assert_eq!(reading.errors[2].value.as_deref(), Some("2026-05-01 12:00:00"));
}

#[test]
fn days_and_dates_in_words_share_a_column_that_is_decided_from_the_words() {
    let (reading, terms) = read_book(&with_cells(&["2026-01-31", "2026-02-03"], &["12/01/2026", "31/12/2026"]));
    assert_eq!(reading.guessed.date_format, "%d/%m/%Y");
    let days: Vec<String> = terms.iter().map(|term| term.expires_on.to_string()).collect();
    assert_eq!(days, ["2026-01-31", "2026-02-03", "2026-01-12", "2026-12-31"]);
    assert!(matches!(refused(with_cells(&["2026-01-31"], &["12/01/2026"])), FileFault::AmbiguousDates { .. }));
    // What a format makes of words does not touch the days.
    let swapped = options(&[], &[], Some("%Y-%d-%m"), false);
    let (_, terms) = read(with_cells(&["2026-02-03"], &["2026-31-12"]), &swapped).unwrap();
    assert_eq!((terms[0].expires_on, terms[1].expires_on), (day("2026-02-03"), day("2026-12-31")));
}

#[test]
fn dates_that_a_program_seems_to_have_swapped_are_pointed_out() {
    let days = ["2026-12-01", "2026-03-04", "2026-05-06", "2026-01-12", "2026-07-08"];
    let (reading, _) = read_book(&with_cells(&days, &["31/12/2026", "13/01/2026"]));
    assert!(warned(&reading, Reason::DatesSwapped).starts_with("every cell of \"expires_on\""));
    for texts in [["31/12/2026", "11/12/2026"], ["2026-12-31", "2026-11-30"]] {
        let (reading, _) = read_book(&with_cells(&days, &texts));
        assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    }
}

#[test]
fn the_sheet_is_named_or_the_only_one_with_something_in_it() {
    let two = |hide: bool| {
        let mut book = Workbook::new();
        for (name, holder) in [("Notes", ""), ("Old", "Ann"), ("Permits 2026", "Bob")] {
            let sheet = book.add_worksheet();
            sheet.set_name(name).unwrap();
            if !holder.is_empty() {
                sheet.write_row(0, 0, NAMES).unwrap();
                sheet.write_row(1, 0, ["1", "Food", holder, "", "2026-05-01"]).unwrap();
            }
            if hide && name == "Old" {
                sheet.set_hidden(true);
            }
        }
        book.save_to_buffer().unwrap()
    };
    let fault = refused(two(false));
    assert!(matches!(fault, FileFault::SheetNeeded { .. }));
    let sentence = fault.to_string();
    assert!(
        sentence.contains("several sheets have something in them; say with --sheet NAME")
            && sentence.contains("\"Notes\", \"Old\", \"Permits 2026\""),
        "{sentence}"
    );
    let mut book = Workbook::new();
    book.add_worksheet();
    book.add_worksheet().set_hidden(true).write_row(0, 0, NAMES).unwrap();
    let fault = refused(book.save_to_buffer().unwrap());
    assert!(
        fault.to_string().starts_with("the only sheet with something in it is hidden; say with --sheet NAME"),
        "{fault}"
    );
    let of = |name: &str| plain().of_sheet(Some(name.to_owned()));
    let (_, terms) = read(two(false), &of(" old")).unwrap();
    assert_eq!(terms[0].holder_name, "Ann");
    let fault = read(two(false), &of("New")).unwrap_err().fault;
    assert!(matches!(&fault, FileFault::NoSuchSheet { sheets, .. } if sheets.len() == 3), "{fault}");
    assert!(matches!(read(two(false), &of("Notes")).unwrap_err().fault, FileFault::Empty));
    let (reading, terms) = read_book(&two(true));
    assert_eq!((reading.guessed.sheet.as_deref(), terms[0].holder_name.as_str()), (Some("Permits 2026"), "Bob"));
    assert_eq!(
        warned(&reading, Reason::OtherSheets),
        "only the sheet \"Permits 2026\" is read, and not \"Old\" (hidden)"
    );
    let csv = "permit_number,permit_type,holder_name,expires_on\n1,Food,Ann,2026-05-01\n";
    assert!(matches!(read(csv, &of("Old")).unwrap_err().fault, FileFault::NoSheets));
}

#[test]
fn what_nobody_sees_in_a_sheet_is_said() {
    let book = workbook(|sheet| {
        for row in 1..=8 {
            sheet.write_row(row, 0, ["", "Food", "Ann", "", "2026-05-01"]).unwrap();
            sheet.write_number(row, 0, row).unwrap();
        }
        for row in [2, 3, 4, 5, 6, 7] {
            sheet.set_row_hidden(row).unwrap();
        }
        sheet.write_formula(1, 2, Formula::new("=\"A\"&\"nn\"").set_result("Ann F.")).unwrap();
        sheet.set_formula_result_default("");
        sheet.write_formula(2, 3, Formula::new("=Z1")).unwrap();
        sheet.merge_range(7, 1, 8, 1, "Bar", &Format::new()).unwrap();
        sheet.write_string(3, 8, "call her").unwrap();
        sheet.write_string(20, 8, "a note below the table").unwrap();
        sheet.set_column_hidden(3).unwrap();
    });
    let (reading, terms) = read(book, &options(&[], &[], None, true)).unwrap();
    assert_eq!((reading.rows, terms[0].holder_name.as_str()), (8, "Ann F."));
    assert_eq!(errors(&reading), [(9, "permit_type", Reason::Missing)]);
    let said = |code| warned(&reading, code);
    assert_eq!(said(Reason::HiddenRows), "6 rows are hidden (rows 3, 4, 5, 6, 7, …) and are read like the others");
    assert!(said(Reason::Formulas).starts_with("2 cells are formulas (rows 2, 3), of which the value is taken"));
    let empty = reading.warnings.iter().find(|warning| warning.code == Reason::FormulasWithoutValue);
    assert_eq!(empty, None, "an empty text is a value");
    assert!(said(Reason::MergedCells).starts_with("1 area of merged cells (B8) has"), "{}", said(Reason::MergedCells));
    assert!(
        said(Reason::BesideTable).starts_with("one row has cells (row 4) right of"),
        "{}",
        said(Reason::BesideTable)
    );
    assert_eq!(said(Reason::HiddenColumns), "a hidden column is read like the others: D");
    let book = workbook(|sheet| {
        sheet.write_row(1, 0, ["1", "Food", "Ann", "", "2026-05-01"]).unwrap();
        sheet.set_row_hidden(1).unwrap();
    });
    let (reading, _) = read_book(&book);
    assert_eq!(warned(&reading, Reason::HiddenRows), "one row is hidden (row 2) and is read like the others");
}

#[test]
fn cells_that_failed_to_calculate_are_errors_of_those_cells() {
    let book = workbook(|sheet| {
        sheet.write_row(1, 0, ["1", "Food", "Ann", "", ""]).unwrap();
        sheet.write_formula(1, 4, Formula::new("=NA()").set_result("#N/A")).unwrap();
        sheet.write_row(2, 0, ["2", "Food", "#REF!", "#N/A", "never"]).unwrap();
        sheet.write_row(3, 0, ["3", "Food", "#12", "", "2026-05-01"]).unwrap();
    });
    let (reading, terms) = read_book(&book);
    let expected = [
        (2, "expires_on", Reason::ErrorValue),
        (3, "expires_on", Reason::InvalidDate),
        (3, "holder_name", Reason::ErrorValue),
        (3, "holder_email", Reason::ErrorValue),
    ];
    assert_eq!((errors(&reading), terms.len()), (expected.to_vec(), 1));
    // The same file saved as text.
    let csv = "permit_number,permit_type,holder_name,expires_on\n1,Food,#NAME?,Err:502\n";
    let (reading, _) = read(csv, &plain()).unwrap();
    assert_eq!(reading.rejected_by_reason[&Reason::ErrorValue], 1);
    assert_eq!(reading.errors.len(), 2);
}

#[test]
fn a_row_that_is_wrong_twice_is_listed_twice_in_any_kind_of_file() {
    let row = |i: usize| {
        let (address, date) =
            if i == 400 { ("ann@@example.org", "2026-02-30") } else { ("ann@example.org", "2026-02-28") };
        [format!("P-{i}"), "Food".to_owned(), "Ann".to_owned(), address.to_owned(), date.to_owned()]
    };
    let rows: Vec<[String; 5]> = (2..=500).map(row).collect();
    let lines = |rows: &[[String; 5]]| rows.iter().map(|row| row.join("|") + "\n").collect::<String>();
    let csv = format!("{}\n{}", NAMES.join("|"), lines(&rows)).into_bytes();
    let xlsx = workbook(|sheet| {
        for (at, row) in (1..).zip(&rows) {
            sheet.write_row(at, 0, row).unwrap();
        }
    });
    let borrowed: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    let all: Vec<&[&str]> = std::iter::once(&NAMES[..]).chain(borrowed.iter().map(Vec::as_slice)).collect();
    let ods = ods("", &ods_table("Permits", &all));
    for file in [csv, xlsx, ods] {
        let (reading, terms) = read_book(&file);
        let expected = [(400, "holder_email", Reason::MalformedAddress), (400, "expires_on", Reason::InvalidDate)];
        assert_eq!(errors(&reading), expected, "{}", reading.guessed.format);
        assert_eq!((reading.rows, reading.rejected, terms.len()), (499, 1, 498));
    }
}

#[test]
fn a_sheet_of_one_column_an_empty_one_and_a_header_alone_are_refused() {
    let mut book = Workbook::new();
    book.add_worksheet();
    assert!(matches!(refused(book.save_to_buffer().unwrap()), FileFault::Empty));
    assert!(matches!(refused(workbook(|_| {})), FileFault::HeaderOnly));
    let mut book = Workbook::new();
    book.add_worksheet().write_column(0, 0, ["permit_number", "1", "2"]).unwrap();
    assert!(matches!(refused(book.save_to_buffer().unwrap()), FileFault::MissingFields { .. }));
    assert!(matches!(refused(ods("", &ods_table("A", &[]))), FileFault::Empty));
    assert!(matches!(refused(ods("", &ods_table("A", &[&NAMES]))), FileFault::HeaderOnly));
    assert!(matches!(
        refused(ods("", &ods_table("A", &[&["permit_number"], &["1"]]))),
        FileFault::MissingFields { .. }
    ));
    assert!(matches!(refused("permit_number\n1\n2\n"), FileFault::MissingFields { .. }));
}

#[test]
fn a_workbook_of_an_office_is_read_with_its_title_its_dates_of_three_kinds_and_its_names() {
    let (reading, terms) = read_path(&sample("licences.xlsx"), &options(&[], &[], None, true)).unwrap();
    // Counted with Python's zipfile and xml.etree.
    assert_eq!(
        (reading.rows, reading.guessed.header_row, reading.guessed.sheet.as_deref()),
        (100, 3, Some("Licences"))
    );
    assert_eq!(reading.guessed.date_format, "%m/%d/%Y");
    assert_eq!((reading.rejected, terms.len()), (0, 100));
    let numbers: std::collections::BTreeSet<String> = terms.iter().map(|term| term.permit_number.key()).collect();
    assert_eq!(numbers.len(), 100);
    assert_eq!(terms.iter().filter(|term| !term.holder_name.is_ascii()).count(), 42);
    let of = |row: u64| terms.iter().find(|term| term.row == row).unwrap();
    assert_eq!((of(4).holder_name.as_str(), of(4).permit_number.as_str()), ("Aisha Иванов", "2163007"));
    assert_eq!(
        (of(4).expires_on, of(5).expires_on, of(7).expires_on),
        (day("2026-03-15"), day("2027-03-15"), day("2026-02-15"))
    );
    assert!(warned(&reading, Reason::RowsAboveHeader).contains("prepared by the licensing office"));
}

#[test]
fn a_workbook_can_come_out_of_a_pipe() {
    let desk = super::Desk::new();
    let pipe = desk.0.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, std::fs::read(sample("licences.xlsx")).unwrap())
    });
    let (reading, _) = read_path(&pipe, &ImportOptions::default()).unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(reading.rows, 100);
}

#[test]
fn a_permit_number_that_became_a_date_is_refused() {
    let book = workbook(|sheet| {
        let format = Format::new().set_num_format("dd/mm/yyyy");
        for row in 1..3 {
            sheet.write_row(row, 0, ["3-12", "Food", "Ann", "", "2026-05-01"]).unwrap();
        }
        sheet.write_datetime_with_format(1, 0, date("2026-03-12"), &format).unwrap();
    });
    let (reading, terms) = read_book(&book);
    assert_eq!(errors(&reading), [(2, "permit_number", Reason::InvalidPermitNumber)]);
    assert!(reading.errors[0].detail.starts_with("the spreadsheet has made a date of it"), "{:?}", reading.errors);
    assert_eq!((terms.len(), reading.nameless), (1, 1));
}
