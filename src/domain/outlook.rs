//! What will become of each step of a permit's present period, as things are now, and why.

use chrono::NaiveDate;

use super::{
    calendar::{LAST_DAY, plus_days},
    notice::{NoticeState, NoticeType},
    owed::{Action, Row, judge},
    permit::Standing,
    schedule::Schedule,
    timetable::{NotOwed, Slot, barred, not_owed, timetable},
    window::SendWindow,
};

/// What will become of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prospect {
    /// The step.
    pub notice_type: NoticeType,
    /// Its due day; none for a confirmation that no renewal has asked for.
    pub due_on: Option<NaiveDate>,
    /// Last day on which it may go.
    pub send_by: Option<NaiveDate>,
    /// Place of its row among those given, if it has one.
    pub row: Option<usize>,
    /// The day from which it will be sent if nothing changes; none if it will not.
    pub goes_on: Option<NaiveDate>,
    /// Why, as far as the row's own reason does not say it.
    pub why: String,
    /// The row stays as it is, so its own reason says more.
    pub stays: bool,
}

/// Every step of the schedule, in its order, as it looks on `today`.
pub fn outlook(
    standing: &Standing,
    schedule: &Schedule,
    rows: &[Row],
    today: NaiveDate,
    window: Option<&SendWindow>,
) -> Vec<Prospect> {
    let slots = timetable(schedule, standing.expires_on, window);
    let verdict = judge(standing, schedule, rows, today, window);
    let view = View { standing, slots: &slots, actions: &verdict.actions, rows, today };
    let steps = schedule.steps().iter();
    steps
        .map(|step| {
            let row = rows
                .iter()
                .position(|row| row.notice_type == step.notice_type && row.expires_on == standing.expires_on);
            let slot = slots.iter().find(|slot| slot.step.notice_type == step.notice_type);
            let (goes_on, why) = view.tell(row, slot, step.notice_type.is_renewed(), step.enabled);
            let of_row = row.map(|row| (rows[row].due_on, rows[row].send_by));
            let days = of_row.or_else(|| slot.map(|slot| (slot.due_on, slot.send_by)));
            let due_on = days.map(|(due_on, _)| due_on);
            let from_step = || step.offset_days.map(|offset| plus_days(standing.expires_on, i64::from(offset)));
            Prospect {
                notice_type: step.notice_type.clone(),
                due_on: due_on.or_else(from_step).filter(|day| *day <= LAST_DAY),
                send_by: days.map(|(_, send_by)| send_by),
                row,
                goes_on,
                why,
                stays: row.is_some_and(|row| view.is_left(&rows[row]) && !view.waits_for_a_pause(&rows[row])),
            }
        })
        .collect()
}

struct View<'v> {
    standing: &'v Standing,
    slots: &'v [Slot<'v>],
    actions: &'v [Action],
    rows: &'v [Row],
    today: NaiveDate,
}

