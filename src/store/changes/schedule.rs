//! A changed schedule, and what that makes of the open notices of its permits.

use chrono::Days;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::ChangeRules;
use crate::{
    domain::{
        owed::{judge, keep_up},
        schedule::Schedule,
    },
    store::{
        Result, StoreError,
        cases::{Hold, load_cases, load_suppressed},
        claims::{self, Authority, Counts, Judged, Writing, mailable, makes_pending},
        owing::{Sight, find_owing_of_type},
        permit_types::{load_schedules, lock_schedules, replace_steps},
        scans::last_completed_day,
    },
};

/// Puts `schedule` in the place of a permit type's. Open notices of steps that are gone, not owed or not yet
/// due any more are superseded, moved ones take their new days; what is newly due waits for the next scan and
/// its brake.
pub async fn reschedule(
    connection: &mut PgConnection,
    code: &str,
    schedule: &Schedule,
    rules: &ChangeRules<'_>,
) -> Result<Counts> {
    let mut transaction = connection.begin().await?;
    lock_schedules(&mut transaction).await?;
    let schedules = load_schedules(&mut *transaction).await?;
    schedules.get(code).ok_or(StoreError::NotFound("permit type"))?;
    let permits = permits_with_open_notices(&mut transaction, code).await?;
    let cases = load_cases(&mut transaction, &permits, Hold::Change).await?;
    replace_steps(&mut transaction, code, schedule, rules.moment.now).await?;
    let suppressed = load_suppressed(&mut transaction, &cases).await?;
    let (today, window) = (rules.moment.today, rules.window);
    let actions: Vec<Vec<_>> =
        cases.iter().map(|case| keep_up(&case.standing, schedule, &case.rows, today, window)).collect();
    let judged: Vec<Judged<'_>> = cases.iter().zip(&actions).map(|(case, actions)| Judged { case, actions }).collect();
    let writing = Writing {
        moment: rules.moment,
        not_before: rules.moment.now + rules.delay,
        hold: None,
        scan_id: None,
        import_id: None,
    };
    let counts = claims::write(&mut transaction, &Authority::new(), &judged, &suppressed, writing).await?;
    transaction.commit().await?;
    Ok(counts)
}

/// How many notices of a permit type a scan would make pending now: what a change of its schedule adds to that goes
/// with the next scan.
pub async fn count_due(connection: &mut PgConnection, code: &str, rules: &ChangeRules<'_>) -> Result<u64> {
    /// Permits judged at once.
    const BATCH: usize = 1000;
    let (today, window) = (rules.moment.today, rules.window);
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    let horizon = window.and_then(|window| window.next_window_day_on_or_after(tomorrow).pred_opt()).unwrap_or(today);
    let from = last_completed_day(connection).await?.map(|day| day.min(today));
    let permits = find_owing_of_type(connection, Sight { today, horizon, from }, code).await?;
    let schedule = load_schedules(&mut *connection).await?.remove(code).unwrap_or_default();
    let mut due = 0;
    for batch in permits.chunks(BATCH) {
        let cases = load_cases(connection, batch, Hold::Look).await?;
        let suppressed = load_suppressed(connection, &cases).await?;
        for case in &cases {
            let verdict = judge(&case.standing, &schedule, &case.rows, today, window);
            due += mailable(case, verdict.actions, &suppressed)
                .iter()
                .filter(|action| makes_pending(case, action))
                .count();
        }
    }
    Ok(due as u64)
}

async fn permits_with_open_notices(connection: &mut PgConnection, code: &str) -> Result<Vec<Uuid>> {
    let permits = sqlx::query_scalar!(
        r#"SELECT DISTINCT p.id AS "id!" FROM permits p JOIN notices n ON n.permit_id = p.id
           WHERE p.permit_type = $1 AND n.state IN ('pending', 'held', 'ambiguous') ORDER BY 1"#,
        code,
    );
    Ok(permits.fetch_all(connection).await?)
}
