//! Numbers of things, and who did something, as sentences for people have them.

use std::fmt::Display;

/// `1 row`, `2 rows`; `one` is the word for one of them.
pub fn counted(count: impl Display, one: &str) -> String {
    format!("{count} {}", noun(&count, one))
}

/// The word alone, for so many.
pub fn noun(count: impl Display, one: &str) -> String {
    if is_one(count) {
        return one.to_owned();
    }
    match one.as_bytes() {
        [.., before, b'y'] if !b"aeiou".contains(before) => format!("{}ies", &one[..one.len() - 1]),
        [.., b's'] => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

/// `is` of one and `are` of several, or another such pair.
pub fn which<'w>(count: impl Display, one: &'w str, several: &'w str) -> &'w str {
    if is_one(count) { one } else { several }
}

fn is_one(count: impl Display) -> bool {
    count.to_string() == "1"
}

/// Who did something: histories keep `user:ann@example.org`, people read `ann@example.org`.
pub fn who(by: &str) -> String {
    match (by.split_once(':'), by) {
        (Some(("user", email)), _) => email.to_owned(),
        (Some(("token", name)), _) => format!("the token {name}"),
        (_, "command") => "a command on the server".to_owned(),
        (_, "first-start") => "the first start".to_owned(),
        (_, "policy") => "the rule for ambiguous mail".to_owned(),
        (_, "purge") => "the removal of old data".to_owned(),
        _ => by.to_owned(),
    }
}
