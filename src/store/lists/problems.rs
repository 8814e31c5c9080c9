//! What needs a person: copies that failed, copies of which nobody knows, notices that are held, letters to be posted.
//! What is no longer owed has left all of these.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::{Result, actions::HeldBy};

/// Counts end here; nobody handles so many one by one.
pub const COUNT_MAX: i64 = 10_000;

/// How many of each kind there are, up to [`COUNT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProblemCounts {
    pub failed: i64,
    pub ambiguous: i64,
    pub held: i64,
    pub letters: i64,
}

/// Counts every kind.
pub async fn count_problems(connection: &mut PgConnection) -> Result<ProblemCounts> {
    let counts = sqlx::query_as!(
        ProblemCounts,
        r#"SELECT
               (SELECT count(*) FROM (
                    SELECT FROM deliveries d JOIN notices n ON n.id = d.notice_id
                    WHERE d.state IN ('failed', 'bounced') AND n.superseded_at IS NULL
                      AND NOT EXISTS (SELECT FROM deliveries l WHERE l.notice_id = d.notice_id
                                        AND l.recipient_key = d.recipient_key AND l.copy > d.copy)
                    LIMIT $1) f) AS "failed!",
               (SELECT count(*) FROM (
                    SELECT FROM deliveries d JOIN notices n ON n.id = d.notice_id
                    WHERE d.state = 'ambiguous' AND n.superseded_at IS NULL LIMIT $1) a) AS "ambiguous!",
               (SELECT count(*) FROM (SELECT FROM notices WHERE state = 'held' LIMIT $1) h) AS "held!",
               (SELECT count(*) FROM (
                    SELECT FROM deliveries WHERE state = 'pending' AND channel = 'letter' LIMIT $1) l) AS "letters!""#,
        COUNT_MAX,
    );
    Ok(counts.fetch_one(connection).await?)
}

/// A copy that could not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRow {
    pub delivery_id: Uuid,
    pub notice_id: Uuid,
    pub permit_id: Uuid,
    pub permit_number: String,
    pub holder_name: String,
    pub notice_type: String,
    pub send_by: NaiveDate,
    pub recipient: Option<String>,
    pub state: String,
    pub reason_code: Option<String>,
    pub last_error: Option<String>,
    pub attempts: i64,
    /// A letter of the same notice waits to be posted.
    pub has_letter: bool,
    pub updated_at: DateTime<Utc>,
}

