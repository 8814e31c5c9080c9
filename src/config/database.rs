//! The two database URLs. They hold passwords, so no message repeats any part of them.

use std::net::IpAddr;

use secrecy::SecretString;
use url::Url;

use super::reader::Reader;

const SSL_MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

pub(super) fn read(reader: &mut Reader<'_>) -> (Option<SecretString>, Option<SecretString>) {
    let pooled = read_url(reader, "DATABASE_URL");
    let direct = read_url(reader, "DATABASE_DIRECT_URL");
    if direct.is_some() && pooled.is_none() && !reader.has_fault_in(&["DATABASE_URL"]) {
        reader.fault("DATABASE_DIRECT_URL", "is only for use beside DATABASE_URL, which is unset");
    }
    (pooled, direct)
}

fn read_url(reader: &mut Reader<'_>, variable: &str) -> Option<SecretString> {
    let text = reader.text(variable)?;
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "postgres" | "postgresql"));
    let Some(url) = url else {
        reader.fault(
            variable,
            "must be a URL such as `postgres://user:password@host:5432/database`, with special \
             characters percent-encoded; its value is not shown because it may hold a password",
        );
        return None;
    };
    let ssl_mode = parameter(&url, &["sslmode", "ssl-mode"]);
    let ssl_mode = ssl_mode.unwrap_or_else(|| "prefer".to_owned());
    if !SSL_MODES.contains(&ssl_mode.as_str()) {
        let modes = SSL_MODES.join(", ");
        reader.fault(variable, format!("has an sslmode that is none of {modes}"));
        return None;
    }
    // Not refused: inside a container network a server without certificates is usual.
    if !is_on_this_machine(&url) && !ssl_mode.starts_with("verify-") {
        reader.warn(format!(
            "{variable} names another machine with sslmode={ssl_mode}: whoever stands between \
             could read or change everything; with sslmode=verify-full the server proves who it is."
        ));
    }
    Some(SecretString::from(text))
}

fn is_on_this_machine(url: &Url) -> bool {
    let host = parameter(url, &["host", "hostaddr"]).or_else(|| url.host_str().map(str::to_owned)).unwrap_or_default();
    let host = host.trim_matches(['[', ']']);
    let is_socket = host.is_empty() || host.starts_with('/') || host.starts_with("%2F");
    is_socket
        || host.starts_with("%2f")
        || host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// The last one counts, as in the driver.
fn parameter(url: &Url, names: &[&str]) -> Option<String> {
    url.query_pairs().filter(|(name, _)| names.contains(&name.as_ref())).last().map(|(_, value)| value.into_owned())
}
