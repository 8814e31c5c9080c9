//! Email addresses out of cells in which people wrote whatever they had.

use std::collections::HashSet;

use super::values::is_no_value;
use crate::domain::recipient::{EmailAddress, EmailAddressError};
use crate::domain::text::one_line;

/// What one cell holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    /// Usable addresses in order, each once, with the name that stood before it.
    pub good: Vec<(String, EmailAddress)>,
    /// Why what is written there is no address; of several the first.
    pub bad: Option<EmailAddressError>,
    /// Whether that stands before all usable ones.
    pub bad_first: bool,
    /// A usable address had to be cleaned.
    pub cleaned: bool,
    /// Keys of the usable ones.
    seen: HashSet<String>,
}

/// Words between two addresses.
const BETWEEN: [&str; 5] = ["and", "or", "&", "/", "|"];

/// Takes a cell apart: addresses are separated by semicolons, commas or white space, may have a name before them
/// (`Ann Lee <ann@example.org>`), and lose `mailto:`, outer spaces and the dots and commas of a sentence. Words for
/// nothing are no address and no fault.
pub(super) fn parse(cell: &str) -> Addresses {
    let mut found = Addresses::default();
    if is_no_value(cell) {
        return found;
    }
    let outer = cell.trim_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).len() != cell.len();
    for piece in cell.split([';', ',', '\n']) {
        let piece = piece.trim();
        if is_no_value(piece) {
            continue;
        }
        if let Some((name, address)) = piece.strip_suffix('>').and_then(|piece| piece.rsplit_once('<')) {
            found.take(&one_line(name.trim().trim_matches(['"', '\''])), address);
            continue;
        }
        let words = piece.split_whitespace().filter(|word| !BETWEEN.contains(word));
        let words: Vec<&str> = words.flat_map(apart).collect();
        if words.iter().all(|word| word.contains('@')) {
            for word in words {
                found.take("", word);
            }
        } else {
            // Not several addresses: one with a space in it, or something else altogether.
            found.take("", piece);
        }
    }
    found.cleaned |= outer && !found.good.is_empty();
    found
}

impl Addresses {
    fn take(&mut self, name: &str, written: &str) {
        let address = clean(written);
        match address.parse::<EmailAddress>() {
            Ok(parsed) => {
                self.cleaned |= address != written;
                if self.seen.insert(parsed.key()) {
                    self.good.push((name.to_owned(), parsed));
                }
            }
            Err(error) => {
                self.bad_first |= self.good.is_empty();
                self.bad = self.bad.take().or(Some(error));
            }
        }
    }
}

/// Addresses that stand against each other with only a sign between (`a@b.com/c@d.com`). An address may have such a sign
/// in itself, so each part must have an `@`.
fn apart(word: &str) -> Vec<&str> {
    let signs = ['/', '|', '&'];
    let parts: Vec<&str> = word.split(signs).filter(|part| !part.is_empty()).collect();
    let are_addresses = !word.contains('?') && parts.iter().all(|part| part.contains('@'));
    if are_addresses { parts } else { vec![word] }
}

fn clean(written: &str) -> &str {
    let mut address = written.trim().trim_matches(['<', '>', '"', '\'', '(', ')']);
    if let Some((scheme, rest)) = address.split_at_checked("mailto:".len())
        && scheme.eq_ignore_ascii_case("mailto:")
    {
        // What follows a question mark are subject and body of a link.
        address = rest.split('?').next().unwrap_or(rest);
    }
    address.trim().trim_matches(['.', ',', ';', ':'])
}
