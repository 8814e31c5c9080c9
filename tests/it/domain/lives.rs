//! Whole lives of permits: days, scans, changes and mail in random order, with the promises checked after each.

use std::collections::{BTreeMap, BTreeSet};

use permit_notifier::domain::{
    notice::{NoticeState, NoticeType},
    owed::{Action, Row, confirm_renewal, judge},
};
use proptest::{collection::vec, prelude::*};
use uuid::Uuid;

use super::{
    cases::{anchor, date, day, lines, notice_type, schedule, standing, week, window},
    moments::{Change, Mail, moment},
    oracle::{self, Day, Line, Permit, Week, tomorrow, walk},
};

#[derive(Debug)]
struct Life {
    permit: Permit,
    lines: Vec<Line>,
    week: Option<Week>,
    today: Day,
    rows: Vec<Row>,
    /// Notices with a copy through the gate, and whether it will be accepted.
    in_flight: BTreeMap<Uuid, bool>,
    /// Every date the permit had, and since when.
    periods: BTreeMap<Day, Day>,
    mailed: BTreeSet<Uuid>,
}

type Checked = Result<(), TestCaseError>;

impl Life {
    fn new(expires: Day, lines: Vec<Line>, week: Option<Week>, start: i32) -> Self {
        let today = walk(expires, start);
        let permit = Permit {
            status: "active",
            archived: false,
            paused_until: None,
            takes_effect: None,
            expires,
            since: today,
            notices_from: None,
        };
        let periods = BTreeMap::from([(expires, today)]);
        let (rows, in_flight, mailed) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Self { permit, lines, week, today, rows, in_flight, periods, mailed }
    }

    fn is_open(&self, row: &Row) -> bool {
        row.state.is_open() && row.superseded.is_none() && !self.in_flight.contains_key(&row.id)
    }

