//! States and counts as pages show them.

/// A state: the word says it, the look only helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    pub word: String,
    pub look: &'static str,
}

impl Tag {
    /// With this look: `good`, `warn`, `bad` or none.
    pub fn new(word: impl Into<String>, look: &'static str) -> Self {
        Self { word: word.into(), look }
    }

    /// Of a notice, a copy, an attempt or a scan; their words mean the same wherever they stand.
    pub fn of(state: &str) -> Self {
        let look = match state {
            "sent" | "accepted" | "completed" => "good",
            "held" | "ambiguous" | "deferred" | "not_sent" | "suppressed" => "warn",
            "failed" | "bounced" | "rejected" | "abandoned" => "bad",
            _ => "",
        };
        Self::new(state.replace('_', " "), look)
    }
}

/// What a hash is known by.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A count that may have ended at `most`.
pub fn capped(count: i64, most: i64) -> String {
    if count >= most { format!("{most} or more") } else { count.to_string() }
}

/// What a server answered, with its codes before it. The words mostly begin with the codes themselves: they are said
/// once.
pub fn answered(code: Option<i32>, enhanced: Option<&str>, words: Option<&str>) -> String {
    let codes = [code.map(|code| code.to_string()), enhanced.map(str::to_owned)];
    let mut rest = words.unwrap_or_default().trim_start();
    let mut said = Vec::new();
    for code in codes.into_iter().flatten() {
        let after = rest.strip_prefix(code.as_str()).filter(|after| after.is_empty() || after.starts_with([' ', '-']));
        rest = after.map_or(rest, |after| after.trim_start_matches([' ', '-']));
        said.push(code);
    }
    if !rest.is_empty() {
        said.push(rest.to_owned());
    }
    said.join(" ")
}
