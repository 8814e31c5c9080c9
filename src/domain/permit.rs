//! Permits: their numbers, types, states, and the facts about one that decide what it is owed.

use chrono::NaiveDate;

use super::{text, words};

/// Longest permit number, in characters.
pub const PERMIT_NUMBER_MAX: usize = 100;

/// The number people use for a permit; text, because leading zeros and dashes matter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PermitNumber(String);

/// Why a text is no permit number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PermitNumberError {
    /// Nothing but white space.
    #[error("a permit number must not be empty")]
    Empty,
    /// Longer than [`PERMIT_NUMBER_MAX`].
    #[error("a permit number has at most {PERMIT_NUMBER_MAX} characters")]
    TooLong,
    /// A control character inside.
    #[error("a permit number must not contain control characters")]
    ControlCharacter,
}

impl PermitNumber {
    /// The number as it was given, without outer white space and without characters that nobody sees: two numbers
    /// that look the same are the same.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What makes it unique: lower case, without any white space.
    pub fn key(&self) -> String {
        self.0.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
    }
}

impl std::str::FromStr for PermitNumber {
    type Err = PermitNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text: String = text.chars().filter(|&c| c.is_control() || !is_unseen(c)).collect();
        let text = text.trim();
        if text.is_empty() {
            return Err(PermitNumberError::Empty);
        }
        if text.chars().count() > PERMIT_NUMBER_MAX {
            return Err(PermitNumberError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(PermitNumberError::ControlCharacter);
        }
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Display for PermitNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether nobody sees it, whether or not it joins the letters beside it.
fn is_unseen(c: char) -> bool {
    text::is_unfit(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

/// Short name of a permit type: lower-case letters, digits and dashes, at most 64.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermitTypeCode(String);

/// A text that is no permit type code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a permit type code has 1 to 64 lower-case letters, digits and dashes")]
pub struct PermitTypeCodeError;

impl PermitTypeCode {
    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The code a type named `name` gets when a file brings it: letters and digits kept in lower case, every
    /// run of anything else one dash. A name that differs only there gets the same code. Letters beyond ASCII cannot
    /// stand in a code; a trace of the whole name is put in their place, so that two names do not share one.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut code = dashed(name.chars().flat_map(char::to_lowercase), |c| c.is_ascii_alphanumeric());
        if name.chars().any(is_beyond) {
            // Small letters of capitals: some letters have two small forms.
            let folded = name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
            let trace = trace(&dashed(folded, |c| c.is_ascii_alphanumeric() || is_beyond(c)));
            code.truncate(CODE_MAX - 1 - trace.len());
            let start = Some(code.trim_end_matches('-')).filter(|start| !start.is_empty());
            return format!("{}-{trace}", start.unwrap_or("type")).parse().ok();
        }
        code.truncate(CODE_MAX);
        code.trim_end_matches('-').parse().ok()
    }
}

/// Longest name of a permit type, in characters.
pub const TYPE_NAME_MAX: usize = 200;

/// Longest permit type code.
const CODE_MAX: usize = 64;

/// What is `kept`, and one dash for every run of anything else, but none at the beginning or the end.
fn dashed(chars: impl Iterator<Item = char>, kept: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    for c in chars {
        if kept(c) {
            text.push(c);
        } else if !text.is_empty() && !text.ends_with('-') {
            text.push('-');
        }
    }
    text.truncate(text.trim_end_matches('-').len());
    text
}

/// Beyond ASCII, and not only between words: no blank and no mark such as a long dash or a quotation mark.
fn is_beyond(c: char) -> bool {
    let is_mark = matches!(c, '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}');
    !c.is_ascii() && !c.is_whitespace() && !is_mark
}

/// Eight hexadecimal digits that stand for a text (FNV-1a, because codes must stay the same from one build to the next).
fn trace(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

impl std::str::FromStr for PermitTypeCode {
    type Err = PermitTypeCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=CODE_MAX).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(PermitTypeCodeError)
        }
    }
}

impl std::fmt::Display for PermitTypeCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

words! {
    /// What people decided about a permit. Only an active one is sent notices.
    "permit status" PermitStatus {
        /// In force, as far as people decide.
        Active = "active",
        /// Out of force for a time.
        Suspended = "suspended",
        /// Taken back by the office.
        Revoked = "revoked",
        /// Given back by the holder.
        Surrendered = "surrendered",
        /// No longer of interest.
        Closed = "closed",
    }
}

/// The facts about a permit and its present term that decide what it is owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// What people decided.
    pub status: PermitStatus,
    /// Put away; sent nothing.
    pub archived: bool,
    /// Last day of a pause of notices.
    pub notices_paused_until: Option<NaiveDate>,
    /// Of the present term: the day it takes effect, else the issue date that came with it.
    pub takes_effect_on: Option<NaiveDate>,
    /// Last valid day.
    pub expires_on: NaiveDate,
    /// Day on which this permit first had this `expires_on`.
    pub period_since: NaiveDate,
    /// Steps due before this day are not owed.
    pub notices_from: Option<NaiveDate>,
}
