//! Workbooks as programs write them that are not the usual ones; and some that nobody should write.

use std::fmt::Write as _;

use permit_notifier::files::{FileFault, FileFormat, Reading, Reason, TermRow};

use super::{day, errors, options, plain, read, refused};
use crate::support::workbook::{archive, ods, ods_table, xlsx};

const NAMES: [&str; 4] = ["permit_number", "permit_type", "holder_name", "expires_on"];

fn text(text: &str) -> String {
    format!(r#"<x:c t="inlineStr"><x:is><x:t xml:space="preserve">{text}</x:t></x:is></x:c>"#)
}

fn row(cells: &[String]) -> String {
    format!("<x:row>{}</x:row>", cells.concat())
}

fn header() -> String {
    row(&NAMES.map(text))
}

fn book(rows: &str) -> Vec<u8> {
    xlsx("", "", "", &(header() + rows))
}

fn read_book(bytes: &[u8]) -> (Reading, Vec<TermRow>) {
    read(bytes, &plain()).unwrap()
}

#[test]
fn sheets_without_places_with_prefixes_and_with_texts_in_pieces_are_read() {
    let strings = "<x:si><x:t>no one</x:t></x:si><x:si><x:r><x:t>Zo</x:t></x:r><x:r><x:t>&#235; &amp; Co</x:t></x:r>\
                   <x:rPh><x:t>zo</x:t></x:rPh></x:si>";
    let rows = header()
        + r#"<x:row r="9"><x:c r="A9"><x:v>7</x:v></x:c><x:c><x:f>1</x:f><x:v>5</x:v></x:c><x:c t="s"><x:v>1</x:v></x:c>
             <x:c t="d"><x:v>2026-05-01T00:00:00</x:v></x:c></x:row>"#;
    let (reading, terms) = read_book(&xlsx("", "", strings, &rows));
    assert_eq!((reading.rows, terms[0].row, terms[0].holder_name.as_str()), (1, 9, "Zoë & Co"));
    assert_eq!((terms[0].permit_number.as_str(), terms[0].permit_type_name.as_str()), ("7", "5"));
    assert_eq!(terms[0].expires_on, day("2026-05-01"));
}

#[test]
fn formulas_that_nobody_calculated_are_pointed_out() {
    let formula = "<x:c><x:f>A1</x:f><x:v></x:v></x:c>".to_owned();
    let (reading, _) = read_book(&book(&row(&[text("1"), text("Food"), formula, text("2026-05-01")])));
    assert_eq!(errors(&reading), [(2, "holder_name", Reason::Missing)]);
    let said = reading.warnings.iter().find(|warning| warning.code == Reason::FormulasWithoutValue).unwrap();
    assert!(said.detail.starts_with("one formula has no value in the file (row 2)"), "{said}");
}

#[test]
fn many_texts_are_found_by_their_numbers_wherever_they_stand() {
    // More than is kept in memory, asked for from the end, from the beginning, and far apart.
    let long = "é".repeat(2_000);
    let strings = (0..4_000).map(|i| format!("<x:si><x:t>{i} {long}</x:t></x:si>")).collect::<Vec<_>>().concat();
    let asked: Vec<u32> = (0..200).map(|i| [3_999 - i, i, (i * 1_237) % 4_000][i as usize % 3]).collect();
    let rows = asked.iter().enumerate().map(|(at, number)| {
        row(&[
            text(&at.to_string()),
            text("Food"),
            format!(r#"<x:c t="s"><x:v>{number}</x:v></x:c>"#),
            text("2026-05-01"),
        ])
    });
    let (_, terms) = read_book(&xlsx("", "", &strings, &(header() + rows.collect::<String>().as_str())));
    for (number, term) in asked.iter().zip(&terms) {
        assert_eq!(term.holder_name, format!("{number} {long}"));
    }
    assert_eq!(terms.len(), 200);
}

#[test]
fn days_count_from_1904_where_the_workbook_says_so() {
    let styles = r#"<x:numFmts/><x:cellStyleXfs><x:xf numFmtId="0"/></x:cellStyleXfs>
                    <x:cellXfs><x:xf numFmtId="0"/><x:xf numFmtId="14"/></x:cellXfs>"#;
    let day_number = r#"<x:c s="1"><x:v>44681</x:v></x:c>"#.to_owned();
    let rows = [header(), row(&[text("1"), text("Food"), text("Ann"), day_number])].concat();
    let of = |book: &str| read_book(&xlsx(book, styles, "", &rows)).1[0].expires_on;
    assert_eq!(of(r#"<x:workbookPr date1904="1"/>"#), day("2026-05-01"));
    assert_eq!(of(""), day("2022-04-30"));
}

#[test]
fn control_characters_in_disguise_are_line_ends_or_stay_disguised() {
    let rows =
        row(&[text("1"), text("Fo_x0000_od"), text("Ann_x000D__x000A__x0009_Lee_x005F_x_x00"), text("2026-05-01")]);
    let (_, terms) = read_book(&book(&rows));
    assert_eq!((terms[0].permit_type_name.as_str(), terms[0].holder_name.as_str()), ("Fo_x0000_od", "Ann Lee_x_x00"));
}

#[test]
fn open_document_says_a_lot_at_once() {
    let styles = r#"<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>"#;
    let cell = |attributes: &str, text: &str| format!("<table:table-cell {attributes}>{text}</table:table-cell>");
    let float = |value: &str, shown: &str| {
        cell(&format!(r#"office:value-type="float" office:value="{value}""#), &format!("<text:p>{shown}</text:p>"))
    };
    let ann = cell(
        r#"office:value-type="string""#,
        "<office:annotation><text:p>not this</text:p></office:annotation><text:p>Ann<text:s text:c=\"2\"/>\
         <text:span>Lee</text:span></text:p><text:p>and Bob</text:p>",
    );
    let date = cell(r#"office:value-type="date" office:date-value="2026-05-01T00:00:00""#, "<text:p>1 May</text:p>");
    let line = |attributes: &str, cells: &[&str]| {
        format!("<table:table-row {attributes}>{}</table:table-row>", cells.concat())
    };
    let food = cell(r#"office:value-type="string""#, "<text:p>Food</text:p>");
    let names: String = NAMES.iter().map(|name| cell("", &format!("<text:p>{name}</text:p>"))).collect();
    let empty_to_the_right = cell(r#"table:number-columns-repeated="16380""#, "");
    let formula = cell(r#"office:value-type="float" office:value="9" table:formula="of:=4+5""#, "<text:p>9</text:p>");
    let span = cell(r#"office:value-type="string" table:number-columns-spanned="2""#, "<text:p>Both</text:p>");
    let covered = "<table:covered-table-cell/>";
    let failed = cell(r#"office:value-type="string" calcext:value-type="error""#, "<text:p>#N/A</text:p>");
    let rows = [
        "<table:shapes><draw:frame><text:p>a picture</text:p></draw:frame></table:shapes>".to_owned(),
        r#"<table:table-column table:number-columns-repeated="2"/><table:table-column table:visibility="collapse"/>"#
            .to_owned(),
        line(r#"table:number-rows-repeated="2""#, &[&empty_to_the_right]),
        line("", &[&names, &empty_to_the_right]),
        line("", &[&float("123", "00123"), &food, &ann, &date]),
        line(
            r#"table:number-rows-repeated="3" table:visibility="filter""#,
            &[&float("2210526", "2.21E+06"), &food, &ann, &date],
        ),
        format!("<table:table-row-group>{}</table:table-row-group>", line("", &[&formula, &span, covered, &date])),
        line("", &[&float("10", "10"), &food, &failed, &date]),
        line(r#"table:number-rows-repeated="1048000""#, &[&empty_to_the_right]),
    ];
    let tables = [
        ods_table("Empty", &[]),
        format!(r#"<table:table table:name="Old" table:style-name="h">{}</table:table>"#, line("", &[&food])),
        format!(r#"<table:table table:name="Permits">{}</table:table>"#, rows.concat()),
    ]
    .concat();
    let (reading, terms) = read_book(&ods(styles, &tables));
    let guessed = (reading.guessed.format, reading.guessed.sheet.as_deref(), reading.guessed.header_row);
    assert_eq!(guessed, (FileFormat::Ods, Some("Permits"), 3));
    let seen: Vec<_> =
        terms.iter().map(|term| (term.row, term.permit_number.as_str(), term.holder_name.as_str())).collect();
    let twice = "Ann Lee and Bob";
    assert_eq!(seen, [(4, "00123", twice), (5, "2210526", twice), (6, "2210526", twice), (7, "2210526", twice)]);
    assert!(terms.iter().all(|term| term.expires_on == day("2026-05-01")));
    assert_eq!(errors(&reading), [(8, "holder_name", Reason::Missing), (9, "holder_name", Reason::ErrorValue)]);
    let details: Vec<&str> = reading.warnings.iter().map(|warning| warning.detail.as_str()).collect();
    for part in [
        "not \"Old\" (hidden)",
        "3 rows are hidden (rows 5, 6, 7)",
        "one cell is a formula (row 8)",
        "a hidden column is read like the others: C",
        "1 area of merged cells (B8)",
    ] {
        assert!(details.iter().any(|detail| detail.contains(part)), "{part} in {details:?}");
    }
}

#[test]
fn what_is_no_workbook_or_broken_is_refused_in_one_sentence() {
    assert!(matches!(refused(b"PK\x03\x04 and no more"), FileFault::Damaged(_)));
    let whole = book(&row(&[text("1"), text("Food"), text("Ann"), text("2026-05-01")]));
    assert!(matches!(refused(&whole[..whole.len() / 2]), FileFault::Damaged(_)));
    let other = |parts: &[(&str, &str)]| match refused(archive(parts)) {
        FileFault::OtherFormat(name) => name,
        fault => panic!("{fault}"),
    };
    assert_eq!(other(&[("a.txt", "a")]), "a zip archive");
    assert_eq!(other(&[("xl/workbook.bin", "a")]), "a binary Excel workbook (xlsb)");
    let document =
        r#"<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/document.xml"/></Relationships>"#;
    let parts = [
        ("[Content_Types].xml", "<Types/>"),
        ("_rels/.rels", document),
        ("word/_rels/document.xml.rels", "<Relationships/>"),
        ("word/document.xml", "<document/>"),
    ];
    assert_eq!(other(&parts), "an Office file without sheets");
    for (rows, why) in [
        (r#"<x:row r="1"><x:c r="A1"><x:v>1</x:v></x:c></x:row>"#.to_owned(), "out of order"),
        (r#"<x:row r="1048577"/>"#.to_owned(), "out of order"),
        (r#"<x:row><x:c r="B2"><x:v>1</x:v></x:c><x:c r="A2"><x:v>1</x:v></x:c></x:row>"#.to_owned(), "out of order"),
        (r#"<x:row><x:c r="ZZZZ2"><x:v>1</x:v></x:c></x:row>"#.to_owned(), "no place"),
        (r#"<x:row><x:c t="s"><x:v>0</x:v></x:c></x:row>"#.to_owned(), "a text that is not there"),
        ("<x:row>".to_owned(), ""),
        (row(&[text("&who;")]), "does not define"),
    ] {
        match refused(book(&rows)) {
            FileFault::Damaged(said) => assert!(said.contains(why), "{said}"),
            fault => panic!("{rows}: {fault}"),
        }
    }
    let declared = format!("{}{}", r#"<!DOCTYPE a [<!ENTITY who "me">]>"#, "<a/>");
    let kind = ("mimetype", "application/vnd.oasis.opendocument.spreadsheet");
    assert!(matches!(refused(archive(&[kind, ("content.xml", &declared)])), FileFault::Damaged(_)));
}

/// A workbook whose sheets, each by its name and part, have these contents.
fn sheets(sheets: &[(&str, &str)], parts: &[(&str, &str)]) -> Vec<u8> {
    let named = sheets.iter().enumerate();
    let (mut book, mut relations) = (String::new(), String::new());
    for (at, (name, part)) in named {
        write!(book, r#"<sheet name="{name}" sheetId="{at}" r:id="r{at}"/>"#).unwrap();
        write!(relations, r#"<Relationship Id="r{at}" Type="x/worksheet" Target="{part}"/>"#).unwrap();
    }
    let root = r#"<Relationships><Relationship Id="a" Type="x/officeDocument" Target="xl/book.xml"/></Relationships>"#;
    let book = format!(r#"<workbook xmlns:r="r"><sheets>{book}</sheets></workbook>"#);
    let relations = format!("<Relationships>{relations}</Relationships>");
    let whole = [
        ("[Content_Types].xml", "<Types/>"),
        ("_rels/.rels", root),
        ("xl/book.xml", &book),
        ("xl/_rels/book.xml.rels", &relations),
    ];
    archive(&[&whole[..], parts].concat())
}

#[test]
fn a_part_is_one_sheet_and_a_sheet_that_is_named_the_only_one_that_is_looked_at() {
    let table = format!("<worksheet><sheetData>{}</sheetData></worksheet>", header().replace("x:", ""));
    let twice = sheets(&[("A", "one.xml"), ("B", "./one.xml")], &[("xl/one.xml", &table)]);
    assert!(matches!(refused(twice), FileFault::Damaged(why) if why.contains("one part")));
    let broken = sheets(&[("A", "one.xml"), ("B", "two.xml")], &[("xl/one.xml", &table), ("xl/two.xml", "<a><b></a>")]);
    assert!(matches!(refused(&broken), FileFault::Damaged(_)));
    let fault = read(&broken, &plain().of_sheet(Some("A".to_owned()))).unwrap_err().fault;
    assert!(matches!(fault, FileFault::HeaderOnly), "{fault}");
}

#[test]
fn what_unpacks_to_more_than_anybody_needs_is_refused() {
    let endless = "x".repeat(3 << 20);
    assert!(matches!(refused(book(&row(&[text(&endless)]))), FileFault::TooBig(_)), "one endless text");
    let shared = xlsx("", "", &format!("<x:si><x:t>{endless}</x:t></x:si>"), &header());
    assert!(matches!(refused(shared), FileFault::TooBig(_)), "one endless shared text");
    let wide: String = (0..40).map(|_| text(&"x".repeat(30_000))).collect();
    let wide = xlsx("", "", "", &format!("<x:row>{wide}</x:row>"));
    assert!(matches!(refused(wide), FileFault::RowTooLong { row: 1 }), "one endless row");
    let pieces = "<x:t>0123456789abcdef</x:t>".repeat(100_000);
    let pieces = format!(r#"<x:row><x:c t="inlineStr"><x:is>{pieces}</x:is></x:c></x:row>"#);
    assert!(matches!(refused(book(&pieces)), FileFault::RowTooLong { row: 2 }), "one text in endless pieces");
    let names: Vec<String> = (0..10_001).map(|i| i.to_string()).collect();
    let parts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert!(matches!(refused(archive(&parts)), FileFault::TooBig(_)), "very many parts");
    let cells = r#"<table:table-cell office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>"#;
    let again = format!(r#"<table:table-row table:number-rows-repeated="4000000000">{cells}</table:table-row>"#);
    let names = NAMES
        .iter()
        .map(|name| format!("<table:table-cell><text:p>{name}</text:p></table:table-cell>"))
        .collect::<Vec<_>>()
        .concat();
    let table =
        format!(r#"<table:table table:name="A"><table:table-row>{names}</table:table-row>{again}</table:table>"#);
    let keep = options(&[], &[], None, true);
    assert!(matches!(read(ods("", &table), &keep).unwrap_err().fault, FileFault::TooBig(_)), "one row for ever");
    let columns = cells.replace("cell office", r#"cell table:number-columns-repeated="4000000000" office"#);
    let table = format!(r#"<table:table table:name="A"><table:table-row>{columns}</table:table-row></table:table>"#);
    assert!(matches!(refused(ods("", &table)), FileFault::TooManyColumns(_)), "one cell for ever");
}
