//! A changed schedule, and what that makes of the open notices of its permits.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::ChangeRules;
use crate::{
    domain::{owed::keep_up, schedule::Schedule},
    store::{
        Result, StoreError,
        cases::{Hold, load_cases, load_suppressed},
        claims::{self, Authority, Counts, Judged, Writing},
        permit_types::{load_schedules, lock_schedules, replace_steps},
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

async fn permits_with_open_notices(connection: &mut PgConnection, code: &str) -> Result<Vec<Uuid>> {
    let permits = sqlx::query_scalar!(
        r#"SELECT DISTINCT p.id AS "id!" FROM permits p JOIN notices n ON n.permit_id = p.id
           WHERE p.permit_type = $1 AND n.state IN ('pending', 'held', 'ambiguous') ORDER BY 1"#,
        code,
    );
    Ok(permits.fetch_all(connection).await?)
}
