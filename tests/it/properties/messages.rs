//! Composed messages: whatever is accepted as an address, a sender or a text comes out of the message as it went in,
//! as a stranger's program reads it, and adds nothing else to it.

use lettre::Address;
use mail_parser::{Address as Read, HeaderName, Message, MessageParser};
use permit_notifier::{
    domain::recipient::{EmailAddress, Recipient},
    mail::{NoticeMail, Office, compose},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use serde::{Deserialize, Serialize};

use super::check;
use crate::mail::{assert_fit_for_any_server, key, notice, now, recipient};

/// A text that could be an address, alone.
fn address() -> BoxedStrategy<String> {
    let piece = prop::sample::select(vec![
        "a",
        "Z9",
        ".",
        "-",
        "+",
        "_",
        "!",
        "#",
        "$",
        "%",
        "&",
        "'",
        "*",
        "/",
        "=",
        "?",
        "^",
        "`",
        "{",
        "|",
        "}",
        "~",
        "\"",
        "(",
        ")",
        "<",
        ">",
        ",",
        ";",
        ":",
        "\\",
        " ",
        "é",
        "名",
        "ß",
        "İ",
        "a\u{301}",
        "\u{202e}",
        "\u{200b}",
        "\u{200d}",
        "\u{feff}",
        "\u{2066}",
        "\u{e000}",
        "\u{fffe}",
        "\r\n",
        "\0",
        "=?utf-8?q?x?=",
        "@",
        "👩",
    ]);
    let local = prop_oneof![
        4 => "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]{1,12}(\\.[a-z0-9+-]{1,6})?",
        3 => prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat()),
        1 => "[a-z]{60,66}",
    ];
    let label = prop_oneof![
        4 => "[a-zA-Z0-9]([a-z0-9-]{0,8}[a-z0-9])?",
        2 => prop::sample::select(vec!["bücher", "名前", "xn--bcher-kva", "xn--", "ß", "İstanbul", "ａｂ", "a_b", "-", "١٢", "\u{200d}", "\u{2044}", "[1", "1]", ""])
            .prop_map(str::to_owned),
        1 => "[a-z]{60,65}",
    ];
    let labels = prop::collection::vec(label, 1..5).prop_map(|labels| labels.join("."));
    let domain = prop_oneof![3 => "[a-zA-Z0-9]{1,10}\\.(example|org)", 1 => labels];
    let made = (local, domain).prop_map(|(local, domain)| format!("{local}@{domain}"));
    prop_oneof![9 => made, 1 => any::<String>()].boxed()
}

