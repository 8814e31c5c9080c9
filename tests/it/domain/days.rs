//! Days: what the usual schedule owes and when, by example; months, zones and the turn of the day.

use chrono::{DateTime, NaiveDate};
use chrono_tz::Tz;
use permit_notifier::domain::{
    calendar::{day_in, plus_months},
    notice::{NoticeClass, NoticeState, ReasonCode},
    owed::{Action, Row, Unsent, judge},
    permit::{PermitStatus, Standing},
    schedule::{Schedule, ScheduleError, Step},
    timetable::{confirmation_send_by, timetable},
    window::SendWindow,
};
use uuid::Uuid;

use super::cases::notice_type;

fn d(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

fn permit(expires_on: &str) -> Standing {
    Standing {
        status: PermitStatus::Active,
        archived: false,
        notices_paused_until: None,
        takes_effect_on: None,
        expires_on: d(expires_on),
        period_since: d("2020-01-01"),
        notices_from: None,
    }
}

fn office_days() -> SendWindow {
    "Mon-Fri 08:00-18:00".parse().expect("a window")
}

/// The row of a step of the usual schedule.
fn row(permit: &Standing, step: &str, state: NoticeState, superseded: Option<ReasonCode>) -> Row {
    let usual = Schedule::usual();
    let slots = timetable(&usual, permit.expires_on, None);
    let (n, slot) = (1..).zip(&slots).find(|(_, slot)| slot.step.notice_type.as_str() == step).expect("a usual step");
    Row {
        id: Uuid::from_u128(n),
        notice_type: notice_type(step),
        class: NoticeClass::Statutory,
        expires_on: permit.expires_on,
        due_on: slot.due_on,
        send_by: slot.send_by,
        brought_forward: false,
        in_advance: false,
        held: false,
        state,
        superseded,
    }
}

/// The judgement as words, in the order of the schedule.
fn judged(permit: &Standing, rows: &[Row], today: &str, window: Option<&SendWindow>) -> Vec<String> {
    let says = |action: &Action| match action {
        Action::Claim(step, ..) => format!("claim {step}"),
        Action::Record(step, .., Unsent::TooLate) => format!("skip {step}"),
        Action::Record(step, .., unsent) => format!("record {step} {}", unsent.state().1),
        Action::Revive(_, step, _) => format!("revive {step}"),
        Action::Supersede(_, step, reason) => format!("supersede {step} {reason}"),
        Action::TooLate(_, step) => format!("too late {step}"),
        Action::Retime(..) => "retime".to_owned(),
    };
    judge(permit, &Schedule::usual(), rows, d(today), window).actions.iter().map(says).collect()
}

#[test]
fn the_usual_schedule_has_these_days_for_a_permit_that_expires_on_new_years_eve() {
    let usual = Schedule::usual();
    let found: Vec<_> = timetable(&usual, d("2026-12-31"), None)
        .into_iter()
        .map(|slot| (slot.step.notice_type.to_string(), slot.due_on.to_string(), slot.send_by.to_string()))
        .collect();
    let expected = [
        ("expires-90d", "2026-10-02", "2026-10-31"),
        ("expires-60d", "2026-11-01", "2026-11-30"),
        ("expires-30d", "2026-12-01", "2026-12-16"),
        ("expires-14d", "2026-12-17", "2026-12-23"),
        ("expires-7d", "2026-12-24", "2026-12-29"),
        ("expires-1d", "2026-12-30", "2026-12-30"),
        ("expires-today", "2026-12-31", "2026-12-31"),
        ("expired-1d", "2027-01-01", "2027-01-08"),
        ("expired-30d", "2027-01-30", "2027-02-06"),
    ];
    assert_eq!(found, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    let statutory = usual.steps().iter().filter(|step| step.class == NoticeClass::Statutory).count();
    assert_eq!(statutory, 9);
    assert_eq!(usual.confirmation().map(|step| step.class), Some(NoticeClass::Courtesy));
}

#[test]
fn a_leap_day_counts_as_a_day_before_an_expiry_in_march() {
    let usual = Schedule::usual();
    let due = |expires_on: &str| timetable(&usual, d(expires_on), None)[3].due_on;
    assert_eq!(due("2028-03-07"), d("2028-02-22"));
    assert_eq!(due("2027-03-07"), d("2027-02-21"));
}

#[test]
fn a_sunday_expiry_brings_one_mail_on_friday() {
    let (permit, window) = (permit("2026-11-29"), office_days());
    let sent = ["expires-90d", "expires-60d", "expires-30d", "expires-14d", "expires-7d"];
    let mut rows: Vec<Row> = sent.map(|step| row(&permit, step, NoticeState::Sent, None)).into();
    assert_eq!(judged(&permit, &rows, "2026-11-26", Some(&window)), [""; 0]);
    let friday = judge(&permit, &Schedule::usual(), &rows, d("2026-11-27"), Some(&window));
    let [Action::Claim(step, _, timing), Action::Record(earlier, .., Unsent::MoreUrgentStep)] = &friday.actions[..]
    else {
        panic!("{:?}", friday.actions)
    };
    assert_eq!((step.as_str(), earlier.as_str()), ("expires-today", "expires-1d"));
    assert_eq!((timing.due_on, timing.send_by, timing.brought_forward), (d("2026-11-29"), d("2026-11-29"), true));
    assert_eq!(friday.already, 5);

    // Without a window it would have been one on Saturday and one on Sunday.
    assert_eq!(judged(&permit, &rows, "2026-11-27", None), [""; 0]);
    assert_eq!(judged(&permit, &rows, "2026-11-28", None), ["claim expires-1d"]);

    let gave_way = Some(ReasonCode::MoreUrgentStep);
    rows.push(row(&permit, "expires-1d", NoticeState::Superseded, gave_way));
    rows.push(row(&permit, "expires-today", NoticeState::Sent, None));
    for weekend in ["2026-11-28", "2026-11-29"] {
        assert_eq!(judged(&permit, &rows, weekend, Some(&window)), [""; 0]);
    }
    assert_eq!(judged(&permit, &rows, "2026-11-30", Some(&window)), ["claim expired-1d"]);
}

#[test]
fn what_still_waits_on_the_friday_gives_way_to_the_step_brought_forward() {
    let permit = permit("2026-11-29");
    let rows: Vec<Row> = [
        ("expires-90d", NoticeState::Sent),
        ("expires-60d", NoticeState::Sent),
        ("expires-30d", NoticeState::Sent),
        ("expires-14d", NoticeState::Sent),
        ("expires-7d", NoticeState::Held),
    ]
    .map(|(step, state)| row(&permit, step, state, None))
    .into();
    assert_eq!(
        judged(&permit, &rows, "2026-11-27", Some(&office_days())),
        ["claim expires-today", "record expires-1d more_urgent_step", "supersede expires-7d more_urgent_step"]
    );
}

#[test]
fn a_step_written_in_advance_takes_the_place_of_what_still_waits_once_its_day_has_come() {
    let permit = permit("2026-11-29");
    let mut rows: Vec<Row> = ["expires-90d", "expires-60d", "expires-30d", "expires-14d"]
        .map(|step| row(&permit, step, NoticeState::Sent, None))
        .into();
    rows.push(row(&permit, "expires-7d", NoticeState::Pending, None));
    rows.push(Row {
        in_advance: true,
        held: false,
        brought_forward: true,
        ..row(&permit, "expires-today", NoticeState::Pending, None)
    });
    assert_eq!(judged(&permit, &rows, "2026-11-26", Some(&office_days())), [""; 0]);
    assert_eq!(
        judged(&permit, &rows, "2026-11-27", Some(&office_days())),
        ["record expires-1d more_urgent_step", "supersede expires-7d more_urgent_step"]
    );
    // Decided against beforehand, it takes nobody's place.
    let last = rows.len() - 1;
    rows[last].state = NoticeState::Cancelled;
    assert_eq!(judged(&permit, &rows, "2026-11-27", Some(&office_days())), ["record expires-1d more_urgent_step"]);
}

#[test]
fn after_three_weeks_without_a_scan_one_mail_goes_and_the_missed_steps_say_why_not() {
    let permit = permit("2026-12-31");
    let rows = ["expires-90d", "expires-60d", "expires-30d"].map(|step| row(&permit, step, NoticeState::Sent, None));
    assert_eq!(
        judged(&permit, &rows, "2026-12-30", None),
        ["claim expires-1d", "record expires-7d more_urgent_step", "record expires-14d more_urgent_step"]
    );
    let waits =
        [row(&permit, "expires-90d", NoticeState::Sent, None), row(&permit, "expires-60d", NoticeState::Pending, None)];
    assert_eq!(
        judged(&permit, &waits, "2026-12-18", None),
        ["too late expires-60d", "claim expires-14d", "record expires-30d more_urgent_step"]
    );
}

#[test]
fn past_the_last_day_of_the_latest_step_nothing_goes_and_every_step_says_so() {
    let found = judged(&permit("2026-12-31"), &[], "2027-01-09", None);
    assert_eq!(found[0], "skip expired-1d");
    assert_eq!(found.len(), 8);
    assert!(found[1..].iter().all(|what| what.starts_with("record ") && what.ends_with(" more_urgent_step")));
}

#[test]
fn a_permit_entered_a_week_before_it_expires_is_told_at_once() {
    let entered = Standing { period_since: d("2026-12-24"), ..permit("2026-12-31") };
    assert_eq!(judged(&entered, &[], "2026-12-24", None)[0], "claim expires-7d");
    // One that had expired before it was entered is not told so afterwards.
    let entered = Standing { period_since: d("2027-02-10"), ..permit("2026-12-31") };
    let found = judged(&entered, &[], "2027-02-10", None);
    assert_eq!(found[0], "skip expires-today");
    assert!(!found.iter().any(|what| what.contains("expired-")));
}

#[test]
fn an_import_tells_nobody_what_was_due_before_its_day() {
    let imported = Standing { notices_from: Some(d("2026-12-20")), ..permit("2026-12-31") };
    assert_eq!(judged(&imported, &[], "2026-12-20", None), [""; 0]);
    assert_eq!(judged(&imported, &[], "2026-12-24", None), ["claim expires-7d"]);
    let on_the_day = Standing { notices_from: Some(d("2026-12-24")), ..permit("2026-12-31") };
    assert_eq!(judged(&on_the_day, &[], "2026-12-24", None), ["claim expires-7d"]);
}

#[test]
fn a_term_that_begins_late_owes_only_what_falls_due_after_its_first_day() {
    let short = Standing { takes_effect_on: Some(d("2026-12-17")), ..permit("2026-12-31") };
    assert_eq!(judged(&short, &[], "2026-12-17", None), [""; 0]);
    assert_eq!(judged(&short, &[], "2026-12-24", None), ["claim expires-7d"]);
    let earlier = Standing { takes_effect_on: Some(d("2026-12-16")), ..permit("2026-12-31") };
    assert_eq!(judged(&earlier, &[], "2026-12-17", None), ["claim expires-14d"]);
}

#[test]
fn a_pause_includes_its_last_day_and_what_it_ended_comes_back_after_it() {
    let paused = Standing { notices_paused_until: Some(d("2026-12-26")), ..permit("2026-12-31") };
    let told = ["expires-90d", "expires-60d", "expires-30d", "expires-14d"];
    let mut rows: Vec<Row> = told.map(|step| row(&paused, step, NoticeState::Sent, None)).into();
    rows.push(row(&paused, "expires-7d", NoticeState::Pending, None));
    assert_eq!(judged(&paused, &rows, "2026-12-26", None), ["supersede expires-7d paused"]);
    rows[4] = row(&paused, "expires-7d", NoticeState::Superseded, Some(ReasonCode::Paused));
    assert_eq!(judged(&paused, &rows, "2026-12-26", None), [""; 0]);
    assert_eq!(judged(&paused, &rows, "2026-12-27", None), ["revive expires-7d"]);
    assert_eq!(judged(&paused, &rows, "2026-12-30", None), ["claim expires-1d"]);
    for reason in [ReasonCode::MoreUrgentStep, ReasonCode::Renewed, ReasonCode::AddressChanged] {
        rows[4] = row(&paused, "expires-7d", NoticeState::Superseded, Some(reason));
        assert_eq!(judged(&paused, &rows, "2026-12-27", None), [""; 0], "{reason}");
    }
    // A copy was in flight, and stays what it became; but its notice is owed again, with the copies to others.
    for state in [NoticeState::Ambiguous, NoticeState::Sent, NoticeState::Failed] {
        rows[4] = row(&paused, "expires-7d", state, Some(ReasonCode::Paused));
        assert_eq!(judged(&paused, &rows, "2026-12-27", None), ["revive expires-7d"], "{state}");
    }
}

#[test]
fn a_courtesy_step_never_takes_the_place_of_a_statutory_one() {
    let step = |name: &str, offset_days, class| Step {
        notice_type: notice_type(name),
        offset_days: Some(offset_days),
        class,
        late_by_days: 7,
        enabled: true,
    };
    let schedule = Schedule::new(vec![
        step("by-law", -30, NoticeClass::Statutory),
        step("a-kindness", -20, NoticeClass::Courtesy),
    ])
    .expect("a schedule");
    let slots = timetable(&schedule, d("2026-12-31"), None);
    assert_eq!(slots[0].send_by, d("2026-12-31"));
    let verdict = judge(&permit("2026-12-31"), &schedule, &[], d("2026-12-12"), None);
    let claimed = verdict.actions.iter().filter(|action| matches!(action, Action::Claim(..))).count();
    assert_eq!((claimed, verdict.actions.len()), (2, 2));
}

#[test]
fn a_confirmation_may_go_for_a_week_but_not_past_the_new_date() {
    assert_eq!(confirmation_send_by(d("2026-12-28"), d("2027-12-31")), d("2027-01-04"));
    assert_eq!(confirmation_send_by(d("2026-12-28"), d("2026-12-30")), d("2026-12-30"));
}

#[test]
fn a_schedule_names_each_notice_once_and_only_the_confirmation_has_no_offset() {
    let step = |name: &str, offset_days, late_by_days| Step {
        notice_type: notice_type(name),
        offset_days,
        class: NoticeClass::Statutory,
        late_by_days,
        enabled: true,
    };
    let refused = |steps: Vec<Step>| Schedule::new(steps).expect_err("no schedule");
    assert_eq!(refused(vec![step("a", Some(1), 0), step("a", Some(2), 0)]), ScheduleError::Twice(notice_type("a")));
    assert_eq!(refused(vec![step("renewed", Some(1), 0)]), ScheduleError::Offset(notice_type("renewed")));
    assert_eq!(refused(vec![step("a", None, 0)]), ScheduleError::Offset(notice_type("a")));
    for (offset, late) in [(3651, 0), (-3651, 0), (i32::MIN, 0), (1, -1), (1, 3651)] {
        assert_eq!(refused(vec![step("a", Some(offset), late)]), ScheduleError::Range(notice_type("a")));
    }
    assert!(Schedule::new(vec![step("a", Some(-3650), 3650), step("renewed", None, 0)]).is_ok());
}

#[test]
fn months_are_clamped_to_the_last_day_of_a_shorter_month() {
    for (from, months, to) in [
        ("2026-01-31", 1, "2026-02-28"),
        ("2028-01-31", 1, "2028-02-29"),
        ("2028-02-29", 12, "2029-02-28"),
        ("2028-02-29", 48, "2032-02-29"),
        ("2096-02-29", 48, "2100-02-28"),
        ("2026-08-31", 6, "2027-02-28"),
        ("2026-12-31", 12, "2027-12-31"),
        ("2026-03-31", -1, "2026-02-28"),
        ("2026-05-31", 0, "2026-05-31"),
    ] {
        assert_eq!(plus_months(d(from), months), d(to), "{from} and {months} months");
    }
    assert_eq!(plus_months(d("2026-01-31"), i32::MAX), NaiveDate::MAX);
    assert_eq!(plus_months(d("2026-01-31"), i32::MIN), NaiveDate::MIN);
}

#[test]
fn the_day_turns_at_local_midnight_on_a_host_that_runs_in_utc() {
    for (instant, zone, day) in [
        ("2026-06-30T21:59:59Z", "Europe/Berlin", "2026-06-30"),
        ("2026-06-30T22:00:00Z", "Europe/Berlin", "2026-07-01"),
        ("2026-12-31T22:59:59Z", "Europe/Berlin", "2026-12-31"),
        ("2026-12-31T23:00:00Z", "Europe/Berlin", "2027-01-01"),
        ("2027-01-01T05:59:59Z", "America/Chicago", "2026-12-31"),
        ("2027-01-01T06:00:00Z", "America/Chicago", "2027-01-01"),
        // The nights on which clocks change.
        ("2026-03-28T22:59:59Z", "Europe/Berlin", "2026-03-28"),
        ("2026-03-29T21:59:59Z", "Europe/Berlin", "2026-03-29"),
        ("2026-10-25T22:59:59Z", "Europe/Berlin", "2026-10-25"),
        ("2026-11-02T05:59:59Z", "America/Chicago", "2026-11-01"),
        // Here midnight itself does not exist on that day.
        ("2026-04-24T22:00:00Z", "Africa/Cairo", "2026-04-25"),
    ] {
        let instant = DateTime::parse_from_rfc3339(instant).expect("an instant").to_utc();
        let zone: Tz = zone.parse().expect("a zone");
        assert_eq!(day_in(instant, zone), d(day), "{instant} in {zone}");
    }
}
