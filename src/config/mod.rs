//! One `Config`, read once at the start; nothing else in the program asks the environment.
//! Every fault names its variable and what is allowed, and all of them are reported at once.
//! Reading goes through a lookup, so that tests need no process environment.

mod admin;
mod alerts;
mod database;
mod environment;
mod error;
mod proxies;
mod reader;
mod retention;
mod smtp;
mod window;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use lettre::message::Mailbox;
use secrecy::SecretString;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};
use url::Url;

use crate::domain::{fingerprint::fingerprint, recipient::EmailAddress, window::SendWindow};
use crate::scan::schedule::ScanSchedule;
pub use alerts::Alerts;
pub use environment::{misspelt, read_dotenv};
pub use error::{ConfigErrors, Fault};
pub use proxies::TrustedProxies;
use reader::Reader;
pub use retention::Retention;
pub use smtp::{AmbiguousPolicy, MailAllowlist, SmtpCredentials, SmtpTls, SmtpUrl, SmtpUrlError};

/// `demo` must work whatever the machine is set up for, and must never reach real data or people.
const IGNORED_BY_DEMO: [&str; 6] =
    ["SMTP_URL", "DATABASE_URL", "DATABASE_DIRECT_URL", "ALERT_EMAIL", "ALERT_WEBHOOK_URL", "HEARTBEAT_URL"];

#[derive(Clone, Debug)]
pub struct Config {
    /// Unset: a private PostgreSQL under the data directory.
    pub database_url: Option<SecretString>,
    /// A way around a transaction pooler, for session locks and LISTEN.
    pub database_direct_url: Option<SecretString>,
    /// As it was set; the default and whether PostgreSQL can reach it are decided elsewhere.
    pub data_dir: Option<PathBuf>,
    pub listen_addr: SocketAddr,
    /// As it was set; see [`Config::public_url`].
    pub public_url_setting: Option<Url>,
    /// Whose word is taken about where requests come from.
    pub trusted_proxies: TrustedProxies,
    pub time_zone: Tz,
    pub scan_schedule: ScanSchedule,
    pub scan_grace: TimeDelta,
    /// `None`: a scan may claim any number.
    pub scan_claim_limit: Option<u32>,
    /// `None`: mail is kept as files.
    pub smtp_url: Option<SmtpUrl>,
    pub mail_from: Mailbox,
    pub mail_reply_to: Option<Mailbox>,
    /// `None`: bounces go to the address in [`mail_from`](Self::mail_from).
    pub bounce_address: Option<EmailAddress>,
    /// Messages a second over all processes; 0: no limit.
    pub mail_rate_per_second: u32,
    /// Who may be mailed outside production.
    pub mail_allowlist: MailAllowlist,
    pub ambiguous_policy: AmbiguousPolicy,
    pub mail_concurrency: usize,
    pub max_attempts: u32,
    /// Requests of one API token a minute, in each process; `None`: no limit.
    pub api_rate_per_minute: Option<NonZeroU32>,
    pub lease: Duration,
    pub shutdown_limit: Duration,
    /// `None`: mail may leave at any time.
    pub send_window: Option<SendWindow>,
    pub change_delay: TimeDelta,
    /// For how long old data is kept.
    pub keep: Retention,
    pub environment: Option<Environment>,
    /// Who hears of alarms.
    pub alerts: Alerts,
    /// The first administrator, made at the first start.
    pub first_admin: Option<FirstAdmin>,
    /// The instant at which business time starts; never set in production.
    pub clock: Option<DateTime<Utc>>,
    pub log_format: LogFormat,
    /// A filter that has been checked, in the language of `RUST_LOG`; unset: what fits the command.
    pub log_filter: Option<String>,
    /// What is allowed but deserves a word in the log, one sentence each.
    pub warnings: Vec<String>,
}

/// With what the first administrator signs in.
#[derive(Clone, Debug)]
pub struct FirstAdmin {
    pub email: EmailAddress,
    pub password: SecretString,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    Production,
    /// Any other name, such as `staging`.
    Named(String),
}

impl std::fmt::Display for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Production => f.write_str("production"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Pretty,
    Json,
}

impl Config {
    /// From `.env` in the working folder and the process environment, which wins.
    pub fn from_environment() -> Result<Self, ConfigErrors> {
        environment::read(&[])
    }

