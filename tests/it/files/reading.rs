//! Reading: delimiters, headers, row numbers, and what is no table at all.

use permit_notifier::files::{
    self, FileFault, ReadError, Reason, SHOWN_CHARS,
    reading::{COLUMNS_MAX, ROW_BYTES_MAX, Source},
};
use proptest::prelude::*;

use super::{Desk, HEADER, day, errors, plain, read, read_path, refused, with_dates};

#[test]
fn row_numbers_are_those_of_a_spreadsheet() {
    for end in ["\n", "\r\n", "\r"] {
        let text = "\u{feff}permit_number,permit_type,holder_name,expires_on||1,Food,\"Ann|and Bob\",2026-01-01||,,,|\
                    2,Food,Cy,2026-01-02|||3,Food,Di,2026-01-03";
        let (reading, terms) = read(text.replace('|', end), &plain()).unwrap();
        assert_eq!(reading.rows, 3);
        let seen: Vec<_> = terms.iter().map(|term| (term.row, term.permit_number.as_str())).collect();
        assert_eq!(seen, [(3, "1"), (6, "2"), (9, "3")], "line end {end:?}");
        assert_eq!(terms[0].holder_name, "Ann and Bob");
    }
}

#[test]
fn the_header_may_follow_blank_lines_and_a_line_that_names_the_separator() {
    let (reading, terms) =
        read("sep=;\r\n\r\nPermit No;Type;Holder;Expires\r\n00123;Food;Ann, Lee;2026-01-01\r\n", &plain()).unwrap();
    assert_eq!(reading.guessed.header_row, 3);
    assert_eq!(reading.guessed.delimiter, Some(files::Delimiter::Semicolon));
    assert_eq!((terms[0].row, terms[0].permit_number.as_str()), (4, "00123"));
    assert_eq!(terms[0].holder_name, "Ann, Lee");
}

#[test]
fn the_delimiter_is_guessed_and_named() {
    for (byte, name) in [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "pipe")] {
        let text = "permit_number~permit_type~\"holder,;|\tname\"~expires_on\n1~Food~\"A~B\"~2026-01-01\n";
        let (reading, terms) = read(text.replace('~', byte), &plain()).unwrap();
        assert_eq!(reading.guessed.delimiter.unwrap().as_str(), name);
        assert_eq!(terms[0].expires_on, day("2026-01-01"));
    }
}

#[test]
fn what_is_no_table_is_refused_in_one_sentence() {
    let other = |bytes: &[u8]| match refused(bytes) {
        FileFault::OtherFormat(name) => name,
        fault => panic!("{fault}"),
    };
    assert_eq!(other(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), "a PDF");
    assert_eq!(other(b"\xef\xbb\xbf[\n  {\"permit_number\": \"1\"}\n]\n"), "JSON");
    assert_eq!(other(b"{ \"permits\": [] }"), "JSON");
    assert!(!matches!(refused("[number],{type}\n1,2\n"), FileFault::OtherFormat(_)), "names in brackets");
    assert!(other(b"\xD0\xCF\x11\xE0").starts_with("an old Excel workbook (xls)"));
    assert_eq!(other(b"\x1f\x8b\x08\0"), "a gzip archive");
    assert!(matches!(refused(format!("{HEADER}1,Food,A\0nn,,2026-01-01\n")), FileFault::Binary));
    assert!(matches!(refused(""), FileFault::Empty));
    assert!(matches!(refused("\u{feff}\r\n \r\n"), FileFault::Empty));
    assert!(matches!(refused(HEADER), FileFault::HeaderOnly));
    assert!(matches!(refused(format!("{HEADER}\n,,,,\n")), FileFault::HeaderOnly));
    let split = [HEADER.as_bytes(), "é,é,é\n1,".as_bytes(), b"\xc3,\xa9,,2026-01-01\n"].concat();
    assert!(matches!(refused(split), FileFault::NotUtf8 { row: 3 }));
    assert!(matches!(refused(format!("{HEADER}1,Food,\"Ann,,2026-01-01\n2,x\n")), FileFault::UnclosedQuote { row: 2 }));
    let long = format!("{HEADER}1,Food,{},,2026-01-01\n", "x".repeat(ROW_BYTES_MAX));
    assert!(matches!(refused(long), FileFault::RowTooLong { row: 2 }));
    let wide = (0..=COLUMNS_MAX).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    assert!(matches!(refused(wide), FileFault::TooManyColumns(1001)));
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let desk = Desk::new();
    let error = read_path(&desk.0.path().join("nowhere.csv"), &plain()).unwrap_err();
    assert!(matches!(error.fault, FileFault::NotFound));
    assert!(error.to_string().ends_with("nowhere.csv: there is no such file"), "{error}");
    assert!(matches!(read_path(desk.0.path(), &plain()).unwrap_err().fault, FileFault::Folder));
}

#[test]
fn a_pipe_can_be_read_like_a_file() {
    let desk = Desk::new();
    let pipe = desk.0.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, with_dates(&["31/12/2026", "01/02/2027"]))
    });
    let (reading, terms) = read_path(&pipe, &plain()).unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(reading.rows, 2);
    assert_eq!(terms[1].expires_on, day("2027-02-01"));
}

