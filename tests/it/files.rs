//! Files as offices hand them over, up to the database: what is read, what is guessed, and what is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use permit_notifier::domain::permit::PermitStatus;
use permit_notifier::files::{
    self, FileFault, ImportOptions, ImportReport, OptionError, ReadError, Reading, Reason, SHOWN_CHARS, TermRow,
    reading::{COLUMNS_MAX, ROW_BYTES_MAX, Source},
};
use proptest::prelude::*;
use tempfile::TempDir;

use PermitStatus::{Active, Closed, Surrendered, Suspended};
use Reason::{InvalidDate, TimeInDate};

const HEADER: &str = "permit_number,permit_type,holder_name,holder_email,expires_on\n";

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("permits.csv");
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples").join(name)
}

fn plain() -> ImportOptions {
    options(&[], &[], None, false)
}

fn options(map: &[&str], status: &[&str], date_format: Option<&str>, keep_good_rows: bool) -> ImportOptions {
    ImportOptions::parse(map, status, None, date_format, keep_good_rows).unwrap()
}

fn read_path(path: &Path, options: &ImportOptions) -> Result<(Reading, Vec<TermRow>), ReadError> {
    let mut terms = Vec::new();
    let reading = files::read(path, options, |term| {
        terms.push(term);
        Ok::<_, ReadError>(())
    })?;
    Ok((reading, terms))
}

fn read(content: impl AsRef<[u8]>, options: &ImportOptions) -> Result<(Reading, Vec<TermRow>), ReadError> {
    read_path(&Desk::new().file(content), options)
}

fn refused(content: impl AsRef<[u8]>) -> FileFault {
    read(content, &plain()).unwrap_err().fault
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Row, column and reason of each error.
fn errors(reading: &Reading) -> Vec<(u64, &str, Reason)> {
    let place = |error: &'_ files::Remark| error.row.unwrap();
    reading.errors.iter().map(|error| (place(error), error.column.as_deref().unwrap_or(""), error.code)).collect()
}

/// One permit a row, each with this date of expiry.
fn with_dates(dates: &[&str]) -> String {
    let rows = dates.iter().enumerate().map(|(i, date)| format!("P-{i},Food,Ann,ann@example.org,{date}\n"));
    HEADER.to_owned() + &rows.collect::<String>()
}

/// One permit a row, each with this cell of addresses.
fn with_addresses(cells: &[&str]) -> String {
    let rows = cells.iter().enumerate().map(|(i, cell)| format!("P-{i},Food,Ann,\"{cell}\",2026-05-01\n"));
    HEADER.to_owned() + &rows.collect::<String>()
}

// The register of Chicago.

#[test]
fn a_licence_register_is_refused_whole_with_every_error_when_all_or_nothing() {
    let (reading, _) = read_path(&sample("chicago_sample.csv"), &plain()).unwrap();
    assert_eq!((reading.rows, reading.rejected), (203, 17));
    let reasons = [(Reason::MalformedAddress, 10), (Reason::ExpiryBeforeEffective, 6), (Reason::Missing, 1)];
    assert_eq!(reading.rejected_by_reason, BTreeMap::from(reasons));
    assert_eq!(reading.errors.len(), 17);
    assert!(reading.errors.iter().all(|error| error.row.is_some() && error.column.is_some()));
}

#[test]
fn a_licence_register_is_read_with_its_good_rows_kept() {
    let (reading, terms) = read_path(&sample("chicago_sample.csv"), &options(&[], &[], None, true)).unwrap();
    assert_eq!((reading.rows, reading.rejected, terms.len()), (203, 7, 196));
    assert_eq!(reading.guessed.date_format, "%m/%d/%Y");
    assert_eq!((reading.addresses_missing, reading.addresses_cleaned), (22, 10));
    let count = |status| terms.iter().filter(|term| term.status == status).count();
    assert_eq!(count(Active), 182);
    assert_eq!(count(Surrendered), 10);
    assert_eq!(count(PermitStatus::Revoked), 4);
    let warned = |code| reading.warnings.iter().filter(|warning| warning.code == code).count();
    assert_eq!(warned(Reason::MalformedAddress), 10);
    assert_eq!(warned(Reason::UnusedColumns), 1);
    let first = &terms[0];
    assert!(first.site_address.as_deref().unwrap().contains(", CHICAGO, IL 60"), "{first:?}");
    let numbers: std::collections::HashSet<String> = terms.iter().map(|term| term.permit_number.key()).collect();
    assert!(numbers.len() < terms.len(), "several terms of one permit are in the sample");
}

// Reading.

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
    assert_eq!(reading.guessed.delimiter, files::Delimiter::Semicolon);
    assert_eq!((terms[0].row, terms[0].permit_number.as_str()), (4, "00123"));
    assert_eq!(terms[0].holder_name, "Ann, Lee");
}

