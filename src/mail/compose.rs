//! A notice as the exact bytes that are handed over.

use std::time::SystemTime;

use chrono::{DateTime, Datelike, Utc};
use lettre::{
    Message,
    address::{Address, Envelope as LettreEnvelope},
    message::{
        MultiPart, SinglePart,
        header::{HeaderName, HeaderValue},
    },
};
use sha2::{Digest, Sha256};

use super::{
    Envelope, header,
    office::{Mailbox, Office},
    text,
    wording::{self, LANGUAGE, NoticeMail},
};
use crate::domain::{alarm::OPERATOR_MAIL, notice::NoticeKey, recipient::EmailAddress, text::hex};

/// Longest line of a message, in bytes without its CRLF (RFC 5322, 2.1.1).
const LINE_MAX: usize = 998;

/// A message ready for any transport.
#[derive(Clone, PartialEq, Eq)]
pub struct Composed {
    /// The message: 7-bit, CRLF line ends, no line longer than 998 bytes, ending in exactly one CRLF; before
    /// dot-stuffing and without the final dot.
    pub bytes: Vec<u8>,
    /// SHA-256 of [`bytes`](Self::bytes).
    pub sha256: [u8; 32],
    /// With its angle brackets.
    pub message_id: String,
    /// Sender and recipient.
    pub envelope: Envelope,
}

impl std::fmt::Debug for Composed {
    /// Without content and addresses, which are personal.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Composed").field("message_id", &self.message_id).finish_non_exhaustive()
    }
}

