//! The bytes of a mail server read as replies, against a reader of our own that sees all bytes at once.

use permit_notifier::mail::smtp::reply::Inbox;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Bytes, check};

/// A line with its end, and a whole reply, in bytes.
const LINE_MAX: usize = 4096;
const REPLY_MAX: usize = 65_536;

/// What stands at the beginning of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// A reply (RFC 5321, 4.2), and how many bytes it takes. More is allowed than there: any text, and a line that
    /// ends in LF alone.
    Reply { code: u16, lines: Vec<Vec<u8>>, length: usize },
    /// A reply may come of it.
    Unfinished,
    /// No reply, whatever follows.
    Broken,
}

pub fn first(bytes: &[u8]) -> First {
    let (mut lines, mut codes, mut length) = (Vec::new(), Vec::new(), 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        length += line.len();
        if line.len() > LINE_MAX || length > REPLY_MAX {
            return First::Broken;
        }
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let digits = std::str::from_utf8(line.get(..3).unwrap_or_default()).unwrap_or_default();
        let is_code = digits.bytes().all(|digit| digit.is_ascii_digit()) && ("200".."600").contains(&digits);
        if !is_code || !matches!(line.get(3), None | Some(b' ' | b'-')) {
            return First::Broken;
        }
        codes.push(digits.parse::<u16>().unwrap());
        lines.push(line.get(4..).unwrap_or_default().to_vec());
        if codes.iter().any(|code| *code != codes[0]) {
            return First::Broken;
        }
        if line.get(3) != Some(&b'-') {
            return First::Reply { code: codes[0], lines, length };
        }
    }
    First::Unfinished
}

/// Pieces of what servers say, whole lines and broken ones.
pub fn piece() -> BoxedStrategy<Vec<u8>> {
    let codes = prop::sample::select(vec![
        "200",
        "211",
        "220",
        "221",
        "235",
        "250",
        "251",
        "252",
        "299",
        "334",
        "354",
        "421",
        "450",
        "451",
        "500",
        "550",
        "554",
        "571",
        "599",
        "600",
        "150",
        "25",
        "2500",
        "+50",
        "2 0",
        "\u{ff12}50",
        "",
    ]);
    let texts = prop::sample::select(vec![
        "ok",
        "",
        "2.0.0 queued",
        "5.1.1 no",
        "5.1.7 sender",
        "4.7.1 later",
        "4.2.0 try again in 60 seconds",
        "PIPELINING",
        "\u{e9}\u{202e}",
        "250 ok",
        "\0\t\u{1b}[2J",
        " ",
        ".",
    ]);
    let marks = prop::sample::select(vec![" ", " ", " ", "-", "-", "", "_", "\t"]);
    let ends = prop::sample::select(vec!["\r\n", "\r\n", "\r\n", "\n", "\r", "", "\r\r\n", "\n\r"]);
    let line =
        (codes, marks, texts, ends).prop_map(|(code, mark, text, end)| format!("{code}{mark}{text}{end}").into_bytes());
    let long =
        (prop::sample::select(vec![b'2', b' ', b'x', b'\n']), 3000_usize..5000).prop_map(|(byte, n)| vec![byte; n]);
    // Around the longest line.
    let edge = (LINE_MAX - 8..LINE_MAX + 2, any::<bool>()).prop_map(|(length, more)| {
        let mut line = if more { b"250-".to_vec() } else { b"250 ".to_vec() };
        line.resize(length, b'y');
        line.extend_from_slice(b"\r\n");
        line
    });
    prop_oneof![
        12 => line,
        2 => prop::collection::vec(any::<u8>(), 0..20),
        1 => long,
        1 => edge,
    ]
    .boxed()
}

#[derive(Debug, Serialize, Deserialize)]
struct Speech {
    pieces: Vec<Bytes>,
    /// How often all of it comes.
    times: usize,
}

fn speech() -> impl Strategy<Value = Speech> {
    let times = prop_oneof![8 => Just(1_usize), 1 => 2_usize..200];
    (prop::collection::vec(piece().prop_map(Bytes), 0..8), times).prop_map(|(pieces, times)| Speech { pieces, times })
}

/// Code and texts of each reply.
type Replies = Vec<(u16, Vec<Vec<u8>>)>;

/// All replies in `bytes`, and whether what follows them is broken.
fn expected(mut bytes: &[u8]) -> (Replies, bool) {
    let mut replies = Vec::new();
    loop {
        match first(bytes) {
            First::Reply { code, lines, length } => {
                replies.push((code, lines));
                bytes = &bytes[length..];
            }
            First::Unfinished => return (replies, false),
            First::Broken => return (replies, true),
        }
    }
}

/// The same by the service; an error if it holds more than one reply's worth of bytes.
fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Result<(Replies, bool), TestCaseError> {
    let (mut inbox, mut replies, mut unread) = (Inbox::default(), Vec::new(), Vec::new());
    for piece in pieces {
        inbox.push(piece);
        unread.extend_from_slice(piece);
        loop {
            match inbox.next_reply() {
                Ok(Some(reply)) => {
                    let First::Reply { length, .. } = first(&unread) else {
                        return Err(TestCaseError::fail(format!("{reply:?} was made up")));
                    };
                    unread.drain(..length);
                    prop_assert!(reply.text().len() <= 2048 && !reply.text().contains(char::is_control));
                    replies.push((reply.code, reply.lines));
                }
                Ok(None) => break,
                Err(error) => {
                    prop_assert!(error.0.len() < 3000 && !error.0.contains(char::is_control), "{:?}", error);
                    return Ok((replies, true));
                }
            }
        }
        prop_assert!(unread.len() <= REPLY_MAX, "{} bytes wait for the end of one reply", unread.len());
        prop_assert_eq!(inbox.is_empty(), unread.is_empty());
    }
    Ok((replies, false))
}

#[test]
fn a_servers_bytes_are_the_replies_that_stand_in_them() {
    check("replies", 1_500, speech(), |speech| {
        let pieces: Vec<&[u8]> = (0..speech.times).flat_map(|_| &speech.pieces).map(|piece| &piece.0[..]).collect();
        let whole = pieces.concat();
        let expected = expected(&whole);
        prop_assert_eq!(&read([&whole[..]])?, &expected);
        prop_assert_eq!(&read(pieces)?, &expected);
        // As the service reads a socket.
        prop_assert_eq!(&read(whole.chunks(4096))?, &expected);
        if whole.len() < 10_000 {
            prop_assert_eq!(&read(whole.chunks(1))?, &expected);
        }
        Ok(())
    });
}