/// Text of one field.
fn text() -> BoxedStrategy<String> {
    let piece = prop::sample::select(vec![
        "Ann",
        "O'Hara",
        "J.R.",
        "Ltd., Co",
        " ",
        "  ",
        "\t",
        "\r\n",
        "\n",
        "\r",
        "\0",
        "\u{1b}[2J",
        "\u{85}",
        "\u{2028}",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "\u{200d}",
        "\u{feff}",
        "é",
        "a\u{301}",
        "名前",
        "👩‍👩‍👧",
        "=?utf-8?q?x?=",
        "=?",
        "?=",
        "=",
        "_",
        "\"",
        "\\",
        "\\\"",
        "(",
        ")",
        "<",
        ">",
        "<b>",
        "&amp;",
        "&#60;",
        "'",
        ",",
        ";",
        ":;",
        "@",
        ".",
        "..",
        "--",
        "From ",
        "Bcc: x@y.example",
        "%0a",
        "{{ v }}",
        "http://x.example/",
        "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    ]);
    let made = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    prop_oneof![6 => made, 1 => prop::collection::vec(any::<char>(), 0..400).prop_map(String::from_iter)].boxed()
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Mail {
    address: String,
    name: String,
    role: String,
    from: String,
    reply_to: Option<String>,
    notice_type: String,
    number: String,
    kind: String,
    holder: String,
    site: String,
    description: String,
}

fn mail() -> impl Strategy<Value = Mail> {
    let mailbox = || {
        let named = (text(), prop::sample::select(vec!["", "\""]), address());
        let named = named.prop_map(|(name, quote, address)| format!("{quote}{name}{quote} <{address}>"));
        prop_oneof![2 => named, 1 => address(), 3 => text().prop_map(|name| format!("{name} <permits@maple.example>"))]
    };
    let types = prop::sample::select(vec!["expires-30d", "expires-today", "expired-1d", "renewed", "made-up"]);
    let fields = (text(), text(), text(), text(), text(), text(), text());
    (
        prop_oneof![1 => address(), 1 => "[a-z+.]{0,9}[a-z]@[a-z]{2,9}\\.example"],
        mailbox(),
        prop::option::of(mailbox()),
        types,
        fields,
    )
        .prop_map(
            |(address, from, reply_to, notice_type, (name, role, number, kind, holder, site, description))| Mail {
                address,
                name,
                role,
                from,
                reply_to,
                notice_type: notice_type.to_owned(),
                number,
                kind,
                holder,
                site,
                description,
            },
        )
}

/// A text as people may see it: one line, nothing in it that hides or reorders, at most `max` characters.
fn shown(text: &str, max: usize) -> String {
    let line = text.split_whitespace().map(visible).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max { line } else { line.chars().take(max - 1).chain(['…']).collect() }
}

fn visible(word: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(u32::from(c), 0xad | 0x61c | 0x180e | 0x200b | 0x200e..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f
                | 0xfdd0..=0xfdef | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe0fff)
            || u32::from(c) % 0x10000 >= 0xfffe
    };
    word.chars().filter(|c| !hidden(*c)).collect()
}

impl Mail {
    fn notice<'a>(&'a self, base: &NoticeMail<'a>) -> NoticeMail<'a> {
        NoticeMail {
            permit_number: &self.number,
            permit_type: &self.kind,
            holder_name: &self.holder,
            site_address: &self.site,
            description: &self.description,
            ..base.clone()
        }
    }

    /// The same with harmless texts where there are some.
    fn harmless(&self) -> Self {
        let plain = |text: &String| if shown(text, 100).is_empty() { String::new() } else { "x".to_owned() };
        let [name, role, number, kind, holder, site, description] =
            [&self.name, &self.role, &self.number, &self.kind, &self.holder, &self.site, &self.description].map(plain);
        Self { name, role, number, kind, holder, site, description, ..self.clone() }
    }

    fn to(&self, address: EmailAddress) -> Recipient {
        Recipient { address, role: self.role.clone(), ..recipient("ann@x.example", &self.name) }
    }
}

/// The tags of a page in order, without what their attributes say.
fn tags(html: &str) -> Vec<String> {
    html.split('<').skip(1).map(|tag| tag.split([' ', '>']).next().unwrap().to_owned()).collect()
}

/// The words of a page as a browser shows them.
fn words(html: &str) -> String {
    let bare = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text)).collect::<Vec<_>>();
    let mut text = bare.join("");
    for (entity, character) in [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")] {
        text = text.replace(entity, character);
    }
    text
}

fn header_count(message: &Message<'_>, name: &HeaderName<'_>) -> usize {
    message.headers().iter().filter(|header| header.name == *name).count()
}

/// The one mailbox of a header: its name, and its address as it was accepted.
fn is_mailbox(read: Option<&Read<'_>>, name: Option<&str>, address: &EmailAddress) -> TestCaseResult {
    let read = read.ok_or_else(|| TestCaseError::fail("no mailbox"))?;
    let mailboxes: Vec<_> = read.iter().collect();
    prop_assert_eq!(mailboxes.len(), 1);
    prop_assert_eq!(mailboxes[0].name(), name);
    let written = address.to_string();
    prop_assert_eq!(mailboxes[0].address(), Some(written.as_str()));
    Ok(())
}

