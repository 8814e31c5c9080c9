//! Random permits, schedules and notices, and the translation between the service's types and the oracle's.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, NaiveDate};
use permit_notifier::domain::{
    notice::NoticeType,
    owed::{Action, Row, Timing, Verdict},
    permit::Standing,
    schedule::{Schedule, Step},
    window::SendWindow,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use uuid::Uuid;

use super::oracle::{Day, Days, Fate, Key, Known, Line, Permit, Week, place, walk};

/// Everything a judgement depends on, in the oracle's types.
#[derive(Debug, Clone)]
pub struct Case {
    pub permit: Permit,
    pub lines: Vec<Line>,
    pub rows: Vec<Known>,
    /// Class with which each row was written.
    pub classes: Vec<&'static str>,
    pub today: Day,
    pub week: Option<Week>,
}

pub fn date((year, month, day): Day) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).expect("the oracle's calendar has only real days")
}

pub fn day(date: NaiveDate) -> Day {
    (date.year(), date.month(), date.day())
}

pub fn notice_type(name: &str) -> NoticeType {
    name.parse().expect("a notice type")
}

pub fn standing(permit: &Permit) -> Standing {
    Standing {
        status: permit.status.parse().expect("a permit status"),
        archived: permit.archived,
        notices_paused_until: permit.paused_until.map(date),
        takes_effect_on: permit.takes_effect.map(date),
        expires_on: date(permit.expires),
        period_since: date(permit.since),
        notices_from: permit.notices_from.map(date),
    }
}

pub fn schedule(lines: &[Line]) -> Schedule {
    let step = |line: &Line| Step {
        notice_type: notice_type(&line.name),
        offset_days: line.offset,
        class: line.class.parse().expect("a class"),
        late_by_days: line.late,
        enabled: line.on,
    };
    Schedule::new(lines.iter().map(step).collect()).expect("a valid schedule")
}

pub fn window(week: Option<Week>) -> Option<SendWindow> {
    let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let days: Vec<&str> = names.into_iter().zip(week?).filter_map(|(name, open)| open.then_some(name)).collect();
    Some(format!("{} 08:00-18:00", days.join(",")).parse().expect("a window"))
}

pub fn row(id: u128, known: &Known, class: &str) -> Row {
    Row {
        id: Uuid::from_u128(id),
        notice_type: notice_type(&known.name),
        class: class.parse().expect("a class"),
        expires_on: date(known.period),
        due_on: date(known.days.due),
        send_by: date(known.days.send_by),
        brought_forward: known.days.brought_forward,
        in_advance: known.in_advance,
        held: false,
        state: known.state.parse().expect("a notice state"),
        superseded: known.ended.map(|reason| reason.parse().expect("a reason code")),
    }
}

impl Case {
    pub fn judge(&self) -> (Vec<Row>, Verdict) {
        let rows: Vec<Row> =
            (1..).zip(&self.rows).zip(&self.classes).map(|((id, known), class)| row(id, known, class)).collect();
        let (standing, schedule, window) = (standing(&self.permit), schedule(&self.lines), window(self.week));
        let verdict =
            permit_notifier::domain::owed::judge(&standing, &schedule, &rows, date(self.today), window.as_ref());
        (rows, verdict)
    }
}

/// What actions do to which key, in the oracle's words. A key that two actions touch is a fault.
pub fn fates(actions: &[Action], rows: &[Row], lines: &[Line], expires: Day) -> Result<BTreeMap<Key, Fate>, String> {
    let days = |timing: Timing| Days {
        due: day(timing.due_on),
        send_by: day(timing.send_by),
        brought_forward: timing.brought_forward,
    };
    let of_row = |id: Uuid| {
        let row = rows.iter().find(|row| row.id == id).ok_or(format!("no row {id}"))?;
        Ok::<Key, String>((row.notice_type.to_string(), day(row.expires_on)))
    };
    let class_of = |name: &NoticeType| lines.iter().find(|line| line.name == name.as_str()).map(|line| line.class);
    let mut fates = BTreeMap::new();
    for action in actions {
        let (key, named, fate) = match action {
            Action::Claim(name, class, timing) | Action::Record(name, class, timing, _) => {
                if class_of(name) != Some(class.as_str()) {
                    return Err(format!("{action:?} has the wrong class"));
                }
                let fate = match action {
                    Action::Record(.., unsent) => {
                        let (state, reason) = unsent.state();
                        Fate::Recorded(days(*timing), state.as_str(), reason.as_str())
                    }
                    _ => Fate::Claimed(days(*timing)),
                };
                ((name.to_string(), expires), Some(name), fate)
            }
            Action::Revive(id, name, timing) => (of_row(*id)?, Some(name), Fate::Revived(days(*timing))),
            Action::Supersede(id, name, reason) => (of_row(*id)?, Some(name), Fate::Superseded(vec![reason.as_str()])),
            Action::TooLate(id, name) => (of_row(*id)?, Some(name), Fate::TooLate),
            Action::Retime(id, timing) => (of_row(*id)?, None, Fate::Retimed(days(*timing))),
        };
        if named.is_some_and(|name| name.as_str() != key.0) {
            return Err(format!("{action:?} names another step than its row"));
        }
        if fates.insert(key, fate).is_some() {
            return Err(format!("two actions for one key: {actions:?}"));
        }
    }
    Ok(fates)
}

