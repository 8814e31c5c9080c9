//! Words of people that are kept: reasons, names, tracking numbers.

use crate::store::{Result, StoreError};

/// Longest reason, in characters.
const REASON_MAX: usize = 1000;
/// Longest name of who did something, and longest tracking number, in characters.
const NAME_MAX: usize = 200;

/// A reason without outer white space: 1 to 1000 characters, none of them a control character.
pub fn reason(text: &str) -> Result<&str> {
    words("reason", text, REASON_MAX)
}

/// Who does something: 1 to 200 characters.
pub(super) fn by(text: &str) -> Result<&str> {
    words("by", text, NAME_MAX)
}

/// A tracking number: 1 to 200 characters.
pub(super) fn tracking(text: &str) -> Result<&str> {
    words("tracking", text, NAME_MAX)
}

fn words<'t>(field: &'static str, text: &'t str, max: usize) -> Result<&'t str> {
    let invalid = |why: String| Err(StoreError::Invalid { field, why });
    // Looked for before trimming, which would take a line break at the end away unseen.
    if text.chars().any(char::is_control) {
        return invalid("must not contain line breaks or other control characters".to_owned());
    }
    let text = text.trim();
    if text.is_empty() || text.chars().count() > max {
        return invalid(format!("must have 1 to {max} characters"));
    }
    Ok(text)
}
