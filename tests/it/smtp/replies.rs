//! Replies read from bytes: whatever they are, and however they come.

use permit_notifier::mail::smtp::reply::{Inbox, Malformed, Reply};
use proptest::prelude::*;

/// All replies in `pieces`, and the error that ended the reading.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Reply>, Option<Malformed>) {
    let (mut inbox, mut replies) = (Inbox::default(), Vec::new());
    for piece in pieces {
        inbox.push(piece);
        loop {
            match inbox.next_reply() {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}

/// Bytes that look like replies more often than chance would have it.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"250 ok\r\n".to_vec()),
        Just(b"250-first\r\n".to_vec()),
        Just(b"571\r\n".to_vec()),
        Just(b"550 5.1.1 no".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(vec![b'x'; 3000]),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_pieces_make_no_difference(bytes in bytes(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let whole = read([&bytes[..]]);
        prop_assert_eq!(&read(bytes.chunks(1)), &whole);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        prop_assert_eq!(&read(cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]])), &whole);
        for reply in &whole.0 {
            prop_assert!((200..600).contains(&reply.code));
            let text = reply.text();
            prop_assert!(text.len() <= 2048 && !text.contains(char::is_control));
            let _ = reply.enhanced_code();
        }
    }
}

fn one(bytes: &str) -> Reply {
    let (mut replies, error) = read([bytes.as_bytes()]);
    assert!(error.is_none() && replies.len() == 1, "{bytes:?}");
    replies.remove(0)
}

#[test]
fn codes_and_texts_are_read_as_they_stand() {
    assert_eq!(one("571 5.7.1 no\r\n").code, 571);
    assert_eq!(one("250\r\n").lines, [b""]);
    assert_eq!(one("250 ok\n").text(), "250 ok");
    assert_eq!(one("550-5.1.1 a\r\n550 5.1.1 b\r\n").text(), "550-5.1.1 a 550 5.1.1 b");
    for (text, enhanced) in [
        ("550 5.1.1 no\r\n", Some("5.1.1")),
        ("451 4.7.500\r\n", Some("4.7.500")),
        ("550 5.1 no\r\n", None),
        ("550 3.1.1 no\r\n", None),
        ("550 5.1.1.1 no\r\n", None),
        ("550 5.1.x no\r\n", None),
        ("550 #5.1.1 no\r\n", None),
    ] {
        assert_eq!(one(text).enhanced_code().as_deref(), enhanced, "{text:?}");
    }
}

#[test]
fn what_is_no_reply_is_none() {
    for bytes in ["ok\r\n", "25\r\n", "\r\n", "250_ok\r\n", "150 x\r\n", "650 x\r\n", "250-a\r\n550 b\r\n", "2 50\r\n"]
    {
        assert!(read([bytes.as_bytes()]).1.is_some(), "{bytes:?}");
    }
    for bytes in ["", "2", "250", "250 ok", "250 ok\r", "250-a\r\n250-b\r\n"] {
        assert_eq!(read([bytes.as_bytes()]), (Vec::new(), None), "{bytes:?}");
    }
    assert!(read([&[b'2'; 5000][..]]).1.is_some());
    let endless = "250-x\r\n".repeat(20_000);
    assert!(read([endless.as_bytes()]).1.is_some());
}

#[test]
fn a_time_to_wait_is_taken_only_from_words_that_ask_to_come_again() {
    let seconds = |text: &str| one(&format!("{text}\r\n")).retry_after().map(|wait| wait.as_secs());
    for (text, expected) in [
        ("450 4.2.0 Greylisted, please try again in 300 seconds", 300),
        ("450 4.7.1 <bob@x.example>: Recipient address rejected: Greylisted for 5 minutes", 300),
        ("451 4.7.1 Greylisting in action, please come back in 60 sec.", 60),
        ("451 4.7.1 Please try again after 5 min", 300),
        ("452 Try again within 1 hour!", 3600),
        ("421 4.7.0 Too many connections; retry after 30s", 30),
        ("450 retry in 10min", 600),
        ("450 Graylisted (for 2 minutes)", 120),
        ("450-4.2.0 Greylisted\r\n450 4.2.0 Please wait for 90 seconds", 90),
        ("450 TRY AGAIN IN 5 MINUTES", 300),
        ("450 please retry the delivery in 2 hours", 7200),
        ("451 temporarily deferred for 20 minutes due to load", 1200),
        ("450 more than 10 messages in 60 seconds, try again in 15 minutes", 900),
        ("450 try again in 24 hours", 21_600),
        ("450 try again in 4294967295 hours", 21_600),
    ] {
        assert_eq!(seconds(text), Some(expected), "{text}");
    }
    for text in [
        "450 4.2.0 try again later",
        "450 4.2.0 try again in a few minutes",
        "450 4.7.1 too many messages in 60 seconds",
        "450 4.7.1 try again later, you sent 100 messages in 60 seconds",
        "450 4.7.1 try again later because you sent 100 messages in 60 seconds",
        "450 wait. At most 100 messages for 1 hour",
        "421 4.4.2 idle for 300 seconds",
        "450 greylisted for 00:05:00",
        "450 try again in 5",
        "450 try again in 5 days",
        "450 try again in 5 m",
        "450 try again in 5.5 minutes",
        "450 try again in -5 minutes",
        "450 try again in 0 seconds",
        "450 try again in 99999999999 seconds",
        "450 try again in minutes",
        "450 try again in five minutes",
        "450 in 5 minutes",
        "450 wait 5 minutes",
        "450 in",
        "450",
        "550 5.7.1 blocked, try again in 5 minutes",
        "250 2.0.0 queued, back in 5 minutes",
    ] {
        assert_eq!(seconds(text), None, "{text}");
    }
}
