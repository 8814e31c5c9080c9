//! What replicas must have in common, and in what they differ.

/// The parts of a fingerprint, in order.
const PARTS: [&str; 5] = ["version", "zone", "schedule", "from", "public URL"];
/// What parts it.
const BETWEEN: &str = "; ";

/// Part for part, in words that can be shown beside each other.
pub fn fingerprint(values: [&str; 5]) -> String {
    let parts = PARTS.iter().zip(values).map(|(name, value)| format!("{name} {value}"));
    parts.collect::<Vec<_>>().join(BETWEEN)
}

/// The parts in which not all of these fingerprints are alike.
pub fn differences<'f>(fingerprints: impl IntoIterator<Item = &'f str>) -> Vec<&'static str> {
    let all: Vec<[&str; 5]> = fingerprints.into_iter().map(values).collect();
    let differs = |at: &usize| all.iter().any(|values| values[*at] != all[0][*at]);
    (0..PARTS.len()).filter(differs).map(|at| PARTS[at]).collect()
}

/// The values, each from behind its name to the next one's. A sender's name may hold what parts them, so the names are
/// looked for and not the marks between.
fn values(fingerprint: &str) -> [&str; 5] {
    let mut rest = fingerprint;
    let mut values = [""; 5];
    for (at, value) in values.iter_mut().enumerate() {
        rest = rest.strip_prefix(PARTS[at]).unwrap_or(rest);
        let mark = PARTS.get(at + 1).map(|next| format!("{BETWEEN}{next} "));
        // Behind the sender there is nothing but the URL, which holds no such mark.
        let last = at + 2 == PARTS.len();
        let end = mark.and_then(|mark| if last { rest.rfind(&mark) } else { rest.find(&mark) });
        *value = &rest[..end.unwrap_or(rest.len())];
        rest = end.map_or("", |end| &rest[end + BETWEEN.len()..]);
    }
    values
}