/// Why a notice could not be made a message. All of them will be so again at the next try.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// A template failed.
    #[error("the template failed: {0}")]
    Template(#[from] askama::Error),
    /// An instant that a Date header cannot write.
    #[error("the date {0} cannot be written in a mail header")]
    Date(DateTime<Utc>),
    /// The Message-ID on record is none.
    #[error("the Message-ID on record is not usable: {0:?}")]
    MessageId(String),
    /// The parts do not make a message.
    #[error("the message could not be built: {0}")]
    Build(#[from] lettre::error::Error),
    /// An address that is none.
    #[error("the sender's address cannot be used: {0}")]
    Address(#[from] lettre::address::AddressError),
    /// The result is not what transports are promised.
    #[error("the composed message has {0}")]
    Unfit(&'static str),
}

/// The Message-ID of copy number `copy` of a notice to an address, with its angle brackets. Equal for equal input,
/// and no holder can be guessed from it.
pub fn message_id(key: &NoticeKey, address: &EmailAddress, copy: u32, domain: &str) -> String {
    let digest = Sha256::digest(format!("{key}\n{}\n{copy}", address.key()));
    format!("<{}@{domain}>", hex(&digest[..16]))
}

/// The message of `notice` as `office` sends it, dated `now`. Only the Date header depends on `now`; the days left
/// are counted from `notice.today`.
pub fn compose(office: &Office, notice: &NoticeMail<'_>, now: DateTime<Utc>) -> Result<Composed, ComposeError> {
    let recipient = &notice.recipient.address;
    let message_id = match notice.message_id {
        Some(known) if is_message_id(known) => known.to_owned(),
        Some(known) => return Err(ComposeError::MessageId(known.to_owned())),
        None => message_id(notice.key, recipient, notice.copy, office.domain()),
    };
    let words = wording::words(office, notice)?;
    let to = Mailbox::new(&notice.recipient.name, recipient.clone());

    let mut builder = Message::builder()
        .envelope(lettre_envelope(office)?)
        .date(date(now)?)
        .raw_header(mailbox_header("From", &office.from))
        .raw_header(mailbox_header("To", &to));
    if let Some(reply_to) = &office.reply_to {
        builder = builder.raw_header(mailbox_header("Reply-To", reply_to));
    }
    let message = builder
        .raw_header(plain_header("Subject", &words.subject))
        .raw_header(verbatim_header("Message-ID", &message_id))
        .raw_header(plain_header("Auto-Submitted", "auto-generated"))
        .raw_header(plain_header("X-Notice-Key", &notice.key.to_string()))
        .raw_header(plain_header("Content-Language", LANGUAGE))
        .multipart(parts(text::wrap(&words.text), words.html))?;

    let bytes = ending_in_one_crlf(message.formatted());
    if let Some(fault) = unfit(&bytes) {
        return Err(ComposeError::Unfit(fault));
    }
    let envelope =
        Envelope { sender: office.bounce_address.clone(), recipient: recipient.clone(), size: Some(bytes.len()) };
    Ok(Composed { sha256: Sha256::digest(&bytes).into(), bytes, message_id, envelope })
}

/// A mail to `address` that says that mail can be sent, for whoever sets the service up.
pub fn compose_test(office: &Office, address: &EmailAddress, now: DateTime<Utc>) -> Result<Composed, ComposeError> {
    let subject = "Test of the permit notifier";
    let text = "This is a test of the permit notifier. Nothing has to be done.\n";
    compose_plain(office, address, &format!("test {address} {now}"), (subject, text), now)
}

/// A mail of plain text to whoever runs the service. `seed` makes its Message-ID, so that the same mail sent twice is
/// known as one.
pub fn compose_plain(
    office: &Office,
    address: &EmailAddress,
    seed: &str,
    (subject, text): (&str, &str),
    now: DateTime<Utc>,
) -> Result<Composed, ComposeError> {
    let message_id = format!("<{OPERATOR_MAIL}{}@{}>", hex(&Sha256::digest(seed)[..16]), office.domain());
    let subject = match &office.subject_tag {
        Some(tag) => format!("[{tag}] {subject}"),
        None => subject.to_owned(),
    };
    let message = Message::builder()
        .envelope(lettre_envelope(office)?)
        .date(date(now)?)
        .raw_header(mailbox_header("From", &office.from))
        .raw_header(mailbox_header("To", &Mailbox::new("", address.clone())))
        .raw_header(plain_header("Subject", &subject))
        .raw_header(verbatim_header("Message-ID", &message_id))
        .raw_header(plain_header("Auto-Submitted", "auto-generated"))
        .singlepart(SinglePart::plain(text::wrap(text)))?;
    let bytes = ending_in_one_crlf(message.formatted());
    if let Some(fault) = unfit(&bytes) {
        return Err(ComposeError::Unfit(fault));
    }
    let envelope =
        Envelope { sender: office.bounce_address.clone(), recipient: address.clone(), size: Some(bytes.len()) };
    Ok(Composed { sha256: Sha256::digest(&bytes).into(), bytes, message_id, envelope })
}

/// Text and HTML as alternatives. The boundary is a hash of both, so neither can contain it and equal content
/// gives equal bytes.
fn parts(text: String, html: String) -> MultiPart {
    let digest = Sha256::new().chain_update(&text).chain_update(&html).finalize();
    MultiPart::alternative()
        .boundary(hex(&digest[..20]))
        .singlepart(SinglePart::plain(text))
        .singlepart(SinglePart::html(html))
}

fn date(now: DateTime<Utc>) -> Result<SystemTime, ComposeError> {
    // The writer of the header panics outside these years.
    if (1970..=9999).contains(&now.year()) { Ok(now.into()) } else { Err(ComposeError::Date(now)) }
}

/// Lettre wants an envelope to build a message; ours goes its own way.
fn lettre_envelope(office: &Office) -> Result<LettreEnvelope, ComposeError> {
    let address: Address = office.from.address().to_string().parse()?;
    Ok(LettreEnvelope::new(Some(address.clone()), vec![address])?)
}

fn mailbox_header(name: &'static str, mailbox: &Mailbox) -> HeaderValue {
    let address = mailbox.address().to_string();
    let encoded = header::mailbox(name, mailbox.name(), &address);
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), address, encoded)
}

fn plain_header(name: &'static str, value: &str) -> HeaderValue {
    let encoded = header::unstructured(name, value);
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), value.to_owned(), encoded)
}

/// For a Message-ID, which must not be encoded however long it is.
fn verbatim_header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::dangerous_new_pre_encoded(HeaderName::new_from_ascii_str(name), value.to_owned(), value.to_owned())
}

fn is_message_id(text: &str) -> bool {
    let inside = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inside.and_then(|id| id.split_once('@')).is_some_and(|(left, right)| {
        let plain =
            |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._+=".contains(&b));
        plain(left) && plain(right) && text.len() <= 500
    })
}

pub(super) fn ending_in_one_crlf(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last().is_some_and(|b| matches!(b, b'\r' | b'\n')) {
        bytes.pop();
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// What transports are promised, looked at once more: no library and no text can break it unseen.
pub(super) fn unfit(bytes: &[u8]) -> Option<&'static str> {
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        let Some(line) = line.strip_suffix(b"\r\n") else { return Some("a bare line feed") };
        if line.len() > LINE_MAX {
            return Some("a line that is too long");
        }
        if line.iter().any(|b| matches!(b, b'\r' | 0) || !b.is_ascii()) {
            return Some("a byte that is not 7-bit text");
        }
    }
    None
}
