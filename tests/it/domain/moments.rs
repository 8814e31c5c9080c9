//! What may happen in the life of a permit from one moment to the next.

use permit_notifier::domain::notice::NoticeState;
use proptest::{prelude::*, sample::select};

#[derive(Debug, Clone)]
pub enum Change {
    /// The permit gets a later date, with a confirmation that may or may not be mailed.
    Renew(i32, bool),
    /// Its date is corrected by so many days.
    Correct(i32),
    /// It gets a date back that it had before.
    Back,
    Pause(i32),
    Resume,
    Archive,
    Restore,
    Status(&'static str),
    /// The term takes effect so many days before it ends.
    TakesEffect(Option<i32>),
    /// Upkeep of the schedule; judged by the next scan only.
    Switch(usize),
    Move(usize, i32),
    OtherClass(usize),
    /// A person writes a step's row before its due day: held, released or cancelled.
    InAdvance(usize, NoticeState),
}

#[derive(Debug, Clone, Copy)]
pub enum Mail {
    Away,
    Accepts,
    RefusesForGood,
    Ambiguous,
    /// Still being sent when the day ends; settled the next day as accepted or as not sent.
    Slow(bool),
}

#[derive(Debug, Clone)]
pub struct Moment {
    /// Days since the last moment.
    pub gap: i32,
    pub change: Option<Change>,
    pub scan: bool,
    pub mail: Mail,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (1..=30, prop::bool::weighted(0.8)).prop_map(|(days, mailed)| Change::Renew(days, mailed)),
        2 => (-10..=10).prop_map(Change::Correct),
        3 => Just(Change::Back),
        2 => (0..=6).prop_map(Change::Pause),
        1 => Just(Change::Resume),
        1 => Just(Change::Archive),
        2 => Just(Change::Restore),
        1 => select(vec!["suspended", "revoked"]).prop_map(Change::Status),
        2 => Just(Change::Status("active")),
        1 => prop::option::of(0..=20).prop_map(Change::TakesEffect),
        1 => (0..7_usize).prop_map(Change::Switch),
        1 => (0..7_usize, -4..=4).prop_map(|(step, by)| Change::Move(step, by)),
        1 => (0..7_usize).prop_map(Change::OtherClass),
        6 => (0..7_usize, select(vec![NoticeState::Held, NoticeState::Pending, NoticeState::Cancelled]))
            .prop_map(|(step, state)| Change::InAdvance(step, state)),
    ]
}

pub fn moment() -> impl Strategy<Value = Moment> {
    let gap = prop_oneof![2 => Just(0), 8 => Just(1), 3 => 2..=4, 1 => Just(21)];
    let mail = prop_oneof![
        3 => Just(Mail::Away),
        4 => Just(Mail::Accepts),
        1 => Just(Mail::RefusesForGood),
        1 => Just(Mail::Ambiguous),
        2 => any::<bool>().prop_map(Mail::Slow),
    ];
    (gap, prop::option::weighted(0.35, change()), prop::bool::weighted(0.85), mail)
        .prop_map(|(gap, change, scan, mail)| Moment { gap, change, scan, mail })
}
