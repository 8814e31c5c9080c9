//! Which row has the names of the columns, when none of them is known; and when somebody says so.

use permit_notifier::files::look::look;
use permit_notifier::files::{Delimiter, FileFault, ImportOptions, Input, Reason};
use rust_xlsxwriter::Workbook;

use super::{Desk, day, options, plain, read};

const OWN: &str = "Stadt Köln – Erlaubnisse\nStand: 1.11.2026\n\n\
                   Lfd;Erlaubnisnr;Art der Erlaubnis;Inhaber;gültig bis;E-Mail\n\
                   1;E-17;Gaststätte;Müller, Anna;31.12.2027;a@example.org\n\
                   2;E-18;Spielhalle;Schmidt;30.11.2027;\n";
const MAP: [&str; 4] =
    ["permit_number=Erlaubnisnr", "permit_type=Art der Erlaubnis", "holder_name=Inhaber", "expires_on=gültig bis"];

fn columns(file: &[u8], options: &ImportOptions) -> (u64, Vec<String>) {
    let desk = Desk::new();
    let look = look(Input::Path(desk.file(file)), options).unwrap();
    (look.header_row, look.columns.into_iter().map(|column| column.name).collect())
}

#[test]
fn names_that_nobody_knows_are_found_below_titles() {
    let names = ["Lfd", "Erlaubnisnr", "Art der Erlaubnis", "Inhaber", "gültig bis", "E-Mail"].map(str::to_owned);
    assert_eq!(columns(OWN.as_bytes(), &plain()), (4, names.to_vec()));
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (row, line) in (0..).zip(OWN.lines()) {
        sheet.write_row(row, 0, line.split(';')).unwrap();
    }
    assert_eq!(columns(&book.save_to_buffer().unwrap(), &plain()), (4, names.to_vec()));
    let (reading, terms) = read(OWN, &options(&MAP, &[], None, false)).unwrap();
    assert_eq!((reading.guessed.header_row, reading.guessed.delimiter), (4, Some(Delimiter::Semicolon)));
    assert_eq!((terms.len(), terms[0].holder_name.as_str()), (2, "Müller, Anna"));
}

#[test]
fn the_row_of_the_names_can_be_said() {
    let text = "permit_number,permit_type,holder_name,expires_on\nNummer,Art,Inhaber,Ende\n1,Food,Ann,2026-01-31\n";
    let map = ["permit_number=Nummer", "permit_type=Art", "holder_name=Inhaber", "expires_on=Ende"];
    let said = options(&map, &[], None, false).of_header_row(Some(2));
    let (reading, terms) = read(text, &said).unwrap();
    assert_eq!((reading.guessed.header_row, terms.len(), terms[0].expires_on), (2, 1, day("2026-01-31")));
    assert_eq!(reading.warnings[0].code, Reason::RowsAboveHeader);
    assert_eq!(said.words().header_row, Some(2));
    for row in [4, 3_000] {
        let fault = read(text, &plain().of_header_row(Some(row))).unwrap_err().fault;
        assert!(
            matches!(fault, FileFault::NoHeaderRow { .. }) && fault.to_string().contains("was to be the header"),
            "{fault}"
        );
    }
    // What is wrong with the choice does not hide what can be chosen.
    let desk = Desk::new();
    let look = look(Input::Path(desk.file(text)), &plain().of_header_row(Some(9))).unwrap();
    let rows: Vec<_> = look.first_rows.iter().map(|row| (row.row, row.text.as_str())).collect();
    assert_eq!(rows[1..], [(2, "Nummer · Art · Inhaber · Ende"), (3, "1 · Food · Ann · 2026-01-31")]);
}

#[test]
fn a_row_of_data_is_not_taken_for_names() {
    let text = "Ref,,Until,State\nI-1,Ann,2027-05-04,fine\nI-2,Bob,2027-05-05,fine\nI-3,Cy,2027-05-06,fine\n";
    assert_eq!(columns(text.as_bytes(), &plain()).0, 1);
}
