//! What becomes of every step of one permit on one day: the rules of what is owed, in one function.
//!
//! [`judge`] looks at a permit, its schedule and the notices it already has, and says what is to be written.
//! Scans, changes, imports, dry runs and releases all ask it, so that they cannot disagree. For each class:
//!
//! 1. Steps that are not owed are left out; of the owed ones that are due, L is the latest.
//! 2. L without a notice is claimed if its `send_by` has not passed, else recorded as skipped.
//! 3. Earlier ones without a notice are recorded as superseded by a more urgent step.
//! 4. When L is claimed, what is still open of earlier ones is superseded as well. The same when L is open
//!    already (written in advance, or come here from another class): of what is due only one of a class goes.
//!
//! A notice that was superseded because the permit changed counts as none when L is looked for; it is revived
//! if it is L and may still go, else left as it is.

use std::cmp::Reverse;

use chrono::NaiveDate;
use uuid::Uuid;

use super::{
    notice::{NoticeClass, NoticeState, NoticeType, ReasonCode},
    permit::Standing,
    schedule::Schedule,
    timetable::{NotOwed, Slot, barred, confirmation_send_by, not_owed, timetable},
    window::SendWindow,
};

/// A notice that the permit already has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: Uuid,
    /// Its step.
    pub notice_type: NoticeType,
    /// Its class when it was written.
    pub class: NoticeClass,
    /// Its expiry period.
    pub expires_on: NaiveDate,
    /// Its due day.
    pub due_on: NaiveDate,
    /// Last day on which it may go.
    pub send_by: NaiveDate,
    /// It goes before its due day.
    pub brought_forward: bool,
    /// A person wrote it before its due day.
    pub in_advance: bool,
    /// Its state.
    pub state: NoticeState,
    /// Why it was superseded, if it was; set while a copy is still in flight too.
    pub superseded: Option<ReasonCode>,
    /// It was held when it was superseded, and comes back held.
    pub held: bool,
}

impl Row {
    /// Still to be sent, and not superseded while in flight.
    fn is_open(&self) -> bool {
        self.state.is_open() && self.superseded.is_none()
    }

    /// Sent or not, nobody knows yet.
    fn is_unresolved(&self) -> bool {
        self.state == NoticeState::Ambiguous && self.superseded.is_none()
    }

    /// Superseded for a reason that can end. A copy that was in flight then stays what it became, but its notice is
    /// owed again, and so are the other copies.
    pub fn is_revivable(&self) -> bool {
        use NoticeState as S;
        self.superseded.is_some_and(ReasonCode::is_revivable)
            && matches!(self.state, S::Superseded | S::Pending | S::Held | S::Ambiguous | S::Sent | S::Failed)
    }
}

/// When a notice may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Its due day.
    pub due_on: NaiveDate,
    /// Last day on which it may go.
    pub send_by: NaiveDate,
    /// It goes before its due day.
    pub brought_forward: bool,
}

impl From<&Slot<'_>> for Timing {
    fn from(slot: &Slot<'_>) -> Self {
        Self { due_on: slot.due_on, send_by: slot.send_by, brought_forward: slot.is_brought_forward() }
    }
}

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Record a notice that is owed now; it becomes pending, or held.
    Claim(NoticeType, NoticeClass, Timing),
    /// Record a notice that is owed but not sent, with the reason.
    Record(NoticeType, NoticeClass, Timing, Unsent),
    /// A superseded notice is owed again.
    Revive(Uuid, NoticeType, Timing),
    /// An open notice is no longer owed.
    Supersede(Uuid, NoticeType, ReasonCode),
    /// An open notice is past its last day.
    TooLate(Uuid, NoticeType),
    /// An open notice has other days now.
    Retime(Uuid, Timing),
}

/// How a notice ends in the moment it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// Past its last day.
    TooLate,
    /// A later step of its class goes instead.
    MoreUrgentStep,
    /// The confirmation of the renewal tells the date.
    Renewed,
    /// A courtesy to somebody who may not be mailed.
    NoAddress,
}

impl Unsent {
    /// State and reason of the row.
    pub fn state(self) -> (NoticeState, ReasonCode) {
        match self {
            Self::TooLate => (NoticeState::Skipped, ReasonCode::TooLate),
            Self::MoreUrgentStep => (NoticeState::Superseded, ReasonCode::MoreUrgentStep),
            Self::Renewed => (NoticeState::Superseded, ReasonCode::Renewed),
            Self::NoAddress => (NoticeState::Skipped, ReasonCode::NoAddress),
        }
    }
}

