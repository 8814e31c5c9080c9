//! Notices as they are shown: one with its deliveries and attempts, or a page of those that a filter leaves.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{PgConnection, PgExecutor, Postgres, QueryBuilder};
use uuid::Uuid;

use super::Conditions;
use crate::{
    domain::{delivery::Channel, notice::NoticeState},
    store::{Result, StoreError, unit},
};

/// A notice as it is shown.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct NoticeRow {
    pub id: Uuid,
    pub notice_key: String,
    pub permit_id: Uuid,
    pub permit_number: String,
    pub holder_name: String,
    pub notice_type: String,
    pub class: String,
    pub expires_on: NaiveDate,
    pub due_on: NaiveDate,
    pub send_by: NaiveDate,
    pub brought_forward: bool,
    pub state: String,
    pub reason_code: Option<String>,
    /// In words.
    pub reason: Option<String>,
    pub superseded_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    #[sqlx(skip)]
    pub deliveries: Vec<DeliveryRow>,
}

/// One copy of a notice.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct DeliveryRow {
    pub id: Uuid,
    pub notice_id: Uuid,
    pub recipient: Option<String>,
    pub role: String,
    pub channel: String,
    pub state: String,
    pub reason_code: Option<String>,
    pub attempt_count: i32,
    pub next_attempt_at: DateTime<Utc>,
    pub message_id: Option<String>,
    pub last_error: Option<String>,
    pub payload_sha256: Option<Vec<u8>>,
    #[sqlx(skip)]
    pub attempts: Vec<AttemptRow>,
}

/// One try to hand over a copy.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct AttemptRow {
    pub delivery_id: Uuid,
    pub number: i32,
    pub notice_key: String,
    pub transport: String,
    pub outcome: String,
    pub transport_fault: bool,
    pub reason: Option<String>,
    pub phase: Option<String>,
    pub smtp_code: Option<i32>,
    pub enhanced_code: Option<String>,
    pub response: Option<String>,
    pub payload_sha256: Option<Vec<u8>>,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub resolution: Option<String>,
    pub resolved_by: Option<String>,
    pub resolution_reason: Option<String>,
    pub resolved_at: Option<DateTime<Utc>>,
    pub late_result: Option<String>,
    /// Its bytes are kept.
    pub has_message: bool,
}

/// Which notices; nothing set means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoticeFilter {
    pub state: Option<NoticeState>,
    pub permit_id: Option<Uuid>,
    pub notice_type: Option<String>,
    /// First, last due day.
    pub due_from: Option<NaiveDate>,
    pub due_to: Option<NaiveDate>,
    /// A mail of it was accepted from one instant until just before the other.
    pub accepted: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// A copy of it goes, or went, by this way.
    pub channel: Option<Channel>,
}

const SELECT: &str = "
    SELECT n.id, n.notice_key, n.permit_id, p.permit_number, p.holder_name, n.notice_type, n.class, n.expires_on, n.due_on, n.send_by,
           n.brought_forward, n.state, n.reason_code, n.reason, n.superseded_at, n.created_at
    FROM notices n JOIN permits p ON p.id = n.permit_id";

fn restrict(query: &mut QueryBuilder<Postgres>, filter: &NoticeFilter) -> Conditions {
    let mut conditions = Conditions::default();
    if let Some(state) = filter.state {
        conditions.and(query).push("n.state = ").push_bind(state.as_str());
    }
    if let Some(permit) = filter.permit_id {
        conditions.and(query).push("n.permit_id = ").push_bind(permit);
    }
    if let Some(notice_type) = &filter.notice_type {
        conditions.and(query).push("n.notice_type = ").push_bind(notice_type.clone());
    }
    if let Some(from) = filter.due_from {
        conditions.and(query).push("n.due_on >= ").push_bind(from);
    }
    if let Some(to) = filter.due_to {
        conditions.and(query).push("n.due_on <= ").push_bind(to);
    }
    if let Some((from, until)) = filter.accepted {
        let mails = conditions.and(query).push(
            "n.id IN (SELECT d.notice_id FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
                      WHERE a.outcome = 'accepted' AND a.transport <> 'letter' AND a.finished_at >= ",
        );
        mails.push_bind(from).push(" AND a.finished_at < ").push_bind(until).push(")");
    }
    if let Some(channel) = filter.channel {
        let copies =
            conditions.and(query).push("EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id AND d.channel = ");
        copies.push_bind(channel.as_str());
        if let Some(state) = filter.state.filter(|state| *state == NoticeState::Pending) {
            copies.push(" AND d.state = ").push_bind(state.as_str());
        }
        copies.push(")");
    }
    conditions
}

