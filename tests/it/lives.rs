//! Random lives of a few permits, on the real database and in memory: the rules alone, applied to rows that are kept
//! in a list, leave the same notices as changes and scans do.

mod model;

use chrono::{NaiveDate, TimeDelta};
use permit_notifier::domain::{permit::PermitStatus, schedule::Schedule};
use proptest::{prelude::*, test_runner::TestRunner};
use uuid::Uuid;

use self::model::Model;
use crate::support::office::{FOOD, TestOffice, step, usual_but};

/// Something that happens; permits are named by their place, dates by their place among a few.
#[derive(Debug, Clone)]
enum Event {
    DaysPass(i64),
    Scan,
    Date(usize, usize),
    Renew(usize, usize),
    Status(usize, bool),
    Pause(usize, Option<i64>),
    Archive(usize, bool),
    Address(usize, Option<usize>),
    Sent(usize),
    Schedule(usize),
}

#[derive(Debug, Clone)]
struct Life {
    window: bool,
    /// Date, address, and whether notices start only after a few days.
    permits: Vec<(usize, Option<usize>, bool)>,
    events: Vec<Event>,
}

/// Days from the beginning on which permits may expire.
const DATES: [i64; 7] = [-3, 4, 11, 18, 33, 64, 97];
const ADDRESSES: [&str; 2] = ["ada@example.org", "eve@example.org"];

fn event() -> impl Strategy<Value = Event> {
    let (permit, date) = (0..3_usize, 0..DATES.len());
    prop_oneof![
        4 => (0..9_i64).prop_map(Event::DaysPass),
        6 => Just(Event::Scan),
        3 => (permit.clone(), date.clone()).prop_map(|(p, d)| Event::Date(p, d)),
        2 => (permit.clone(), date).prop_map(|(p, d)| Event::Renew(p, d)),
        2 => (permit.clone(), any::<bool>()).prop_map(|(p, on)| Event::Status(p, on)),
        2 => (permit.clone(), prop::option::of(0..12_i64)).prop_map(|(p, d)| Event::Pause(p, d)),
        1 => (permit.clone(), any::<bool>()).prop_map(|(p, on)| Event::Archive(p, on)),
        2 => (permit.clone(), prop::option::of(0..ADDRESSES.len())).prop_map(|(p, a)| Event::Address(p, a)),
        3 => permit.prop_map(Event::Sent),
        1 => (0..4_usize).prop_map(Event::Schedule),
    ]
}

fn life() -> impl Strategy<Value = Life> {
    let permit = (0..DATES.len(), prop::option::weighted(0.8, 0..ADDRESSES.len()), prop::bool::weighted(0.2));
    let parts = (any::<bool>(), prop::collection::vec(permit, 3), prop::collection::vec(event(), 5..40));
    parts.prop_map(|(window, permits, events)| Life { window, permits, events })
}

fn schedule(which: usize) -> Schedule {
    usual_but(|steps| match which {
        1 => steps.retain(|step| step.notice_type.as_str() != "expires-14d"),
        2 => steps[2].offset_days = Some(-20),
        3 => {
            steps[4].enabled = false;
            steps.push(step("last-call", -2));
            steps.retain(|step| step.offset_days.is_some());
        }
        _ => {}
    })
}

async fn live(life: &Life) {
    let mut office = TestOffice::new().await;
    if life.window {
        office.set_window("Mon-Fri 08:00-18:00");
    }
    let begin = office.today();
    let date = |which: usize| begin + TimeDelta::days(DATES[which]);
    let mut model = Model::new(office.rules.window.clone());
    for (expires, address, late) in &life.permits {
        let notices_from = late.then(|| office.in_days(5));
        let text = address.map(|which| ADDRESSES[which]);
        let permit = office.create_permit(|p| {
            p.expires_on = date(*expires);
            p.holder_email = text.map(|text| text.parse().expect("an address"));
            p.notices_from = notices_from;
        });
        model.create(permit.await, date(*expires), *address, notices_from, office.today());
    }
    for event in &life.events {
        happen(&office, &mut model, event, &date).await;
        for permit in &model.permits {
            let kept = model::rows_of(&office, permit.id).await;
            assert_eq!(kept, permit.rows(), "after {event:?} on {}", office.today());
        }
    }
    office.close().await;
}

async fn happen(office: &TestOffice, model: &mut Model, event: &Event, date: &(impl Fn(usize) -> NaiveDate + Sync)) {
    let today = office.today();
    let id = |model: &Model, permit: usize| -> Uuid { model.permits[permit].id };
    match event {
        Event::DaysPass(days) => office.days_pass(*days),
        Event::Scan => {
            office.scan().await;
            model.scan(today);
        }
        Event::Date(permit, to) => {
            office.correct(id(model, *permit), |p| p.expires_on = date(*to)).await;
            model.change(*permit, today, |p| p.expires_on = date(*to));
        }
        Event::Renew(permit, to) => {
            let done = office.try_renew(id(model, *permit), date(*to)).await;
            let may = model.may_renew(*permit, date(*to), today);
            assert_eq!(done.is_ok(), may, "{done:?}");
            if may {
                model.renew(*permit, date(*to), today);
            }
        }
        Event::Status(permit, active) => {
            let status = if *active { PermitStatus::Active } else { PermitStatus::Suspended };
            office.set_status(id(model, *permit), status).await;
            model.change(*permit, today, |p| p.status = status);
        }
        Event::Pause(permit, days) => {
            let until = days.map(|days| office.in_days(days));
            office.pause(id(model, *permit), until).await;
            model.change(*permit, today, |p| p.notices_paused_until = until);
        }
        Event::Archive(permit, archived) => {
            if *archived {
                office.archive(id(model, *permit)).await;
            } else {
                office.restore(id(model, *permit)).await;
            }
            model.change(*permit, today, |p| p.archived = *archived);
        }
        Event::Address(permit, address) => {
            let email = address.map(|which| ADDRESSES[which].parse().expect("an address"));
            office.correct(id(model, *permit), |p| p.holder_email = email).await;
            model.address(*permit, *address, today);
        }
        Event::Sent(permit) => {
            office.transport(id(model, *permit), "accepted").await;
            model.sent(*permit);
        }
        Event::Schedule(which) => {
            office.reschedule(FOOD, schedule(*which)).await;
            model.reschedule(schedule(*which), today);
        }
    }
}

/// A letter ended with its step, and the step came back to a permit that has an address: the letter is no reason to call
/// the notice superseded when its mail is too late.
#[tokio::test]
async fn a_step_that_came_back_as_mail_and_not_as_a_letter_is_too_late_like_any_other() {
    let events =
        vec![Event::Schedule(3), Event::Schedule(0), Event::Address(1, Some(0)), Event::DaysPass(3), Event::Scan];
    live(&Life { window: false, permits: vec![(0, None, false), (1, None, false), (0, None, false)], events }).await;
}

#[test]
fn changes_and_scans_leave_what_the_rules_alone_would_leave() {
    // `PROPTEST_CASES` asks for more.
    let usual = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { usual.cases } else { 24 };
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 100, ..usual };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let done = TestRunner::new(config).run(&life(), |life| {
        runtime.block_on(live(&life));
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}
