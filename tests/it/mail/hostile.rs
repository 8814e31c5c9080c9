//! Names, numbers and links made to break things.

use mail_parser::MessageParser;
use permit_notifier::mail::{Mailbox, Office, compose};
use proptest::prelude::*;

use super::{assert_fit_for_any_server, key, notice, now, office, read, recipient};

/// Any text, and texts made of what is dangerous.
fn nasty() -> impl Strategy<Value = String> {
    let any = prop::collection::vec(any::<char>(), 0..500).prop_map(String::from_iter);
    let pieces = prop::sample::select(vec![
        "\r\n",
        "\n",
        "\r",
        "\0",
        "\u{1}",
        "\u{85}",
        "\u{202e}",
        "\u{2066}",
        "\u{2028}",
        "\u{feff}",
        "\u{200b}",
        " ",
        "\t",
        "Bcc: x@evil.example",
        "=?utf-8?q?Bcc?=",
        "=?",
        "?=",
        "<",
        ">",
        "\"",
        "\\",
        ",",
        ";",
        ":",
        "(",
        ".",
        "@",
        "--",
        "é",
        "名",
        "👩‍👩‍👧",
        "a\u{301}",
        "\r\n\r\n",
        "\r\n.\r\n",
        "{{ v }}",
        "{% if %}",
        "<script>",
        "&amp;",
        "From ",
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    ]);
    let made = prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat());
    prop_oneof![any, made]
}

fn header_names(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let head = text.split("\r\n\r\n").next().unwrap();
    let unfolded = head.replace("\r\n ", " ");
    unfolded.split("\r\n").map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_a_message(
        name in nasty(), number in nasty(), kind in nasty(), holder in nasty(), site in nasty(), description in nasty(),
        link in nasty(), contact in nasty(), office_name in nasty(), role in nasty(), days_left in -400_i64..4000,
    ) {
        let mut to = recipient("ann@bakery.example", &name);
        to.role = role;
        let key = key("expires-14d");
        let url = format!("https://maple.example/{link}");
        let mut notice = notice(&key, &to, days_left);
        (notice.permit_number, notice.permit_type, notice.holder_name) = (&number, &kind, &holder);
        (notice.site_address, notice.description) = (&site, &description);
        (notice.renewal_url, notice.office_contact) = (Some(url.as_str()), Some(contact.as_str()));
        let mut office = office();
        office.from = Mailbox::new(&office_name, "permits@maple.example".parse().unwrap());
        office.subject_tag = Some(office_name);

        let composed = compose(&office, &notice, now()).unwrap();
        assert_fit_for_any_server(&composed);
        let expected = ["Date", "From", "To", "Reply-To", "Subject", "Message-ID", "Auto-Submitted", "X-Notice-Key",
            "Content-Language", "MIME-Version", "Content-Type"];
        let mut names = header_names(&composed.bytes);
        names.sort_unstable();
        let mut sorted = expected.map(str::to_owned);
        sorted.sort_unstable();
        prop_assert_eq!(names, sorted);

        let message = MessageParser::default().parse(&composed.bytes).unwrap();
        prop_assert_eq!(message.to().unwrap().first().unwrap().address(), Some("ann@bakery.example"));
        prop_assert_eq!(message.from().unwrap().first().unwrap().address(), Some("permits@maple.example"));
        prop_assert!(message.bcc().is_none());
        let shown = [message.subject().unwrap(), message.to().unwrap().first().unwrap().name().unwrap_or("x")];
        for text in shown {
            prop_assert!(!text.chars().any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}')), "{:?}", text);
        }
        prop_assert_eq!((message.text_body_count(), message.html_body_count()), (1, 1));
        let html = message.body_html(0).unwrap();
        prop_assert!(html.trim_end().ends_with("</html>"));
        prop_assert!(!html.contains("<script"));
        let text = message.body_text(0).unwrap();
        prop_assert!(text.contains("WHY YOU GET THIS"));
        for line in text.lines() {
            let words = line.split_whitespace().count();
            prop_assert!(line.chars().count() <= 76 || words <= 1, "{:?}", line);
        }
    }
}

