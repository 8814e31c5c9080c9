//! What cannot be set up for a test: disks that fill up, and zones that differ.

use std::path::Path;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use permit_notifier::commands::doctor::{
    Level,
    disk::judge_room,
    zone::{clock_changes, compare},
};

const GIBIBYTE: u64 = 1024 * 1024 * 1024;

#[test]
fn a_disk_that_fills_up_is_told_before_it_is_full() {
    for (free, level) in
        [(0, Level::Fault), (GIBIBYTE / 8, Level::Fault), (GIBIBYTE, Level::Warning), (4 * GIBIBYTE, Level::Ok)]
    {
        let check = judge_room("room for mail", Path::new("/data"), free);
        assert_eq!((check.level, check.advice.is_empty()), (level, level == Level::Ok), "{free}: {check:?}");
    }
}

#[test]
fn clock_changes_are_found_to_the_second() {
    let now: DateTime<Utc> = "2026-11-30T08:00:00.5Z".parse().unwrap();
    let found: Vec<String> = clock_changes(chrono_tz::Europe::Berlin, now).iter().map(DateTime::to_rfc3339).collect();
    assert_eq!(found[..2], ["2027-03-28T01:00:00+00:00", "2027-10-31T01:00:00+00:00"]);
    assert!(clock_changes(Tz::UTC, now).is_empty());
}

#[test]
fn other_rules_of_the_database_are_a_warning_that_names_the_moment() {
    let at: DateTime<Utc> = "2027-07-01T10:00:00Z".parse().unwrap();
    for (theirs, level) in [("2027-07-01T11:00:00", Level::Warning), ("2027-07-01T12:00:00", Level::Ok)] {
        let check = compare(chrono_tz::Europe::Berlin, &[at], &[theirs.parse().unwrap()], &[]);
        assert_eq!(check.level, level, "{check:?}");
    }
    let check = compare(chrono_tz::Europe::Berlin, &[at], &["2027-07-01T11:00:00".parse().unwrap()], &[]);
    assert!(check.found.contains("show 2027-07-01 12:00:00 by our rules"), "{}", check.found);
}
