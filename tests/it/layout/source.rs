//! Reads the paths out of Rust source, well enough for the layers: no macros are expanded and no
//! names looked up.

/// All paths in a source, with groups of `use` spelled out.
pub fn paths(source: &str) -> Vec<Vec<String>> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let after_path = at > 0 && (tokens[at - 1] == "::" || tokens[at - 1] == ".");
        let starts = is_word(&tokens[at]) && !after_path;
        if starts && tokens.get(at + 1).is_some_and(|next| next == "::") {
            at = expand(&tokens, at, &[], &mut found);
        } else {
            // `use sqlx;` and `use sqlx as db;` are paths of one word.
            if starts && at > 0 && tokens[at - 1] == "use" {
                found.push(vec![tokens[at].clone()]);
            }
            at += 1;
        }
    }
    found
}

/// Reads one path from `at`, following groups, and returns where reading goes on.
fn expand(tokens: &[String], mut at: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    let before = at;
                    at = expand(tokens, at, &path, found);
                    while tokens.get(at).is_some_and(|token| token != "," && token != "}") {
                        at += 1;
                    }
                    at += usize::from(tokens.get(at).is_some_and(|token| token == ","));
                    assert!(at > before, "a group that does not end");
                }
                return at + 1;
            }
            Some(word) if is_word(word) || word == "*" => path.push(word.to_owned()),
            // Generic arguments: what is inside is read as paths of its own.
            _ => break,
        }
        at += 1;
        if tokens.get(at).is_none_or(|token| token != "::") {
            break;
        }
        at += 1;
    }
    found.push(path);
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Words, `::` and single signs; comments, texts and characters are left out.
fn tokens(source: &str) -> Vec<String> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = &chars[at..];
        if rest.starts_with(&['/', '/']) {
            at += rest.iter().take_while(|c| **c != '\n').count();
        } else if rest.starts_with(&['/', '*']) {
            let end = rest.windows(2).position(|pair| pair == ['*', '/']);
            at += end.map_or(rest.len(), |end| end + 2);
        } else if let Some(length) = text_length(rest) {
            at += length;
        } else if c.is_alphanumeric() || c == '_' {
            let word: String = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
            at += word.chars().count();
            tokens.push(word);
        } else if rest.starts_with(&[':', ':']) {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            at += 1;
        }
    }
    tokens
}

/// The length of the text or character literal that begins here; lifetimes are none.
fn text_length(rest: &[char]) -> Option<usize> {
    let raw = usize::from(rest[0] == 'r');
    let hashes = rest[raw..].iter().take_while(|c| **c == '#').count();
    if raw == 1 && rest.get(1 + hashes) == Some(&'"') {
        let end: Vec<char> = std::iter::once('"').chain(vec!['#'; hashes]).collect();
        let body = &rest[2 + hashes..];
        let length = body.windows(end.len()).position(|part| part == end)?;
        return Some(2 + hashes + length + end.len());
    }
    if rest[0] == '\'' {
        return match rest {
            ['\'', '\\', ..] => Some(3 + rest[3..].iter().position(|c| *c == '\'')?),
            ['\'', _, '\'', ..] => Some(3),
            _ => None,
        };
    }
    if rest[0] != '"' {
        return None;
    }
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    Some(at + 1)
}
