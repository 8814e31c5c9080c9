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

/// A text of somebody else's, such as the answer of a mail server, with each address in it masked.
pub fn mask_addresses(text: &str) -> String {
    let outside = |c: char| c.is_whitespace() || "<>()[]{},;:\"'`=".contains(c);
    let words = text.split_inclusive(outside).map(|piece| {
        let word = piece.trim_end_matches(outside);
        if word.contains('@') { format!("{}{}", mask_address(word), &piece[word.len()..]) } else { piece.to_owned() }
    });
    words.collect()
}
