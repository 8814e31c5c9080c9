//! Which permits a scan has to judge: a superset, cheaply found; [`crate::domain::owed::judge`] decides.

use chrono::{Days, NaiveDate};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::Result;

/// What a scan looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// The day that counts as today.
    pub today: NaiveDate,
    /// Steps due until this day may count as due today: today, or the day before the next sending window.
    pub horizon: NaiveDate,
    /// Earliest expiry day; `None` looks from the beginning.
    pub from: Option<NaiveDate>,
}

/// Permits that may need something written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// Their ids, in order, each once.
    pub permits: Vec<Uuid>,
    /// Steps that are owed and due, and have a notice already.
    pub already: u64,
    /// Permits with a copy that ended because its address left the permit, in a notice that may still go.
    pub unserved: Vec<Uuid>,
}

/// Everything a scan on that day has to judge, by looking at the whole window and not at "what is new": a
/// missed day must not lose a notice.
pub async fn find_candidates(connection: &mut PgConnection, sight: Sight) -> Result<Candidates> {
    let mut transaction = connection.begin().await?;
    join_by_hash(&mut transaction).await?;
    let (mut permits, already) = find_unrecorded(&mut transaction, sight, None).await?;
    transaction.rollback().await?;
    permits.extend(find_revivable(connection, sight.today, None).await?);
    permits.extend(find_too_late(connection, sight.today).await?);
    permits.extend(find_resumed(connection, sight).await?);
    permits.sort_unstable();
    permits.dedup();
    Ok(Candidates { permits, already, unserved: find_unserved(connection, sight.today).await? })
}

