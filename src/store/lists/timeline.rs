//! What became of the notices of one permit, attempt by attempt.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::Result;

/// An attempt to send a copy of a notice, as it stands on the permit's page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineAttempt {
    /// The notice.
    pub notice_id: Uuid,
    /// Its step.
    pub notice_type: String,
    /// To whom; none for a letter.
    pub recipient: Option<String>,
    /// `smtp`, `file` or `letter`.
    pub transport: String,
    /// What came of it.
    pub outcome: String,
    /// The server's code.
    pub smtp_code: Option<i32>,
    /// The server's words.
    pub response: Option<String>,
    /// Business time.
    pub started_at: DateTime<Utc>,
    /// What somebody found out about an ambiguous one.
    pub resolution: Option<String>,
    /// Who found it out.
    pub resolved_by: Option<String>,
}

/// Up to `limit` attempts of a permit's notices, newest first.
pub async fn list_attempts(connection: &mut PgConnection, permit: Uuid, limit: i64) -> Result<Vec<TimelineAttempt>> {
    let rows = sqlx::query_as!(
        TimelineAttempt,
        "SELECT n.id AS notice_id, n.notice_type, d.recipient, a.transport, a.outcome, a.smtp_code, a.response,
                a.started_at, a.resolution, a.resolved_by
         FROM notices n JOIN deliveries d ON d.notice_id = n.id JOIN attempts a ON a.delivery_id = d.id
         WHERE n.permit_id = $1 ORDER BY a.started_at DESC, a.number DESC LIMIT $2",
        permit,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}