    /// The same as if these variables were not set: to look at the others when these are wrong.
    pub fn from_environment_without(ignored: &[&str]) -> Result<Self, ConfigErrors> {
        environment::read(ignored)
    }

    /// The same for `demo`, which ignores what leads to real data or real people.
    pub fn for_demo_from_environment() -> Result<Self, ConfigErrors> {
        environment::read(&IGNORED_BY_DEMO)
    }

    /// From any source of values; an empty value counts as unset.
    pub fn read(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigErrors> {
        let mut reader = Reader::new(lookup);
        let config = Self::read_all(&mut reader);
        reader.finish(config)
    }

    /// Reads every variable even after a fault, so that the list of faults is complete. What is
    /// returned beside a fault is never used.
    fn read_all(reader: &mut Reader<'_>) -> Self {
        let (database_url, database_direct_url) = database::read(reader);
        let time_zone = reader.parsed("TIME_ZONE", TIME_ZONE_ALLOWED, |text| text.parse().ok());
        let time_zone = time_zone.unwrap_or(Tz::UTC);
        let scan_schedule = read_schedule(reader, time_zone);
        let send_window = window::read(reader, &scan_schedule);
        let environment = reader.parsed("ENVIRONMENT", ENVIRONMENT_ALLOWED, parse_environment);
        let clock = read_clock(reader, environment.as_ref());
        let mail_from = reader.parsed("MAIL_FROM", MAILBOX_ALLOWED, |text| text.parse().ok());
        let smtp = smtp::read(reader, mail_from.as_ref(), environment.as_ref());
        Self {
            database_url,
            database_direct_url,
            data_dir: reader.text("DATA_DIR").map(PathBuf::from),
            listen_addr: reader
                .parsed("LISTEN_ADDR", LISTEN_ADDR_ALLOWED, |text| text.parse().ok())
                .unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))),
            public_url_setting: reader.parsed("PUBLIC_URL", PUBLIC_URL_ALLOWED, parse_public_url),
            trusted_proxies: reader
                .parsed("TRUSTED_PROXIES", PROXIES_ALLOWED, TrustedProxies::parse)
                .unwrap_or_default(),
            time_zone,
            scan_schedule,
            scan_grace: TimeDelta::minutes(reader.number("SCAN_GRACE_MINUTES", 30, 1..=1440)),
            scan_claim_limit: match reader.number("SCAN_CLAIM_LIMIT", 5000, 0..=10_000_000) {
                0 => None,
                limit => Some(limit),
            },
            smtp_url: smtp.url,
            mail_from: mail_from.unwrap_or_else(default_sender),
            mail_reply_to: reader.parsed("MAIL_REPLY_TO", MAILBOX_ALLOWED, |text| text.parse().ok()),
            bounce_address: smtp.bounce_address,
            mail_rate_per_second: smtp.rate_per_second,
            mail_allowlist: smtp.allowlist,
            ambiguous_policy: smtp.ambiguous_policy,
            mail_concurrency: reader.number("MAIL_CONCURRENCY", 8, 1..=256),
            max_attempts: reader.number("MAX_ATTEMPTS", 16, 1..=100),
            api_rate_per_minute: NonZeroU32::new(reader.number("API_RATE_PER_MINUTE", 1200, 0..=1_000_000)),
            lease: Duration::from_secs(reader.number("LEASE_SECONDS", 60, 3..=3600)),
            shutdown_limit: Duration::from_secs(reader.number("SHUTDOWN_SECONDS", 25, 1..=600)),
            send_window,
            change_delay: TimeDelta::minutes(reader.number("CHANGE_DELAY_MINUTES", 5, 0..=1440)),
            keep: retention::read(reader),
            environment,
            alerts: alerts::read(reader),
            first_admin: admin::read(reader),
            clock,
            log_format: reader
                .parsed("LOG_FORMAT", "`pretty` or `json`", parse_log_format)
                .unwrap_or(LogFormat::Pretty),
            log_filter: reader.parsed("RUST_LOG", RUST_LOG_ALLOWED, parse_log_filter),
            warnings: reader.take_warnings(),
        }
    }

    /// Where people reach the pages: as set, else the address that is listened on.
    pub fn public_url(&self, bound: SocketAddr) -> Url {
        self.public_url_setting.clone().unwrap_or_else(|| listening_url(bound))
    }

    pub fn is_production(&self) -> bool {
        self.environment == Some(Environment::Production)
    }

    /// What all replicas must have in common, in words that can be shown beside each other.
    pub fn fingerprint(&self) -> String {
        fingerprint([
            env!("CARGO_PKG_VERSION"),
            self.time_zone.name(),
            self.scan_schedule.expression(),
            &self.mail_from.to_string(),
            self.public_url(self.listen_addr).as_str(),
        ])
    }
}

