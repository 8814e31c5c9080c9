//! Instants as people read them: in the office's zone.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

/// An instant, for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// `2026-11-29 14:05` in the office's zone.
    pub text: String,
    /// RFC 3339.
    pub exact: String,
}

/// The instant in this zone.
pub fn when(at: DateTime<Utc>, zone: Tz) -> When {
    let exact = at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    When { text: at.with_timezone(&zone).format("%Y-%m-%d %H:%M").to_string(), exact }
}
