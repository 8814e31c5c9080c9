//! Replies of a server, read from bytes as they come. What they mean is judged elsewhere.

use std::{fmt::Write as _, time::Duration};

/// The longest line of a reply, and the longest reply, in bytes. RFC 5321 asks for 512 a line; some say more.
const LINE_MAX: usize = 4 * 1024;
const REPLY_MAX: usize = 64 * 1024;
/// The most of a reply that is kept, in bytes.
const KEPT_MAX: usize = 2 * 1024;

/// One complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// From 200 to 599.
    pub code: u16,
    /// The texts of its lines, after the code, as the server wrote them.
    pub lines: Vec<Vec<u8>>,
}

/// Bytes that are no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a reply of a mail server: {0}")]
pub struct Malformed(pub String);

impl Reply {
    /// Whether the code's first digit is `class`.
    pub fn is_class(&self, class: u16) -> bool {
        self.code / 100 == class
    }

    /// The enhanced code at the beginning of the text, such as `5.1.1`.
    pub fn enhanced_code(&self) -> Option<String> {
        let first = self.lines.first()?.split(u8::is_ascii_whitespace).next()?;
        let word = std::str::from_utf8(first).ok()?;
        let mut parts = word.split('.');
        let class = parts.next().is_some_and(|part| matches!(part, "2" | "4" | "5"));
        let number = |part: Option<&str>| {
            part.is_some_and(|part| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        (class && number(parts.next()) && number(parts.next()) && parts.next().is_none()).then(|| word.to_owned())
    }

    /// After how long the server takes it again, if it refuses for now and its words say so; at most six hours.
    pub fn retry_after(&self) -> Option<Duration> {
        let text = || String::from_utf8_lossy(&self.lines.join(&b' ')).into_owned();
        if self.is_class(4) { super::wait::named_wait(&text()) } else { None }
    }

    /// The reply as one line of at most 2 KiB without control characters, each line with its code.
    pub fn text(&self) -> String {
        let last = self.lines.len().saturating_sub(1);
        let mut text = String::new();
        for (number, line) in self.lines.iter().enumerate() {
            if text.len() > KEPT_MAX {
                break;
            }
            if number > 0 {
                text.push(' ');
            }
            let mark = if number < last { '-' } else { ' ' };
            let _ = write!(text, "{}{mark}{}", self.code, String::from_utf8_lossy(line));
        }
        readable(text.as_bytes())
    }
}

/// Any bytes as one line of at most 2 KiB without control characters.
pub fn readable(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(KEPT_MAX)];
    let line = crate::mail::text::one_line(&String::from_utf8_lossy(bytes), KEPT_MAX);
    let mut end = line.len().min(KEPT_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].to_owned()
}

/// Takes bytes in any pieces and gives complete replies; how they were split makes no difference.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    /// Bytes of the current reply that are complete lines.
    taken: usize,
    /// Where the search for the next line end goes on.
    searched: usize,
    code: Option<u16>,
    lines: Vec<Vec<u8>>,
}

impl Inbox {
    /// More bytes from the server.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether there is nothing unread, not even half a line.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What is unread, for people.
    pub fn unread(&self) -> String {
        readable(&self.bytes)
    }

    /// The next reply if it is complete. After an error nothing that follows can be trusted.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, Malformed> {
        while let Some(length) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length + 1;
            if end - self.taken > LINE_MAX || end > REPLY_MAX {
                return Err(Malformed("it is too long".to_owned()));
            }
            let line = &self.bytes[self.taken..end - 1];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let (code, is_last, text) = read_line(line).ok_or_else(|| Malformed(readable(line)))?;
            if self.code.is_some_and(|before| before != code) {
                return Err(Malformed(format!("its lines have different codes: {}", readable(&self.bytes[..end]))));
            }
            self.lines.push(text.to_vec());
            self.code = Some(code);
            (self.taken, self.searched) = (end, end);
            if is_last {
                self.bytes.drain(..end);
                (self.taken, self.searched, self.code) = (0, 0, None);
                return Ok(Some(Reply { code, lines: std::mem::take(&mut self.lines) }));
            }
        }
        self.searched = self.bytes.len();
        if self.bytes.len() - self.taken > LINE_MAX || self.bytes.len() > REPLY_MAX {
            return Err(Malformed("it is too long".to_owned()));
        }
        Ok(None)
    }
}

/// Code, whether it is the last line, and text.
fn read_line(line: &[u8]) -> Option<(u16, bool, &[u8])> {
    let code = line.get(..3)?;
    if !matches!(code[0], b'2'..=b'5') || !code.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let code = code.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    match line.get(3) {
        None => Some((code, true, &[])),
        Some(b' ') => Some((code, true, &line[4..])),
        Some(b'-') => Some((code, false, &line[4..])),
        Some(_) => None,
    }
}
