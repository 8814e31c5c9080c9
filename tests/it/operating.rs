//! `docs/operating.md`, `docs/importing.md` and `docs/threat-model.md` stay true: what they name exists.

use std::collections::BTreeSet;

use permit_notifier::{
    domain::alarm::AlarmKind,
    files::{Field, Reason},
    telemetry::metrics,
};

use crate::{failure_cases, support::program::Desk};

const RUNBOOK: &str = include_str!("../../docs/operating.md");
const IMPORTING: &str = include_str!("../../docs/importing.md");
const THREATS: &str = include_str!("../../docs/threat-model.md");

/// What stands in backticks, blocks of code left out.
fn named(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| prose.split('`').skip(1).step_by(2)).collect()
}

fn is_variable(word: &str) -> bool {
    let upper = |c: char| c.is_ascii_uppercase() || c == '_';
    word.contains('_') && word.chars().all(upper)
}

/// The variables of the example file.
fn variables() -> BTreeSet<&'static str> {
    let entries = include_str!("../../.env.example").lines().filter_map(|line| line.strip_prefix('#'));
    entries.filter_map(|line| line.split_once('=')).map(|(name, _)| name).filter(|name| is_variable(name)).collect()
}

#[test]
fn every_alarm_has_its_line_in_the_runbook_and_no_other_has() {
    let rendered = metrics::recorder().expect("a recorder").handle().render();
    let kinds: BTreeSet<&str> = rendered
        .lines()
        .filter_map(|line| line.strip_prefix("permit_notifier_alarm{kind=\""))
        .filter_map(|line| line.split('"').next())
        .collect();
    assert!(kinds.len() > 10, "{kinds:?}");
    let rows = RUNBOOK.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeSet<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert_eq!(told, kinds);
}

#[test]
fn the_advice_about_mail_that_was_not_really_sent_is_the_same_in_both_places() {
    let row = RUNBOOK.lines().find(|line| line.starts_with("| `files_only`")).expect("its row");
    assert!(row.replace('`', "").contains(AlarmKind::FilesOnly.advice()), "{row}");
}

/// What stands in the first column of the tables of a chapter.
fn listed(document: &'static str, chapter: &str) -> BTreeSet<&'static str> {
    let (_, text) = document.split_once(&format!("\n## {chapter}\n")).expect("the chapter");
    let text = text.split_once("\n## ").map_or(text, |(text, _)| text);
    let first_cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    first_cells.flat_map(|(cell, _)| named(cell)).collect()
}

#[test]
fn every_field_and_every_reason_of_an_import_is_explained_and_no_other_is() {
    assert_eq!(listed(IMPORTING, "Columns"), Field::ALL.iter().map(|field| field.as_str()).collect());
    assert_eq!(listed(IMPORTING, "Reasons"), Reason::ALL.iter().map(|reason| reason.as_str()).collect());
}

#[test]
fn every_option_that_the_importing_document_names_exists() {
    let help = ["import", "export"].map(|command| Desk::new().run(&[command, "--help"]).out).concat();
    let options: BTreeSet<&str> = named(IMPORTING)
        .into_iter()
        .filter(|word| word.starts_with("--"))
        .filter_map(|word| word.split(' ').next())
        .collect();
    assert!(options.contains("--keep-good-rows"), "{options:?}");
    let unknown: Vec<_> = options.iter().filter(|option| !help.contains(*option)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_service_of_systemd_starts_with_the_machine() {
    for lines in ["[Unit]\nAfter=network-online.target", "[Install]\nWantedBy=multi-user.target"] {
        assert!(RUNBOOK.contains(lines), "{lines}");
    }
}

#[test]
fn every_variable_that_they_name_is_read() {
    let known = variables();
    let words = named(RUNBOOK).into_iter().chain(named(THREATS)).map(|word| word.split('=').next().unwrap_or_default());
    let named: BTreeSet<&str> = words.filter(|word| is_variable(word)).collect();
    assert!(named.contains("DATABASE_URL") && named.len() > 15, "{named:?}");
    // That one is the database's, in docker-compose.yml.
    let unknown: Vec<_> = named.difference(&known).filter(|name| **name != "POSTGRES_PASSWORD").collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_command_that_they_name_is_one() {
    let help = Desk::new().run(&["help"]).out;
    let known: BTreeSet<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.strip_prefix("  ").and_then(|line| line.split_whitespace().next()))
        .collect();
    assert!(known.contains("serve"), "{help}");
    let prose = named(RUNBOOK).into_iter().chain(named(THREATS));
    let commands: BTreeSet<&str> =
        prose.filter_map(|word| word.strip_prefix("permit-notifier ")?.split_whitespace().next()).collect();
    assert!(commands.contains("resume"), "{commands:?}");
    let unknown: Vec<_> = commands.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let paths: Vec<&str> = THREATS
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|line| line.trim_end_matches(" |").rsplit_once(" | ").map(|(_, tests)| tests))
        .flat_map(named)
        .collect();
    assert!(paths.len() > 15, "{paths:?}");
    let gone: Vec<_> = paths.into_iter().filter(|path| !failure_cases::exists(path)).collect();
    assert!(gone.is_empty(), "no such test: {gone:#?}");
}