#[test]
fn a_file_that_grows_between_the_passes_is_refused() {
    let path = Desk::new();
    let path = path.file(with_dates(&["2026-01-01"]));
    let options = plain();
    let prepared = files::prepare(&path, &options).unwrap();
    assert_eq!(prepared.rows(), 1);
    std::fs::write(&path, with_dates(&["2026-01-01", "2026-01-02"])).unwrap();
    let error = prepared.each(|_| Ok::<_, ReadError>(())).unwrap_err();
    assert!(matches!(error.fault, FileFault::Changed));
}

#[test]
fn a_file_whose_values_change_between_the_passes_is_refused_too() {
    for (other, later) in [("2026-01-01,", 0), ("2026-12-31", 2)] {
        let path = Desk::new();
        let path = path.file(with_dates(&["2026-01-01"]));
        let options = plain();
        let prepared = files::prepare(&path, &options).unwrap();
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(&path, with_dates(&[other])).unwrap();
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(written + std::time::Duration::from_secs(later)).unwrap();
        let error = prepared.each(|_| Ok::<_, ReadError>(())).unwrap_err();
        assert!(matches!(error.fault, FileFault::Changed), "{other}");
    }
}

#[test]
fn rows_with_a_cell_too_few_or_too_many_and_cells_too_long_are_errors_by_row() {
    let text = format!("{HEADER}1,Food,Ann\n2,Food,Bob,,2026-01-01,more\n3,Food,{},,2026-01-01\n", "x".repeat(10_001));
    let (reading, terms) = read(text, &plain()).unwrap();
    let expected =
        [(2, "", Reason::TooFewCells), (3, "", Reason::TooManyCells), (4, "holder_name", Reason::CellTooLong)];
    assert_eq!(errors(&reading), expected);
    assert_eq!(reading.errors[2].value.as_ref().unwrap().chars().count(), SHOWN_CHARS);
    assert!(terms.is_empty());
}

#[test]
fn what_has_a_name_in_capitals_is_known_for_a_web_page_too() {
    for page in ["<HTML><BODY>", "<!doctype html>\n<html>", "\u{feff}<Html lang=de>"] {
        assert!(matches!(refused(page), FileFault::OtherFormat("a web page")), "{page}");
    }
}

#[test]
fn empty_cells_after_the_last_column_are_nothing() {
    let text = format!("{HEADER}1,Food,Ann,,03/04/2026,,\n2,Food,Bob,,25/04/2026, ,\n3,Food,Cy,,2026-01-01,x,\n");
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!(errors(&reading), [(4, "", Reason::TooManyCells)]);
    assert_eq!(terms[0].expires_on, day("2026-04-03"), "their dates count like those of other rows");
}

#[test]
fn what_is_not_read_may_be_long_and_twenty_contacts_too() {
    let long = "x".repeat(9_000);
    let contact = format!(r#"{{""name"":""{long}"",""email"":null,""role"":""agent""}}"#);
    let contacts = vec![contact; 20].join(",");
    let text = format!(
        "permit_number,permit_type,holder_name,expires_on,custom,contacts\n1,Food,Ann,2026-01-01,{},\"[{contacts}]\"\n",
        "y".repeat(12_000)
    );
    let (reading, terms) = read(text, &super::options(&["contacts=contacts"], &[], None, false)).unwrap();
    assert_eq!((reading.rejected, terms[0].contacts.len()), (0, 20), "{:?}", reading.errors);
}

proptest! {
    #[test]
    fn any_table_that_is_written_is_read_back_cell_by_cell(
        table in (2usize..6).prop_flat_map(|width| {
            prop::collection::vec(prop::collection::vec("[^\0]{0,12}|[\"\r\n,;é\u{1f600} ]{0,6}", width), 0..12)
        }),
        crlf: bool,
        delimiter in prop::sample::select(vec![b',', b';', b'\t', b'|']),
    ) {
        // Of names that nobody knows a row of the table may be taken for the header.
        let names = ["permit_number", "holder_name", "expires_on", "description", "status"];
        let width = table.first().map_or(names.len(), Vec::len);
        let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).terminator(terminator).from_writer(Vec::new());
        writer.write_record(&names[..width]).unwrap();
        for row in &table {
            writer.write_record(row).unwrap();
        }
        let desk = Desk::new();
        let mut source = Source::open(&desk.file(writer.into_inner().unwrap()), &plain()).unwrap();
        prop_assert_eq!(source.header().len(), width);
        let mut rows = source.rows().unwrap();
        let mut read = Vec::new();
        while let Some(row) = rows.next_row().unwrap() {
            read.push((row.number, row.cells().map(str::to_owned).collect::<Vec<_>>()));
        }
        let blank = |row: &[String]| row.iter().all(|cell| cell.bytes().all(|byte| byte.is_ascii_whitespace()));
        let numbered = (2u64..).zip(table);
        let written: Vec<_> = numbered.filter(|(_, row)| !blank(row)).collect();
        prop_assert_eq!(read, written);
    }
}
