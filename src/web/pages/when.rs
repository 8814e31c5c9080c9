//! Instants as people read them: in the office's zone.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

/// An instant, for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// `2026-11-29 14:05` in the office's zone.
    pub text: String,
    /// RFC 3339.
    pub exact: String,
}

/// A sentence with its days as tables have them: `2026-12-01` is 1 Dec 2026.
pub fn with_days(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        written.push_str(&rest[..at]);
        let token = &rest[at..];
        let end = token.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(token.len());
        match token[..end].parse::<NaiveDate>() {
            Ok(day) if end == 10 => written.push_str(&day.format("%-d %b %Y").to_string()),
            _ => written.push_str(&token[..end]),
        }
        rest = &token[end..];
    }
    written.push_str(rest);
    written
}

/// The instant in this zone.
pub fn when(at: DateTime<Utc>, zone: Tz) -> When {
    let exact = at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    When { text: at.with_timezone(&zone).format("%Y-%m-%d %H:%M").to_string(), exact }
}