/// Until the transaction ends, whatever the statistics say: on a table filled a minute ago a nested loop takes minutes.
async fn join_by_hash(connection: &mut PgConnection) -> Result<()> {
    sqlx::query!(
        "SELECT set_config('enable_nestloop', 'off', true) AS joins, set_config('work_mem', '64MB', true) AS memory"
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Permits of one type for which something may become pending.
pub async fn find_owing_of_type(connection: &mut PgConnection, sight: Sight, permit_type: &str) -> Result<Vec<Uuid>> {
    let mut transaction = connection.begin().await?;
    join_by_hash(&mut transaction).await?;
    let (mut permits, _) = find_unrecorded(&mut transaction, sight, Some(permit_type)).await?;
    transaction.rollback().await?;
    permits.extend(find_revivable(connection, sight.today, Some(permit_type)).await?);
    permits.sort_unstable();
    permits.dedup();
    Ok(permits)
}

/// Permits with a step that is owed and due and has no row.
async fn find_unrecorded(
    connection: &mut PgConnection,
    sight: Sight,
    permit_type: Option<&str>,
) -> Result<(Vec<Uuid>, u64)> {
    let bounds = sqlx::query!(
        r#"SELECT least(min(offset_days), 0) AS "earliest!", greatest(max(offset_days + late_by_days), 0) AS "latest!"
           FROM schedule_steps WHERE enabled AND offset_days IS NOT NULL"#
    )
    .fetch_one(&mut *connection)
    .await?;
    let back = Days::new(bounds.latest.unsigned_abs().into());
    let ahead = Days::new(bounds.earliest.unsigned_abs().into());
    let from = sight.from.map_or(NaiveDate::MIN, |day| day.checked_sub_days(back).unwrap_or(NaiveDate::MIN));
    let to = sight.horizon.checked_add_days(ahead).unwrap_or(NaiveDate::MAX);
    // PostgreSQL's dates begin later than chrono's.
    let from = from.max(NaiveDate::from_ymd_opt(-4000, 1, 1).unwrap_or_default());
    let found = sqlx::query!(
        r#"SELECT count(n.notice_type) AS "already!",
                  coalesce(array_agg(p.id) FILTER (WHERE n.notice_type IS NULL), '{}') AS "permits!"
           FROM permits p
           JOIN schedule_steps s ON s.permit_type = p.permit_type AND s.enabled AND s.offset_days IS NOT NULL
           LEFT JOIN notices n ON n.permit_id = p.id AND n.expires_on = p.expires_on AND n.notice_type = s.notice_type
                              AND n.expires_on BETWEEN $1 AND $2
           WHERE p.status = 'active' AND p.archived_at IS NULL AND p.expires_on BETWEEN $1 AND $2
             AND (p.notices_paused_until IS NULL OR p.notices_paused_until < $3)
             AND p.expires_on + s.offset_days <= $4
             AND (p.takes_effect_on IS NULL OR p.expires_on + s.offset_days > p.takes_effect_on)
             AND (p.notices_from IS NULL OR p.expires_on + s.offset_days >= p.notices_from)
             AND (s.offset_days <= 0 OR p.expires_on + s.offset_days >= p.period_since)
             AND ($5::text IS NULL OR p.permit_type = $5)"#,
        from,
        to,
        sight.today,
        sight.horizon,
        permit_type,
    )
    .fetch_one(connection)
    .await?;
    Ok((found.permits, found.already.unsigned_abs()))
}

/// Permits that may be sent notices and have one of their present period that could be owed again. Until when it
/// may go depends on the whole schedule, so the last day on which it could go at all decides.
pub async fn find_revivable(
    connection: &mut PgConnection,
    today: NaiveDate,
    permit_type: Option<&str>,
) -> Result<Vec<Uuid>> {
    let permits = sqlx::query_scalar!(
        "SELECT p.id FROM notices n JOIN permits p ON p.id = n.permit_id AND p.expires_on = n.expires_on
         WHERE n.superseded_at IS NOT NULL
           AND n.reason_code IN ('period_changed', 'not_active', 'paused', 'archived', 'step_removed', 'not_owed')
           AND n.state IN ('superseded', 'pending', 'held', 'ambiguous', 'sent', 'failed')
           AND p.status = 'active' AND p.archived_at IS NULL
           AND (p.notices_paused_until IS NULL OR p.notices_paused_until < $1)
           AND (n.send_by >= $1
                OR EXISTS (SELECT FROM schedule_steps s
                           WHERE s.permit_type = p.permit_type AND s.notice_type = n.notice_type AND s.enabled
                             AND s.offset_days IS NOT NULL
                             AND p.expires_on + greatest(s.offset_days + s.late_by_days, 0) >= $1))
           AND ($2::text IS NULL OR p.permit_type = $2)",
        today,
        permit_type,
    );
    Ok(permits.fetch_all(connection).await?)
}

/// Permits with an open notice that is past its last day.
async fn find_too_late(connection: &mut PgConnection, today: NaiveDate) -> Result<Vec<Uuid>> {
    let permits =
        sqlx::query_scalar!("SELECT permit_id FROM notices WHERE state IN ('pending', 'held') AND send_by < $1", today);
    Ok(permits.fetch_all(connection).await?)
}

/// Permits whose pause has ended since the last scan: however long ago they expired, nobody has judged them.
async fn find_resumed(connection: &mut PgConnection, sight: Sight) -> Result<Vec<Uuid>> {
    // The first scan looks at every permit anyway.
    let Some(from) = sight.from else { return Ok(Vec::new()) };
    let permits = sqlx::query_scalar!(
        "SELECT id FROM permits
         WHERE notices_paused_until >= $1 AND notices_paused_until < $2 AND status = 'active' AND archived_at IS NULL",
        from,
        sight.today,
    );
    Ok(permits.fetch_all(connection).await?)
}

/// Permits with a copy that ended because its address left the permit, in a notice that may still go. Whether
/// somebody has no copy is for [`super::claims::follow_addresses`] to see: addresses and roles are not told apart
/// by counting.
async fn find_unserved(connection: &mut PgConnection, today: NaiveDate) -> Result<Vec<Uuid>> {
    let permits = sqlx::query_scalar!(
        "SELECT DISTINCT n.permit_id FROM deliveries d JOIN notices n ON n.id = d.notice_id
         WHERE d.state = 'superseded' AND d.reason_code = 'address_changed' AND n.superseded_at IS NULL
           AND n.send_by >= $1
         ORDER BY n.permit_id",
        today,
    );
    Ok(permits.fetch_all(connection).await?)
}