/// What [`judge`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// What is to be written, in the order of the schedule.
    pub actions: Vec<Action>,
    /// Steps that are owed and due and have a notice already.
    pub already: usize,
}

/// Judges one permit on `today`. `rows` are all its notices of the present period and the open ones of others.
pub fn judge(
    standing: &Standing,
    schedule: &Schedule,
    rows: &[Row],
    today: NaiveDate,
    window: Option<&SendWindow>,
) -> Verdict {
    let barred = barred(standing, today);
    let slots = timetable(schedule, standing.expires_on, window);
    let mut verdict = Verdict { actions: keep_up(standing, schedule, rows, today, window), already: 0 };
    if barred.is_none() {
        let present: Vec<&Row> = rows.iter().filter(|row| row.expires_on == standing.expires_on).collect();
        for class in NoticeClass::ALL {
            let owed = slots.iter().filter(|slot| slot.step.class == *class);
            let owed: Vec<_> =
                owed.filter(|slot| slot.first_day <= today && not_owed(standing, slot).is_none()).collect();
            claim_latest(&owed, &present, today, &mut verdict);
        }
        verdict.actions.extend(revive_confirmation(standing, schedule, &present, today));
    }
    verdict
}

/// The part of [`judge`] that claims nothing: what becomes of open notices because the permit, the schedule or
/// the day changed. A change of a schedule asks this alone, and leaves what is newly due to the next scan.
pub fn keep_up(
    standing: &Standing,
    schedule: &Schedule,
    rows: &[Row],
    today: NaiveDate,
    window: Option<&SendWindow>,
) -> Vec<Action> {
    let barred = barred(standing, today);
    let slots = timetable(schedule, standing.expires_on, window);
    let live = rows.iter().filter(|row| row.is_open() || row.is_unresolved());
    live.filter_map(|row| {
        let action = upkeep(standing, schedule, &slots, barred, row, today)?;
        // One that nobody knows about only learns that it is no longer owed, so that it is not sent again.
        (row.is_open() || matches!(action, Action::Supersede(..))).then_some(action)
    })
    .collect()
}