fn holds(mail: &Mail) -> TestCaseResult {
    let parsed = (mail.address.parse::<EmailAddress>(), Office::parse(&mail.from, mail.reply_to.as_deref(), None));
    let (address, office) = match parsed {
        (Ok(address), Ok(office)) => (address, office),
        (Err(error), _) => {
            prop_assert!(error.to_string().len() > 10);
            return Ok(());
        }
        (_, Err(error)) => {
            prop_assert!(error.fault.len() > 10);
            return Ok(());
        }
    };
    let written = address.to_string();
    prop_assert_eq!(written.parse::<EmailAddress>(), Ok(address.clone()), "it reads back as itself");
    prop_assert!(Address::new(address.local(), address.domain()).is_ok(), "no command can name {}", written);
    prop_assert_eq!(&shown(&written, 1000), &written, "an address hides something");

    let (key, to) = (key(&mail.notice_type), mail.to(address.clone()));
    let composed = compose(&office, &mail.notice(&notice(&key, &to, 14)), now())
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    assert_fit_for_any_server(&composed);
    let again = compose(&office, &mail.notice(&notice(&key, &to, 14)), now()).unwrap();
    prop_assert!(composed == again, "equal input makes equal bytes");
    let message = MessageParser::default().parse(&composed.bytes).unwrap();

    let expected = 10 + usize::from(office.reply_to.is_some());
    prop_assert_eq!(message.headers().len(), expected, "{:?}", message.headers());
    for name in [HeaderName::From, HeaderName::To, HeaderName::Subject, HeaderName::MessageId, HeaderName::Date] {
        prop_assert_eq!(header_count(&message, &name), 1);
    }
    is_mailbox(message.from(), office.from.name(), office.from.address())?;
    if let Some(reply_to) = &office.reply_to {
        is_mailbox(message.reply_to(), reply_to.name(), reply_to.address())?;
    }
    let name = Some(shown(&mail.name, 100)).filter(|name| !name.is_empty());
    if address.needs_smtputf8() {
        let Some(Read::Group(groups)) = message.to() else { return Err(TestCaseError::fail("no group")) };
        let shown = [name.as_deref().unwrap_or_default(), &written].join(" ");
        prop_assert_eq!(groups.len(), 1);
        prop_assert_eq!(groups[0].name.as_deref(), Some(shown.trim()));
        prop_assert!(groups[0].addresses.is_empty());
    } else {
        is_mailbox(message.to(), name.as_deref(), &address)?;
    }
    let subject = message.subject().unwrap();
    prop_assert!(
        subject.starts_with(shown(&format!("Permit {}", shown(&mail.number, 100)), 250).as_str()),
        "{:?}",
        subject
    );

    // What is wrapped breaks at blanks alone.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (text, html) = (flat(&message.body_text(0).unwrap()), message.body_html(0).unwrap());
    let shown_html = flat(&words(&html));
    let number = shown(&mail.number, 100);
    let facts = [(&mail.kind, 120), (&mail.holder, 200), (&mail.site, 300), (&mail.description, 300)];
    for fact in facts.map(|(fact, max)| shown(fact, max)).into_iter().chain([number, shown(&mail.name, 200)]) {
        prop_assert!(text.contains(&fact), "the text lacks {:?}", fact);
        prop_assert!(shown_html.contains(&fact), "the page lacks {:?}: {}", fact, shown_html);
    }
    let harmless = mail.harmless();
    let to = harmless.to(address);
    let plain = compose(&office, &harmless.notice(&notice(&key, &to, 14)), now()).unwrap().bytes;
    let plain = MessageParser::default().parse(&plain).unwrap();
    prop_assert_eq!(tags(&html), tags(&plain.body_html(0).unwrap()));
    Ok(())
}

#[test]
fn what_is_accepted_comes_out_of_the_message_as_it_went_in() {
    check("messages", 500, mail(), holds);
}
