//! What the first bytes of a file tell: a format that is not csv, a byte order mark, the delimiter.

use super::fault::FileFault;
use crate::domain::words;

words! {
    /// What stands between two cells.
    "delimiter" Delimiter {
        /// `,`
        Comma = "comma",
        /// `;`
        Semicolon = "semicolon",
        /// A tab stop.
        Tab = "tab",
        /// `|`
        Pipe = "pipe",
    }
}

impl Delimiter {
    /// The character.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Pipe => b'|',
        }
    }
}

/// Beginnings of files that people take for csv, or rename to it.
const OTHERS: &[(&[u8], &str)] = &[
    (b"%PDF", "a PDF"),
    (b"\x1F\x8B", "a gzip archive"),
    (b"\xD0\xCF\x11\xE0", "an old Excel workbook (xls), or one that is protected by a password"),
    (b"{\\rtf", "an RTF document"),
    (b"<?xml", "an XML document"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
    (b"\x89PNG", "a picture"),
    (b"\xFF\xD8\xFF", "a picture"),
    (b"BZh", "a bzip2 archive"),
    (b"7z\xBC\xAF", "a 7z archive"),
    (b"PGDMP", "a database dump"),
    (b"SQLite format 3\0", "a database"),
];

/// Refuses what is plainly something else than text in cells.
pub(super) fn refuse_other_formats(head: &[u8]) -> Result<(), FileFault> {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    let begins = |magic: &[u8]| head.starts_with(magic) || text.starts_with(magic);
    // Markup has no case.
    let is_markup = |magic: &[u8]| {
        magic.starts_with(b"<") && text.get(..magic.len()).is_some_and(|start| start.eq_ignore_ascii_case(magic))
    };
    match OTHERS.iter().find(|(magic, _)| begins(magic) || is_markup(magic)) {
        Some((_, name)) => Err(FileFault::OtherFormat(name)),
        None if is_json(text) => Err(FileFault::OtherFormat("JSON")),
        None => Ok(()),
    }
}

/// Whether it begins as an object of JSON does, or a list of such or of lists. A bracket alone may begin a column's name.
fn is_json(text: &[u8]) -> bool {
    let after = |bracket: &[u8]| text.strip_prefix(bracket).and_then(|rest| rest.trim_ascii_start().first());
    matches!(after(b"{"), Some(b'"' | b'}')) || matches!(after(b"["), Some(b'{' | b'[' | b']'))
}

/// Whether it is a zip archive, as xlsx and ods are.
pub(super) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04")
}

/// The delimiter of the first line that is not blank: the one that stands in it most often outside quotes; a comma
/// when none does. A line `sep=X`, by which Excel is told, decides it; then the header is the line after it.
pub(super) fn guess_delimiter(text: &[u8]) -> (Delimiter, bool) {
    let line = first_line(text.trim_ascii_start());
    if let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', byte] = *line
        && let Some(&delimiter) = Delimiter::ALL.iter().find(|delimiter| delimiter.byte() == byte)
    {
        return (delimiter, true);
    }
    let mut best = (Delimiter::Comma, 0);
    for &delimiter in Delimiter::ALL {
        let count = count_outside_quotes(line, delimiter.byte());
        if count > best.1 {
            best = (delimiter, count);
        }
    }
    (best.0, false)
}

/// Up to the first line end that is not inside quotes.
fn first_line(text: &[u8]) -> &[u8] {
    let mut quoted = false;
    let end = text.iter().position(|&byte| {
        quoted ^= byte == b'"';
        !quoted && matches!(byte, b'\r' | b'\n')
    });
    &text[..end.unwrap_or(text.len())]
}

fn count_outside_quotes(line: &[u8], wanted: u8) -> usize {
    let mut quoted = false;
    let outside = |byte: &&u8| {
        quoted ^= **byte == b'"';
        !quoted && **byte == wanted
    };
    line.iter().filter(outside).count()
}