/// Whether `found` is what the oracle allows, key for key.
pub fn agree(found: &BTreeMap<Key, Fate>, allowed: &BTreeMap<Key, Fate>) -> bool {
    found.len() == allowed.len()
        && found.iter().all(|(key, fate)| match (fate, allowed.get(key)) {
            (Fate::Superseded(reason), Some(Fate::Superseded(any))) => reason.iter().all(|r| any.contains(r)),
            (fate, allowed) => Some(fate) == allowed,
        })
}

/// Ends of February, ends of years, and nothing special.
pub fn anchor() -> impl Strategy<Value = Day> {
    let days = [(2024, 2, 29), (2027, 2, 28), (2028, 3, 1), (2026, 12, 31), (2029, 1, 6), (2100, 2, 28), (2026, 6, 15)];
    (select(days.to_vec()), -4..=4).prop_map(|(day, by)| walk(day, by))
}

fn offset() -> impl Strategy<Value = i32> {
    prop_oneof![
        5 => -12..=12,
        2 => select(vec![-14, -7, -7, -1, 0, 0, 1, 1, 7]),
        1 => select(vec![-90, -60, -30, 30, 45]),
    ]
}

fn dated(offset: impl Strategy<Value = i32>) -> impl Strategy<Value = Vec<(i32, bool, i32, bool)>> {
    vec((offset, prop::bool::weighted(0.7), 0..=9, prop::bool::weighted(0.85)), 0..=7)
}

/// Half of the schedules are so dense that steps fall on one day, or are brought forward to one.
pub fn lines() -> impl Strategy<Value = Vec<Line>> {
    let dated = prop_oneof![dated(offset()), dated(-3..=2)];
    (dated, option::of(prop::bool::weighted(0.8)), 0..8_usize).prop_map(|(lines, renewed, at)| {
        let class = |statutory| if statutory { "statutory" } else { "courtesy" };
        let mut lines: Vec<Line> = (0..)
            .zip(lines)
            .map(|(n, (offset, statutory, late, on))| Line {
                name: format!("step-{n}"),
                offset: Some(offset),
                class: class(statutory),
                late,
                on,
            })
            .collect();
        if let Some(on) = renewed {
            let line = Line { name: "renewed".to_owned(), offset: None, class: "courtesy", late: 7, on };
            lines.insert(at.min(lines.len()), line);
        }
        lines
    })
}

pub fn week() -> impl Strategy<Value = Option<Week>> {
    let week = prop_oneof![
        Just([true, true, true, true, true, false, false]),
        any::<[bool; 7]>(),
        (0..7_usize).prop_map(|open| std::array::from_fn(|day| day == open)),
    ];
    option::of(week.prop_map(|week| if week.contains(&true) { week } else { [true; 7] }))
}

fn permit(expires: Day, today: Day) -> impl Strategy<Value = Permit> {
    let status = prop_oneof![12 => Just("active"), 1 => select(vec!["suspended", "revoked", "surrendered", "closed"])];
    (
        status,
        prop::bool::weighted(0.06),
        option::weighted(0.2, -3..=2),
        option::weighted(0.4, -30..=3),
        -40..=12,
        option::weighted(0.4, -25..=12),
    )
        .prop_map(move |(status, archived, paused, effect, since, from)| Permit {
            status,
            archived,
            paused_until: paused.map(|by| walk(today, by)),
            takes_effect: effect.map(|by| walk(expires, by)),
            expires,
            since: walk(expires, since),
            notices_from: from.map(|by| walk(expires, by)),
        })
}

