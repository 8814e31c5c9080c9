//! The texts that cells of an Excel workbook point to, in a temporary file: a sheet of a million rows has millions of
//! them, mostly asked for in the order in which they were written.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;

use quick_xml::events::Event;

use super::super::fault::FileFault;
use super::archive::Archive;
use super::xml::push_text;

/// The place of every so many texts is kept; those between are found from there.
const STEP: u64 = 16;
const BLOCK: usize = 64 << 10;
/// Blocks of the file that are kept in memory.
const BLOCKS: usize = 128;
/// Most texts, and most bytes that they have together in the temporary file.
const COUNT_MAX: u64 = 30_000_000;
const TEXTS_MAX: u64 = 512 << 20;
/// Longest text, in bytes; one more than that is cut, and then longer than a cell may be.
const TEXT_MAX: usize = 128 << 10;

/// All texts, by number.
#[derive(Debug)]
pub(super) struct Strings {
    file: Option<File>,
    places: Vec<u64>,
    count: u64,
    blocks: Vec<Option<(u64, Vec<u8>)>>,
}

impl Strings {
    /// Of a workbook that has none.
    pub fn none() -> Self {
        Self { file: None, places: Vec::new(), count: 0, blocks: Vec::new() }
    }

    /// Reads the part in which they stand.
    pub fn read(archive: &mut Archive, part: &str) -> Result<Self, FileFault> {
        let file = tempfile::tempfile().map_err(FileFault::Io)?;
        let mut strings = Self { file: None, places: Vec::new(), count: 0, blocks: vec![None; BLOCKS] };
        let mut out = BufWriter::with_capacity(BLOCK, file);
        let (mut place, mut text, mut is_text, mut phonetic) = (0, String::new(), false, false);
        let mut xml = archive.stream(part)?;
        loop {
            match xml.next()? {
                Event::Start(element) => match element.local_name().as_ref() {
                    "si" => text.clear(),
                    "t" => is_text = !phonetic,
                    "rPh" => phonetic = true,
                    _ => {}
                },
                Event::End(element) => match element.local_name().as_ref() {
                    "t" => is_text = false,
                    "rPh" => phonetic = false,
                    "si" => {
                        if strings.count.is_multiple_of(STEP) {
                            strings.places.push(place);
                        }
                        strings.count += 1;
                        let length = text.len() as u32;
                        out.write_all(&length.to_le_bytes()).map_err(FileFault::Io)?;
                        out.write_all(text.as_bytes()).map_err(FileFault::Io)?;
                        place += 4 + u64::from(length);
                        if strings.count > COUNT_MAX || place > TEXTS_MAX {
                            return Err(FileFault::TooBig("has more than 30 million shared texts, or 512 MB of them"));
                        }
                    }
                    _ => {}
                },
                Event::Eof => break,
                event if is_text && text.len() < TEXT_MAX => push_text(&event, &mut text)?,
                _ => {}
            }
        }
        strings.file = Some(out.into_inner().map_err(|error| FileFault::Io(error.into_error()))?);
        Ok(strings)
    }

    /// Adds the text of this number; false when there is none.
    pub fn push(&mut self, number: u64, text: &mut String) -> Result<bool, FileFault> {
        if number >= self.count {
            return Ok(false);
        }
        let mut place = self.places[(number / STEP) as usize];
        for _ in 0..number % STEP {
            place += 4 + u64::from(self.length(place)?);
        }
        let mut bytes = vec![0; self.length(place)? as usize];
        self.copy(place + 4, &mut bytes)?;
        text.push_str(str::from_utf8(&bytes).map_err(FileFault::damaged)?);
        Ok(true)
    }

    fn length(&mut self, place: u64) -> Result<u32, FileFault> {
        let mut bytes = [0; 4];
        self.copy(place, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Fills `bytes` from this place on.
    fn copy(&mut self, mut place: u64, mut bytes: &mut [u8]) -> Result<(), FileFault> {
        while !bytes.is_empty() {
            let (number, start) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
            let block = self.block(number)?;
            let found = block.get(start..).unwrap_or_default();
            let length = found.len().min(bytes.len());
            if length == 0 {
                return Err(FileFault::damaged("a text is cut off"));
            }
            bytes[..length].copy_from_slice(&found[..length]);
            bytes = &mut bytes[length..];
            place += length as u64;
        }
        Ok(())
    }

    fn block(&mut self, number: u64) -> Result<&[u8], FileFault> {
        let Some(file) = &self.file else { return Ok(&[]) };
        let kept = &mut self.blocks[number as usize % BLOCKS];
        if kept.as_ref().is_none_or(|(held, _)| *held != number) {
            let mut block = kept.take().map(|(_, block)| block).unwrap_or_default();
            block.resize(BLOCK, 0);
            let mut length = 0;
            loop {
                match file.read_at(&mut block[length..], number * BLOCK as u64 + length as u64) {
                    Ok(0) => break,
                    Ok(read) => length += read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(FileFault::Io(error)),
                }
            }
            block.truncate(length);
            *kept = Some((number, block));
        }
        Ok(kept.as_ref().map_or(&[], |(_, block)| block))
    }
}
