//! The reason on a notice: why it is held or ended unsent, and none while a copy may still go or has gone.
//!
//! A reason comes from the end of one copy, and another copy may live on; so whoever ends copies calls both
//! functions after [`super::claims::refresh_states`], in the same transaction.

use sqlx::PgConnection;
use uuid::Uuid;

use super::Result;
use crate::domain::notice::ReasonCode;

/// Says why notices are held or failed, where nothing says so yet.
pub(super) async fn explain(connection: &mut PgConnection, reasons: &[(Uuid, ReasonCode)]) -> Result<()> {
    if reasons.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "UPDATE notices n SET reason_code = why.code, reason = why.sentence
         FROM unnest($1::uuid[], $2::text[], $3::text[]) AS why (id, code, sentence)
         WHERE n.id = why.id AND n.state IN ('held', 'failed') AND n.reason_code IS NULL",
        &reasons.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        &reasons.iter().map(|(_, reason)| reason.as_str()).collect::<Vec<_>>() as &[&str],
        &reasons.iter().map(|(_, reason)| reason.sentence()).collect::<Vec<_>>() as &[&str],
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Says the same in the words of the copies that are held or failed.
pub(super) async fn explain_by_copies(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    if notices.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query!(
        r#"SELECT DISTINCT ON (n.id) n.id, d.reason_code AS "reason_code!"
           FROM notices n JOIN deliveries d ON d.notice_id = n.id
           WHERE n.id = ANY ($1) AND d.reason_code IS NOT NULL
             AND CASE n.state WHEN 'held' THEN d.state = 'held' ELSE d.state IN ('failed', 'bounced', 'suppressed') END
           ORDER BY n.id, d.reason_code = 'memory_went_back' DESC, d.id DESC"#,
        notices,
    )
    .fetch_all(&mut *connection)
    .await?;
    let reasons: Result<Vec<_>> = rows.into_iter().map(|row| Ok((row.id, row.reason_code.parse()?))).collect();
    explain(connection, &reasons?).await
}

/// Takes the reason from notices that are owed and wait, are sent, or may have been.
pub(super) async fn clear(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    sqlx::query!(
        "UPDATE notices SET reason_code = NULL, reason = NULL
         WHERE id = ANY ($1) AND state IN ('pending', 'ambiguous', 'sent') AND superseded_at IS NULL
           AND reason_code IS NOT NULL",
        notices,
    )
    .execute(connection)
    .await?;
    Ok(())
}
