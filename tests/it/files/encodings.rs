//! Text that is not UTF-8, and headers below titles.

use permit_notifier::files::{self, FileFault, Reason};

use super::{HEADER, day, errors, options, plain, read, read_path, refused, sample, with_dates};

fn utf16(text: &str, little: bool, mark: bool) -> Vec<u8> {
    let units = mark.then_some(0xFEFF).into_iter().chain(text.encode_utf16());
    units.flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
}

#[test]
fn utf16_is_read_with_its_mark_and_without() {
    // Longer than what is read at once, so that a letter of two units stands on the edge.
    let rows = (0..6000)
        .map(|i| format!("N-{i}\tFood\tZoë 🦀 Nuñez\tzoe@example.org\t2026-05-01\r\n"))
        .collect::<Vec<_>>()
        .concat();
    let text = HEADER.replace(',', "\t") + rows.as_str();
    for (little, name) in [(true, "UTF-16LE"), (false, "UTF-16BE")] {
        for mark in [true, false] {
            for shift in ["", "\r\n"] {
                let (reading, terms) = read(utf16(&format!("{shift}{text}"), little, mark), &plain()).unwrap();
                assert_eq!((reading.guessed.encoding.as_str(), reading.rows), (name, 6000));
                assert_eq!(reading.guessed.delimiter, Some(files::Delimiter::Tab));
                assert!(terms.iter().all(|term| term.holder_name == "Zoë 🦀 Nuñez"));
            }
        }
    }
}

#[test]
fn utf16_that_is_cut_off_is_refused() {
    let mut bytes = utf16(&with_dates(&["2026-01-01"]), true, true);
    bytes.pop();
    assert!(matches!(refused(&bytes), FileFault::NotUtf16));
    let alone = [utf16(HEADER, true, true), vec![0x00, 0xD8], utf16("x\n", true, false)].concat();
    assert!(matches!(refused(alone), FileFault::NotUtf16));
}

#[test]
fn what_is_not_utf8_is_windows_1252_and_said_to_be() {
    let text = [HEADER.as_bytes(), b"1,Caf\xe9,Ren\xe9e \x8akoda \x80,,2026-01-01\n"].concat();
    let (reading, terms) = read(text, &plain()).unwrap();
    assert_eq!(reading.guessed.encoding, "Windows-1252");
    assert_eq!((terms[0].permit_type_name.as_str(), terms[0].holder_name.as_str()), ("Café", "Renée Škoda €"));
    // The only such byte far behind what is looked at first, on the edge of what is read at once.
    let far = [with_dates(&vec!["2026-01-01"; 9000]).as_bytes(), b"Z,Food,Ren\xe9,,2026-01-01\n"].concat();
    let (reading, terms) = read(far, &plain()).unwrap();
    assert_eq!((reading.guessed.encoding.as_str(), terms[9000].holder_name.as_str()), ("Windows-1252", "René"));
}

#[test]
fn letters_that_are_cut_by_the_edge_of_what_is_read_at_once_are_still_utf8() {
    for shift in 0..3 {
        let text = format!("{}{HEADER}1,Food,{},,2026-01-01\n", "\n".repeat(shift), "é".repeat(9_000));
        let rows =
            (0..20).map(|i| format!("N-{i},Food,{},,2026-01-01\n", "é€".repeat(4_000))).collect::<Vec<_>>().concat();
        let (reading, _) = read(text + rows.as_str(), &plain()).unwrap();
        assert_eq!((reading.guessed.encoding.as_str(), reading.rejected), ("UTF-8", 0));
    }
}

#[test]
fn bytes_that_windows_1252_does_not_have_are_errors_by_row() {
    let dos = [HEADER.as_bytes(), b"1,Food,M\x81ller,,2026-01-01\n2,Food,Ren\xe9,,2026-01-01\n"].concat();
    let (reading, _) = read(dos, &plain()).unwrap();
    assert_eq!(errors(&reading), [(2, "holder_name", Reason::UndefinedCharacter)]);
    assert!(reading.errors[0].detail.starts_with("the byte 81 stands for no character"), "{}", reading.errors[0]);
    let (reading, _) = read(format!("{HEADER}1,Food,M\u{81}ller,,2026-01-01\n"), &plain()).unwrap();
    assert_eq!(reading.rejected, 0, "in UTF-8 it is what the file says");
}

#[test]
fn utf8_with_a_few_broken_letters_is_refused_by_row() {
    let text =
        [HEADER.as_bytes(), "1,Food,Zoë Müller,,2026-01-01\n2,Food,Ren".as_bytes(), b"\xe9,,2026-01-01\n"].concat();
    assert!(matches!(refused(text), FileFault::NotUtf8 { row: 3 }));
}

#[test]
fn what_excel_saves_as_text_is_read_letter_by_letter() {
    let keep = options(&[], &[], None, true);
    let (reading, terms) = read_path(&sample("semicolon_cp1252.csv"), &keep).unwrap();
    let name = |row: u64| terms.iter().find(|term| term.row == row).unwrap().holder_name.clone();
    assert_eq!((reading.rows, reading.guessed.encoding.as_str()), (30, "Windows-1252"));
    assert_eq!(reading.guessed.delimiter, Some(files::Delimiter::Semicolon));
    assert_eq!((name(10).as_str(), name(20).as_str()), ("Blue Pâtisserie & SONS", "María Johnson"));
    let (reading, terms) = read_path(&sample("utf16_tab.txt"), &keep).unwrap();
    let name = |row: u64| terms.iter().find(|term| term.row == row).unwrap().holder_name.clone();
    assert_eq!((reading.rows, reading.guessed.encoding.as_str()), (30, "UTF-16LE"));
    assert_eq!((name(17).as_str(), name(31).as_str()), ("Nguyễn Núñez", "José Иванов"));
}

#[test]
fn the_header_is_found_below_titles_and_what_stands_above_is_said() {
    let titles = "Licences, permits; and more\n\nPrinted on,1 May 2026\n";
    let (reading, terms) = read(format!("{titles}{}", with_dates(&["2026-01-01"])), &plain()).unwrap();
    assert_eq!((reading.guessed.header_row, terms[0].row), (4, 5));
    let said = &reading.warnings[0];
    assert_eq!(said.code, Reason::RowsAboveHeader);
    assert_eq!(
        said.detail,
        "2 rows stand above the header and are not read: row 1 \"Licences permits; and more\", \
         row 3 \"Printed on 1 May 2026\""
    );
    // The title has more commas than semicolons, and the table only semicolons.
    let table = with_dates(&["2026-01-01"]).replace(',', ";");
    let (reading, terms) = read(format!("A, B, and C\n{table}"), &plain()).unwrap();
    assert_eq!(reading.guessed.delimiter, Some(files::Delimiter::Semicolon));
    assert_eq!((terms.len(), terms[0].expires_on), (1, day("2026-01-01")));
}

#[test]
fn a_header_that_lacks_something_is_still_the_header() {
    let lacks = |text: &str| match refused(text) {
        FileFault::MissingFields { columns, .. } => columns,
        fault => panic!("{fault}"),
    };
    assert_eq!(lacks("number,holder,expires\nno,company,x\n"), ["number", "holder", "expires"]);
    assert_eq!(lacks("Some title\nnumber;holder;expires\n1;2;3\n"), ["number", "holder", "expires"]);
    assert_eq!(lacks("a\nb\nc\n"), ["a"]);
    // A row of a permit whose cells are words that also name columns.
    assert_eq!(lacks("a,b\nno,x\n"), ["a", "b"]);
}
