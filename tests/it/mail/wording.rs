//! What notices say, by type and by days really left.

use permit_notifier::{
    domain::{notice::NoticeClass, schedule::Schedule},
    mail::{Mailbox, Office, compose, message_id},
};
use sha2::{Digest, Sha256};

use super::{key, notice, now, office, read, recipient};

/// Every usual notice type, and one that an office made up.
fn notice_types() -> Vec<String> {
    let usual = Schedule::usual();
    let named = usual.steps().iter().map(|step| step.notice_type.to_string());
    named.chain(["insurance-check".to_owned()]).collect()
}

const DAYS: [i64; 9] = [90, 27, 8, 2, 1, 0, -1, -2, -30];

/// What a message must say when so many days are left.
fn says(days_left: i64) -> (String, String) {
    let day = "Friday, 12 March 2027";
    match days_left {
        2.. => ("expires on 12 March 2027".to_owned(), format!("expires on {day}, in {days_left} days.")),
        1 => ("expires tomorrow, 12 March 2027".to_owned(), format!("expires tomorrow, {day}.")),
        0 => ("expires today, 12 March 2027".to_owned(), format!("expires today, {day}.")),
        -1 => ("expired on 12 March 2027".to_owned(), "expired yesterday.".to_owned()),
        _ => ("expired on 12 March 2027".to_owned(), format!("expired {} days ago.", -days_left)),
    }
}

/// Text as one line, so that wrapping does not matter.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of HTML without its tags and entities.
fn words_of(html: &str) -> String {
    let body = &html[html.find("<body").unwrap()..].replace("<bdi>", "").replace("</bdi>", "");
    let mut text = String::new();
    for piece in body.split('<').skip(1) {
        text.push(' ');
        text.push_str(piece.split_once('>').unwrap().1);
    }
    unwrapped(&text.replace("&#38;", "&"))
}

#[test]
fn every_notice_is_right_on_any_day_in_both_parts() {
    let to = recipient("ann@bakery.example", "Ann Baker");
    for notice_type in notice_types().iter().filter(|name| *name != "renewed") {
        for days_left in DAYS {
            let key = key(notice_type);
            let mail = read(&office(), &notice(&key, &to, days_left));
            let (subject, sentence) = says(days_left);
            let context = format!("{notice_type} at {days_left}: {}\n{}", mail.subject, mail.text);
            assert!(mail.subject.starts_with(&format!("Permit 2026-0142 {subject}")), "{context}");
            assert!(mail.subject.len() <= 60, "{context}");
            for words in [unwrapped(&mail.text), words_of(&mail.html)] {
                assert!(words.contains(&format!("Your permit 2026-0142 (Food premises) {sentence}")), "{context}");
                assert!(words.contains("12 Main Street, Springfield"), "{context}");
                assert!(words.contains("https://permits.maple.example/renew?permit=2026-0142&step=1"), "{context}");
                assert!(words.contains("Permit desk, 555-0142, Monday to Friday"), "{context}");
                assert!(words.contains("Dear Ann Baker,"), "{context}");
                assert_eq!(words.contains("no record of a renewal"), days_left < 0, "{context}");
                assert!(!words.contains(" 1 days"), "{context}");
                assert!(!words.contains(":00"), "a time of day in {context}");
            }
            assert!(mail.text.contains("2027-03-12"), "{context}");
        }
    }
}

#[test]
fn text_and_html_say_the_same_words() {
    let to = recipient("ann@bakery.example", "Ann Baker");
    for notice_type in notice_types() {
        let key = key(&notice_type);
        let mail = read(&office(), &notice(&key, &to, 14));
        let html = words_of(&mail.html).to_lowercase();
        for paragraph in mail.text.split("\n\n") {
            // Facts are table rows in the HTML, and the plain text has the date a second time.
            for line in paragraph.lines().filter(|line| line.starts_with("  ")) {
                let value = line.split_once(": ").map_or(line, |(_, value)| value).replace(" (2027-03-12)", "");
                assert!(html.contains(&value.trim().to_lowercase()), "{value:?} is missing in {html}");
            }
            let prose = unwrapped(&paragraph.lines().filter(|l| !l.starts_with("  ")).collect::<Vec<_>>().join(" "));
            assert!(html.contains(&prose.to_lowercase()), "{prose:?} is missing in {html}");
        }
    }
}

#[test]
fn a_renewal_is_confirmed_and_asks_for_nothing() {
    let to = recipient("ann@bakery.example", "");
    let key = key("renewed");
    let mail = read(&office(), &notice(&key, &to, 395));
    assert_eq!(mail.subject, "Permit 2026-0142 is renewed until 12 March 2027");
    let words = unwrapped(&mail.text);
    assert!(words.contains("was renewed on Wednesday, 10 February 2027."));
    assert!(words.contains("valid up to and including Friday, 12 March 2027. You need not do anything."));
    assert!(words.starts_with("Hello,"));
    assert!(!words.contains("WHAT TO DO") && !words.contains("https://"));
}

