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
    "noemail",
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

/// What a status word means; none for one that nobody explained.
///
/// `--status` goes first. Expired permits are active as far as people decide: that they expired follows from the
/// date. Chicago's AAC, and any cancelling during the term, is the holder giving the permit back: surrendered. Its
/// REA, a revocation under appeal, is left to the office, for it is neither in force nor finally out of it.
pub(super) fn status(word: &str, options: &ImportOptions) -> Option<PermitStatus> {
    let word = squash(word);
    options.status(&word).or_else(|| {
        Some(match word.as_str() {
            "active" | "issued" | "aai" | "current" | "valid" | "inforce" | "approved" | "licensed" | "expired"
            | "lapsed" => PermitStatus::Active,
            "suspended" | "onhold" => PermitStatus::Suspended,
            "revoked" | "rev" => PermitStatus::Revoked,
            "surrendered" | "cancelled" | "canceled" | "aac" | "withdrawn" => PermitStatus::Surrendered,
            "closed" | "inactive" | "void" | "voided" | "complete" | "completed" | "finaled" | "final"
            | "permitfinaled" => PermitStatus::Closed,
            _ => return None,
        })
    })
}

/// Text in one line: control characters become spaces, white space is never more than one, none outside.
pub(super) fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c.is_whitespace() { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Text in lines: LF between them, no other control characters, no white space outside.
pub(super) fn lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String = text.chars().filter(|&c| c == '\n' || c == '\t' || !c.is_control()).collect();
    text.trim().to_owned()
}

/// Whether `tag` has the form of a BCP 47 tag, such as `en` or `pt-BR`.
pub(super) fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let first = parts.next().unwrap_or_default();
    let word = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (2..=3).contains(&first.len())
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| (1..=8).contains(&part.len()) && word(part))
}

/// `text`, unless it is empty.
pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