const ENDED: [&str; 9] = [
    "more_urgent_step",
    "period_changed",
    "not_active",
    "paused",
    "archived",
    "step_removed",
    "not_owed",
    "renewed",
    "address_changed",
];
const STATES: [&str; 8] = ["pending", "held", "ambiguous", "sent", "failed", "superseded", "skipped", "cancelled"];

#[derive(Debug, Clone)]
struct RowSeed {
    which: usize,
    other_period: Option<i32>,
    state: &'static str,
    reason: &'static str,
    in_flight: bool,
    moved: Option<(i32, i32, bool)>,
    ago: i32,
    in_advance: bool,
    class_changed: bool,
}

fn row_seed() -> impl Strategy<Value = RowSeed> {
    let state =
        prop_oneof![3 => Just("pending"), 1 => Just("held"), 2 => Just("superseded"), 4 => select(STATES.to_vec())];
    (
        0..10_usize,
        option::weighted(0.15, select(vec![-365, -3, 1, 366])),
        state,
        select(ENDED.to_vec()),
        prop::bool::weighted(0.15),
        option::weighted(0.25, (-2..=2, -2..=2, any::<bool>())),
        0..=9,
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(which, other_period, state, reason, in_flight, moved, ago, in_advance, class_changed)| {
            RowSeed { which, other_period, state, reason, in_flight, moved, ago, in_advance, class_changed }
        })
}

impl RowSeed {
    fn row(&self, lines: &[Line], expires: Day, today: Day, week: Option<Week>) -> (Known, &'static str) {
        let line = match self.which {
            8 => None,
            9 => lines.iter().find(|line| line.offset.is_none()),
            n => lines.get(n),
        };
        let period = self.other_period.map_or(expires, |by| walk(expires, by));
        let placed = place(lines, period, week).into_iter().find(|step| line.is_some_and(|l| l.name == step.line.name));
        let written = walk(today, -self.ago);
        let told = Days { due: written, send_by: walk(written, 7).min(period), brought_forward: false };
        let mut days = placed.as_ref().map_or(told, |step| step.days);
        if let (Some((by, send_by, brought_forward)), Some(_)) = (self.moved, placed) {
            days = Days { due: walk(days.due, by), send_by: walk(days.send_by, send_by), brought_forward };
        }
        let open = self.state == "pending" || self.state == "held";
        let state = if self.other_period.is_some() && !open { "pending" } else { self.state };
        let in_flight = self.in_flight
            && self.other_period.is_none()
            && ["pending", "ambiguous", "sent", "failed"].contains(&state);
        let class = match line.map_or("statutory", |line| line.class) {
            "statutory" if self.class_changed => "courtesy",
            "courtesy" if self.class_changed => "statutory",
            class => class,
        };
        let known = Known {
            name: line.map_or("gone", |line| &line.name).to_owned(),
            period,
            days,
            in_advance: self.in_advance,
            state,
            ended: (state == "superseded" || in_flight).then_some(self.reason),
        };
        (known, class)
    }
}

pub fn case() -> impl Strategy<Value = Case> {
    let near = prop_oneof![1 => (-28..=20).prop_map(|by| (None, by)), 3 => (0..7_usize, -2..=3).prop_map(|(n, by)| (Some(n), by))];
    (anchor(), lines(), week(), near)
        .prop_flat_map(|(expires, lines, week, (step, by))| {
            let start = step.and_then(|n| lines.get(n)).and_then(|line| line.offset).unwrap_or(0);
            let today = walk(expires, start + by);
            let rows = vec(row_seed(), 0..=6);
            (permit(expires, today), Just(lines), rows, Just(today), Just(week))
        })
        .prop_map(|(permit, lines, seeds, today, week)| {
            let mut keys = BTreeSet::new();
            let (rows, classes) = seeds
                .iter()
                .map(|seed| seed.row(&lines, permit.expires, today, week))
                .filter(|(row, _)| keys.insert((row.name.clone(), row.period)))
                .unzip();
            Case { permit, lines, rows, classes, today, week }
        })
}
