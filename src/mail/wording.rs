//! What a notice says: the facts, cleaned, and the template of each notice type.
//!
//! The words are in `templates/email`, the same for text and HTML. Here is only what words are chosen by. Every
//! template is right on any day, because an office may move a step and a send may be early or late: they speak of
//! the days really left, never of the days that gave the step its name.

use askama::Template;
use chrono::NaiveDate;

use super::{
    office::Office,
    text::{one_line, wrap},
};
use crate::domain::{
    calendar::{days_between, plus_days},
    notice::{NoticeClass, NoticeKey},
    recipient::{EmailAddress, HOLDER, Recipient},
    text::is_unfit,
};

/// The language of the templates, as a BCP 47 tag.
pub const LANGUAGE: &str = "en";

/// Longest renewal link, in bytes as written; a longer one is not shown.
pub const URL_MAX: usize = 1000;
/// Most lines of an office's contact that are shown.
const CONTACT_LINES_MAX: usize = 6;

/// All that a notice's mail shows. Texts may hold anything: they are cleaned and shortened here. Empty texts are
/// left out.
#[derive(Debug, Clone)]
pub struct NoticeMail<'a> {
    /// Which notice; its `expires_on` is the last valid day.
    pub key: &'a NoticeKey,
    /// Whether a holder may decline it.
    pub class: NoticeClass,
    /// The office's day of the send.
    pub today: NaiveDate,
    /// The day on which the step fell due; for `renewed` the day of the renewal.
    pub due_on: NaiveDate,
    /// The permit's number.
    pub permit_number: &'a str,
    /// What people call the permit type.
    pub permit_type: &'a str,
    /// Who holds the permit.
    pub holder_name: &'a str,
    /// What the permit is for: where,
    pub site_address: &'a str,
    /// and what.
    pub description: &'a str,
    /// Where to renew; shown only if it is an http or https address of at most 1,000 bytes without a password.
    pub renewal_url: Option<&'a str>,
    /// How to reach the office, in its own words and lines; at most six lines are shown.
    pub office_contact: Option<&'a str>,
    /// Days after expiry during which the permit type lets a renewal come late; 0 is none.
    pub grace_days: i32,
    /// Who gets this copy.
    pub recipient: &'a Recipient,
    /// Which copy to this address: 1, and on.
    pub copy: u32,
    /// The delivery's Message-ID, if it has one already. It stays then, even if From has changed since.
    pub message_id: Option<&'a str>,
}

/// What the templates see: clean lines and numbers.
struct View {
    permit_number: String,
    permit_type: String,
    holder_name: String,
    site_address: String,
    description: String,
    /// The recipient's name; may be empty.
    name: String,
    /// The recipient's role, empty for the holder.
    role: String,
    expires_long: String,
    expires_short: String,
    expires_iso: String,
    not_valid_from: String,
    renewed_on: String,
    days_left: i64,
    grace_days: i64,
    grace_left: i64,
    grace_ends: String,
    renewal_url: Option<String>,
    /// Lines.
    contact: Vec<String>,
    /// Whether somebody reads replies.
    replies_read: bool,
    /// The office's name; may be empty.
    office: String,
    statutory: bool,
    renewed: bool,
    language: &'static str,
}

impl View {
    fn new(office: &Office, notice: &NoticeMail<'_>) -> Self {
        let expires_on = notice.key.expires_on;
        let days_left = days_between(notice.today, expires_on);
        let grace_days = i64::from(notice.grace_days.max(0));
        let role = if notice.recipient.role == HOLDER { "" } else { &notice.recipient.role };
        Self {
            permit_number: one_line(notice.permit_number, 100),
            permit_type: one_line(notice.permit_type, 120),
            holder_name: one_line(notice.holder_name, 200),
            site_address: one_line(notice.site_address, 300),
            description: one_line(notice.description, 300),
            name: one_line(&notice.recipient.name, 200),
            role: one_line(role, 60),
            expires_long: long_date(expires_on),
            expires_short: expires_on.format("%-d %B %Y").to_string(),
            expires_iso: expires_on.format("%Y-%m-%d").to_string(),
            not_valid_from: long_date(plus_days(expires_on, 1)),
            renewed_on: long_date(notice.due_on),
            days_left,
            grace_days,
            grace_left: days_left + grace_days,
            grace_ends: long_date(plus_days(expires_on, grace_days)),
            renewal_url: notice.renewal_url.and_then(shown_link),
            contact: lines(notice.office_contact.unwrap_or_default()),
            replies_read: office.reply_to.is_some(),
            office: office.from.name().unwrap_or_default().to_owned(),
            statutory: notice.class == NoticeClass::Statutory,
            renewed: notice.key.notice_type.is_renewed(),
            language: LANGUAGE,
        }
    }

    /// The contact, if it is nothing but an email address.
    fn contact_address(&self) -> Option<EmailAddress> {
        let [only] = self.contact.as_slice() else { return None };
        only.parse().ok().filter(|address: &EmailAddress| !address.needs_smtputf8())
    }
}

