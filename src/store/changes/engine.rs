//! The one way in which a change meets its notices.

use std::collections::HashSet;

use sqlx::PgConnection;
use uuid::Uuid;

use super::ChangeRules;
use crate::{
    domain::{
        notice::{NoticeClass, NoticeState, ReasonCode},
        owed::{Action, Row, Verdict, confirm_renewal, judge},
        schedule::Schedule,
    },
    store::{
        Result,
        cases::{Case, Hold, Suppressed, load_cases, load_suppressed},
        claims::{self, Authority, Counts, Judged, Writing, follow_addresses, mailable, makes_pending},
        memory,
        permit_types::Schedules,
    },
};

/// Permits judged at once when there are many.
const BATCH: usize = 1000;

/// Which of the changed permits were renewed and get a confirmation.
pub type Renewals = HashSet<Uuid>;

/// What a change made of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// How many were written.
    pub counts: Counts,
}

/// Permits of a change as they were judged.
struct Findings {
    cases: Vec<Case>,
    suppressed: Suppressed,
    verdicts: Vec<Verdict>,
}

impl Findings {
    async fn of(
        connection: &mut PgConnection,
        permits: &[Uuid],
        hold: Hold,
        schedules: &Schedules,
        renewals: &Renewals,
        rules: &ChangeRules<'_>,
    ) -> Result<Self> {
        let cases = load_cases(connection, permits, hold).await?;
        let suppressed = load_suppressed(connection, &cases).await?;
        let verdicts = cases.iter().map(|case| decide(case, schedules, renewals, &suppressed, rules)).collect();
        Ok(Self { cases, suppressed, verdicts })
    }

    /// How many notices would become pending.
    fn wanted(&self) -> u64 {
        let judged = self.cases.iter().zip(&self.verdicts);
        let actions = judged.flat_map(|(case, verdict)| verdict.actions.iter().map(move |action| (case, action)));
        actions.filter(|(case, action)| makes_pending(case, action)).count() as u64
    }

    async fn write(
        &self,
        connection: &mut PgConnection,
        hold: Option<ReasonCode>,
        rules: &ChangeRules<'_>,
    ) -> Result<Change> {
        let judged = self.cases.iter().zip(&self.verdicts);
        let judged: Vec<Judged<'_>> =
            judged.map(|(case, verdict)| Judged { case, actions: &verdict.actions }).collect();
        let writing = Writing {
            moment: rules.moment,
            not_before: rules.moment.now + rules.delay,
            hold,
            scan_id: None,
            import_id: rules.import_id,
        };
        let authority = Authority::new();
        let counts = claims::write(connection, &authority, &judged, &self.suppressed, writing).await?;
        follow_addresses(connection, &authority, &self.cases, &self.suppressed, writing).await?;
        Ok(Change { counts })
    }
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
    let findings = Findings::of(connection, permits, Hold::Change, schedules, renewals, rules).await?;
    let hold = reason_to_hold(connection, findings.wanted(), rules).await?;
    findings.write(connection, hold, rules).await
}

/// Why what becomes pending is held, if it is: it may have been sent by the memory that is lost, or is more than the limit.
async fn reason_to_hold(
    connection: &mut PgConnection,
    wanted: u64,
    rules: &ChangeRules<'_>,
) -> Result<Option<ReasonCode>> {
    if memory::went_back(connection).await? {
        return Ok(Some(ReasonCode::MemoryWentBack));
    }
    Ok((rules.claim_limit > 0 && wanted > rules.claim_limit).then_some(ReasonCode::ClaimLimit))
}

/// [`apply`] for changes of any number of permits: in batches, with the brake counted over all of them first.
/// The notices and deliveries of all of them are locked already, each kind in order of id.
pub async fn apply_many(
    connection: &mut PgConnection,
    permits: &[Uuid],
    schedules: &Schedules,
    renewals: &Renewals,
    rules: &ChangeRules<'_>,
) -> Result<Change> {
    let mut wanted = 0;
    for batch in permits.chunks(BATCH) {
        if rules.claim_limit == 0 || wanted > rules.claim_limit {
            break;
        }
        wanted += Findings::of(connection, batch, Hold::Look, schedules, renewals, rules).await?.wanted();
    }
    let hold = reason_to_hold(connection, wanted, rules).await?;
    let mut change = Change::default();
    for batch in permits.chunks(BATCH) {
        let findings = Findings::of(connection, batch, Hold::Change, schedules, renewals, rules).await?;
        change.counts += findings.write(connection, hold, rules).await?.counts;
    }
    Ok(change)
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
        held: false,
    })
}
