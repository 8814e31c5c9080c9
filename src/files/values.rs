//! What the words in cells mean: status words, words for nothing, plain text.

use super::options::ImportOptions;
use crate::domain::permit::PermitStatus;

/// `text` without case, spaces, underscores and punctuation; what headers and status words are compared by.
pub(super) fn squash(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Squashed words that people write where there is nothing to write.
const NO_VALUE: &[&str] = &[
    "",
    "na",
    "none",
    "no",
    "nil",
    "null",
    "unknown",
    "unk",
    "notknown",
    "notavailable",
    "notapplicable",
    "notgiven",
    "notprovided",
    "nonegiven",
    "noneprovided",
    "noneonfile",
    "noemail",
    "noemailaddress",
    "noemailgiven",
    "noemailprovided",
    "noemailonfile",
    "missing",
    "empty",
    "seefile",
    "onfile",
    "tbd",
    "tba",
    "tbc",
    "pending",
    "x",
    "xx",
    "xxx",
];

/// Whether a cell says that there is no value: it is empty, has no letter or digit (`-`, `?`), or is a word for it.
pub(super) fn is_no_value(cell: &str) -> bool {
    // No word is longer, and most cells are: they need no squashing.
    cell.len() <= 24 && !cell.contains('@') && NO_VALUE.contains(&squash(cell).as_str())
}

/// Whether a cell says that there is no name or number: as [`is_no_value`], but that these may be No or X.
pub(super) fn is_no_name(cell: &str) -> bool {
    is_no_value(cell) && !matches!(squash(cell).as_str(), "no" | "x" | "xx" | "xxx")
}

/// Whether a spreadsheet has shortened a long number, as in `2.02301E+11`: what it was cannot be told any more.
pub(super) fn is_shortened(cell: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((number, exponent)) = cell.trim().split_once(['E', 'e']) else { return false };
    let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, "0"));
    digits(whole) && digits(fraction) && exponent.strip_prefix('+').is_some_and(digits)
}

/// Whether a cell says that a formula failed, as Excel or LibreOffice writes it.
pub(super) fn is_error_value(cell: &str) -> bool {
    let cell = cell.trim();
    matches!(
        cell,
        "#N/A"
            | "#REF!"
            | "#VALUE!"
            | "#DIV/0!"
            | "#NAME?"
            | "#NUM!"
            | "#NULL!"
            | "#SPILL!"
            | "#CALC!"
            | "#GETTING_DATA"
    ) || cell.strip_prefix("Err:").is_some_and(|code| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What a status word means; none for one that nobody explained.
///
/// `--status` goes first. Expired permits are active as far as people decide: that they expired follows from the
/// date. Chicago's AAC, and any cancelling during the term, is the holder giving the permit back: surrendered. Its
/// REA, a revocation under appeal, is left to the office, for it is neither in force nor finally out of it. So are the
/// words of BLDS for what is no permit yet; those it has for permits are known.
pub(super) fn status(word: &str, options: &ImportOptions) -> Option<PermitStatus> {
    let word = squash(word);
    options.status(&word).or_else(|| {
        Some(match word.as_str() {
            "active" | "issued" | "permitissued" | "inspectionphase" | "aai" | "current" | "valid" | "inforce"
            | "approved" | "licensed" | "expired" | "permitexpired" | "lapsed" => PermitStatus::Active,
            "suspended" | "onhold" => PermitStatus::Suspended,
            "revoked" | "rev" => PermitStatus::Revoked,
            "surrendered" | "cancelled" | "canceled" | "permitcancelled" | "permitcanceled" | "aac" | "withdrawn" => {
                PermitStatus::Surrendered
            }
            "closed" | "inactive" | "void" | "voided" | "complete" | "completed" | "finaled" | "final"
            | "permitfinaled" => PermitStatus::Closed,
            _ => return None,
        })
    })
}

/// `text`, unless it is empty.
pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
