//! Section 3 for notices that a person wants to go: the same judge as everywhere, but nothing new is claimed. What
//! is newly due waits for the next scan and its brake.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::ActionRules;
use crate::{
    domain::{
        calendar::start_of_day,
        notice::{NoticeState, NoticeType, ReasonCode},
        owed::{Action, judge},
        schedule::Schedule,
        timetable::timetable,
    },
    store::{
        Result,
        cases::{Case, Suppressed},
        claims::{self, Authority, Judged, Writing},
        permit_types::Schedules,
    },
};

/// What is to be written of a permit's present notices if those in `wanted` are to go.
pub(super) fn judge_as_open(
    case: &Case,
    schedules: &Schedules,
    wanted: &HashSet<Uuid>,
    rules: &ActionRules<'_>,
) -> Vec<Action> {
    let nothing = Schedule::default();
    let schedule = schedules.get(&case.permit_type).unwrap_or(&nothing);
    let mut rows = case.rows.clone();
    for row in rows.iter_mut().filter(|row| wanted.contains(&row.id)) {
        row.state = NoticeState::Pending;
    }
    let mut actions = judge(&case.standing, schedule, &rows, rules.moment.today, rules.window).actions;
    actions.retain(|action| matches!(action, Action::Supersede(..) | Action::TooLate(..) | Action::Retime(..)));
    actions
}

/// Why this notice may not go, if the actions say so.
pub(super) fn refusal(actions: &[Action], notice: Uuid) -> Option<ReasonCode> {
    actions.iter().find_map(|action| match action {
        Action::Supersede(id, _, reason) if *id == notice => Some(*reason),
        Action::TooLate(id, _) if *id == notice => Some(ReasonCode::TooLate),
        _ => None,
    })
}

/// From when on a notice of this type may go: now, or the start of its first day if that has not come.
pub(super) fn goes_from(
    case: &Case,
    schedules: &Schedules,
    notice_type: &NoticeType,
    rules: &ActionRules<'_>,
) -> DateTime<Utc> {
    let slots = schedules.get(&case.permit_type).map(|schedule| {
        let slots = timetable(schedule, case.standing.expires_on, rules.window);
        slots.into_iter().find(|slot| slot.step.notice_type == *notice_type).map(|slot| slot.first_day)
    });
    match slots.flatten() {
        Some(day) if day > rules.moment.today => start_of_day(day, rules.zone).max(rules.moment.now),
        _ => rules.moment.now,
    }
}

/// Writes what was judged; the permits are locked with their notices and deliveries.
pub(super) async fn write(
    connection: &mut PgConnection,
    judged: &[Judged<'_>],
    suppressed: &Suppressed,
    rules: &ActionRules<'_>,
) -> Result<()> {
    let writing =
        Writing { moment: rules.moment, not_before: rules.moment.now, hold: None, scan_id: None, import_id: None };
    claims::write(connection, &Authority::new(), judged, suppressed, writing).await?;
    Ok(())
}