    /// Open, dated, and not waiting for its day.
    fn class_that_goes(&self, row: &Row, steps: &[oracle::Placed]) -> Option<&'static str> {
        let step = steps.iter().find(|step| step.line.name == row.notice_type.as_str())?;
        let open = row.state.is_open() && row.superseded.is_none();
        (open && step.first <= self.today).then_some(step.line.class)
    }

    fn verdict(&self) -> Vec<Action> {
        let (standing, schedule, window) = (standing(&self.permit), schedule(&self.lines), window(self.week));
        let seen: Vec<Row> = self
            .rows
            .iter()
            .filter(|row| row.expires_on == standing.expires_on || row.state.is_open() && row.superseded.is_none())
            .cloned()
            .collect();
        judge(&standing, &schedule, &seen, date(self.today), window.as_ref()).actions
    }

    fn insert(
        &mut self,
        notice_type: &NoticeType,
        days: oracle::Days,
        state: NoticeState,
        in_advance: bool,
    ) -> Checked {
        let key = (notice_type, date(self.permit.expires));
        let stands = self.rows.iter().any(|row| (&row.notice_type, row.expires_on) == key);
        prop_assert!(!stands, "{notice_type} is written a second time");
        let class = self.lines.iter().find(|line| line.name == notice_type.as_str()).map_or("", |line| line.class);
        let known = oracle::Known {
            name: notice_type.to_string(),
            period: self.permit.expires,
            days,
            in_advance,
            state: state.as_str(),
            ended: None,
        };
        self.rows.push(super::cases::row(self.rows.len() as u128, &known, class));
        Ok(())
    }

    fn apply(&mut self, actions: &[Action]) -> Checked {
        let may_go = |life: &Self, days: oracle::Days| {
            oracle::barred(&life.permit, life.today).is_empty() && life.today <= days.send_by
        };
        for action in actions {
            match action {
                Action::Claim(name, _, timing) => {
                    prop_assert!(may_go(self, days(*timing)), "claimed though it may not go: {action:?}");
                    self.insert(name, days(*timing), NoticeState::Pending, false)?;
                }
                Action::Record(name, _, timing, unsent) => {
                    let (state, reason) = unsent.state();
                    self.insert(name, days(*timing), state, false)?;
                    let row = self.rows.last_mut().expect("just written");
                    row.superseded = (state == NoticeState::Superseded).then_some(reason);
                }
                Action::Revive(id, _, timing) => {
                    prop_assert!(may_go(self, days(*timing)), "revived though it may not go: {action:?}");
                    let row = self.row(*id);
                    prop_assert!(
                        row.superseded.is_some()
                            && [NoticeState::Superseded, NoticeState::Pending, NoticeState::Ambiguous]
                                .contains(&row.state)
                    );
                    // What may have been sent stays so.
                    if row.state != NoticeState::Ambiguous {
                        row.state = NoticeState::Pending;
                    }
                    row.superseded = None;
                    retime(row, *timing);
                }
                Action::Supersede(id, _, reason) => {
                    let flies = self.in_flight.contains_key(id);
                    let row = self.row(*id);
                    let unknown = row.state == NoticeState::Ambiguous;
                    prop_assert!((row.state.is_open() || unknown) && row.superseded.is_none());
                    row.superseded = Some(*reason);
                    if !flies && !unknown {
                        row.state = NoticeState::Superseded;
                    }
                }
                Action::TooLate(id, _) => {
                    // A copy that is being sent is not stopped by this.
                    if !self.in_flight.contains_key(id) {
                        self.row(*id).state = NoticeState::Skipped;
                    }
                }
                Action::Retime(id, timing) => retime(self.row(*id), *timing),
            }
        }
        Ok(())
    }

    fn row(&mut self, id: Uuid) -> &mut Row {
        self.rows.iter_mut().find(|row| row.id == id).expect("a row of this permit")
    }

    /// Judges and checks what must hold afterwards, whatever came before.
    fn judge(&mut self) -> Checked {
        let actions = self.verdict();
        let lines = self.lines.clone();
        let steps = oracle::place(&lines, self.permit.expires, self.week);
        let mut goes_now: Vec<&str> = Vec::new();
        for action in &actions {
            let (Action::Claim(name, ..) | Action::Revive(_, name, _)) = action else { continue };
            if let Some(step) = steps.iter().find(|step| step.line.name == name.as_str()) {
                prop_assert!(step.first <= self.today, "{name} goes before its first day");
                prop_assert!(!goes_now.contains(&step.line.class), "two of a class at once: {actions:?}");
                goes_now.push(step.line.class);
            }
        }
        self.apply(&actions)?;
        let open: Vec<&str> = self.rows.iter().filter_map(|row| self.class_that_goes(row, &steps)).collect();
        for class in ["statutory", "courtesy"] {
            let count = open.iter().filter(|c| **c == class).count();
            prop_assert!(count <= 1, "{count} open {class} notices: {:?}", self.rows);
            for step in oracle::owed_and_due(&self.permit, &steps, class, self.today) {
                let stands = self.rows.iter().any(|row| {
                    row.notice_type.as_str() == step.line.name && day(row.expires_on) == self.permit.expires
                });
                prop_assert!(stands, "{} is owed and has no row", step.line.name);
            }
        }
        for row in self.rows.iter().filter(|row| self.is_open(row)) {
            prop_assert_eq!(day(row.expires_on), self.permit.expires);
            prop_assert!(oracle::barred(&self.permit, self.today).is_empty());
            prop_assert!(self.today <= day(row.send_by));
        }
        let again: Vec<Action> =
            self.verdict().into_iter().filter(|action| !self.is_late_copy_in_flight(action)).collect();
        prop_assert!(again.is_empty(), "the second judgement of a day found {again:?}");
        Ok(())
    }

    fn is_late_copy_in_flight(&self, action: &Action) -> bool {
        matches!(action, Action::TooLate(id, _) if self.in_flight.contains_key(id))
    }

    /// Whether the change is judged in its own transaction.
    fn change(&mut self, change: &Change) -> Result<bool, TestCaseError> {
        let line = |life: &Self, n: usize| life.lines.get(n).filter(|line| line.offset.is_some()).map(|_| n);
        match *change {
            Change::Renew(days, may_be_mailed) => {
                self.take_date(walk(self.permit.expires.max(self.today), days));
                let (standing, schedule, window) = (standing(&self.permit), schedule(&self.lines), window(self.week));
                let today = date(self.today);
                let actions = confirm_renewal(&standing, &schedule, &self.rows, may_be_mailed, today, window.as_ref());
                self.apply(&actions)?;
            }
            Change::Correct(by) => self.take_date(walk(self.permit.expires, by)),
            Change::Back => {
                let earlier = self.periods.keys().rev().find(|date| **date != self.permit.expires);
                self.take_date(earlier.copied().unwrap_or(self.permit.expires));
            }
            Change::Pause(days) => self.permit.paused_until = Some(walk(self.today, days)),
            Change::Resume => self.permit.paused_until = None,
            Change::Archive => self.permit.archived = true,
            Change::Restore => self.permit.archived = false,
            Change::Status(status) => self.permit.status = status,
            Change::TakesEffect(before) => {
                self.permit.takes_effect = before.map(|days| walk(self.permit.expires, -days));
            }
            Change::Switch(n) => {
                if let Some(n) = line(self, n) {
                    self.lines[n].on = !self.lines[n].on;
                }
                return Ok(false);
            }
            Change::Move(n, by) => {
                if let Some(n) = line(self, n) {
                    self.lines[n].offset = self.lines[n].offset.map(|offset| offset + by);
                }
                return Ok(false);
            }
            Change::OtherClass(n) => {
                if let Some(n) = line(self, n) {
                    self.lines[n].class = if self.lines[n].class == "courtesy" { "statutory" } else { "courtesy" };
                }
                return Ok(false);
            }
            Change::InAdvance(n, state) => {
                let name = self.lines.get(n).map(|line| line.name.clone()).unwrap_or_default();
                let lines = self.lines.clone();
                let steps = oracle::place(&lines, self.permit.expires, self.week);
                let step = steps.iter().find(|step| step.line.name == name && step.first > self.today);
                let stands = |row: &Row| row.notice_type.as_str() == name && day(row.expires_on) == self.permit.expires;
                let days = step.map(|step| step.days).filter(|_| !self.rows.iter().any(stands));
                if let Some(days) = days {
                    self.insert(&notice_type(&name), days, state, true)?;
                }
            }
        }
        Ok(true)
    }

    fn take_date(&mut self, expires: Day) {
        self.permit.expires = expires;
        self.permit.since = *self.periods.entry(expires).or_insert(self.today);
    }

    /// The replies to what was being sent since the last moment.
    fn settle(&mut self) -> Checked {
        for (id, accepted) in std::mem::take(&mut self.in_flight) {
            if accepted {
                prop_assert!(self.mailed.insert(id), "mailed twice");
            }
            let row = self.row(id);
            row.state = match (accepted, row.superseded) {
                (true, _) => NoticeState::Sent,
                (false, Some(_)) => NoticeState::Superseded,
                (false, None) => NoticeState::Pending,
            };
        }
        Ok(())
    }

    /// Everything that may leave leaves, or tries to.
    fn mail(&mut self, mail: Mail) -> Checked {
        let closed = self.week.is_some_and(|week| !week[oracle::weekday(self.today)]);
        if closed || matches!(mail, Mail::Away) {
            return Ok(());
        }
        let lines = self.lines.clone();
        let steps = oracle::place(&lines, self.permit.expires, self.week);
        let mut classes = BTreeSet::new();
        let leaving: Vec<(Uuid, Option<&str>)> = self
            .rows
            .iter()
            .filter(|row| row.state == NoticeState::Pending && self.is_open(row))
            .map(|row| (row.id, row.notice_type.is_renewed(), self.class_that_goes(row, &steps)))
            .filter(|(_, confirmation, class)| *confirmation || class.is_some())
            .map(|(id, _, class)| (id, class))
            .collect();
        for (id, class) in leaving {
            prop_assert!(class.is_none_or(|class| classes.insert(class)), "two mails of a class at once");
            self.row(id).state = match mail {
                Mail::Accepts => {
                    prop_assert!(self.mailed.insert(id), "mailed twice");
                    NoticeState::Sent
                }
                Mail::RefusesForGood => NoticeState::Failed,
                Mail::Ambiguous => NoticeState::Ambiguous,
                Mail::Slow(accepted) => {
                    self.in_flight.insert(id, accepted);
                    NoticeState::Pending
                }
                Mail::Away => NoticeState::Pending,
            };
        }
        Ok(())
    }
}