/// Up to `limit` copies that failed or came back, before the one with the id `after`, newest first. Of several to one
/// address the last counts.
pub async fn list_failed(connection: &mut PgConnection, after: Option<Uuid>, limit: i64) -> Result<Vec<FailedRow>> {
    let rows = sqlx::query_as!(
        FailedRow,
        r#"SELECT d.id AS delivery_id, d.notice_id, n.permit_id, p.permit_number, p.holder_name, n.notice_type, n.send_by,
                d.recipient, d.state, d.reason_code, d.last_error, d.updated_at,
                (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id) AS "attempts!",
                EXISTS (SELECT FROM deliveries l WHERE l.notice_id = d.notice_id AND l.channel = 'letter'
                          AND l.state = 'pending') AS "has_letter!"
         FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN permits p ON p.id = n.permit_id
         WHERE d.state IN ('failed', 'bounced') AND n.superseded_at IS NULL
           AND NOT EXISTS (SELECT FROM deliveries l WHERE l.notice_id = d.notice_id
                             AND l.recipient_key = d.recipient_key AND l.copy > d.copy)
           AND ($1::uuid IS NULL OR d.id < $1)
         ORDER BY d.id DESC LIMIT $2"#,
        after,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}

/// A copy that may or may not have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmbiguousRow {
    pub delivery_id: Uuid,
    pub notice_id: Uuid,
    pub permit_id: Uuid,
    pub permit_number: String,
    pub holder_name: String,
    pub notice_type: String,
    pub send_by: NaiveDate,
    pub recipient: Option<String>,
    pub message_id: Option<String>,
    pub payload_sha256: Option<Vec<u8>>,
    /// Number of the attempt of which nobody knows.
    pub number: i32,
    pub phase: Option<String>,
    pub reason: Option<String>,
    pub response: Option<String>,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Up to `limit` copies of which nobody knows, before the one with the id `after`, newest first.
pub async fn list_ambiguous(
    connection: &mut PgConnection,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<AmbiguousRow>> {
    let rows = sqlx::query_as!(
        AmbiguousRow,
        "SELECT d.id AS delivery_id, d.notice_id, n.permit_id, p.permit_number, p.holder_name, n.notice_type, n.send_by,
                d.recipient, d.message_id, d.payload_sha256, a.number, a.phase, a.reason, a.response, a.started_at,
                a.finished_at
         FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN permits p ON p.id = n.permit_id
         JOIN attempts a ON a.delivery_id = d.id AND a.outcome = 'ambiguous' AND a.resolution IS NULL
         WHERE d.state = 'ambiguous' AND n.superseded_at IS NULL AND ($1::uuid IS NULL OR d.id < $1)
         ORDER BY d.id DESC LIMIT $2",
        after,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}

/// Notices that were held together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldGroup {
    /// The scan that held them, the day it was for, and when it ran.
    pub scan_id: Option<Uuid>,
    pub as_of: Option<NaiveDate>,
    /// The import that held them, and its file.
    pub import_id: Option<Uuid>,
    pub file_name: Option<String>,
    pub count: i64,
}

impl HeldGroup {
    /// By which they are released; held by neither a scan nor an import they are held because the memory went back.
    pub fn held_by(&self) -> HeldBy {
        match (self.scan_id, self.import_id) {
            (Some(scan), _) => HeldBy::Scan(scan),
            (None, Some(import)) => HeldBy::Import(import),
            (None, None) => HeldBy::Restored,
        }
    }
}

/// What the brake of a scan or an import holds, and what is held because the memory went back.
pub async fn list_held_groups(connection: &mut PgConnection) -> Result<Vec<HeldGroup>> {
    let groups = sqlx::query_as!(
        HeldGroup,
        r#"SELECT g.scan_id, s.as_of AS "as_of?", g.import_id, i.file_name AS "file_name?", g.count AS "count!"
           FROM (SELECT CASE reason_code WHEN 'claim_limit' THEN scan_id END AS scan_id,
                        CASE WHEN reason_code = 'claim_limit' AND scan_id IS NULL THEN import_id END AS import_id,
                        count(*) AS count
                 FROM notices
                 WHERE state = 'held'
                   AND (reason_code = 'memory_went_back'
                        OR reason_code = 'claim_limit' AND (scan_id IS NOT NULL OR import_id IS NOT NULL))
                 GROUP BY 1, 2) g
           LEFT JOIN scans s ON s.id = g.scan_id LEFT JOIN imports i ON i.id = g.import_id
           ORDER BY g.scan_id DESC, g.import_id DESC"#
    );
    Ok(groups.fetch_all(connection).await?)
}

/// A notice that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRow {
    pub notice_id: Uuid,
    pub permit_id: Uuid,
    pub permit_number: String,
    pub holder_name: String,
    pub notice_type: String,
    pub due_on: NaiveDate,
    pub send_by: NaiveDate,
    pub reason_code: Option<String>,
    pub reason: Option<String>,
}

/// Up to `limit` of the notices that are held together.
pub async fn sample_held(connection: &mut PgConnection, held_by: HeldBy, limit: i64) -> Result<Vec<HeldRow>> {
    let (scan, import) = held_by.ids();
    let rows = sqlx::query_as!(
        HeldRow,
        "SELECT n.id AS notice_id, n.permit_id, p.permit_number, p.holder_name, n.notice_type, n.due_on, n.send_by,
                n.reason_code, n.reason
         FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.state = 'held'
           AND (n.scan_id = $1 OR n.import_id = $2 OR $1::uuid IS NULL AND $2::uuid IS NULL)
           AND n.reason_code = CASE WHEN $1::uuid IS NULL AND $2::uuid IS NULL THEN 'memory_went_back' ELSE 'claim_limit' END
         ORDER BY n.permit_id, n.id LIMIT $3",
        scan,
        import,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}

/// Up to `limit` notices that are held one by one, before the one with the id `after`, newest first.
pub async fn list_held(connection: &mut PgConnection, after: Option<Uuid>, limit: i64) -> Result<Vec<HeldRow>> {
    let rows = sqlx::query_as!(
        HeldRow,
        "SELECT n.id AS notice_id, n.permit_id, p.permit_number, p.holder_name, n.notice_type, n.due_on, n.send_by,
                n.reason_code, n.reason
         FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.state = 'held' AND n.reason_code IS DISTINCT FROM 'memory_went_back'
           AND (n.reason_code IS DISTINCT FROM 'claim_limit' OR n.scan_id IS NULL AND n.import_id IS NULL)
           AND ($1::uuid IS NULL OR n.id < $1)
         ORDER BY n.id DESC LIMIT $2",
        after,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}

/// A letter that is to be posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterRow {
    pub delivery_id: Uuid,
    pub notice_id: Uuid,
    pub permit_id: Uuid,
    pub permit_number: String,
    pub holder_name: String,
    pub site_address: Option<String>,
    pub notice_type: String,
    pub due_on: NaiveDate,
    pub send_by: NaiveDate,
}

/// Up to `limit` letters to be posted after the one at `after`, the one with the earliest last day first.
pub async fn list_letters(
    connection: &mut PgConnection,
    after: Option<(NaiveDate, Uuid)>,
    limit: i64,
) -> Result<Vec<LetterRow>> {
    let (day, id) = after.unzip();
    let rows = sqlx::query_as!(
        LetterRow,
        "SELECT d.id AS delivery_id, d.notice_id, n.permit_id, p.permit_number, p.holder_name, p.site_address,
                n.notice_type, n.due_on, d.send_by
         FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN permits p ON p.id = n.permit_id
         WHERE d.state = 'pending' AND d.channel = 'letter' AND ($1::date IS NULL OR (d.send_by, d.id) > ($1, $2::uuid))
         ORDER BY d.send_by, d.id LIMIT $3",
        day,
        id,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}
