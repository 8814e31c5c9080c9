//! Addresses in logs: enough to recognise one, too little to write to it.

/// `maria@example.com` becomes `m***@example.com`; the number of stars says nothing about the
/// length. What is no address shows nothing at all.
pub fn mask_address(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) if !local.is_empty() && !domain.is_empty() => {
            let first: String = local.chars().take(1).collect();
            format!("{first}***@{domain}")
        }
        _ => "***".to_owned(),
    }
}

/// The same for each address in a text, such as a server's reply, which often repeats the one it was told.
pub fn mask_addresses(text: &str) -> String {
    let ends_word = |c: char| c.is_whitespace() || "<>()[]\"',;:".contains(c);
    text.split_inclusive(ends_word)
        .map(|piece| {
            let word = piece.trim_end_matches(ends_word);
            if word.contains('@') { piece.replacen(word, &mask_address(word), 1) } else { piece.to_owned() }
        })
        .collect()
}