fn days(timing: permit_notifier::domain::owed::Timing) -> oracle::Days {
    oracle::Days { due: day(timing.due_on), send_by: day(timing.send_by), brought_forward: timing.brought_forward }
}

fn retime(row: &mut Row, timing: permit_notifier::domain::owed::Timing) {
    (row.due_on, row.send_by, row.brought_forward) = (timing.due_on, timing.send_by, timing.brought_forward);
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(1_200))]

    #[test]
    fn whatever_happens_in_its_life_a_permit_gets_each_notice_once_and_one_of_a_class_at_a_time(
        expires in anchor(),
        lines in lines(),
        week in week(),
        start in -20..=3,
        moments in vec(moment(), 1..40),
    ) {
        let mut life = Life::new(expires, lines, week, start);
        for moment in moments {
            life.today = walk(life.today, moment.gap);
            life.settle()?;
            let mut judged = false;
            if let Some(change) = &moment.change {
                judged = life.change(change)?;
                if judged {
                    life.judge()?;
                }
            }
            if moment.scan {
                life.judge()?;
                judged = true;
            }
            if judged {
                life.mail(moment.mail)?;
            }
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn with_a_scan_and_mail_on_every_day_each_step_is_mailed_or_gave_way(
        expires in anchor(),
        lines in lines(),
        week in week(),
    ) {
        let mut life = Life::new(expires, lines, week, -100);
        while life.today < walk(expires, 55) {
            life.judge()?;
            life.mail(Mail::Accepts)?;
            life.today = tomorrow(life.today);
        }
        for row in &life.rows {
            let gave_way = row.superseded.is_some_and(|reason| reason.as_str() == "more_urgent_step");
            let mailed = row.state == NoticeState::Sent && life.mailed.contains(&row.id);
            prop_assert!(mailed || gave_way, "{row:?}");
        }
        let dated = life.lines.iter().filter(|line| line.on && line.offset.is_some()).count();
        prop_assert_eq!(life.rows.len(), dated);
    }
}