/// What becomes of one open notice because the permit, the schedule or the day changed.
fn upkeep(
    standing: &Standing,
    schedule: &Schedule,
    slots: &[Slot<'_>],
    barred: Option<NotOwed>,
    row: &Row,
    today: NaiveDate,
) -> Option<Action> {
    let supersede = |reason| Some(Action::Supersede(row.id, row.notice_type.clone(), reason));
    if row.expires_on != standing.expires_on {
        return supersede(ReasonCode::PeriodChanged);
    }
    match barred {
        Some(NotOwed::Archived) => return supersede(ReasonCode::Archived),
        Some(NotOwed::NotActive(_)) => return supersede(ReasonCode::NotActive),
        Some(_) => return supersede(ReasonCode::Paused),
        None => {}
    }
    let mut timing = Timing { due_on: row.due_on, send_by: row.send_by, brought_forward: row.brought_forward };
    if row.notice_type.is_renewed() {
        if schedule.confirmation().is_none() {
            return supersede(ReasonCode::StepRemoved);
        }
    } else {
        let Some(slot) = slots.iter().find(|slot| slot.step.notice_type == row.notice_type) else {
            return supersede(ReasonCode::StepRemoved);
        };
        let early = slot.first_day > today && !row.in_advance;
        if early || not_owed(standing, slot).is_some() {
            return supersede(ReasonCode::NotOwed);
        }
        timing = Timing::from(slot);
    }
    if today > timing.send_by {
        return Some(Action::TooLate(row.id, row.notice_type.clone()));
    }
    let moved =
        timing.due_on != row.due_on || timing.send_by != row.send_by || timing.brought_forward != row.brought_forward;
    moved.then_some(Action::Retime(row.id, timing))
}

/// The rule of L for one class; `owed` are its owed steps that are due.
fn claim_latest(owed: &[&Slot<'_>], present: &[&Row], today: NaiveDate, verdict: &mut Verdict) {
    let row_of = |slot: &Slot<'_>| present.iter().find(|row| row.notice_type == slot.step.notice_type);
    let Some(latest) = owed.iter().max_by_key(|slot| slot.urgency()) else { return };
    let may_go = today <= latest.send_by;
    let latest_goes = match row_of(latest) {
        None => {
            let (step, timing) = (latest.step, Timing::from(*latest));
            verdict.actions.push(if may_go {
                Action::Claim(step.notice_type.clone(), step.class, timing)
            } else {
                Action::Record(step.notice_type.clone(), step.class, timing, Unsent::TooLate)
            });
            may_go
        }
        Some(row) if row.is_revivable() && may_go => {
            verdict.actions.push(Action::Revive(row.id, row.notice_type.clone(), Timing::from(*latest)));
            true
        }
        Some(row) => {
            verdict.already += 1;
            row.is_open() && may_go
        }
    };
    let mut earlier: Vec<_> = owed.iter().filter(|slot| slot.urgency() < latest.urgency()).collect();
    earlier.sort_by_key(|slot| Reverse(slot.urgency()));
    let mut one_goes = latest_goes;
    for slot in earlier {
        match row_of(slot) {
            None => verdict.actions.push(Action::Record(
                slot.step.notice_type.clone(),
                slot.step.class,
                Timing::from(*slot),
                Unsent::MoreUrgentStep,
            )),
            Some(row) => {
                verdict.already += 1;
                // Past its last day it has ended already.
                if row.is_open() && today <= slot.send_by {
                    if one_goes {
                        supersede_instead(&mut verdict.actions, row);
                    }
                    one_goes = true;
                }
            }
        }
    }
}

/// Supersedes an open earlier notice, whatever new days it was to have.
fn supersede_instead(actions: &mut Vec<Action>, row: &Row) {
    actions.retain(|action| !matches!(action, Action::Retime(id, _) if *id == row.id));
    actions.push(Action::Supersede(row.id, row.notice_type.clone(), ReasonCode::MoreUrgentStep));
}

/// A confirmation that was superseded because the permit changed is owed again when that ends in time.
fn revive_confirmation(standing: &Standing, schedule: &Schedule, present: &[&Row], today: NaiveDate) -> Option<Action> {
    schedule.confirmation()?;
    let row = present.iter().find(|row| row.notice_type.is_renewed() && row.is_revivable())?;
    let send_by = confirmation_send_by(row.due_on, standing.expires_on);
    let timing = Timing { due_on: row.due_on, send_by, brought_forward: false };
    (today <= send_by).then(|| Action::Revive(row.id, row.notice_type.clone(), timing))
}

/// What a renewal on `today` writes besides what [`judge`] finds: the confirmation, and the steps of the new
/// period that it makes needless. `may_be_mailed`: at least one copy of a courtesy notice may be mailed.
/// Empty when the new date has passed or the permit may be sent nothing. Judge the permit afterwards with these
/// among its rows.
pub fn confirm_renewal(
    standing: &Standing,
    schedule: &Schedule,
    rows: &[Row],
    may_be_mailed: bool,
    today: NaiveDate,
    window: Option<&SendWindow>,
) -> Vec<Action> {
    let Some(step) = schedule.confirmation() else { return Vec::new() };
    if standing.expires_on < today || barred(standing, today).is_some() {
        return Vec::new();
    }
    let has_row = |notice_type: &NoticeType| {
        rows.iter().any(|row| row.expires_on == standing.expires_on && &row.notice_type == notice_type)
    };
    if has_row(&step.notice_type) {
        return Vec::new();
    }
    let timing =
        Timing { due_on: today, send_by: confirmation_send_by(today, standing.expires_on), brought_forward: false };
    let name = step.notice_type.clone();
    if !may_be_mailed {
        return vec![Action::Record(name, step.class, timing, Unsent::NoAddress)];
    }
    let mut actions = vec![Action::Claim(name, step.class, timing)];
    for slot in timetable(schedule, standing.expires_on, window) {
        let needless = slot.first_day <= today && not_owed(standing, &slot).is_none();
        if needless && !has_row(&slot.step.notice_type) {
            let name = slot.step.notice_type.clone();
            actions.push(Action::Record(name, slot.step.class, Timing::from(&slot), Unsent::Renewed));
        }
    }
    actions
}
