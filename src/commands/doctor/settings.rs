//! What the settings say, without asking anybody: environment, where people reach the pages, and secrets.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::{Check, fault, ok, warning};
use crate::config::{Config, SmtpTls};

/// Every check that needs nothing but the settings and the file they came from.
pub(super) fn check(config: &Config, file: &Path) -> Vec<Check> {
    let mut checks = vec![check_environment(config), check_public_url(config)];
    checks.extend(config.warnings.iter().map(|found| warning("settings", found, "change it, unless it is meant so")));
    checks.extend(check_secrets(config, file));
    checks
}

fn check_environment(config: &Config) -> Check {
    let unset = || warning("environment", "ENVIRONMENT is not set", "set it to production on the real service");
    config.environment.as_ref().map_or_else(unset, |environment| ok("environment", environment.to_string()))
}

/// Links in mails and one-time links begin with it, and cookies are only safe under https.
fn check_public_url(config: &Config) -> Check {
    const NAME: &str = "public URL";
    let url = config.public_url(config.listen_addr);
    let listened = format!("LISTEN_ADDR is {}", config.listen_addr);
    let Some(set) = &config.public_url_setting else {
        let found = format!("PUBLIC_URL is not set, so links lead to {url}");
        let advice = "set it to https:// and the host under which people reach the pages";
        return if config.is_production() { fault(NAME, found, advice) } else { warning(NAME, found, advice) };
    };
    if config.is_production() && is_loopback(set) {
        let advice = "set PUBLIC_URL to the host under which people reach the pages from their own machines";
        return fault(NAME, format!("{set} leads everybody to their own machine"), advice);
    }
    if config.is_production() && set.scheme() != "https" {
        let advice = "put a proxy with a certificate in front, and set PUBLIC_URL to https://…";
        return fault(NAME, format!("{set} is not https: passwords and permits would go in clear"), advice);
    }
    // With https a proxy stands in between, on whatever port.
    if set.scheme() == "http" && set.port_or_known_default() != Some(config.listen_addr.port()) {
        let advice = "make the ports agree, unless something in between leads from one to the other";
        return warning(NAME, format!("{set}, but {listened}"), advice);
    }
    if set.scheme() == "http" && !is_loopback(set) && config.listen_addr.ip().is_loopback() {
        let advice = "let LISTEN_ADDR be 0.0.0.0 or the address of that host, or put a proxy in front";
        return warning(NAME, format!("{set}, but {listened}, which only this machine reaches"), advice);
    }
    ok(NAME, format!("{set}; {listened}"))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        None => true,
    }
}

/// Of each secret that is set: whether it is soon guessed, or goes where others can read it. None is ever shown.
fn check_secrets(config: &Config, file: &Path) -> Vec<Check> {
    const NAME: &str = "secrets";
    let mut checks = Vec::new();
    if let Some(admin) = &config.first_admin
        && let Some(why) = weakness(admin.password.expose_secret(), &admin.email.to_string())
    {
        let advice = "choose another, and change the administrator's on the page Account";
        checks.push(warning(NAME, format!("ADMIN_PASSWORD {why}"), advice));
    }
    for (variable, url) in
        [("DATABASE_URL", &config.database_url), ("DATABASE_DIRECT_URL", &config.database_direct_url)]
    {
        if let Some((user, password)) = url.as_ref().and_then(password_in)
            && let Some(why) = weakness(&password, &user)
        {
            let advice = "give the database's role another password";
            checks.push(warning(NAME, format!("the password in {variable} {why}"), advice));
        }
    }
    if let Some(url) = &config.smtp_url
        && let Some(credentials) = &url.credentials
    {
        if url.tls == SmtpTls::Never {
            let found = "the password in SMTP_URL goes to the mail server in clear";
            checks.push(warning(NAME, found, "use smtps://, or ?tls=required"));
        }
        if let Some(why) = weakness(credentials.password.expose_secret(), &credentials.user) {
            checks.push(warning(NAME, format!("the password in SMTP_URL {why}"), "let the mail server have another"));
        }
    }
    if let Ok(about) = std::fs::metadata(file)
        && about.permissions().mode() & 0o004 != 0
    {
        let found = "everybody on this machine may read .env, where passwords stand";
        checks.push(warning(NAME, found, "chmod 640 .env, its group being that of the service, or 600"));
    }
    if checks.is_empty() {
        checks.push(ok(NAME, "none is weak or in the open, as far as can be seen"));
    }
    checks
}

fn password_in(url: &SecretString) -> Option<(String, String)> {
    let url = Url::parse(url.expose_secret()).ok()?;
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decoded(url.username()), decoded(url.password()?)))
}

/// Parts of passwords that everybody tries first.
const COMMON: [&str; 14] = [
    "password",
    "passwort",
    "passw0rd",
    "123456",
    "qwerty",
    "qwertz",
    "abcdef",
    "letmein",
    "welcome",
    "changeme",
    "change-me",
    "secret",
    "admin",
    "permit",
];
/// What is left of a password besides a common word must have so many characters.
const LEFT: usize = 10;
const SHORTEST: usize = 12;
const LEAST_DIFFERENT: usize = 6;

/// Why a password is soon guessed, as the end of a sentence.
fn weakness(password: &str, user: &str) -> Option<String> {
    let lower = password.to_lowercase();
    let mut characters: Vec<char> = lower.chars().collect();
    let length = characters.len();
    characters.sort_unstable();
    characters.dedup();
    let name = user.split('@').next().unwrap_or_default().to_lowercase();
    let words = COMMON.iter().copied().chain((name.len() >= 3).then_some(name.as_str()));
    let left = words.fold(lower, |left, word| left.replace(word, "")).chars().count();
    if length < SHORTEST {
        Some(format!("has fewer than {SHORTEST} characters"))
    } else if characters.len() < LEAST_DIFFERENT {
        Some(format!("has only {} different characters", characters.len()))
    } else if left < length && left < LEFT {
        Some("is made of a word or name that everybody tries first".to_owned())
    } else {
        None
    }
}
