//! Any bytes as a csv file: the rows are those of a reader of our own, which sees the whole file at once; or the fault is.

use std::borrow::Cow;
use std::path::Path;

use encoding_rs::WINDOWS_1252;
use permit_notifier::files::{
    self, Delimiter, FileFault, ImportOptions, ReadError,
    reading::{ROW_BYTES_MAX, Source},
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Bytes, check};

/// What is read from a file at once; rows around its edges are cut.
const READ_AT_ONCE: usize = 128 << 10;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct File {
    delimiter: char,
    /// The first bytes of the body come so far before the end of the first read; none: at once.
    before_edge: Option<usize>,
    body: Bytes,
    times: usize,
}

impl File {
    /// A header that leaves no doubt, some rows, and the body.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = "head~of~the~table\n".replace('~', &self.delimiter.to_string()).into_bytes();
        if let Some(before) = self.before_edge {
            while bytes.len() + before + 100 < READ_AT_ONCE {
                bytes.extend_from_slice("x".repeat(99).as_bytes());
                bytes.push(b'\n');
            }
            bytes.resize(READ_AT_ONCE - before, b'\n');
        }
        bytes.extend(self.body.0.repeat(self.times));
        bytes
    }
}

/// Number and cells of each row below the header.
type Rows = Vec<(u64, Vec<String>)>;

#[derive(Debug, PartialEq, Eq)]
enum End {
    Whole,
    Binary,
    NotUtf8(u64),
    TooLong,
    Unclosed(u64),
}

/// RFC 4180 as spreadsheets have it: CR, LF or both end a row; a quotation mark quotes only at the beginning of a cell;
/// what follows its end up to the delimiter belongs to the cell. Blank rows count and are left out.
fn expected(bytes: &[u8], delimiter: u8) -> (Rows, End) {
    if bytes.contains(&0) {
        return (Vec::new(), End::Binary);
    }
    let (mut rows, mut at, mut number) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        number += 1;
        let start = at;
        let mut cells: Vec<Vec<u8>> = Vec::new();
        let ended = loop {
            let mut cell = Vec::new();
            if bytes.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    match bytes.get(at..) {
                        None | Some([]) => {
                            return (
                                rows,
                                if at - start >= ROW_BYTES_MAX { End::TooLong } else { End::Unclosed(number) },
                            );
                        }
                        Some([b'"', b'"', ..]) => {
                            cell.push(b'"');
                            at += 2;
                        }
                        Some([b'"', ..]) => break,
                        Some([byte, ..]) => {
                            cell.push(*byte);
                            at += 1;
                        }
                    }
                }
                at += 1;
            }
            while let Some(&byte) = bytes.get(at).filter(|byte| ![delimiter, b'\r', b'\n'].contains(byte)) {
                cell.push(byte);
                at += 1;
            }
            cells.push(cell);
            match bytes.get(at) {
                Some(byte) if *byte == delimiter => at += 1,
                end => break end,
            }
        };
        if at - start > ROW_BYTES_MAX {
            return (rows, End::TooLong);
        }
        at += if ended == Some(&b'\r') && bytes.get(at + 1) == Some(&b'\n') { 2 } else { 1 };
        if cells.concat().iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let cells: Result<Vec<_>, _> = cells.into_iter().map(String::from_utf8).collect();
        let Ok(cells) = cells else { return (rows, End::NotUtf8(number)) };
        rows.push((number, cells));
    }
    (rows, End::Whole)
}

/// Bytes that are mostly no UTF-8 where they are not ASCII are Windows-1252.
fn in_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    let broken = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let letters = bytes.utf8_chunks().flat_map(|chunk| chunk.valid().chars()).filter(|c| !c.is_ascii()).count();
    if broken <= letters {
        return Cow::Borrowed(bytes);
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    Cow::Owned(text.into_owned().into_bytes())
}

fn read(path: &Path, options: &ImportOptions) -> (Rows, Result<(), FileFault>) {
    let mut found = Vec::new();
    let mut all = || {
        let mut source = Source::open(path, options)?;
        let mut rows = source.rows()?;
        while let Some(row) = rows.next_row()? {
            found.push((row.number, row.cells().map(str::to_owned).collect()));
        }
        Ok(())
    };
    let end = all();
    (found, end)
}

fn body() -> BoxedStrategy<Vec<u8>> {
    let piece = prop::sample::select(vec![
        "\"",
        "\"",
        "\"\"",
        ",",
        ";",
        "\t",
        "|",
        "\n",
        "\r",
        "\r\n",
        "\n\r",
        " ",
        "a",
        "bc",
        "é",
        "\u{feff}",
        "\u{2028}",
        "\u{85}",
        "\\",
        "'",
        "sep=;",
        "1,2\n",
        "\"x\"y",
        "\"x\r\ny\"\n",
    ]);
    let pieces = prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes());
    let any = prop::collection::vec(any::<u8>(), 0..60);
    let broken = (pieces.clone(), any.clone()).prop_map(|(pieces, any)| [pieces, any].concat());
    prop_oneof![8 => pieces, 1 => any, 1 => broken].boxed()
}

