//! What cannot be set up for a test: disks that fill up, and zones that differ.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use permit_notifier::commands::doctor::{
    Level,
    disk::judge_room,
    purges::judge,
    zone::{clock_changes, compare},
};
use permit_notifier::store::purge::LastPurge;

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
fn old_data_that_stays_is_told_while_somebody_should_remove_it() {
    let now: DateTime<Utc> = "2026-11-30T08:00:00Z".parse().unwrap();
    let last = |days, left| Some(LastPurge { started_at: now - TimeDelta::days(days), left });
    let (new, old) = (Some(TimeDelta::days(1)), Some(TimeDelta::days(4)));
    for (last, scanning, now, level, found) in [
        (None, None, Some(now), Level::Ok, "none has come to its end yet"),
        (None, new, Some(now), Level::Ok, "none has come to its end yet"),
        (None, old, Some(now), Level::Warning, "no purge has come to its end yet"),
        (last(2, 0), old, Some(now), Level::Ok, "began at 2026-11-28 08:00:00 UTC"),
        (last(4, 0), old, Some(now), Level::Warning, "began at 2026-11-26 08:00:00 UTC"),
        (last(4, 0), None, Some(now), Level::Ok, "began at"),
        (last(4, 0), old, None, Level::Ok, "began at"),
        (last(0, 2), old, Some(now), Level::Warning, "left 2 old rows"),
    ] {
        let check = judge(last, scanning, now);
        assert_eq!((check.level, check.advice.is_empty()), (level, level == Level::Ok), "{check:?}");
        assert!(check.found.contains(found), "{check:?}");
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
