//! `docs/failure-cases.md` stays true: every test that it names exists.

use std::{fs, path::Path};

const LIST: &str = include_str!("../../docs/failure-cases.md");

/// The rows of its tables, without their heads.
fn cases() -> impl Iterator<Item = &'static str> {
    let is_head = |line: &&str| line.starts_with("| What") || line.starts_with("|---");
    LIST.lines().filter(|line| line.starts_with('|')).filter(move |line| !is_head(line))
}

/// What stands in backticks and is a path.
fn named(case: &str) -> impl Iterator<Item = &str> {
    case.split('`').skip(1).step_by(2).filter(|word| word.contains("::"))
}

/// Whether that file has a test of that name.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let begins = |line: &&str| line.contains(&format!("fn {name}("));
    let Some(place) = lines.iter().position(begins) else { return false };
    let attributes = lines[..place].iter().rev().take_while(|line| line.starts_with("#["));
    attributes.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// Whether there is a test of that path.
pub fn exists(path: &str) -> bool {
    let (modules, name) = path.rsplit_once("::").expect("a path");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(modules.replace("::", "/"));
    let sources = [file.with_extension("rs"), file.join("mod.rs")];
    sources.iter().filter_map(|source| fs::read_to_string(source).ok()).any(|source| has_test(&source, name))
}

#[test]
fn every_test_that_the_list_of_failure_cases_names_exists() {
    let gone: Vec<&str> = cases().flat_map(named).filter(|path| !exists(path)).collect();
    assert!(gone.is_empty(), "no such test: {gone:#?}");
}

#[test]
fn every_failure_case_says_what_protects_from_it_and_which_test_or_why_none() {
    assert!(cases().count() > 35);
    for case in cases() {
        let cells: Vec<&str> = case.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| cell.len() > 8), "{case}");
    }
}

#[test]
fn a_test_that_is_none_is_noticed() {
    assert!(exists("failure_cases::a_test_that_is_none_is_noticed"));
    for wrong in ["failure_cases::exists", "failure_cases::nowhere", "nowhere::a_test_that_is_none_is_noticed"] {
        assert!(!exists(wrong), "{wrong}");
    }
}