/// Up to `limit` notices of the filter before the one with the id `after`, newest first, with their deliveries.
pub async fn list_notices(
    connection: &mut PgConnection,
    filter: &NoticeFilter,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<NoticeRow>> {
    let mut query = QueryBuilder::new(SELECT);
    let mut conditions = restrict(&mut query, filter);
    if let Some(after) = after {
        conditions.and(&mut query).push("n.id < ").push_bind(after);
    }
    query.push(" ORDER BY n.id DESC LIMIT ").push_bind(limit);
    let mut snapshot = unit::snapshot(connection).await?;
    let mut notices: Vec<NoticeRow> = query.build_query_as().fetch_all(&mut *snapshot).await?;
    let ids: Vec<Uuid> = notices.iter().map(|notice| notice.id).collect();
    let mut deliveries = read_deliveries(&mut snapshot, &ids).await?;
    snapshot.rollback().await?;
    for notice in &mut notices {
        notice.deliveries = deliveries.remove(&notice.id).unwrap_or_default();
    }
    Ok(notices)
}

/// Ids of up to `limit` notices of the filter, in the order in which many are to be changed: by permit.
pub async fn find_notices(connection: &mut PgConnection, filter: &NoticeFilter, limit: i64) -> Result<Vec<Uuid>> {
    let mut query = QueryBuilder::new("SELECT n.id FROM notices n");
    restrict(&mut query, filter);
    query.push(" ORDER BY n.permit_id, n.id LIMIT ").push_bind(limit);
    Ok(query.build_query_scalar().fetch_all(connection).await?)
}

/// `ids` in the order in which many are to be changed; those that do not exist stand at the end.
pub async fn in_order_of_permits(connection: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let ordered = sqlx::query_scalar!(
        r#"SELECT wanted.id AS "id!" FROM unnest($1::uuid[]) AS wanted (id)
           LEFT JOIN notices n ON n.id = wanted.id
           GROUP BY wanted.id, n.permit_id ORDER BY n.permit_id NULLS LAST, wanted.id"#,
        ids
    );
    Ok(ordered.fetch_all(connection).await?)
}

/// One notice with its deliveries and all their attempts.
pub async fn read_notice(connection: &mut PgConnection, id: Uuid) -> Result<NoticeRow> {
    let mut query = QueryBuilder::new(SELECT);
    query.push(" WHERE n.id = ").push_bind(id);
    let mut snapshot = unit::snapshot(connection).await?;
    let notice: Option<NoticeRow> = query.build_query_as().fetch_optional(&mut *snapshot).await?;
    let mut notice = notice.ok_or(StoreError::NotFound("notice"))?;
    notice.deliveries = read_deliveries(&mut snapshot, &[id]).await?.remove(&id).unwrap_or_default();
    let ids: Vec<Uuid> = notice.deliveries.iter().map(|delivery| delivery.id).collect();
    let attempts = sqlx::query_as!(
        AttemptRow,
        r#"SELECT delivery_id, number, notice_key, transport, outcome, transport_fault, reason, phase, smtp_code,
                enhanced_code, response, payload_sha256, started_at, finished_at, resolution, resolved_by,
                resolution_reason, resolved_at, late_result,
                EXISTS (SELECT FROM attempt_messages m WHERE m.attempt_id = attempts.id) AS "has_message!"
         FROM attempts WHERE delivery_id = ANY ($1) ORDER BY delivery_id, number"#,
        &ids,
    );
    let attempts = attempts.fetch_all(&mut *snapshot).await?;
    snapshot.rollback().await?;
    for attempt in attempts {
        if let Some(delivery) = notice.deliveries.iter_mut().find(|delivery| delivery.id == attempt.delivery_id) {
            delivery.attempts.push(attempt);
        }
    }
    Ok(notice)
}

/// What people call a notice, and its state.
pub async fn name_notice(executor: impl PgExecutor<'_>, id: Uuid) -> Result<(String, String)> {
    let row = sqlx::query!(
        "SELECT p.permit_number, n.notice_type, n.state FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.id = $1",
        id,
    );
    let row = row.fetch_optional(executor).await?.ok_or(StoreError::NotFound("notice"))?;
    Ok((format!("{} {}", row.permit_number, row.notice_type), row.state))
}

async fn read_deliveries(connection: &mut PgConnection, notices: &[Uuid]) -> Result<HashMap<Uuid, Vec<DeliveryRow>>> {
    let rows: Vec<DeliveryRow> = sqlx::query_as(
        "SELECT id, notice_id, recipient, role, channel, state, reason_code, attempt_count, next_attempt_at, message_id,
                last_error, payload_sha256
         FROM deliveries WHERE notice_id = ANY ($1) ORDER BY id",
    )
    .bind(notices)
    .fetch_all(connection)
    .await?;
    let mut of_notice: HashMap<Uuid, Vec<DeliveryRow>> = HashMap::new();
    for row in rows {
        of_notice.entry(row.notice_id).or_default().push(row);
    }
    Ok(of_notice)
}

/// Why notices are what they are, in words, of those that say it.
pub async fn read_reasons(connection: &mut PgConnection, notices: &[Uuid]) -> Result<HashMap<Uuid, String>> {
    let reasons: Vec<(Uuid, String)> =
        sqlx::query_as("SELECT id, reason FROM notices WHERE id = ANY ($1) AND reason IS NOT NULL")
            .bind(notices)
            .fetch_all(connection)
            .await?;
    Ok(reasons.into_iter().collect())
}

/// Those of the notices whose only copies that are still to go are letters.
pub async fn find_letters(connection: &mut PgConnection, notices: &[Uuid]) -> Result<HashSet<Uuid>> {
    let found = sqlx::query_scalar!(
        "SELECT notice_id FROM deliveries WHERE notice_id = ANY ($1) AND state = 'pending'
         GROUP BY notice_id HAVING bool_and(channel = 'letter')",
        notices,
    );
    Ok(found.fetch_all(connection).await?.into_iter().collect())
}

/// The bytes that an attempt handed over, or was about to; the last attempt unless `number` says which.
pub async fn read_message(connection: &mut PgConnection, delivery: Uuid, number: Option<i32>) -> Result<Vec<u8>> {
    let content = sqlx::query_scalar!(
        "SELECT m.content FROM attempts a JOIN attempt_messages m ON m.attempt_id = a.id
         WHERE a.delivery_id = $1 AND ($2::integer IS NULL OR a.number = $2) ORDER BY a.number DESC LIMIT 1",
        delivery,
        number,
    );
    if let Some(content) = content.fetch_optional(&mut *connection).await? {
        return Ok(content);
    }
    let had = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM attempts WHERE delivery_id = $1 AND ($2::integer IS NULL OR number = $2)
                            AND payload_sha256 IS NOT NULL) AS "had!""#,
        delivery,
        number,
    );
    let had = had.fetch_one(connection).await?;
    Err(StoreError::NotFound(if had {
        "message any more: it was removed after KEEP_CONTENT_DAYS; its hash stays"
    } else {
        "message"
    }))
}

/// Whether there is such a delivery.
pub async fn is_delivery(connection: &mut PgConnection, id: Uuid) -> Result<bool> {
    let found = sqlx::query_scalar!(r#"SELECT EXISTS (SELECT FROM deliveries WHERE id = $1) AS "found!""#, id);
    Ok(found.fetch_one(connection).await?)
}