#[test]
fn the_delimiter_is_guessed_and_named() {
    for (byte, name) in [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "pipe")] {
        let text = "permit_number~permit_type~\"holder,;|\tname\"~expires_on\n1~Food~\"A~B\"~2026-01-01\n";
        let (reading, terms) = read(text.replace('~', byte), &plain()).unwrap();
        assert_eq!(reading.guessed.delimiter.as_str(), name);
        assert_eq!(terms[0].expires_on, day("2026-01-01"));
    }
}

#[test]
fn what_is_not_csv_in_utf8_is_refused_in_one_sentence() {
    let other = |bytes: &[u8]| match refused(bytes) {
        FileFault::OtherFormat(name) => name,
        fault => panic!("{fault}"),
    };
    assert_eq!(other(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), "a PDF");
    assert_eq!(other(b"PK\x03\x04....xl/workbook.xml"), "an Excel workbook (xlsx)");
    assert_eq!(
        other(b"PK\x03\x04mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
        "an OpenDocument workbook (ods)"
    );
    assert_eq!(other(b"PK\x03\x04anything"), "a zip archive");
    assert_eq!(other(b"\x1f\x8b\x08\0"), "a gzip archive");
    assert_eq!(other(b"\xff\xfep\0e\0"), "text in UTF-16");
    assert!(matches!(refused(b"p\0e\0r\0m\0i\0t\0"), FileFault::Binary));
    assert!(matches!(refused(""), FileFault::Empty));
    assert!(matches!(refused("\u{feff}\r\n \r\n"), FileFault::Empty));
    assert!(matches!(refused(HEADER), FileFault::HeaderOnly));
    assert!(matches!(refused(format!("{HEADER}\n,,,,\n")), FileFault::HeaderOnly));
    let windows = [HEADER.as_bytes(), b"1,Food,Ann,,2026-01-01\n2,Caf\xe9,Bob,,2026-01-01\n"].concat();
    assert!(matches!(refused(windows), FileFault::NotUtf8 { row: 3 }));
    let split = [HEADER.as_bytes(), b"1,\xc3,\xa9,,2026-01-01\n"].concat();
    assert!(matches!(refused(split), FileFault::NotUtf8 { row: 2 }));
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
fn rows_with_a_cell_too_few_or_too_many_and_cells_too_long_are_errors_by_row() {
    let text = format!("{HEADER}1,Food,Ann\n2,Food,Bob,,2026-01-01,\n3,Food,{},,2026-01-01\n", "x".repeat(10_001));
    let (reading, terms) = read(text, &plain()).unwrap();
    let expected =
        [(2, "", Reason::TooFewCells), (3, "", Reason::TooManyCells), (4, "holder_name", Reason::CellTooLong)];
    assert_eq!(errors(&reading), expected);
    assert_eq!(reading.errors[2].value.as_ref().unwrap().chars().count(), SHOWN_CHARS);
    assert!(terms.is_empty());
}

proptest! {
    #[test]
    fn any_table_that_is_written_is_read_back_cell_by_cell(
        table in (1usize..6).prop_flat_map(|width| {
            prop::collection::vec(prop::collection::vec("[^\0]{0,12}|[\"\r\n,;é\u{1f600} ]{0,6}", width), 0..12)
        }),
        crlf: bool,
        delimiter in prop::sample::select(vec![b',', b';', b'\t', b'|']),
    ) {
        let width = table.first().map_or(1, Vec::len);
        // With one column no delimiter stands in the header, and a comma is assumed.
        let delimiter = if width == 1 { b',' } else { delimiter };
        let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).terminator(terminator).from_writer(Vec::new());
        writer.write_record((0..width).map(|i| format!("column{i}"))).unwrap();
        for row in &table {
            writer.write_record(row).unwrap();
        }
        let desk = Desk::new();
        let mut source = Source::open(&desk.file(writer.into_inner().unwrap())).unwrap();
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

// Columns.

#[test]
fn headers_are_matched_without_case_spaces_and_punctuation() {
    let text = "Permit  Number;PERMIT-TYPE;Holder Name;E-Mail;Expiration_Date\n1;Food;Ann;ann@example.org;2026-01-01\n";
    let (_, terms) = read(text, &plain()).unwrap();
    assert_eq!(terms[0].holder_email.as_ref().unwrap().to_string(), "ann@example.org");
    assert_eq!(terms[0].permit_type.as_str(), "food");
}

#[test]
fn the_names_of_blds_are_known() {
    let text = "PermitNum,Description,IssuedDate,StatusCurrent,OriginalAddress1,OriginalCity,OriginalZip,PermitType,\
                ExpiresDate,Owner\n1,Porch,2025-01-01,Issued,1 Elm St,Springfield,62701,Building,2026-01-01,Ann\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    assert_eq!(terms[0].site_address.as_deref(), Some("1 Elm St, Springfield, 62701"));
    assert_eq!(terms[0].description.as_deref(), Some("Porch"));
    assert_eq!(terms[0].issued_on, Some(day("2025-01-01")));
}

#[test]
fn a_contact_column_is_the_holders_only_where_the_holder_has_no_other() {
    let text = "permit_number,permit_type,holder_name,holder_email,contact_name,contact_email,contact_role,expires_on\n\
                1,Food,Ann,ann@example.org,Bob,bob@example.org; ANN@example.org,agent,2026-01-01\n\
                2,Food,Ann,,Cy,,,2026-01-01\n";
    let (_, terms) = read(text, &plain()).unwrap();
    let contacts = &terms[0].contacts;
    assert_eq!(contacts.len(), 1, "the holder's own address is no contact: {contacts:?}");
    assert_eq!((contacts[0].name.as_str(), contacts[0].role.as_str()), ("Bob", "agent"));
    assert_eq!((terms[1].contacts[0].name.as_str(), terms[1].contacts[0].email.as_ref()), ("Cy", None));
    let text = "permit_number,permit_type,holder_name,contact_email,expires_on\n1,Food,Ann,a@example.org,2026-01-01\n";
    assert!(read(text, &plain()).unwrap().1[0].holder_email.is_some());
}

#[test]
fn map_chooses_the_column_and_missing_fields_are_named_all_at_once() {
    let text = "A,B,C,D\n1,Food,Ann,2026-01-01\n";
    let FileFault::MissingFields { fields, .. } = refused(text) else { panic!() };
    assert_eq!(fields.len(), 4);
    let sentence = refused(text).to_string();
    assert!(sentence.contains("permit_number, permit_type, holder_name, expires_on"), "{sentence}");
    assert!(sentence.contains("--map FIELD=COLUMN") && sentence.ends_with("A, B, C, D"), "{sentence}");
    let map = ["permit_number=a", "permit-type=B", "Holder Name=C", "expires_on=D"];
    assert_eq!(read(text, &options(&map, &[], None, false)).unwrap().1.len(), 1);
    let typed = ImportOptions::parse(
        &["permit_number=A", "holder_name=C", "expires_on=D"],
        &[""; 0],
        Some("Taxi"),
        None,
        false,
    );
    let (reading, terms) = read(text, &typed.unwrap()).unwrap();
    assert_eq!(terms[0].permit_type_name, "Taxi");
    assert_eq!(reading.warnings[0].detail, "nothing is read from the columns B");
}

#[test]
fn a_file_of_one_column_is_refused_with_its_column() {
    let sentence = refused("permit number\n1\n2\n").to_string();
    assert!(
        sentence.contains("permit_type, holder_name, expires_on") && sentence.ends_with("permit number"),
        "{sentence}"
    );
}

#[test]
fn a_map_to_a_column_that_the_file_lacks_lists_those_it_has() {
    let error = read(format!("{HEADER}1,Food,Ann,,2026-01-01\n"), &options(&["description=Notes"], &[], None, false));
    let sentence = error.unwrap_err().fault.to_string();
    let columns = "permit_number, permit_type, holder_name, holder_email, expires_on";
    assert!(sentence.contains("\"Notes\"") && sentence.ends_with(columns), "{sentence}");
}

#[test]
fn a_header_that_stands_twice_matters_only_where_it_is_used() {
    let text =
        "permit_number,permit_type,holder_name,Expires On,expires_on,note,note\n1,Food,Ann,2026-01-01,2026-01-01,,\n";
    let FileFault::DuplicateColumn { places, .. } = refused(text) else { panic!() };
    assert_eq!(places, [4, 5]);
    let (reading, _) = read(text, &options(&["expires_on=Expires On"], &[], None, false)).unwrap();
    assert_eq!(reading.warnings[0].code, Reason::UnusedColumns);
    assert!(read(text, &options(&["description=note"], &[], None, false)).is_err());
}

#[test]
fn the_columns_of_our_own_export_are_known_or_passed_over() {
    let fields = files::Field::ALL.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(",");
    let text = format!(
        "id,{fields},phase,version,created_at,updated_at,archived_at,custom\n\
        0,1,Food,active,Ann,a@x.org,pt-BR,1 Elm St,Text,2025-01-01,2025-01-02,2026-01-01,E-1,b@x.org,Bob,agent,\
        \"[{{\"\"name\"\":\"\"Cy\"\",\"\"email\"\":null,\"\"role\"\":\"\"tenant\"\",\"\"language\"\":\"\"es\"\"}}]\",a,b,c,d,e,{{}}\n"
    );
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!((reading.rejected, reading.warnings.len()), (0, 0), "{reading:?}");
    assert_eq!(reading.mapped.len(), files::Field::ALL.len());
    assert_eq!(terms[0].external_id.as_deref(), Some("E-1"));
    assert_eq!(terms[0].holder_language.as_deref(), Some("pt-BR"));
    let contacts: Vec<_> = terms[0].contacts.iter().map(|one| (one.role.as_str(), one.language.as_deref())).collect();
    assert_eq!(contacts, [("tenant", Some("es")), ("agent", None)]);
}

#[test]
fn what_others_call_contacts_is_left_alone() {
    let text = "permit_number,permit_type,holder_name,expires_on,contacts\n1,Food,Ann,2026-01-31,ask Bob\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!((reading.rejected, reading.warnings[0].code), (0, Reason::UnusedColumns));
    assert!(terms[0].contacts.is_empty());
    let (reading, _) = read(text, &options(&["contacts=contacts"], &[], None, false)).unwrap();
    assert_eq!((reading.rejected, reading.errors[0].code), (1, Reason::InvalidContacts));
}

#[test]
fn the_apostrophe_before_a_formula_is_not_a_part_of_the_cell() {
    let text = "permit_number,permit_type,holder_name,expires_on\n\
                '-1,Food,'=1+1,2026-01-31\n'2,Food,'Ann',2026-01-31\n3,Food,''@b,2026-01-31\n";
    let (_, terms) = read(text, &plain()).unwrap();
    let names: Vec<_> = terms.iter().map(|term| (term.permit_number.as_str(), term.holder_name.as_str())).collect();
    assert_eq!(names, [("-1", "=1+1"), ("'2", "'Ann'"), ("3", "'@b")]);
}

// Options.

#[test]
fn wrong_options_say_what_is_allowed() {
    let parse = |map: &[&str], status: &[&str], permit_type, date_format| {
        ImportOptions::parse(map, status, permit_type, date_format, false).unwrap_err().to_string()
    };
    let unknown = parse(&["colour=A"], &[], None, None);
    assert!(unknown.contains("\"colour\"") && unknown.contains("permit_number, permit_type"), "{unknown}");
    assert!(parse(&["permit_number"], &[], None, None).contains("FIELD=COLUMN"));
    assert!(parse(&["permit_number="], &[], None, None).contains("FIELD=COLUMN"));
    assert!(parse(&["status=A", "status=B"], &[], None, None).contains("twice"));
    assert!(parse(&[], &["AAI=happy"], None, None).contains("active, suspended, revoked"));
    assert!(parse(&[], &["AAI"], None, None).contains("FROM=TO"));
    assert!(parse(&["permit_type=A"], &[], Some("Taxi"), None).contains("exclude"));
    assert!(parse(&[], &[], Some("—"), None).contains("--permit-type"));
    for format in ["", "dd.mm.yyyy", "%d.%m", "%Y-%m-%d %H:%M", "%d.%m.%Q", "%H", "%s"] {
        let sentence = parse(&[], &[], None, Some(format));
        assert!(sentence.contains("--date-format") && sentence.contains("%d.%m.%Y"), "{format}: {sentence}");
    }
    for format in ["%d.%m.%Y", "%m/%d/%y", "%d %B %Y", "%Y%j", "%F"] {
        let parsed: Result<files::DateFormat, OptionError> = format.parse();
        assert!(parsed.is_ok(), "{format}");
    }
}

// Dates.

#[test]
fn a_given_format_holds_for_all_columns_and_iso_dates_stay_dates() {
    let text = with_dates(&["01.02.27", "2026-03-04"]);
    let (reading, terms) = read(&text, &options(&[], &[], Some("%d.%m.%y"), false)).unwrap();
    assert_eq!(reading.guessed.date_format, "%d.%m.%y");
    assert_eq!((terms[0].expires_on, terms[1].expires_on), (day("2027-02-01"), day("2026-03-04")));
    let (reading, _) = read(with_dates(&["2026-03-14"]), &options(&[], &[], Some("%Y-%d-%m"), false)).unwrap();
    assert_eq!(errors(&reading), [(2, "expires_on", InvalidDate)], "not taken for ISO when that could be a mistake");
}

#[test]
fn one_value_that_fits_one_format_only_decides_its_whole_column() {
    for (dates, format, first) in [
        (&["12/01/2026", "31/12/2026"][..], "%d/%m/%Y", "2026-01-12"),
        (&["12/01/2026", "12/31/2026"], "%m/%d/%Y", "2026-12-01"),
        (&["1.2.2026"], "%d.%m.%Y", "2026-02-01"),
        (&["2026/02/01"], "%Y/%m/%d", "2026-02-01"),
        (&["13-02-2026"], "%d-%m-%Y", "2026-02-13"),
        (&["2026-02-01"], "%Y-%m-%d", "2026-02-01"),
        (&["20260201"], "%Y%m%d", "2026-02-01"),
        (&["1-Feb-2026"], "%d-%b-%Y", "2026-02-01"),
        (&["\"Feb 1, 2026\""], "%b %d, %Y", "2026-02-01"),
        (&["05/05/2026"], "%m/%d/%Y", "2026-05-05"),
    ] {
        let (reading, terms) = read(with_dates(dates), &plain()).unwrap();
        assert_eq!(reading.guessed.date_format, format, "{dates:?}");
        assert_eq!(terms[0].expires_on, day(first), "{dates:?}");
        assert_eq!(reading.rejected, 0);
    }
}

#[test]
fn columns_that_are_ambiguous_throughout_ask_for_a_format() {
    let text = "permit_number,permit_type,holder_name,issued_on,expires_on\n1,Food,Ann,02/01/2026,03/04/2026\n\
                2,Food,Bob,05/05/2025,06/06/2026\n";
    let sentence = refused(text).to_string();
    for part in ["issued_on (such as 02/01/2026)", "expires_on (such as 03/04/2026)", "--date-format %d/%m/%Y"] {
        assert!(sentence.contains(part), "{sentence}");
    }
    let (_, terms) = read(text, &options(&[], &[], Some("%d/%m/%Y"), false)).unwrap();
    assert_eq!((terms[0].issued_on, terms[0].expires_on), (Some(day("2026-01-02")), day("2026-04-03")));
}

#[test]
fn a_column_with_dates_of_both_kinds_is_refused_and_a_few_typing_errors_are_not() {
    let mixed = ["01/02/2026", "31/12/2026", "30/12/2026", "12/31/2026"];
    assert!(matches!(refused(with_dates(&mixed)), FileFault::MixedDates { counts: [2, 1], .. }));
    let mut dates = vec!["12/31/2026"; 40];
    dates.extend(["01/02/2026", "31/12/2026"]);
    let (reading, terms) = read(with_dates(&dates), &plain()).unwrap();
    assert_eq!(errors(&reading), [(43, "expires_on", InvalidDate)]);
    assert_eq!(terms[40].expires_on, day("2026-01-02"));
}

#[test]
fn days_that_do_not_exist_and_times_of_day_are_errors_and_midnight_is_not() {
    let midnights = ["2026-02-01T00:00:00.000", "2026-02-01 00:00", "2026-02-01 12:00:00 AM", " 2026-02-01 "];
    let (reading, terms) = read(with_dates(&midnights), &plain()).unwrap();
    assert_eq!((reading.rejected, terms.len()), (0, 4));
    let wrong =
        ["2026-02-30", "2026-13-01", "soon", "0026-01-01", "2026-01-01 00:00:01", "2026-01-01T00:00:00Z", "46054"];
    let (reading, _) = read(with_dates(&wrong), &plain()).unwrap();
    let codes: Vec<Reason> = reading.errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, [InvalidDate, InvalidDate, InvalidDate, InvalidDate, TimeInDate, TimeInDate, InvalidDate]);
    assert_eq!(reading.errors[0].value.as_deref(), Some("2026-02-30"));
}

#[test]
fn an_expiry_before_the_start_is_an_error_and_before_the_issue_date_a_warning() {
    let text = "permit_number,permit_type,holder_name,issued_on,effective_on,expires_on\n\
                1,Food,Ann,,2026-01-02,2026-01-01\n2,Food,Ann,2026-01-02,,2026-01-01\n3,Food,Ann,,2026-01-01,2026-01-01\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!(errors(&reading), [(2, "expires_on", Reason::ExpiryBeforeEffective)]);
    assert_eq!((reading.warnings[0].row, reading.warnings[0].code), (Some(3), Reason::ExpiryBeforeIssue));
    assert_eq!(terms.len(), 2);
}

// Words and addresses.

#[test]
fn status_words_are_mapped_and_unknown_ones_name_the_option() {
    let text = "permit_number,permit_type,holder_name,expires_on,status\n1,Food,Ann,2026-01-01,AAI\n\
                2,Food,Ann,2026-01-01,Expired\n3,Food,Ann,2026-01-01,cancelled\n4,Food,Ann,2026-01-01,REA\n\
                5,Food,Ann,2026-01-01,\n";
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!(errors(&reading), [(5, "status", Reason::UnknownStatus)]);
    assert!(reading.errors[0].detail.contains("--status FROM=TO"));
    let statuses: Vec<PermitStatus> = terms.iter().map(|term| term.status).collect();
    assert_eq!(statuses, [Active, Active, Surrendered, Active]);
    assert_eq!(reading.warnings[0].code, Reason::StatusTakenAsActive);
    let (_, terms) = read(text, &options(&[], &["rea=suspended", "Cancelled=closed"], None, false)).unwrap();
    let statuses: Vec<PermitStatus> = terms.iter().map(|term| term.status).collect();
    assert_eq!(statuses, [Active, Active, Closed, Suspended, Active]);
}

#[test]
fn addresses_are_cleaned_and_words_for_none_are_counted() {
    let cells = [
        "mailto:a@example.org",
        " a@example.org ",
        "a@example.org.",
        "A@Example.ORG,",
        "a@example.org",
        "josé@exämple.com",
        "N/A",
        "none",
        "-",
        "",
        " see file ",
        "Unknown",
        "tbd",
    ];
    let (reading, terms) = read(with_addresses(&cells), &plain()).unwrap();
    assert_eq!((reading.rejected, reading.addresses_cleaned, reading.addresses_missing), (0, 4, 7));
    let email = |at: usize| terms[at].holder_email.as_ref().map(ToString::to_string);
    assert_eq!(email(3).as_deref(), Some("A@example.org"));
    assert_eq!(email(5).as_deref(), Some("josé@xn--exmple-cua.com"));
    assert_eq!(email(6), None);
}

#[test]
fn several_addresses_in_a_cell_are_the_holder_and_contacts() {
    let cells = [
        "a@x.org; b@y.org",
        "a@x.org,b@y.org",
        "a@x.org b@y.org",
        "a@x.org and b@y.org;A@X.ORG",
        "Ann <a@x.org>; Bob B. <b@y.org>",
    ];
    let (reading, terms) = read(with_addresses(&cells), &plain()).unwrap();
    assert_eq!((reading.rejected, reading.addresses_cleaned), (0, 0));
    for term in &terms {
        assert_eq!(term.holder_email.as_ref().unwrap().to_string(), "a@x.org");
        let [contact] = &term.contacts[..] else { panic!("{term:?}") };
        assert_eq!((contact.email.as_ref().unwrap().to_string(), contact.role.as_str()), ("b@y.org".into(), "contact"));
    }
    assert_eq!(terms[4].contacts[0].name, "Bob B.");
}

#[test]
fn a_malformed_address_rejects_its_row_or_is_left_out_with_a_warning() {
    let cells = ["a@@b.org", "a@nodot", "a b@c.org", "call Bob", "a@@b.org; c@d.org"];
    let (reading, terms) = read(with_addresses(&cells), &plain()).unwrap();
    assert_eq!((reading.rejected, terms.len()), (5, 0));
    assert_eq!(reading.rejected_by_reason, BTreeMap::from([(Reason::MalformedAddress, 5)]));
    let (reading, terms) = read(with_addresses(&cells), &options(&[], &[], None, true)).unwrap();
    assert_eq!((reading.rejected, terms.len(), reading.warnings.len()), (0, 5, 5));
    assert_eq!(reading.addresses_missing, 0, "they are listed one by one instead");
    assert_eq!(terms[0].holder_email, None);
    assert_eq!(terms[4].holder_email.as_ref().unwrap().to_string(), "c@d.org");
}

// The account.

#[test]
fn a_row_that_is_wrong_twice_is_listed_twice_and_rejected_once() {
    let mut cells = vec![("ann@example.org", "2026-02-28"); 499];
    cells[398] = ("ann@@example.org", "2026-02-30");
    let rows = cells.iter().enumerate().map(|(i, (address, date))| format!("P-{i},Food,Ann,{address},{date}\n"));
    let text = HEADER.to_owned() + &rows.collect::<String>();
    let (reading, _) = read(text, &plain()).unwrap();
    let expected = [(400, "holder_email", Reason::MalformedAddress), (400, "expires_on", InvalidDate)];
    assert_eq!(errors(&reading), expected);
    assert_eq!((reading.rows, reading.rejected), (499, 1));
    let text = ImportReport::of(reading, false).to_string();
    assert!(text.contains("row 400, expires_on \"2026-02-30\": no such date"), "{text}");
}

#[test]
fn errors_beyond_the_ones_kept_are_still_counted() {
    let (reading, _) = read(with_dates(&vec!["never"; 10_500]), &plain()).unwrap();
    assert_eq!((reading.rejected, reading.errors.len()), (10_500, files::REMARKS_KEPT));
    assert_eq!(reading.rejected_by_reason[&InvalidDate], 10_500);
    assert_eq!(reading.warnings[0].detail, "500 further errors are counted and not listed");
}

#[test]
fn the_last_term_is_the_one_that_ends_last_then_starts_last_then_stands_last() {
    let text = "permit_number,permit_type,holder_name,effective_on,expires_on\n1,F,old,2025-01-01,2025-12-31\n\
                1,F,late,2026-03-01,2026-12-31\n1,F,same,2026-03-01,2026-12-31\n1,F,early,2026-01-01,2026-12-31\n\
                1,F,open,,2026-12-31\n";
    let (_, mut terms) = read(text, &plain()).unwrap();
    terms.sort_by_key(TermRow::order);
    let names: Vec<&str> = terms.iter().map(|term| term.holder_name.as_str()).collect();
    assert_eq!(names, ["old", "open", "early", "late", "same"]);
}

#[test]
fn the_report_has_the_shape_that_scripts_read() {
    let (reading, _) = read(with_dates(&["2026-01-01", "soon"]), &plain()).unwrap();
    let json = serde_json::to_value(ImportReport::of(reading, true)).unwrap();
    assert_eq!(
        json["guessed"],
        serde_json::json!({
            "encoding": "UTF-8", "delimiter": "comma", "date_format": "%Y-%m-%d", "header_row": 1,
        })
    );
    assert_eq!(
        json["errors"],
        serde_json::json!([{
            "row": 3, "column": "expires_on", "value": "soon", "code": "invalid_date",
            "detail": "no such date; this column is read as %Y-%m-%d",
        }])
    );
    assert_eq!(json["rejected_by_reason"], serde_json::json!({"invalid_date": 1}));
    let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "addresses_cleaned",
            "addresses_missing",
            "committed",
            "dry_run",
            "errors",
            "guessed",
            "history_terms",
            "id",
            "notices_claimed",
            "permits_created",
            "permits_renewed",
            "permits_updated",
            "rejected",
            "rejected_by_reason",
            "rows",
            "types_created",
            "unchanged",
            "warnings",
        ]
    );
}
