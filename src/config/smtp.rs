//! The mail server and what guards real people from mail: `SMTP_URL`, who may be mailed, how fast, and what becomes
//! of a mail of which nobody knows whether it arrived. The URL holds a password, so no message repeats any part
//! of it.

use std::{fmt, net::IpAddr, time::Duration};

use lettre::message::Mailbox;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use url::Url;

use super::{Environment, reader::Reader};
use crate::domain::recipient::EmailAddress;

/// A mail server and how to speak to it: `smtp://` or `smtps://`, `user:password@`, host, port,
/// `?tls=required|opportunistic|none`.
#[derive(Clone, Debug)]
pub struct SmtpUrl {
    /// A host name or an IP address, without brackets.
    pub host: String,
    /// 25 or, with a password, 587 for `smtp://`; 465 for `smtps://`.
    pub port: u16,
    pub tls: SmtpTls,
    pub credentials: Option<SmtpCredentials>,
}

/// How a conversation with the mail server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    /// From the first byte, with a proven server.
    Implicit,
    /// By STARTTLS, with a proven server, or nothing is sent.
    Required,
    /// By STARTTLS where it is offered. Whoever can change bytes on the way can take the offer out, so the
    /// certificate is not checked either: it protects from listeners only.
    Opportunistic,
    /// In clear, a password too.
    Never,
}

#[derive(Clone)]
pub struct SmtpCredentials {
    pub user: String,
    pub password: SecretString,
}

impl fmt::Debug for SmtpCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmtpCredentials")
    }
}

/// Why a text is no [`SmtpUrl`]: the rest of a sentence that begins with the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; its value is not shown because it may hold a password")]
pub struct SmtpUrlError(&'static str);

impl SmtpUrl {
    /// Reads a URL; nothing is looked up or connected.
    pub fn parse(text: &str) -> Result<Self, SmtpUrlError> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "smtp" | "smtps"));
        let url = url.ok_or(SmtpUrlError(SHAPE))?;
        let bare = matches!(url.path(), "" | "/") && url.fragment().is_none();
        let host = url.host_str().filter(|host| bare && !host.is_empty()).ok_or(SmtpUrlError(SHAPE))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let credentials = credentials(&url)?;
        let tls = tls(&url, &host, credentials.is_some())?;
        let default_port = match (tls, &credentials) {
            (SmtpTls::Implicit, _) => 465,
            (_, Some(_)) => 587,
            (_, None) => 25,
        };
        Ok(Self { host, port: url.port().unwrap_or(default_port), tls, credentials })
    }

    /// Host and port, for people.
    pub fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

const SHAPE: &str = "must be a URL such as `smtp://user:password@mail.example.org:587` or `smtps://…`, with special \
                     characters percent-encoded and no path";

fn credentials(url: &Url) -> Result<Option<SmtpCredentials>, SmtpUrlError> {
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().ok()?.into_owned();
        // A NUL would end the name inside AUTH PLAIN.
        (!text.contains(char::is_control)).then_some(text)
    };
    let fault = SmtpUrlError("must have a user and a password, or neither, in UTF-8 and percent-encoded");
    match (url.username(), url.password().unwrap_or_default()) {
        ("", "") => Ok(None),
        ("", _) | (_, "") => Err(fault),
        (user, password) => {
            let (Some(user), Some(password)) = (decoded(user), decoded(password)) else { return Err(fault) };
            Ok(Some(SmtpCredentials { user, password: SecretString::from(password) }))
        }
    }
}

fn tls(url: &Url, host: &str, has_password: bool) -> Result<SmtpTls, SmtpUrlError> {
    let mut wanted = None;
    for (name, value) in url.query_pairs() {
        if name != "tls" || wanted.is_some() {
            return Err(SmtpUrlError("knows one parameter only, `?tls=required`, `opportunistic` or `none`"));
        }
        wanted = Some(match &*value {
            "required" => SmtpTls::Required,
            "opportunistic" => SmtpTls::Opportunistic,
            "none" => SmtpTls::Never,
            _ => return Err(SmtpUrlError("has a `tls` that is none of `required`, `opportunistic` and `none`")),
        });
    }
    let needs_proof = has_password && !is_on_this_machine(host);
    match (url.scheme(), wanted) {
        ("smtps", None | Some(SmtpTls::Required)) => Ok(SmtpTls::Implicit),
        ("smtps", _) => Err(SmtpUrlError("must be `smtp://…` with `?tls=opportunistic` or `?tls=none`")),
        (_, Some(SmtpTls::Opportunistic)) if needs_proof => Err(SmtpUrlError(
            "must not have `?tls=opportunistic` with a password for another machine: anybody on the way could take it",
        )),
        (_, Some(tls)) => Ok(tls),
        (_, None) if needs_proof => Ok(SmtpTls::Required),
        (_, None) => Ok(SmtpTls::Opportunistic),
    }
}

