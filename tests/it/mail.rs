//! Composed mail, read back as a stranger's program reads it, and mail kept as files.

mod file;
mod hostile;
mod wording;

use chrono::{DateTime, NaiveDate, Utc};
use permit_notifier::{
    domain::{
        calendar::plus_days,
        notice::{NoticeClass, NoticeKey},
        recipient::Recipient,
    },
    mail::{Composed, NoticeMail, Office, compose},
};

/// The permits of these tests are valid up to and including this day, a Friday.
pub const EXPIRES_ON: NaiveDate = NaiveDate::from_ymd_opt(2027, 3, 12).unwrap();

pub fn office() -> Office {
    Office::parse("Maple County Permits <permits@maple.example>", Some("desk@maple.example"), None).unwrap()
}

pub fn recipient(address: &str, name: &str) -> Recipient {
    Recipient {
        address: address.parse().unwrap(),
        name: name.to_owned(),
        role: "holder".to_owned(),
        language: "en".to_owned(),
    }
}

pub fn key(notice_type: &str) -> NoticeKey {
    let permit_id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    NoticeKey { permit_id, notice_type: notice_type.parse().unwrap(), expires_on: EXPIRES_ON }
}

pub fn now() -> DateTime<Utc> {
    "2027-02-13T06:00:09.5Z".parse().unwrap()
}

/// A notice with everything filled in, sent when `days_left` days were left.
pub fn notice<'a>(key: &'a NoticeKey, recipient: &'a Recipient, days_left: i64) -> NoticeMail<'a> {
    NoticeMail {
        key,
        class: NoticeClass::Statutory,
        today: plus_days(EXPIRES_ON, -days_left),
        due_on: NaiveDate::from_ymd_opt(2027, 2, 10).unwrap(),
        permit_number: "2026-0142",
        permit_type: "Food premises",
        holder_name: "Corner Bakery Ltd",
        site_address: "12 Main Street, Springfield",
        description: "Bakery with seating for 40 guests",
        renewal_url: Some("https://permits.maple.example/renew?permit=2026-0142&step=1"),
        office_contact: Some("Permit desk, 555-0142, Monday to Friday"),
        grace_days: 0,
        recipient,
        copy: 1,
        message_id: None,
    }
}

/// A composed message as mail-parser reads it.
pub struct Read {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Composes and reads back, and checks what holds for every message.
pub fn read(office: &Office, notice: &NoticeMail<'_>) -> Read {
    let composed = compose(office, notice, now()).unwrap();
    assert_fit_for_any_server(&composed);
    let message = mail_parser::MessageParser::default().parse(&composed.bytes).unwrap();
    assert_eq!(message.text_body_count(), 1);
    assert_eq!(message.html_body_count(), 1);
    Read {
        subject: message.subject().unwrap().to_owned(),
        text: message.body_text(0).unwrap().replace("\r\n", "\n"),
        html: message.body_html(0).unwrap().into_owned(),
    }
}

pub fn assert_fit_for_any_server(composed: &Composed) {
    let text = std::str::from_utf8(&composed.bytes).unwrap();
    assert!(text.is_ascii());
    assert!(!text.contains('\0'));
    assert!(text.ends_with("\r\n") && !text.ends_with("\r\n\r\n"));
    for line in text.strip_suffix("\r\n").unwrap().split("\r\n") {
        assert!(!line.contains(['\r', '\n']), "a bare line end in {line:?}");
        assert!(line.len() <= 998, "a line of {} bytes", line.len());
    }
}