/// The lines of `text` that hold something, each clean.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| one_line(line, 200)).filter(|line| !line.is_empty()).take(CONTACT_LINES_MAX).collect()
}

/// With its weekday: `Friday, 12 March 2027`.
fn long_date(date: NaiveDate) -> String {
    date.format("%A, %-d %B %Y").to_string()
}

/// The link as it is written, if a person may be asked to follow it: one that leads where it seems to.
pub fn shown_link(text: &str) -> Option<String> {
    let text = text.trim();
    if !names_its_host(text) || text.chars().any(is_unfit) {
        return None;
    }
    let url = url::Url::parse(text).ok()?;
    let web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
    let written = String::from(url);
    (web && written.len() <= URL_MAX && written.bytes().all(|b| b.is_ascii_graphic())).then_some(written)
}

/// Whether scheme and host stand there in so many words. Browsers and we also read `https:host`, `https:///host` and a
/// backslash for a slash, and other programs read them otherwise.
fn names_its_host(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !host.is_empty() && !text.contains('\\') && host.chars().all(|c| c.is_alphanumeric() || "-._:[]".contains(c))
}

/// A message in words, before it is put into parts.
pub(super) struct Words {
    /// One line.
    pub(super) subject: String,
    /// Not wrapped yet.
    pub(super) text: String,
    pub(super) html: String,
}

/// The words of `notice`.
/// What a message says, without being one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Its subject.
    pub subject: String,
    /// Its plain text.
    pub text: String,
    /// Its HTML.
    pub html: String,
}

/// What the mail of a notice says.
pub fn preview(office: &Office, notice: &NoticeMail<'_>) -> askama::Result<Preview> {
    let Words { subject, text, html, .. } = words(office, notice)?;
    Ok(Preview { subject, text: wrap(&text), html })
}

pub(super) fn words(office: &Office, notice: &NoticeMail<'_>) -> askama::Result<Words> {
    render(notice.key.notice_type.as_str(), &View::new(office, notice), office.subject_tag.as_deref())
}

fn tagged(subject: &str, tag: Option<&str>) -> String {
    let tag = one_line(tag.unwrap_or_default(), 30);
    let subject = one_line(subject, 250);
    if tag.is_empty() { subject } else { format!("[{tag}] {subject}") }
}

/// A module for each notice type, and `render`, which picks one. A notice type that an office made up itself has
/// the general wording.
macro_rules! notices {
    ($($name:pat => $module:ident: $subject:literal, $text:literal, $html:literal;)+) => {
        $(mod $module {
            #[derive(askama::Template)]
            #[template(path = $subject)]
            pub(super) struct Subject<'a> {
                pub(super) v: &'a super::View,
            }

            #[derive(askama::Template)]
            #[template(path = $text)]
            pub(super) struct Text<'a> {
                pub(super) v: &'a super::View,
            }

            #[derive(askama::Template)]
            #[template(path = $html)]
            pub(super) struct Html<'a> {
                pub(super) v: &'a super::View,
                pub(super) subject: &'a str,
            }
        })+

        fn render(notice_type: &str, v: &View, tag: Option<&str>) -> askama::Result<Words> {
            match notice_type {
                $($name => {
                    let untagged = $module::Subject { v }.render()?;
                    let subject = tagged(&untagged, tag);
                    let text = $module::Text { v }.render()?;
                    let html = $module::Html { v, subject: &untagged }.render()?;
                    Ok(Words { subject, text, html })
                })+
            }
        }
    };
}

#[rustfmt::skip]
notices! {
    "expires-90d" => expires_90d: "email/expires-90d/subject.txt", "email/expires-90d/body.txt", "email/expires-90d/body.html";
    "expires-60d" => expires_60d: "email/expires-60d/subject.txt", "email/expires-60d/body.txt", "email/expires-60d/body.html";
    "expires-30d" => expires_30d: "email/expires-30d/subject.txt", "email/expires-30d/body.txt", "email/expires-30d/body.html";
    "expires-14d" => expires_14d: "email/expires-14d/subject.txt", "email/expires-14d/body.txt", "email/expires-14d/body.html";
    "expires-7d" => expires_7d: "email/expires-7d/subject.txt", "email/expires-7d/body.txt", "email/expires-7d/body.html";
    "expires-1d" => expires_1d: "email/expires-1d/subject.txt", "email/expires-1d/body.txt", "email/expires-1d/body.html";
    "expires-today" => expires_today: "email/expires-today/subject.txt", "email/expires-today/body.txt", "email/expires-today/body.html";
    "expired-1d" => expired_1d: "email/expired-1d/subject.txt", "email/expired-1d/body.txt", "email/expired-1d/body.html";
    "expired-30d" => expired_30d: "email/expired-30d/subject.txt", "email/expired-30d/body.txt", "email/expired-30d/body.html";
    "renewed" => renewed: "email/renewed/subject.txt", "email/renewed/body.txt", "email/renewed/body.html";
    _ => general: "email/general/subject.txt", "email/general/body.txt", "email/general/body.html";
}
