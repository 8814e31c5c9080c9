//! Addresses that may be written to.

use std::str::FromStr;

use super::{text::is_unfit, words};

/// A well-formed email address: a plain local part, a domain with a dot, in its ASCII form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EmailAddress {
    local: String,
    domain: String,
}

/// Why a text is no address we write to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmailAddressError {
    /// Nothing there.
    #[error("an email address must not be empty")]
    Empty,
    /// The syntax is wrong.
    #[error("must be a well-formed email address (name@domain.example)")]
    Malformed,
    /// A quoted name, one that looks encoded, or an address literal: legal, but no office means it.
    #[error("quoted or encoded names and address literals are not allowed in an email address")]
    Exotic,
    /// The domain has no dot, or cannot be written in ASCII.
    #[error("the domain of an email address needs a dot and valid labels")]
    Domain,
    /// Longer than the protocol allows.
    #[error("an email address has at most 254 characters, 64 before the @")]
    TooLong,
}

impl EmailAddress {
    /// The part before the @, as given.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// The domain in its ASCII form, lower case.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// What makes two addresses the same one: all in lower case.
    pub fn key(&self) -> String {
        format!("{}@{}", self.local.to_lowercase(), self.domain)
    }

    /// Whether the name has characters beyond ASCII, which only a server with SMTPUTF8 takes.
    pub fn needs_smtputf8(&self) -> bool {
        !self.local.is_ascii()
    }
}

impl std::fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.local, self.domain)
    }
}

impl FromStr for EmailAddress {
    type Err = EmailAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EmailAddressError::Empty);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(EmailAddressError::Malformed)?;
        // What looks like an encoded word is decoded by some programs, and is another address then.
        if local.contains('"') || local.contains("=?") || domain.starts_with('[') {
            return Err(EmailAddressError::Exotic);
        }
        // What is hidden or reordered where it is shown would be another address to people than to servers.
        if text.chars().any(|c| is_unfit(c) || c.is_whitespace()) {
            return Err(EmailAddressError::Malformed);
        }
        let domain = idna::domain_to_ascii_strict(domain).map_err(|_| EmailAddressError::Domain)?;
        let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
        // A last label of digits only makes it an IP address, which is no domain.
        if !domain.contains('.')
            || domain.split('.').any(str::is_empty)
            || domain.rsplit('.').next().is_some_and(is_number)
        {
            return Err(EmailAddressError::Domain);
        }
        let written = format!("{local}@{domain}");
        if written.len() > 254 || local.len() > 64 {
            return Err(EmailAddressError::TooLong);
        }
        let options = email_address::Options::default().without_display_text().without_domain_literal();
        email_address::EmailAddress::parse_with_options(&written, options).map_err(|_| EmailAddressError::Malformed)?;
        Ok(Self { local: local.to_owned(), domain })
    }
}

words! {
    /// Which notices an address must not be sent.
    "suppression class" SuppressionClass {
        /// Nothing at all.
        All = "all",
        /// Courtesy notices only.
        Courtesy = "courtesy",
    }
}

/// One person who gets a copy of a permit's notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// Where to write to.
    pub address: EmailAddress,
    /// Display name; may be empty.
    pub name: String,
    /// `holder`, or the contact's role.
    pub role: String,
    /// BCP 47 tag.
    pub language: String,
}

/// The role of the one who holds the permit.
pub const HOLDER: &str = "holder";