#[test]
fn grace_days_are_told_before_during_and_after() {
    let to = recipient("ann@bakery.example", "Ann");
    let key = key("general-check");
    for (days_left, grace_days, sentence) in [
        (5, 0, "it is no longer valid from Saturday, 13 March 2027."),
        (5, 1, "a grace period of 1 day follows, up to and including Saturday, 13 March 2027."),
        (5, 10, "a grace period of 10 days follows, up to and including Monday, 22 March 2027."),
        (-1, 10, "runs up to and including Monday, 22 March 2027; 9 days of it are left."),
        (-9, 10, "A grace period of 10 days ends tomorrow, Monday, 22 March 2027."),
        (-10, 10, "A grace period of 10 days ends today, Monday, 22 March 2027."),
        (-1, 1, "A grace period of 1 day ends today, Saturday, 13 March 2027."),
        (-11, 10, "The grace period ended on Monday, 22 March 2027."),
        (-1, 0, "It is no longer valid, unless it has been renewed."),
    ] {
        let mut notice = notice(&key, &to, days_left);
        notice.grace_days = grace_days;
        let mail = read(&office(), &notice);
        assert!(unwrapped(&mail.text).contains(sentence), "{days_left}, {grace_days}: {}", mail.text);
        assert!(words_of(&mail.html).contains(sentence), "{days_left}, {grace_days}: {}", mail.html);
    }
}

#[test]
fn without_link_and_contact_there_are_still_sensible_words() {
    let to = recipient("ann@bakery.example", "Ann");
    let key = key("expires-30d");
    let mut notice = notice(&key, &to, 27);
    notice.renewal_url = None;
    assert!(read(&office(), &notice).text.contains("To renew it, get in touch with the office."));
    notice.office_contact = Some("Permit desk\r\n\r\n12 Main Street\r\n555-0142\r\n");
    let mail = read(&office(), &notice);
    assert!(mail.text.contains("THE OFFICE\n  Permit desk\n  12 Main Street\n  555-0142\n\n"), "{}", mail.text);
    assert!(mail.html.contains("Permit desk<br>"));
    notice.office_contact = Some(" \n ");
    let mail = read(&office(), &notice);
    assert!(mail.text.contains("To renew it, reply to this message."));
    assert!(!mail.text.contains("THE OFFICE\n"));

    // Nobody said that replies are read, so no message asks for one.
    let silent = Office::parse("Maple County Permits <permits@maple.example>", None, None).unwrap();
    let words = unwrapped(&read(&silent, &notice).text);
    assert!(words.contains("get in touch with Maple County Permits."));
    assert!(words.contains("please tell Maple County Permits."));
    assert!(!words.contains("reply"));
    let nameless = Office::parse("permits@maple.example", None, None).unwrap();
    assert!(unwrapped(&read(&nameless, &notice).text).contains("please tell the office that issued the permit."));
}

#[test]
fn a_contact_is_told_why_and_a_courtesy_is_not_called_official() {
    let mut to = recipient("carl@builders.example", "Carl");
    to.role = "site manager".to_owned();
    let key = key("expires-30d");
    let mut notice = notice(&key, &to, 27);
    let words = unwrapped(&read(&office(), &notice).text);
    assert!(words.contains("Permit 2026-0142 (Food premises) expires on"));
    assert!(words.contains("as a contact for this permit (site manager)."));
    assert!(words.contains("an official notice"));
    notice.class = NoticeClass::Courtesy;
    assert!(!read(&office(), &notice).text.contains("official notice"));
}

#[test]
fn plain_text_is_readable_as_it_stands_and_wrapped() {
    let to = recipient("ann@bakery.example", "Ann Baker");
    let key = key("expires-30d");
    let mut notice = notice(&key, &to, 27);
    let long = "very long words about a place ".repeat(9);
    notice.site_address = &long;
    let mail = read(&office(), &notice);
    for line in mail.text.lines() {
        assert!(line.chars().count() <= 76, "{line:?}");
    }
    assert!(!mail.text.contains("\n\n\n"));
    let bytes = compose(&office(), &notice, now()).unwrap().bytes;
    let raw = String::from_utf8(bytes).unwrap();
    assert!(raw.contains("Your permit 2026-0142 (Food premises) expires on Friday, 12 March 2027, in"));
}