fn is_on_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Who may be mailed outside production.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailAllowlist {
    everybody: bool,
    /// As [`EmailAddress::key`] gives them.
    addresses: Vec<String>,
    domains: Vec<String>,
}

impl MailAllowlist {
    /// Addresses, domains or `*`, separated by commas. A domain does not cover its subdomains.
    pub fn parse(text: &str) -> Option<Self> {
        let mut list = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            // A domain is checked as the domain of an address.
            let domain = || format!("x@{}", entry.trim_start_matches('@')).parse::<EmailAddress>().ok();
            if entry == "*" {
                list.everybody = true;
            } else if let Ok(address) = entry.parse::<EmailAddress>() {
                list.addresses.push(address.key());
            } else {
                list.domains.push(domain()?.domain().to_owned());
            }
        }
        Some(list)
    }

    /// Whether `address` may be mailed.
    pub fn allows(&self, address: &EmailAddress) -> bool {
        self.everybody
            || self.domains.iter().any(|domain| domain == address.domain())
            || self.addresses.contains(&address.key())
    }

    /// Whether everybody may be mailed.
    pub fn is_everybody(&self) -> bool {
        self.everybody
    }

    /// Whether nobody may be mailed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of a mail of which nobody knows whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmbiguousPolicy {
    /// A person decides.
    Hold,
    /// After so long it counts as not delivered and is sent again.
    ResendAfter(Duration),
}

/// The variables of this file.
pub(super) struct Smtp {
    pub url: Option<SmtpUrl>,
    pub bounce_address: Option<EmailAddress>,
    pub rate_per_second: u32,
    pub allowlist: MailAllowlist,
    pub ambiguous_policy: AmbiguousPolicy,
}

const BOUNCE_ADDRESS_ALLOWED: &str = "an address in ASCII, such as `bounces@example.org`";
const ALLOWLIST_ALLOWED: &str =
    "addresses or domains separated by commas, such as `ann@example.org,test.example.org`, or `*` for all";
const POLICY_ALLOWED: &str = "`hold`, or `resend-after:` and hours from 1 to 8760, such as `resend-after:24`";

pub(super) fn read(reader: &mut Reader<'_>, from: Option<&Mailbox>, environment: Option<&Environment>) -> Smtp {
    let url = read_url(reader);
    if url.is_some() {
        if from.is_none() && !reader.has_fault_in(&["MAIL_FROM"]) {
            reader.fault("MAIL_FROM", "must be set with SMTP_URL: receivers see it, and bounces go there");
        }
        if environment.is_none() && !reader.has_fault_in(&["ENVIRONMENT"]) {
            reader.fault(
                "ENVIRONMENT",
                "must be set with SMTP_URL: `production` to mail real people, or another name to mail only \
                 MAIL_ALLOWLIST",
            );
        }
    }
    let allowlist = reader.parsed("MAIL_ALLOWLIST", ALLOWLIST_ALLOWED, MailAllowlist::parse).unwrap_or_default();
    match environment {
        Some(Environment::Production) if !allowlist.is_empty() => {
            reader.warn("MAIL_ALLOWLIST is ignored with ENVIRONMENT=production: everybody is mailed.");
        }
        Some(Environment::Named(name)) if url.is_some() && allowlist.is_empty() => {
            reader.warn(format!("MAIL_ALLOWLIST is unset with ENVIRONMENT={name}: nobody is mailed."));
        }
        _ => {}
    }
    Smtp {
        url,
        bounce_address: reader.parsed("BOUNCE_ADDRESS", BOUNCE_ADDRESS_ALLOWED, |text| {
            text.parse().ok().filter(|address: &EmailAddress| !address.needs_smtputf8())
        }),
        rate_per_second: reader.number("MAIL_RATE_PER_SECOND", 0, 0..=10_000),
        allowlist,
        ambiguous_policy: reader
            .parsed("AMBIGUOUS_POLICY", POLICY_ALLOWED, parse_policy)
            .unwrap_or(AmbiguousPolicy::Hold),
    }
}

fn read_url(reader: &mut Reader<'_>) -> Option<SmtpUrl> {
    let text = reader.text("SMTP_URL")?;
    SmtpUrl::parse(&text).map_err(|error| reader.fault("SMTP_URL", error.to_string())).ok()
}

fn parse_policy(text: &str) -> Option<AmbiguousPolicy> {
    if text == "hold" {
        return Some(AmbiguousPolicy::Hold);
    }
    let hours: u64 = text.strip_prefix("resend-after:")?.parse().ok()?;
    (1..=8760).contains(&hours).then(|| AmbiguousPolicy::ResendAfter(Duration::from_secs(hours * 3600)))
}
