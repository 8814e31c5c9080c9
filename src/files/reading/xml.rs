//! XML as a stream of events, none of them endless.

use std::borrow::Cow;
use std::io::{BufRead, Read, Result as IoResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::super::fault::FileFault;

/// Longest single piece of text or element, in bytes.
const EVENT_MAX: usize = 1 << 20;

/// How much of a document is read, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// What it says it has.
    pub size: u64,
    pub most: u64,
    /// What a document does that is longer.
    pub too_big: &'static str,
}

/// A document that is read from its beginning on.
pub(super) struct Xml<R> {
    reader: Reader<Limited<R>>,
    buffer: Vec<u8>,
    too_big: &'static str,
    size: u64,
}

/// Ends with an error where a document, or one event of it, is too long.
struct Limited<R> {
    inner: R,
    /// What may still be read of the document.
    left: u64,
    /// What may still be read of this event.
    event: usize,
    /// What was read of it.
    done: u64,
    /// The most that was ever read of it.
    read: Arc<AtomicU64>,
}

impl<R: BufRead> Xml<R> {
    /// `read` keeps how far the document was read.
    pub fn new(inner: R, limit: Limit, read: Arc<AtomicU64>) -> Self {
        let limited = Limited { inner, left: limit.most, event: EVENT_MAX, done: 0, read };
        let mut reader = Reader::from_reader(limited);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, buffer: Vec::new(), too_big: limit.too_big, size: limit.size }
    }

    /// How many bytes of it were read, and how many it says it has.
    pub fn progress(&self) -> (u64, u64) {
        (self.reader.get_ref().done, self.size)
    }

    /// The next event. An element without content gives its end too.
    pub fn next(&mut self) -> Result<Event<'_>, FileFault> {
        self.buffer.clear();
        self.reader.get_mut().event = EVENT_MAX;
        match self.reader.read_event_into(&mut self.buffer) {
            // What it declares is never needed, and can only do harm.
            Ok(Event::DocType(_)) => Err(FileFault::damaged("it declares a document type")),
            Ok(event) => Ok(event),
            Err(_) if self.reader.get_ref().left == 0 => Err(FileFault::TooBig(self.too_big)),
            Err(_) if self.reader.get_ref().event == 0 => Err(FileFault::TooBig("has a text of more than 1 MB")),
            Err(error) => Err(FileFault::damaged(error)),
        }
    }
}

impl<R: BufRead> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        let found = self.fill_buf()?;
        let length = found.len().min(buffer.len());
        buffer[..length].copy_from_slice(&found[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Limited<R> {
    fn fill_buf(&mut self) -> IoResult<&[u8]> {
        if self.left == 0 || self.event == 0 {
            return Err(std::io::Error::other("too long"));
        }
        let found = self.inner.fill_buf()?;
        let most = self.event.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        Ok(&found[..found.len().min(most)])
    }

    fn consume(&mut self, length: usize) {
        self.left -= length as u64;
        self.event -= length;
        self.done += length as u64;
        self.read.fetch_max(self.done, Ordering::Relaxed);
        self.inner.consume(length);
    }
}

/// The attribute of this name, whatever its prefix; empty when it is not there.
pub(super) fn attribute<'e>(element: &'e BytesStart<'_>, name: &str) -> Cow<'e, str> {
    let found = element.attributes().with_checks(false).flatten().find(|one| one.key.local_name().as_ref() == name);
    found.and_then(|one| one.normalized_value(XmlVersion::Explicit1_0).ok()).unwrap_or_default()
}

/// Whether an attribute says yes.
pub(super) fn is_set(element: &BytesStart<'_>, name: &str) -> bool {
    matches!(attribute(element, name).as_ref(), "1" | "true" | "on")
}

/// Adds what an event says in text.
pub(super) fn push_text(event: &Event<'_>, text: &mut String) -> Result<(), FileFault> {
    match event {
        Event::Text(piece) => text.push_str(&piece.xml10_content()),
        Event::CData(piece) => text.push_str(&piece.xml10_content()),
        Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(FileFault::damaged)? {
            Some(c) => text.push(c),
            None => match resolve_predefined_entity(reference) {
                Some(known) => text.push_str(known),
                None => return Err(FileFault::damaged("it names a character that it does not define")),
            },
        },
        _ => {}
    }
    Ok(())
}
