//! Header values, encoded (RFC 2047) and folded.
//!
//! Our own, because lettre panics on a display name with a line break, leaves a word that looks encoded as it is
//! (so that a name could show as another one), and writes a name with a full stop without quotes.

/// Longest line of a header, in bytes, before its CRLF.
const LINE: usize = 76;
/// `=?utf-8?q?` and `?=`.
const FRAME: usize = 12;
/// Longest encoded word.
const WORD: usize = 75;

/// `value`, one line, as the value of header `name`.
pub(super) fn unstructured(name: &str, value: &str) -> String {
    let used = name.len() + 2;
    let plain = is_plain(value) && value.split(' ').all(|word| word.len() < LINE - 1);
    if plain { folded(value, used) } else { encoded_words(value, used) }
}

/// A mailbox as the value of header `name`; `display` is one line. An address that ASCII cannot write becomes an
/// empty group whose name shows it (RFC 6857, 3.1.1), because a header must not hold it in any other way.
pub(super) fn mailbox(name: &str, display: Option<&str>, address: &str) -> String {
    let used = name.len() + 2;
    if !address.is_ascii() {
        let shown = display.map_or_else(|| address.to_owned(), |display| format!("{display} {address}"));
        return format!("{} :;", encoded_words(&shown, used));
    }
    let Some(display) = display else { return address.to_owned() };
    let mut value = if is_plain(display) && display.len() < LINE - used - 2 {
        format!("\"{}\"", display.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        encoded_words(display, used)
    };
    let last = value.rsplit("\r\n").next().map_or(0, str::len);
    let first_line = !value.contains("\r\n");
    let column = last + if first_line { used } else { 0 };
    value.push_str(if column + address.len() + 3 > LINE { "\r\n <" } else { " <" });
    value.push_str(address);
    value.push('>');
    value
}

/// Printable ASCII that nobody will take for an encoded word.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|b| (b' '..=b'~').contains(&b)) && !value.contains("=?")
}

fn folded(value: &str, used: usize) -> String {
    let mut out = String::with_capacity(value.len() + 8);
    let mut column = used;
    for word in value.split(' ') {
        if !out.is_empty() {
            if column + 1 + word.len() > LINE {
                out.push_str("\r\n");
                column = 0;
            }
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

/// All of `value` in encoded words, a line each; no character is split between two.
fn encoded_words(value: &str, used: usize) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let mut room = (LINE - used.min(LINE)).min(WORD).saturating_sub(FRAME);
    for c in value.chars() {
        let width = q_width(c);
        if word.len() + width > room {
            if !word.is_empty() {
                push_word(&mut out, &word);
                word.clear();
            }
            room = WORD - 1 - FRAME;
        }
        push_q(&mut word, c);
    }
    push_word(&mut out, &word);
    out
}

fn push_word(out: &mut String, word: &str) {
    if !out.is_empty() {
        out.push_str("\r\n ");
    }
    out.push_str("=?utf-8?q?");
    out.push_str(word);
    out.push_str("?=");
}

/// Stands for itself in an encoded word wherever the word stands (RFC 2047, 5 (3)).
fn is_itself(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '!' | '*' | '+' | '-' | '/')
}

fn q_width(c: char) -> usize {
    if c == ' ' || is_itself(c) { 1 } else { 3 * c.len_utf8() }
}

fn push_q(word: &mut String, c: char) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if c == ' ' {
        word.push('_');
    } else if is_itself(c) {
        word.push(c);
    } else {
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            word.push('=');
            word.push(char::from(HEX[usize::from(byte >> 4)]));
            word.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
