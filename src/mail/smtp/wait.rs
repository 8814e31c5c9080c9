//! Times to wait that a server names in words: "greylisted, please try again in 300 seconds".
//!
//! Nothing but a number with a unit is believed, close behind a word that speaks of coming again: servers name many
//! other times, such as those within which somebody sent too much.

use std::time::Duration;

/// Who names more is asked again after so long.
const LONGEST: Duration = Duration::from_hours(6);
/// Most words between the one that speaks of coming again and the one that leads to the time.
const REACH: usize = 3;

/// The first such time in a text.
pub(super) fn named_wait(text: &str) -> Option<Duration> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.split_inclusive(|word| word.ends_with(['.', ',', ';', ':', '!', '?', ')'])).find_map(in_clause)
}

/// The first in what stands between two marks that end a thought.
fn in_clause(words: &[&str]) -> Option<Duration> {
    let bare = |word: &&str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-').to_owned();
    let words: Vec<String> = words.iter().map(bare).collect();
    let leads = |at: &usize| matches!(words[*at].as_str(), "in" | "after" | "for" | "within");
    (0..words.len()).filter(leads).find_map(|at| {
        let before = &words[at.saturating_sub(REACH + 1)..at];
        if before.iter().any(|word| speaks_of_coming_again(word)) { time(&words[at + 1..]) } else { None }
    })
}

fn speaks_of_coming_again(word: &str) -> bool {
    let listed = ["greylist", "graylist"].iter().any(|start| word.starts_with(start));
    listed
        || matches!(
            word,
            "try"
                | "retry"
                | "retrying"
                | "resend"
                | "again"
                | "back"
                | "wait"
                | "deferred"
                | "delayed"
                | "throttled"
                | "blocked"
        )
}

/// A whole number and its unit, as one word or two.
fn time(words: &[String]) -> Option<Duration> {
    let first = words.first()?;
    let (number, unit) = first.split_at(first.find(|c: char| !c.is_ascii_digit()).unwrap_or(first.len()));
    let unit = if unit.is_empty() { words.get(1)?.as_str() } else { unit };
    let seconds = match unit {
        "s" | "sec" | "second" | "seconds" => 1,
        "min" | "minute" | "minutes" => 60,
        "hour" | "hours" => 3600,
        _ => return None,
    };
    let number: u32 = number.parse().ok().filter(|number| *number > 0)?;
    Some(Duration::from_secs(u64::from(number) * seconds).min(LONGEST))
}
