//! The office in memory: permits, their rows, and the rules applied to them without a database.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, TimeDelta};
use permit_notifier::domain::{
    notice::{NoticeClass, NoticeState, ReasonCode},
    owed::{Action, Row, confirm_renewal, judge, keep_up},
    permit::{PermitStatus, Standing},
    schedule::Schedule,
    window::SendWindow,
};
use uuid::Uuid;

use crate::support::office::TestOffice;

/// A permit with all notices it ever had.
pub struct ModelPermit {
    pub id: Uuid,
    standing: Standing,
    address: Option<usize>,
    since: BTreeMap<NaiveDate, NaiveDate>,
    rows: Vec<Row>,
}

/// One line for each notice: period, type, state, why superseded, days.
pub type Rows = BTreeSet<String>;

fn line(row: &Row) -> String {
    let reason = row.superseded.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let forward = if row.brought_forward { " forward" } else { "" };
    let (due, by) = (row.due_on, row.send_by);
    format!("{} {} {}{reason} due {due} by {by}{forward}", row.expires_on, row.notice_type, row.state)
}

/// The notices in the database in the same form.
pub async fn rows_of(office: &TestOffice, permit: Uuid) -> Rows {
    let notices = office.notices(permit).await.into_iter().map(|n| {
        let reason = n.reason_code.filter(|_| n.is_superseded).map(|code| format!(" ({code})")).unwrap_or_default();
        let forward = if n.brought_forward { " forward" } else { "" };
        let (due, by) = (n.due_on, n.send_by);
        format!("{} {} {}{reason} due {due} by {by}{forward}", n.expires_on, n.notice_type, n.state)
    });
    notices.collect()
}

impl ModelPermit {
    pub fn rows(&self) -> Rows {
        self.rows.iter().map(line).collect()
    }

    /// What judging looks at: the present period, and what is open of others.
    fn seen(&self) -> Vec<Row> {
        let present = |row: &&Row| row.expires_on == self.standing.expires_on || row.state.is_open();
        self.rows.iter().filter(present).cloned().collect()
    }

    fn row(&mut self, id: Uuid) -> &mut Row {
        self.rows.iter_mut().find(|row| row.id == id).expect("the row of an action")
    }

    fn apply(&mut self, actions: Vec<Action>) {
        let known = self.address.is_some();
        for action in actions {
            match action {
                Action::Claim(notice_type, class, timing) => {
                    let goes = known || class == NoticeClass::Statutory;
                    let state = if goes { NoticeState::Pending } else { NoticeState::Skipped };
                    self.add(notice_type, class, timing, state, None);
                }
                Action::Record(notice_type, class, timing, unsent) => {
                    let (state, reason) = unsent.state();
                    let superseded = Some(reason).filter(|_| state == NoticeState::Superseded);
                    self.add(notice_type, class, timing, state, superseded);
                }
                Action::Revive(id, _, timing) => {
                    if known || self.row(id).class == NoticeClass::Statutory {
                        let row = self.row(id);
                        (row.state, row.superseded) = (NoticeState::Pending, None);
                        (row.due_on, row.send_by) = (timing.due_on, timing.send_by);
                        row.brought_forward = timing.brought_forward;
                    }
                }
                Action::Supersede(id, _, reason) => {
                    let row = self.row(id);
                    (row.state, row.superseded) = (NoticeState::Superseded, Some(reason));
                }
                Action::TooLate(id, _) => self.row(id).state = NoticeState::Skipped,
                Action::Retime(id, timing) => {
                    let row = self.row(id);
                    (row.due_on, row.send_by) = (timing.due_on, timing.send_by);
                    row.brought_forward = timing.brought_forward;
                }
            }
        }
    }

    fn add(
        &mut self,
        notice_type: permit_notifier::domain::notice::NoticeType,
        class: NoticeClass,
        timing: permit_notifier::domain::owed::Timing,
        state: NoticeState,
        superseded: Option<ReasonCode>,
    ) {
        self.rows.push(Row {
            id: Uuid::now_v7(),
            notice_type,
            class,
            expires_on: self.standing.expires_on,
            due_on: timing.due_on,
            send_by: timing.send_by,
            brought_forward: timing.brought_forward,
            in_advance: false,
            held: false,
            state,
            superseded,
        });
    }

    /// A confirmation whose only address left waits for another one; a statutory notice becomes a letter.
    fn follow_address(&mut self, schedule: &Schedule, today: NaiveDate) {
        let standing = &self.standing;
        let paused = standing.notices_paused_until.is_some_and(|until| until >= today);
        let barred = standing.archived || standing.status != PermitStatus::Active || paused;
        let (period, known) = (standing.expires_on, self.address.is_some());
        if barred || schedule.confirmation().is_none() {
            return;
        }
        let courtesies =
            self.rows.iter_mut().filter(|row| row.class == NoticeClass::Courtesy && row.expires_on == period);
        for row in courtesies.filter(|row| row.superseded.is_none() && row.send_by >= today) {
            match row.state {
                NoticeState::Pending if !known => row.state = NoticeState::Superseded,
                NoticeState::Superseded if known => row.state = NoticeState::Pending,
                _ => {}
            }
        }
    }
}

