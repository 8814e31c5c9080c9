//! The service's judgement equals the oracle's, for thousands of random permits, schedules, notices and days.

use permit_notifier::domain::{
    owed::confirm_renewal,
    timetable::{NotOwed, barred, not_owed, timetable},
};
use proptest::prelude::*;

use super::{
    cases::{agree, case, date, day, fates, schedule, standing, window},
    oracle,
};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

fn word(reason: NotOwed) -> &'static str {
    match reason {
        NotOwed::NotActive(_) => "not_active",
        NotOwed::Archived => "archived",
        NotOwed::Paused(_) => "paused",
        NotOwed::TermNotBegun(_) => "term not begun",
        NotOwed::BeforeNoticesFrom(_) => "before notices_from",
        NotOwed::BeforeThisDate(_) => "before this date",
    }
}

/// One reason that holds where any holds, none where none does.
fn named_as(found: Option<NotOwed>, allowed: &[&str]) -> bool {
    found.map_or(allowed.is_empty(), |reason| allowed.contains(&word(reason)))
}

proptest! {
    #![proptest_config(config(8_000))]

    #[test]
    fn every_step_and_every_open_notice_has_the_fate_that_the_rules_give_it(case in case()) {
        let (rows, verdict) = case.judge();
        let found = fates(&verdict.actions, &rows, &case.lines, case.permit.expires).map_err(TestCaseError::fail)?;
        let allowed = oracle::judge(&case.permit, &case.lines, &case.rows, case.today, case.week);
        prop_assert!(agree(&found, &allowed), "\nfound   {found:?}\nallowed {allowed:?}");
        let already = oracle::already(&case.permit, &case.lines, &case.rows, case.today, case.week);
        prop_assert_eq!(verdict.already, already);
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn every_step_has_the_days_that_the_rules_give_it(case in case()) {
        let (schedule, window) = (schedule(&case.lines), window(case.week));
        let slots = timetable(&schedule, date(case.permit.expires), window.as_ref());
        let mut found: Vec<_> = slots
            .iter()
            .map(|slot| {
                let name = slot.step.notice_type.to_string();
                let forward = slot.is_brought_forward();
                (name, day(slot.due_on), day(slot.send_by), day(slot.first_day), forward)
            })
            .collect();
        let mut allowed: Vec<_> = oracle::place(&case.lines, case.permit.expires, case.week)
            .into_iter()
            .map(|s| (s.line.name.clone(), s.days.due, s.days.send_by, s.first, s.days.brought_forward))
            .collect();
        found.sort();
        allowed.sort();
        prop_assert_eq!(found, allowed);
    }

    #[test]
    fn every_step_that_is_not_owed_names_a_reason_that_holds(case in case()) {
        let (standing, schedule) = (standing(&case.permit), schedule(&case.lines));
        let found = barred(&standing, date(case.today));
        let allowed = oracle::barred(&case.permit, case.today);
        prop_assert!(named_as(found, &allowed), "{found:?} but {allowed:?}");
        for slot in timetable(&schedule, standing.expires_on, None) {
            let found = not_owed(&standing, &slot);
            let allowed = oracle::not_owed(&case.permit, day(slot.due_on));
            prop_assert!(named_as(found, &allowed), "{found:?} but {allowed:?}");
        }
    }

    #[test]
    fn a_renewal_writes_its_confirmation_and_what_that_makes_needless(
        case in case(),
        may_be_mailed in prop::bool::weighted(0.8),
    ) {
        let (standing, schedule, window) = (standing(&case.permit), schedule(&case.lines), window(case.week));
        let today = date(case.today);
        let actions = confirm_renewal(&standing, &schedule, &[], may_be_mailed, today, window.as_ref());
        let found = fates(&actions, &[], &case.lines, case.permit.expires).map_err(TestCaseError::fail)?;
        let allowed = oracle::confirm_renewal(&case.permit, &case.lines, may_be_mailed, case.today, case.week);
        prop_assert!(agree(&found, &allowed), "\nfound   {found:?}\nallowed {allowed:?}");
    }

    #[test]
    fn a_renewal_writes_no_key_that_stands_already(case in case(), may_be_mailed in any::<bool>()) {
        let (rows, _) = case.judge();
        let (standing, schedule, window) = (standing(&case.permit), schedule(&case.lines), window(case.week));
        let today = date(case.today);
        let actions = confirm_renewal(&standing, &schedule, &rows, may_be_mailed, today, window.as_ref());
        let written = fates(&actions, &rows, &case.lines, case.permit.expires).map_err(TestCaseError::fail)?;
        for (key, fate) in &written {
            let stands = case.rows.iter().any(|row| (&row.name, row.period) == (&key.0, key.1));
            let is_new = matches!(fate, oracle::Fate::Claimed(_) | oracle::Fate::Recorded(..));
            prop_assert!(!(stands && is_new), "{key:?} is written again: {fate:?}");
        }
    }
}

#[test]
fn the_oracles_calendar_agrees_with_chronos() {
    let mut day = (2023, 12, 20);
    for expected in date(day).iter_days().take(40_000) {
        assert_eq!(date(day), expected);
        assert_eq!(oracle::yesterday(oracle::tomorrow(day)), day);
        day = oracle::tomorrow(day);
    }
    for (day, weekday) in [((2024, 2, 29), 3), ((2026, 11, 29), 6), ((2100, 3, 1), 0)] {
        assert_eq!(oracle::weekday(day), weekday);
    }
}