#[test]
fn html_needs_nothing_from_outside_and_can_be_read_by_everyone() {
    let to = recipient("ann@bakery.example", "Ann Baker");
    let key = key("expires-7d");
    let html = read(&office(), &notice(&key, &to, 7)).html;
    assert!(html.starts_with("<!DOCTYPE html>"));
    assert!(html.contains("<html lang=\"en\""));
    assert!(html.contains("<title>Permit 2026-0142 expires on 12 March 2027 (7 days left)</title>"));
    assert_eq!(html.matches("<h1").count(), 1);
    assert!(html.matches("role=\"presentation\"").count() >= 2);
    for forbidden in ["<img", "<script", "src=", "@import", "url(", "<link", "http-equiv"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    assert_eq!(html.matches("href=\"https://permits.maple.example/renew?permit=2026-0142&#38;step=1\"").count(), 1);
}

#[test]
fn headers_are_those_of_the_contract() {
    let to = recipient("ann@bakery.example", "Ann O'Baker, Jr.");
    let key = key("expires-30d");
    let mut office = office();
    let composed = compose(&office, &notice(&key, &to, 27), now()).unwrap();
    assert_eq!(<[u8; 32]>::from(Sha256::digest(&composed.bytes)), composed.sha256);
    let message = mail_parser::MessageParser::default().parse(&composed.bytes).unwrap();
    let header = |name: &str| message.header_raw(name).map(|value| value.trim().to_owned()).unwrap_or_default();
    assert_eq!(header("From"), "\"Maple County Permits\" <permits@maple.example>");
    assert_eq!(header("To"), "\"Ann O'Baker, Jr.\" <ann@bakery.example>");
    assert_eq!(header("Reply-To"), "desk@maple.example");
    assert_eq!(header("Date"), "Sat, 13 Feb 2027 06:00:09 +0000");
    assert_eq!(header("Message-ID"), composed.message_id);
    assert_eq!(header("Auto-Submitted"), "auto-generated");
    assert_eq!(header("X-Notice-Key"), key.to_string());
    assert_eq!(header("Content-Language"), "en");
    assert_eq!(header("MIME-Version"), "1.0");
    assert!(header("Content-Type").starts_with("multipart/alternative;"));
    let part = |i: usize| message.parts[i].headers.iter().find(|h| h.name() == "Content-Type").unwrap();
    let kind = |i: usize| part(i).value().as_content_type().unwrap().subtype().unwrap().to_owned();
    assert_eq!((kind(1), kind(2)), ("plain".to_owned(), "html".to_owned()));
    assert_eq!(composed.envelope.sender.to_string(), "permits@maple.example");
    assert_eq!(composed.envelope.recipient.to_string(), "ann@bakery.example");
    assert!(!composed.envelope.needs_smtputf8());

    office.subject_tag = Some("trial".to_owned());
    assert!(read(&office, &notice(&key, &to, 27)).subject.starts_with("[trial] Permit 2026-0142 expires"));
}

#[test]
fn the_message_id_is_equal_at_every_attempt_and_names_one_copy() {
    let ann = recipient("ann@bakery.example", "Ann");
    let key = key("expires-30d");
    let first = compose(&office(), &notice(&key, &ann, 27), now()).unwrap();
    let mut later = notice(&key, &ann, 26);
    later.holder_name = "Corner Bakery and Cafe Ltd";
    let again = compose(&office(), &later, now() + chrono::TimeDelta::days(1)).unwrap();
    assert_eq!(first.message_id, again.message_id);
    assert_ne!(first.bytes, again.bytes);
    let same = compose(&office(), &notice(&key, &ann, 27), now()).unwrap();
    assert_eq!(first.bytes, same.bytes, "equal input gives equal bytes");

    let shouted = "Ann@Bakery.EXAMPLE".parse().unwrap();
    assert_eq!(message_id(&key, &shouted, 1, "maple.example"), first.message_id);
    assert_ne!(message_id(&key, &ann.address, 2, "maple.example"), first.message_id);
    assert_ne!(message_id(&key, &"bob@bakery.example".parse().unwrap(), 1, "maple.example"), first.message_id);
    assert_ne!(message_id(&super::key("expires-14d"), &ann.address, 1, "maple.example"), first.message_id);
    assert!(first.message_id.ends_with("@maple.example>"));

    // From has changed since the delivery got its Message-ID.
    let moved = Office::parse("permits@county.example", None, None).unwrap();
    let mut known = notice(&key, &ann, 27);
    known.message_id = Some(&first.message_id);
    assert_eq!(compose(&moved, &known, now()).unwrap().message_id, first.message_id);
    known.message_id = Some("<a\r\nBcc: all@x.example@y>");
    assert!(compose(&moved, &known, now()).is_err());
}

#[test]
fn the_office_is_read_from_its_variables() {
    let fault = |from, reply, bounce| Office::parse(from, reply, bounce).unwrap_err().to_string();
    assert!(fault("nobody", None, None).starts_with("MAIL_FROM: "));
    assert!(fault("Permits <permits@maple.example", None, None).starts_with("MAIL_FROM: write it as"));
    assert!(fault("jos\u{e9}@maple.example", None, None).starts_with("MAIL_FROM: "));
    assert!(fault("a@maple.example", Some("x"), None).starts_with("MAIL_REPLY_TO: "));
    assert!(fault("a@maple.example", None, Some("<>")).starts_with("BOUNCE_ADDRESS: "));
    let office = Office::parse("\"Permits, \\\"Maple\\\"\" <a@maple.example>", None, Some("b@bounce.example")).unwrap();
    assert_eq!(office.from.name(), Some("Permits, \"Maple\""));
    assert_eq!(office.bounce_address.to_string(), "b@bounce.example");
    assert_eq!(office.domain(), "maple.example");
    let nameless: Mailbox = "<a@maple.example>".parse().unwrap();
    assert_eq!(nameless.name(), None);
}
