//! What holds of every statement in the store.

use std::path::Path;

use super::sources;

/// Statements that take whatever columns a table has. When another version of the program adds one, the database
/// refuses what a process has prepared, on each connection for as long as it lives.
fn open_ended(source: &str) -> Vec<String> {
    let words: Vec<&str> = source.split_whitespace().collect();
    let is_star = |word: &str| {
        let word = word.trim_end_matches([',', '"', ')', '\\']);
        word == "*"
            || word.strip_suffix(".*").is_some_and(|table| table.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    let begins = |word: &str| {
        let word = word.trim_start_matches(['"', '(', '#', 'r']);
        matches!(word, "SELECT" | "DISTINCT" | "RETURNING") || word.ends_with(',')
    };
    // The columns of these are named where they are made.
    let is_made_here = |words: &[&str]| matches!(words, ["FROM", from, ..] if from.starts_with("unnest("));
    (1..words.len())
        .filter(|at| is_star(words[*at]) && begins(words[at - 1]) && !is_made_here(&words[at + 1..]))
        .map(|at| words[at - 1..words.len().min(at + 3)].join(" "))
        .collect()
}

#[test]
fn every_statement_names_its_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 30, "the sources were not found");
    for file in files {
        let found = open_ended(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(found, Vec::<String>::new(), "{}", file.display());
    }
}

#[test]
fn an_open_list_of_columns_is_found() {
    for open in [
        "\"SELECT * FROM permits\"",
        "SELECT DISTINCT * FROM permits",
        "UPDATE x SET y = 1 RETURNING *\"",
        "SELECT p.id, n.* FROM n",
    ] {
        assert_eq!(open_ended(open).len(), 1, "{open}");
    }
    for named in
        ["SELECT count(*) FROM permits", "SELECT * FROM unnest($1::uuid[])", "SELECT a * b FROM c", "&mut *connection"]
    {
        assert_eq!(open_ended(named), Vec::<String>::new(), "{named}");
    }
}
