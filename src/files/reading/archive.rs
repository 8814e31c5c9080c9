//! The zip archive of a workbook, with limits: a small file can claim to hold anything.
//!
//! What is unpacked has one limit for the whole file. A part counts once, as far as it was read, however often that is.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_xml::events::Event;
use zip::ZipArchive;
use zip::read::ZipFile;

use super::super::fault::FileFault;
use super::xml::{Limit, Xml};

/// Most parts of an archive.
const PARTS_MAX: u16 = 10_000;
/// Longest list of parts, in bytes.
const LIST_MAX: u32 = 4 << 20;
/// Most bytes of a file that are read, unpacked; the sheet of a million rows has some hundred million.
const UNPACKED_MAX: u64 = 2 << 30;
/// The same in words.
const TOO_BIG: &str = "unpacks to more than 2 GB";
/// Longest part of which all is kept in memory, unpacked.
const SMALL_MAX: u64 = 16 << 20;
const TOO_BIG_PART: &str = "describes itself in more than 16 MB";

/// A part of the archive as a stream.
pub(super) type Part<'a> = BufReader<ZipFile<'a, BufReader<File>>>;

/// The archive.
pub(super) struct Archive {
    zip: ZipArchive<BufReader<File>>,
    /// How far each part was read, by name.
    read: HashMap<String, Arc<AtomicU64>>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Archive of {} parts", self.zip.len())
    }
}

impl Archive {
    pub fn open(mut file: File) -> Result<Self, FileFault> {
        refuse_long_lists(&mut file)?;
        let zip = ZipArchive::new(BufReader::new(file)).map_err(FileFault::damaged)?;
        Ok(Self { zip, read: HashMap::new() })
    }

    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// A part as XML of any length, read as it comes.
    pub fn stream(&mut self, name: &str) -> Result<Xml<Part<'_>>, FileFault> {
        self.part(name, UNPACKED_MAX, TOO_BIG)
    }

    /// A part that describes others, as XML of moderate length.
    pub fn small(&mut self, name: &str) -> Result<Xml<Part<'_>>, FileFault> {
        self.part(name, SMALL_MAX, TOO_BIG_PART)
    }

    fn part(&mut self, name: &str, most: u64, too_big: &'static str) -> Result<Xml<Part<'_>>, FileFault> {
        let others = self.read.iter().filter(|(other, _)| other.as_str() != name);
        let others: u64 = others.map(|(_, read)| read.load(Ordering::Relaxed)).sum();
        let left = UNPACKED_MAX.saturating_sub(others);
        let read = Arc::clone(self.read.entry(name.to_owned()).or_default());
        let part = self.zip.by_name(name).map_err(|error| FileFault::damaged(format_args!("{name}: {error}")))?;
        let (most, too_big) = if left < most { (left, TOO_BIG) } else { (most, too_big) };
        let limit = Limit { size: part.size(), most, too_big };
        Ok(Xml::new(BufReader::with_capacity(64 << 10, part), limit, read))
    }

    /// A short part as text; none when there is no such part.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let mut text = String::new();
        self.zip.by_name(name).ok()?.take(1000).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Calls `each` for every element of a small part.
    pub fn each_element(
        &mut self,
        name: &str,
        mut each: impl FnMut(&quick_xml::events::BytesStart<'_>) -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        let mut xml = self.small(name)?;
        loop {
            match xml.next()? {
                Event::Start(element) => each(&element)?,
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }
}

/// The list of the parts is read whole by who opens the archive; its length stands at the end of the file.
fn refuse_long_lists(file: &mut File) -> Result<(), FileFault> {
    const RECORD: usize = 22;
    const COMMENT_MAX: u64 = 65_535;
    let length = file.seek(SeekFrom::End(0)).map_err(FileFault::Io)?;
    file.seek(SeekFrom::Start(length.saturating_sub(COMMENT_MAX + RECORD as u64))).map_err(FileFault::Io)?;
    let mut end = Vec::new();
    file.take(COMMENT_MAX + RECORD as u64).read_to_end(&mut end).map_err(FileFault::Io)?;
    // Whichever of them is taken for the true one, none may be too long.
    for record in end.windows(RECORD).filter(|record| record.starts_with(b"PK\x05\x06")) {
        let parts = u16::from_le_bytes([record[10], record[11]]);
        let list = u32::from_le_bytes([record[12], record[13], record[14], record[15]]);
        if parts > PARTS_MAX || list > LIST_MAX {
            return Err(FileFault::TooBig("has more parts than any sheet needs"));
        }
    }
    file.seek(SeekFrom::Start(0)).map_err(FileFault::Io)?;
    Ok(())
}
