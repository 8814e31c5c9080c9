//! The sender: who a message is from, where replies and bounces go.

use std::str::FromStr;

use super::text::one_line;
use crate::domain::recipient::{EmailAddress, EmailAddressError};

/// Longest display name, in characters.
pub(super) const NAME_MAX: usize = 100;

/// An address with the name people see; written `Name <name@domain.example>` or `name@domain.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    address: EmailAddress,
}

/// Why a text is no mailbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailboxError {
    /// Neither of the two forms.
    #[error("write it as Name <name@domain.example> or name@domain.example")]
    Form,
    /// The address in it is not usable.
    #[error(transparent)]
    Address(#[from] EmailAddressError),
}

impl Mailbox {
    /// `address` under `name`, which is made one clean line; an empty one counts as none.
    pub fn new(name: &str, address: EmailAddress) -> Self {
        let name = one_line(name, NAME_MAX);
        Self { name: (!name.is_empty()).then_some(name), address }
    }

    /// The display name, one clean line, never empty.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The address.
    pub fn address(&self) -> &EmailAddress {
        &self.address
    }
}

impl FromStr for Mailbox {
    type Err = MailboxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let Some(inside) = text.strip_suffix('>') else {
            if text.contains('<') {
                return Err(MailboxError::Form);
            }
            return Ok(Self::new("", text.parse()?));
        };
        let (name, address) = inside.rsplit_once('<').ok_or(MailboxError::Form)?;
        Ok(Self::new(&unquoted(name.trim()), address.parse()?))
    }
}

/// A name without the quotes around it and the backslashes in it.
fn unquoted(name: &str) -> String {
    let Some(inside) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut out = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

/// The office as the sender of its notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Office {
    /// Who the messages are from.
    pub from: Mailbox,
    /// Where replies are read. Without one, no message asks for a reply: nobody said that `from` is read.
    pub reply_to: Option<Mailbox>,
    /// Where bounces go.
    pub bounce_address: EmailAddress,
    /// Stands in square brackets before every subject, to tell a trial environment from the real one.
    pub subject_tag: Option<String>,
}

/// Why texts make no [`Office`]; names the variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {fault}")]
pub struct OfficeError {
    /// `MAIL_FROM`, `MAIL_REPLY_TO` or `BOUNCE_ADDRESS`.
    pub variable: &'static str,
    /// What is wrong with it, and what is allowed.
    pub fault: String,
}

impl Office {
    /// The office of these texts; `bounce_address` defaults to the address in `mail_from`.
    pub fn parse(
        mail_from: &str,
        mail_reply_to: Option<&str>,
        bounce_address: Option<&str>,
    ) -> Result<Self, OfficeError> {
        let from = ascii_mailbox("MAIL_FROM", mail_from)?;
        let reply_to = mail_reply_to.map(|text| ascii_mailbox("MAIL_REPLY_TO", text)).transpose()?;
        let bounce_address = match bounce_address {
            Some(text) => ascii_mailbox("BOUNCE_ADDRESS", text)?.address,
            None => from.address.clone(),
        };
        Ok(Self { from, reply_to, bounce_address, subject_tag: None })
    }

    /// The domain of Message-IDs: that of the From address.
    pub fn domain(&self) -> &str {
        self.from.address.domain()
    }
}

/// A mailbox whose address every server takes: From must be a plain address in 7-bit mail.
fn ascii_mailbox(variable: &'static str, text: &str) -> Result<Mailbox, OfficeError> {
    let mailbox: Mailbox =
        text.parse().map_err(|error: MailboxError| OfficeError { variable, fault: error.to_string() })?;
    if mailbox.address.needs_smtputf8() {
        let fault = "the part before the @ must be ASCII; not every server takes another".to_owned();
        return Err(OfficeError { variable, fault });
    }
    Ok(mailbox)
}
