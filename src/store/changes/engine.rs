//! The one way in which a change meets its notices.

use std::collections::HashSet;

use sqlx::PgConnection;
use uuid::Uuid;

use super::ChangeRules;
use crate::{
    domain::{
        notice::{NoticeClass, NoticeState},
        owed::{Action, Row, Verdict, confirm_renewal, judge},
        schedule::Schedule,
    },
    store::{
        Result,
        cases::{Case, Hold, Suppressed, load_cases, load_suppressed},
        claims::{self, Authority, Counts, Judged, Writing, follow_addresses, mailable, makes_pending},
        permit_types::Schedules,
    },
};

/// Which of the changed permits were renewed and get a confirmation.
pub type Renewals = HashSet<Uuid>;

/// What a change made of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// How many were written.
    pub counts: Counts,
}

/// Judges `permits`, which are written and locked in this transaction, and writes what becomes of their notices.
/// `schedules` were kept ([`crate::store::permit_types::keep_schedules`]) before the permits were locked.
pub async fn apply(
    connection: &mut PgConnection,
    permits: &[Uuid],
    schedules: &Schedules,
    renewals: &Renewals,
    rules: &ChangeRules<'_>,
) -> Result<Change> {
    let cases = load_cases(connection, permits, Hold::Change).await?;
    let suppressed = load_suppressed(connection, &cases).await?;
    let verdicts: Vec<Verdict> =
        cases.iter().map(|case| decide(case, schedules, renewals, &suppressed, rules)).collect();
    let wanted = verdicts.iter().flat_map(|verdict| &verdict.actions).filter(|action| makes_pending(action)).count();
    let hold = rules.claim_limit > 0 && wanted as u64 > rules.claim_limit;
    let judged: Vec<Judged<'_>> =
        cases.iter().zip(&verdicts).map(|(case, verdict)| Judged { case, actions: &verdict.actions }).collect();
    let writing = Writing {
        moment: rules.moment,
        not_before: rules.moment.now + rules.delay,
        hold,
        scan_id: None,
        import_id: rules.import_id,
    };
    let authority = Authority::new();
    let counts = claims::write(connection, &authority, &judged, &suppressed, writing).await?;
    follow_addresses(connection, &authority, &cases, &suppressed, writing).await?;
    Ok(Change { counts })
}

fn decide(
    case: &Case,
    schedules: &Schedules,
    renewals: &Renewals,
    suppressed: &Suppressed,
    rules: &ChangeRules<'_>,
) -> Verdict {
    let nothing = Schedule::default();
    let schedule = schedules.get(&case.permit_type).unwrap_or(&nothing);
    let (today, window) = (rules.moment.today, rules.window);
    let mut rows = case.rows.clone();
    let mut actions = Vec::new();
    if renewals.contains(&case.permit_id) {
        let mailable = |r: &crate::domain::recipient::Recipient| !suppressed.forbids(NoticeClass::Courtesy, &r.address);
        let may_be_mailed = case.recipients.iter().any(mailable);
        actions = confirm_renewal(&case.standing, schedule, &rows, may_be_mailed, today, window);
        rows.extend(actions.iter().filter_map(|action| as_row(case, action)));
    }
    let mut verdict = judge(&case.standing, schedule, &rows, today, window);
    actions.append(&mut verdict.actions);
    Verdict { actions: mailable(case, actions, suppressed), already: verdict.already }
}

/// The row that an action of a renewal is about to write, as judging has to see it.
fn as_row(case: &Case, action: &Action) -> Option<Row> {
    let (notice_type, class, timing, state, reason) = match action {
        Action::Claim(notice_type, class, timing) => (notice_type, class, timing, NoticeState::Pending, None),
        Action::Record(notice_type, class, timing, unsent) => {
            let (state, reason) = unsent.state();
            (notice_type, class, timing, state, Some(reason))
        }
        _ => return None,
    };
    Some(Row {
        id: Uuid::nil(),
        notice_type: notice_type.clone(),
        class: *class,
        expires_on: case.standing.expires_on,
        due_on: timing.due_on,
        send_by: timing.send_by,
        brought_forward: timing.brought_forward,
        in_advance: false,
        state,
        superseded: reason.filter(|_| state == NoticeState::Superseded),
    })
}
