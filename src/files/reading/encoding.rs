//! How the characters of a text file are written: by its byte order mark, by its zero bytes, by whether all of it is
//! UTF-8; and the decoding, a piece at a time.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

use encoding_rs::{Decoder, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::super::fault::FileFault;

const BUFFER: usize = 128 << 10;

/// An encoding of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// With or without its mark.
    Utf8,
    /// The low byte first.
    Utf16Le,
    /// The high byte first.
    Utf16Be,
    /// What old programs write in western Europe and America.
    Windows1252,
}

impl Encoding {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Windows1252 => "Windows-1252",
        }
    }

    fn decoder(self) -> Option<Decoder> {
        match self {
            Self::Utf8 => None,
            Self::Utf16Le => Some(UTF_16LE.new_decoder_without_bom_handling()),
            Self::Utf16Be => Some(UTF_16BE.new_decoder_without_bom_handling()),
            Self::Windows1252 => Some(WINDOWS_1252.new_decoder_without_bom_handling()),
        }
    }
}

/// What a byte becomes that Windows-1252 gives no character to: a sign that the file is in something else.
pub(in crate::files) const UNDEFINED: &[char] = &['\u{81}', '\u{8d}', '\u{8f}', '\u{90}', '\u{9d}'];

/// The encoding of a file that begins with `head`, and the length of its mark.
pub(super) fn guess(file: &File, head: &[u8]) -> Result<(Encoding, u64), FileFault> {
    const MARKS: [(&[u8], Encoding); 3] =
        [(b"\xEF\xBB\xBF", Encoding::Utf8), (b"\xFF\xFE", Encoding::Utf16Le), (b"\xFE\xFF", Encoding::Utf16Be)];
    if let Some((mark, encoding)) = MARKS.iter().find(|(mark, _)| head.starts_with(mark)) {
        return Ok((*encoding, mark.len() as u64));
    }
    let encoding = match by_zeros(head) {
        Some(encoding) => encoding,
        None => by_all_bytes(file)?,
    };
    Ok((encoding, 0))
}

/// In UTF-16 every second byte of Latin letters, digits and delimiters is zero; no other text has any.
fn by_zeros(head: &[u8]) -> Option<Encoding> {
    let pairs = head.len() / 2;
    let zeros = |at: usize| head.chunks_exact(2).filter(|pair| pair[at] == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    let most = |count: usize| pairs > 0 && count * 10 >= pairs * 4;
    match (most(first), most(second)) {
        (true, false) if second * 20 <= first => Some(Encoding::Utf16Be),
        (false, true) if first * 20 <= second => Some(Encoding::Utf16Le),
        _ => None,
    }
}

/// A file with bytes that are not UTF-8 is Windows-1252, unless most of its other characters are UTF-8 all the same:
/// then a few were broken, and reading the rest as Windows-1252 would garble it.
fn by_all_bytes(mut file: &File) -> Result<Encoding, FileFault> {
    file.seek(SeekFrom::Start(0)).map_err(FileFault::Io)?;
    let (mut good, mut broken) = (0_u64, 0_u64);
    let mut buffer = vec![0; BUFFER];
    let mut kept = 0;
    loop {
        let read = read_some(&mut file, &mut buffer[kept..])?;
        let mut rest = &buffer[..kept + read];
        let tail = loop {
            let error = match str::from_utf8(rest) {
                Ok(text) => {
                    good += beyond_ascii(text);
                    break 0;
                }
                Err(error) => error,
            };
            let (before, after) = rest.split_at(error.valid_up_to());
            good += str::from_utf8(before).map_or(0, beyond_ascii);
            match error.error_len() {
                Some(length) => {
                    broken += 1;
                    rest = &after[length..];
                }
                // A character that the end of the buffer cuts.
                None if read > 0 => break after.len(),
                None => {
                    broken += 1;
                    break 0;
                }
            }
        };
        if read == 0 {
            return Ok(if broken > good { Encoding::Windows1252 } else { Encoding::Utf8 });
        }
        let end = kept + read;
        buffer.copy_within(end - tail..end, 0);
        kept = tail;
    }
}

fn beyond_ascii(text: &str) -> u64 {
    if text.is_ascii() { 0 } else { text.chars().filter(|c| !c.is_ascii()).count() as u64 }
}

fn read_some(file: &mut &File, buffer: &mut [u8]) -> Result<usize, FileFault> {
    loop {
        match file.read(buffer) {
            Ok(length) => return Ok(length),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(FileFault::Io(error)),
        }
    }
}

/// The text of a file from its beginning on, in UTF-8. What claims to be UTF-8 is handed on as it stands.
pub(super) struct Text<'f> {
    file: &'f File,
    decoder: Option<Decoder>,
    raw: Vec<u8>,
    ended: bool,
    /// Bytes that were taken, and how many there are.
    pub done: u64,
    pub size: u64,
}

impl<'f> Text<'f> {
    /// The text after a mark of `mark` bytes.
    pub fn new(file: &'f File, encoding: Encoding, mark: u64) -> Result<Self, FileFault> {
        (&*file).seek(SeekFrom::Start(mark)).map_err(FileFault::Io)?;
        let decoder = encoding.decoder();
        let raw = if decoder.is_some() { vec![0; BUFFER] } else { Vec::new() };
        let size = file.metadata().map_err(FileFault::Io)?.len();
        Ok(Self { file, decoder, raw, ended: false, done: mark, size })
    }

    /// Replaces what is in `text` by the next piece; its length is 0 at the end only.
    pub fn read(&mut self, text: &mut Vec<u8>) -> Result<(), FileFault> {
        let Some(decoder) = &mut self.decoder else {
            text.resize(BUFFER, 0);
            let length = read_some(&mut self.file, text)?;
            text.truncate(length);
            self.done += length as u64;
            return Ok(());
        };
        text.clear();
        while text.is_empty() && !self.ended {
            let length = read_some(&mut self.file, &mut self.raw)?;
            self.ended = length == 0;
            self.done += length as u64;
            let room = decoder.max_utf8_buffer_length(length).unwrap_or(4 * BUFFER);
            text.resize(room, 0);
            let (_, _, written, broken) = decoder.decode_to_utf8(&self.raw[..length], text, self.ended);
            text.truncate(written);
            // Only UTF-16 can be broken.
            if broken {
                return Err(FileFault::NotUtf16);
            }
        }
        Ok(())
    }
}