#[test]
fn a_display_name_comes_out_as_it_went_in() {
    let key = key("expires-14d");
    let long = "Éléonore 名前 ".repeat(7);
    for name in
        ["J.R. Smith", "Ann \"Annie\" O\\Baker", "José", "Ltd., Co <x@y.example>", "=?utf-8?q?Mayor?=", long.trim()]
    {
        let to = recipient("ann@bakery.example", name);
        let bytes = compose(&office(), &notice(&key, &to, 14), now()).unwrap().bytes;
        let message = MessageParser::default().parse(&bytes).unwrap();
        assert_eq!(message.to().unwrap().first().unwrap().name(), Some(name));
    }
}

#[test]
fn markup_in_a_name_is_shown_and_not_obeyed() {
    let to = recipient("ann@bakery.example", "<b>Ann</b>");
    let key = key("expires-14d");
    let mut notice = notice(&key, &to, 14);
    notice.holder_name = "<script>alert(1)</script>";
    notice.permit_number = "\"><img src=x>";
    notice.permit_type = "A & B";
    let mail = read(&office(), &notice);
    assert!(!mail.html.contains("<script") && !mail.html.contains("<img") && !mail.html.contains("<b>"));
    assert!(mail.html.contains("&#60;script&#62;alert(1)&#60;/script&#62;"));
    assert!(mail.html.contains("(A &#38; B)"));
    assert!(mail.text.contains("<script>alert(1)</script>"));
}

#[test]
fn only_web_addresses_become_links() {
    let to = recipient("ann@bakery.example", "Ann");
    let key = key("expires-14d");
    let long = format!("https://maple.example/{}", "a".repeat(1000));
    for refused in [
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://maple.example/",
        "//maple.example/x",
        "not a link",
        "https://office:secret@maple.example/",
        "https:maple.example",
        "https://maple.example\\@evil.example",
        "https://maple.example/\u{202e}x",
        "",
        &long,
    ] {
        let mut notice = notice(&key, &to, 14);
        notice.renewal_url = Some(refused);
        let mail = read(&office(), &notice);
        assert!(!mail.html.contains("<a "), "{refused}");
        assert!(mail.text.contains("To renew it, get in touch with the office."), "{refused}");
    }
    let mut notice = notice(&key, &to, 14);
    notice.renewal_url = Some(" HTTPS://Maple.example/a b\"'<>?q=é ");
    notice.office_contact = Some("desk@maple.example");
    let mail = read(&office(), &notice);
    assert!(mail.text.contains("https://maple.example/a%20b%22'%3C%3E?q=%C3%A9"));
    assert!(mail.html.contains("<a href=\"mailto:desk@maple.example\">desk@maple.example</a>"));
}

#[test]
fn an_address_that_ascii_cannot_write_keeps_the_message_7_bit() {
    let to = recipient("josé@bücher.example", "José");
    let key = key("expires-14d");
    let composed = compose(&office(), &notice(&key, &to, 14), now()).unwrap();
    assert!(composed.envelope.needs_smtputf8());
    assert_fit_for_any_server(&composed);
    let text = String::from_utf8(composed.bytes).unwrap();
    assert!(text.contains("To: =?utf-8?q?Jos=C3=A9_jos=C3=A9=40xn--bcher-kva=2Eexample?= :;\r\n"), "{text}");
}

#[test]
fn dates_that_no_header_can_write_are_errors() {
    let to = recipient("ann@bakery.example", "Ann");
    let key = key("expires-14d");
    for instant in
        [chrono::DateTime::UNIX_EPOCH - chrono::TimeDelta::seconds(1), chrono::DateTime::<chrono::Utc>::MAX_UTC]
    {
        assert!(compose(&office(), &notice(&key, &to, 14), instant).is_err());
    }
    assert!(Office::parse("a@maple.example\r\nBcc: b@maple.example", None, None).is_err());
}