const TIME_ZONE_ALLOWED: &str = "a name of the IANA time zone database, such as `Europe/Berlin`";
const ENVIRONMENT_ALLOWED: &str = "`production` or another name of up to 32 letters, digits, `-` and `_`";
const LISTEN_ADDR_ALLOWED: &str = "an IP address and a port, such as `127.0.0.1:8080`; port 0 picks a free one";
const PUBLIC_URL_ALLOWED: &str =
    "`http://` or `https://` and a host, without a path, such as `https://permits.example.org`";
const PROXIES_ALLOWED: &str = "addresses or networks separated by commas, such as `10.1.0.7,172.16.0.0/12`";
const MAILBOX_ALLOWED: &str = "one address, with or without a name, such as `Permit Office <permits@example.org>`";
const CLOCK_ALLOWED: &str = "an RFC 3339 instant, such as `2026-03-01T08:00:00Z`";
const RUST_LOG_ALLOWED: &str = "a level (error, warn, info, debug, trace, off) or a list such as `info,sqlx=warn`";

fn read_schedule(reader: &mut Reader<'_>, zone: Tz) -> ScanSchedule {
    let default = ScanSchedule::new("0 0 6 * * *", zone)
        .unwrap_or_else(|error| unreachable!("the default schedule is valid: {error}"));
    let Some(text) = reader.text("SCAN_SCHEDULE") else {
        return default;
    };
    ScanSchedule::new(&text, zone).unwrap_or_else(|error| {
        reader.fault("SCAN_SCHEDULE", format!("is refused: {error}"));
        default
    })
}

fn read_clock(reader: &mut Reader<'_>, environment: Option<&Environment>) -> Option<DateTime<Utc>> {
    let clock = reader
        .parsed("CLOCK", CLOCK_ALLOWED, |text| DateTime::parse_from_rfc3339(text).ok().map(|instant| instant.to_utc()));
    if clock.is_some() && environment == Some(&Environment::Production) {
        reader.fault("CLOCK", "must be unset with ENVIRONMENT=production, where business time is real time");
    }
    clock
}

/// The capital in `Production` must not turn a live service into a test one.
fn parse_environment(text: &str) -> Option<Environment> {
    let fits = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    fits.then(|| {
        if text.eq_ignore_ascii_case("production") {
            Environment::Production
        } else {
            Environment::Named(text.to_owned())
        }
    })
}

/// Pages and links are made for the root of a host; a path would be lost without a word.
fn parse_public_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    plain.then_some(url)
}

fn parse_log_format(text: &str) -> Option<LogFormat> {
    match text {
        "pretty" => Some(LogFormat::Pretty),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}

/// A single word is a level: `warning` would else be taken for the name of a part of the program, and silence all others.
fn parse_log_filter(text: &str) -> Option<String> {
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let fits = |word: &str| is_level(word) || word.contains(['=', '[', ':']);
    EnvFilter::builder().parse(text).ok()?;
    text.split(',').map(str::trim).all(fits).then(|| text.to_owned())
}

/// `.invalid` can never be delivered to, so a forgotten `MAIL_FROM` harms nobody.
fn default_sender() -> Mailbox {
    "Permit Office <permits@permit-notifier.invalid>"
        .parse()
        .unwrap_or_else(|error| unreachable!("the default sender is valid: {error}"))
}

/// Where this very process is reached. "Every address" is one to listen on, not one to visit. The scope of an IPv6 address means
/// something on this machine only and has no place in a URL.
pub fn listening_url(bound: SocketAddr) -> Url {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Url::parse(&format!("http://{}/", SocketAddr::new(ip, bound.port())))
        .unwrap_or_else(|error| unreachable!("an address and a port make a URL: {error}"))
}