/// All permits with the one schedule they go by.
pub struct Model {
    pub permits: Vec<ModelPermit>,
    schedule: Schedule,
    window: Option<SendWindow>,
    last_scan: Option<NaiveDate>,
}

impl Model {
    pub fn new(window: Option<SendWindow>) -> Self {
        Self { permits: Vec::new(), schedule: Schedule::usual(), window, last_scan: None }
    }

    pub fn create(
        &mut self,
        id: Uuid,
        expires_on: NaiveDate,
        address: Option<usize>,
        notices_from: Option<NaiveDate>,
        today: NaiveDate,
    ) {
        let standing = Standing {
            status: PermitStatus::Active,
            archived: false,
            notices_paused_until: None,
            takes_effect_on: None,
            expires_on,
            period_since: today,
            notices_from,
        };
        let since = BTreeMap::from([(expires_on, today)]);
        self.permits.push(ModelPermit { id, standing, address, since, rows: Vec::new() });
        self.judge(self.permits.len() - 1, today);
    }

    fn judge(&mut self, permit: usize, today: NaiveDate) {
        let (schedule, window) = (&self.schedule, self.window.as_ref());
        let permit = &mut self.permits[permit];
        let verdict = judge(&permit.standing, schedule, &permit.seen(), today, window);
        permit.apply(verdict.actions);
        permit.follow_address(schedule, today);
    }

    pub fn change(&mut self, permit: usize, today: NaiveDate, edit: impl FnOnce(&mut Standing)) {
        let changed = &mut self.permits[permit];
        let before = changed.standing.clone();
        edit(&mut changed.standing);
        let first = *changed.since.entry(changed.standing.expires_on).or_insert(today);
        changed.standing.period_since = first;
        // An edit that changes nothing is none.
        if before != changed.standing {
            self.judge(permit, today);
        }
    }

    pub fn address(&mut self, permit: usize, address: Option<usize>, today: NaiveDate) {
        if std::mem::replace(&mut self.permits[permit].address, address) != address {
            self.judge(permit, today);
        }
    }

    pub fn may_renew(&self, permit: usize, date: NaiveDate, today: NaiveDate) -> bool {
        let standing = &self.permits[permit].standing;
        !standing.archived && date >= today && date >= standing.expires_on
    }

    pub fn renew(&mut self, permit: usize, date: NaiveDate, today: NaiveDate) {
        let renewed = &mut self.permits[permit];
        if renewed.standing.expires_on == date {
            return;
        }
        renewed.standing.expires_on = date;
        renewed.standing.period_since = *renewed.since.entry(date).or_insert(today);
        let (schedule, window, known) = (&self.schedule, self.window.as_ref(), renewed.address.is_some());
        let confirmed = confirm_renewal(&renewed.standing, schedule, &renewed.seen(), known, today, window);
        renewed.apply(confirmed);
        self.judge(permit, today);
    }

    pub fn sent(&mut self, permit: usize) {
        for row in self.permits[permit].rows.iter_mut().filter(|row| row.state == NoticeState::Pending) {
            row.state = NoticeState::Sent;
        }
    }

    pub fn reschedule(&mut self, schedule: Schedule, today: NaiveDate) {
        self.schedule = schedule;
        for permit in &mut self.permits {
            let actions = keep_up(&permit.standing, &self.schedule, &permit.seen(), today, self.window.as_ref());
            permit.apply(actions);
        }
    }

    pub fn scan(&mut self, today: NaiveDate) {
        for permit in 0..self.permits.len() {
            if self.is_looked_at(&self.permits[permit], today) {
                self.judge(permit, today);
            } else {
                self.permits[permit].follow_address(&self.schedule, today);
            }
        }
        self.last_scan = Some(today);
    }

    /// A scan leaves out what it has seen to the end: permits that expired so long before the last scan that no step
    /// can have fallen due since, unless a pause has ended or something is open or may be owed again.
    fn is_looked_at(&self, permit: &ModelPermit, today: NaiveDate) -> bool {
        let Some(last) = self.last_scan else { return true };
        let steps = self.schedule.steps().iter().filter(|step| step.enabled);
        let reach = steps.filter_map(|step| Some(step.offset_days? + step.late_by_days)).max().unwrap_or(0).max(0);
        let resumed = permit.standing.notices_paused_until.is_some_and(|until| until >= last && until < today);
        permit.standing.expires_on >= last.min(today) - TimeDelta::days(reach.into())
            || resumed
            || permit.rows.iter().any(|row| row.state.is_open())
    }
}