impl View<'_> {
    fn tell(
        &self,
        row: Option<usize>,
        slot: Option<&Slot<'_>>,
        renewed: bool,
        enabled: bool,
    ) -> (Option<NaiveDate>, String) {
        if let Some(row) = row.map(|row| &self.rows[row]) {
            return match slot {
                Some(slot) if self.waits_for_a_pause(row) => self.tell_after_pause(row, slot),
                _ => self.tell_row(row),
            };
        }
        if !enabled {
            return (None, "The step is switched off.".to_owned());
        }
        match slot {
            Some(slot) => self.tell_slot(slot),
            None if renewed => (None, "It is sent when the permit is renewed.".to_owned()),
            None => (None, format!("Its day would be after {LAST_DAY}.")),
        }
    }

    /// Whether nothing is done with a notice today.
    fn is_left(&self, row: &Row) -> bool {
        !self.actions.iter().any(|action| {
            matches!(action, Action::Revive(id, ..) | Action::Supersede(id, ..) | Action::TooLate(id, _) if *id == row.id)
        })
    }

    /// A pause that lasts took it back: when that ends it is owed again, unless its last day has passed.
    fn waits_for_a_pause(&self, row: &Row) -> bool {
        row.state == NoticeState::Superseded
            && row.is_revivable()
            && matches!(barred(self.standing, self.today), Some(NotOwed::Paused(_)))
    }

    fn tell_after_pause(&self, row: &Row, slot: &Slot<'_>) -> (Option<NaiveDate>, String) {
        match self.tell_slot(slot) {
            (Some(_), _) if row.held => (
                None,
                "The pause took it back; when that ends it is held again, until somebody releases it.".to_owned(),
            ),
            (Some(day), why) => (Some(day), format!("The pause took it back. {why}")),
            (None, why) => (None, why),
        }
    }

    /// A step that has a notice.
    fn tell_row(&self, row: &Row) -> (Option<NaiveDate>, String) {
        let found = self.actions.iter().find_map(|action| match action {
            Action::Revive(id, ..) if *id == row.id && row.held => {
                Some((None, "It is owed again, and held until somebody releases or cancels it.".to_owned()))
            }
            Action::Revive(id, ..) if *id == row.id => {
                Some((Some(self.today), "It is owed again: what kept it back has ended.".to_owned()))
            }
            Action::Supersede(id, _, reason) if *id == row.id => Some((None, reason.sentence().to_owned())),
            Action::TooLate(id, _) if *id == row.id => Some((None, "Its last day for sending has passed.".to_owned())),
            _ => None,
        });
        found.unwrap_or_else(|| match row.state {
            NoticeState::Pending if row.superseded.is_none() => {
                (Some(self.day_of(row)), "It waits to be sent.".to_owned())
            }
            NoticeState::Pending => (None, "It is being sent, and no longer owed.".to_owned()),
            NoticeState::Held => (None, "It is held until somebody releases or cancels it.".to_owned()),
            NoticeState::Ambiguous => (None, "It may or may not have arrived; somebody has to find out.".to_owned()),
            NoticeState::Sent => (None, "It was sent.".to_owned()),
            NoticeState::Failed => (None, "No copy could be sent.".to_owned()),
            NoticeState::Superseded | NoticeState::Skipped => (None, "It was not sent.".to_owned()),
            NoticeState::Cancelled => (None, "It is cancelled.".to_owned()),
        })
    }

    /// A step that has none yet.
    fn tell_slot(&self, slot: &Slot<'_>) -> (Option<NaiveDate>, String) {
        let start = match self.begins(slot) {
            Ok(start) => start,
            Err(why) => return (None, why),
        };
        let later = self.slots.iter().filter(|other| {
            other.step.class == slot.step.class
                && other.first_day <= start
                && other.urgency() > slot.urgency()
                && not_owed(self.standing, other).is_none()
        });
        if let Some(latest) = later.max_by_key(|other| other.urgency()) {
            return (None, format!("{} takes its place.", latest.step.notice_type));
        }
        let when = if start <= self.today { "The next scan claims it".to_owned() } else { format!("Due on {start}") };
        if slot.is_brought_forward() {
            return (Some(start), format!("{when}: no sending window lies between its due day and its last day."));
        }
        (Some(start), format!("{when}; it may go until {}.", slot.send_by))
    }

    /// The first day on which a notice that waits can go: one that was released in advance waits for its day.
    fn day_of(&self, row: &Row) -> NaiveDate {
        if row.brought_forward { self.today } else { row.due_on.max(self.today) }
    }

    /// The first day on which it can be claimed, or why there is none.
    fn begins(&self, slot: &Slot<'_>) -> Result<NaiveDate, String> {
        let mut start = slot.first_day.max(self.today);
        match barred(self.standing, start) {
            Some(NotOwed::Paused(until)) => start = plus_days(until, 1),
            Some(reason) => return Err(reason.to_string()),
            None => {}
        }
        if let Some(reason) = not_owed(self.standing, slot) {
            return Err(reason.to_string());
        }
        if start <= slot.send_by {
            return Ok(start);
        }
        let paused = self.standing.notices_paused_until.filter(|until| *until >= slot.first_day);
        Err(match paused {
            Some(until) if until >= self.today => {
                format!("Notices of this permit are paused until {until}, past its last day.")
            }
            _ => "Its last day for sending has passed.".to_owned(),
        })
    }
}