fn file() -> impl Strategy<Value = File> {
    let edge = prop_oneof![12 => Just(None), 1 => (0_usize..60).prop_map(Some)];
    let times = prop_oneof![100 => Just(1_usize), 1 => 1_000_usize..60_000];
    (prop::sample::select(vec![',', ';', '\t', '|']), edge, body(), times).prop_map(
        |(delimiter, before_edge, body, times)| {
            let times = times.min(1 + (2 << 20) / body.len().max(1));
            File { delimiter, before_edge, body: Bytes(body), times }
        },
    )
}

#[test]
fn any_bytes_below_a_header_are_the_rows_that_stand_in_them() {
    let desk = tempfile::tempdir().unwrap();
    let path = desk.path().join("any.csv");
    check("csv-bytes", 800, file(), |file| {
        let bytes = file.bytes();
        std::fs::write(&path, &bytes).unwrap();
        let (mut rows, end) = expected(&in_utf8(&bytes), u8::try_from(file.delimiter).unwrap());
        // Below names that nobody knows a row may look like the head of another table.
        let options = ImportOptions::default().of_header_row(Some(1));
        let (found, fault) = read(&path, &options);
        if end == End::Binary {
            // Said as soon as it is met, which may be after some rows.
            prop_assert!(matches!(fault, Err(FileFault::Binary)), "{:?}", fault);
            return Ok(());
        }
        rows.remove(0);
        prop_assert_eq!(found, rows);
        match (&end, &fault) {
            (End::Whole, Ok(())) | (End::TooLong, Err(FileFault::RowTooLong { .. })) => {}
            (End::NotUtf8(row), Err(FileFault::NotUtf8 { row: said }))
            | (End::Unclosed(row), Err(FileFault::UnclosedQuote { row: said })) => prop_assert_eq!(row, said),
            _ => return Err(TestCaseError::fail(format!("{end:?} but {fault:?}"))),
        }
        Ok(())
    });
}

/// A file that may begin with anything at all, too.
fn whole_file() -> impl Strategy<Value = Bytes> {
    let head = prop::sample::select(vec![
        "",
        "\u{feff}",
        "sep=;\r\n",
        "sep=\"\n",
        "\u{feff}sep=\t\n\n",
        "permit_number,permit_type,holder_name,holder_email,expires_on\n",
        "Permit;Type;Name;Mail;Expires\n",
        "\"permit number\"|type|name|expires\n",
        "%PD",
        "PK\u{3}",
        "<htm",
        "permit\ttype\tname\texpires\r",
    ]);
    (head, body()).prop_map(|(head, body)| Bytes([head.as_bytes(), &body].concat()))
}

/// One line that a person can read to its end.
fn is_a_sentence(text: &str) -> bool {
    text.len() < 30_000 && !text.contains(char::is_control)
}

#[test]
fn any_file_is_read_or_refused_in_one_sentence_and_every_row_is_accounted_for() {
    let desk = tempfile::tempdir().unwrap();
    let path = desk.path().join("any.csv");
    check("csv-files", 800, whole_file(), |bytes| {
        std::fs::write(&path, &bytes.0).unwrap();
        let (_, fault) = read(&path, &ImportOptions::default());
        let mut handed = Vec::new();
        let reading = files::read(&path, &ImportOptions::default(), |term| {
            handed.push(term.row);
            Ok::<_, ReadError>(())
        });
        let reading = match reading {
            Ok(reading) => reading,
            Err(error) => {
                let said = error.fault.to_string();
                prop_assert!(said.len() > 10 && is_a_sentence(&said), "{:?}", said);
                return Ok(());
            }
        };
        prop_assert!(fault.is_ok(), "read in spite of {:?}", fault);
        for remark in reading.errors.iter().chain(&reading.warnings) {
            prop_assert!(is_a_sentence(&remark.to_string()), "{:?}", remark);
        }
        let of_a_row = reading.errors.iter().map(|error| (error.row.unwrap(), error));
        let rejected: std::collections::BTreeSet<u64> = of_a_row.map(|(row, _)| row).collect();
        prop_assert_eq!(reading.rejected, rejected.len() as u64);
        prop_assert_eq!(reading.rows, reading.rejected + handed.len() as u64);
        prop_assert!(handed.is_sorted() && handed.iter().all(|row| !rejected.contains(row)));
        prop_assert!(reading.guessed.delimiter.is_some_and(|delimiter| Delimiter::ALL.contains(&delimiter)));
        Ok(())
    });
}
