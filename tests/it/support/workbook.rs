//! Workbooks made by hand, part by part, for what no program that writes them would write.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// An archive of these parts.
pub fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (at, (name, content)) in parts.iter().enumerate() {
        // The first part of an OpenDocument file is not packed, so that its kind can be seen.
        let packed = if at == 0 { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        zip.start_file(*name, SimpleFileOptions::default().compression_method(packed)).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A workbook of OpenDocument: its styles and its tables.
pub fn ods(styles: &str, tables: &str) -> Vec<u8> {
    let content = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="o" xmlns:table="t"
        xmlns:text="x" xmlns:style="s" xmlns:draw="d"><office:automatic-styles>{styles}</office:automatic-styles>
        <office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>"#
    );
    archive(&[("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), ("content.xml", &content)])
}

/// A table of OpenDocument whose cells are text.
pub fn ods_table(name: &str, rows: &[&[&str]]) -> String {
    let cell = |text: &&str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        format!(r#"<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>"#)
    };
    let row =
        |cells: &&[&str]| format!("<table:table-row>{}</table:table-row>", cells.iter().map(cell).collect::<String>());
    format!(r#"<table:table table:name="{name}">{}</table:table>"#, rows.iter().map(row).collect::<String>())
}

/// A workbook of Excel with one sheet of these rows, in an XML that names its elements in another way than most do.
pub fn xlsx(book: &str, styles: &str, strings: &str, rows: &str) -> Vec<u8> {
    const RELATION: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relation = |id: &str, kind: &str, target: &str| {
        format!(r#"<Relationship Id="{id}" Type="{RELATION}/{kind}" Target="{target}"/>"#)
    };
    let relations = |inside: String| format!("<Relationships>{inside}</Relationships>");
    let book = format!(
        r#"<x:workbook xmlns:x="m" xmlns:r="{RELATION}">{book}<x:sheets><x:sheet name="Only" sheetId="7" r:id="rId1"/>
        </x:sheets></x:workbook>"#
    );
    let sheet = format!(r#"<x:worksheet xmlns:x="m"><x:sheetData>{rows}</x:sheetData></x:worksheet>"#);
    archive(&[
        ("[Content_Types].xml", "<Types/>"),
        ("_rels/.rels", &relations(relation("a", "officeDocument", "/xl/workbook.xml"))),
        (
            "xl/_rels/workbook.xml.rels",
            &relations(
                [
                    relation("rId1", "worksheet", "worksheets/sheet1.xml"),
                    relation("rId2", "styles", "../xl/styles.xml"),
                    relation("rId3", "sharedStrings", "sharedStrings.xml"),
                ]
                .concat(),
            ),
        ),
        ("xl/workbook.xml", &book),
        ("xl/styles.xml", &format!("<x:styleSheet xmlns:x=\"m\">{styles}</x:styleSheet>")),
        ("xl/sharedStrings.xml", &format!("<x:sst xmlns:x=\"m\">{strings}</x:sst>")),
        ("xl/worksheets/sheet1.xml", &sheet),
    ])
}
