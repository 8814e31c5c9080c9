//! Notices as they are shown.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::shapes::{words, words_or_null};
use crate::domain::attempt::{Outcome, Phase, Resolution, Transport};
use crate::domain::delivery::{Channel, DeliveryState};
use crate::domain::notice::{NoticeClass, NoticeState, ReasonCode};
use crate::domain::text::hex;
use crate::store::lists::notices::{AttemptRow, DeliveryRow, NoticeRow};
use crate::store::purge::REMOVED;

/// What is owed: one step of the schedule for one permit and one expiry period.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notice)]
pub struct NoticeView {
    pub id: Uuid,
    /// `<permit id>:<notice type>:<expires_on>`, borne by one notice for ever.
    pub notice_key: String,
    pub permit_id: Uuid,
    pub permit_number: String,
    #[schema(example = "expires-30d")]
    pub notice_type: String,
    #[schema(schema_with = words::<NoticeClass>)]
    pub class: String,
    /// The expiry period.
    pub expires_on: NaiveDate,
    pub due_on: NaiveDate,
    /// Last day on which it may go.
    pub send_by: NaiveDate,
    /// It goes before its due day, because no sending window is left until its last.
    pub brought_forward: bool,
    /// Follows from its deliveries.
    #[schema(schema_with = words::<NoticeState>)]
    pub state: String,
    /// Why it is held or ended unsent.
    #[schema(schema_with = words_or_null::<ReasonCode>)]
    pub reason_code: Option<String>,
    /// The same in words.
    pub reason: Option<String>,
    /// Since when it is no longer owed.
    pub superseded_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub deliveries: Vec<DeliveryView>,
}

/// One copy of a notice, to one address or by letter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    pub id: Uuid,
    /// The address; null for a letter, and after `KEEP_PERSONAL_DAYS`.
    pub recipient: Option<String>,
    /// `holder`, or the contact's role.
    pub role: String,
    #[schema(schema_with = words::<Channel>)]
    pub channel: String,
    #[schema(schema_with = words::<DeliveryState>)]
    pub state: String,
    #[schema(schema_with = words_or_null::<ReasonCode>)]
    pub reason_code: Option<String>,
    /// Attempts that the server put off, of `MAX_ATTEMPTS`; `attempts` has all that were made.
    pub attempt_count: i32,
    pub next_attempt_at: DateTime<Utc>,
    /// Equal at each attempt.
    pub message_id: Option<String>,
    pub last_error: Option<String>,
    /// SHA-256 of the bytes of the last attempt, in hexadecimal digits.
    pub payload_sha256: Option<String>,
    /// Only with a single notice; in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptView>>,
}

/// One try to hand over a copy, recorded before and after.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub struct AttemptView {
    /// Count within the delivery, from 1.
    pub number: i32,
    pub notice_key: String,
    #[schema(schema_with = words::<Transport>)]
    pub transport: String,
    #[schema(schema_with = words::<Outcome>)]
    pub outcome: String,
    /// It says something of the mail server, and nothing of this message.
    pub transport_fault: bool,
    pub reason: Option<String>,
    /// How far the conversation had come.
    #[schema(schema_with = words_or_null::<Phase>)]
    pub phase: Option<String>,
    pub smtp_code: Option<i32>,
    pub enhanced_code: Option<String>,
    /// What the server said.
    pub response: Option<String>,
    pub payload_sha256: Option<String>,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    /// What somebody found out about an ambiguous one.
    #[schema(schema_with = words_or_null::<Resolution>)]
    pub resolution: Option<String>,
    pub resolved_by: Option<String>,
    pub resolution_reason: Option<String>,
    pub resolved_at: Option<DateTime<Utc>>,
    /// What its process still saw after it had been given up.
    pub late_result: Option<String>,
}

impl NoticeView {
    /// As one of many: without attempts.
    pub fn brief(row: NoticeRow) -> Self {
        Self::of(row, false)
    }

    /// Alone: with all attempts.
    pub fn whole(row: NoticeRow) -> Self {
        Self::of(row, true)
    }

    fn of(row: NoticeRow, attempts: bool) -> Self {
        Self {
            id: row.id,
            notice_key: row.notice_key,
            permit_id: row.permit_id,
            permit_number: row.permit_number,
            notice_type: row.notice_type,
            class: row.class,
            expires_on: row.expires_on,
            due_on: row.due_on,
            send_by: row.send_by,
            brought_forward: row.brought_forward,
            state: row.state,
            reason_code: row.reason_code,
            reason: row.reason,
            superseded_at: row.superseded_at,
            created_at: row.created_at,
            deliveries: row.deliveries.into_iter().map(|delivery| DeliveryView::of(delivery, attempts)).collect(),
        }
    }
}

impl DeliveryView {
    fn of(row: DeliveryRow, attempts: bool) -> Self {
        Self {
            id: row.id,
            recipient: row.recipient.filter(|recipient| recipient != REMOVED),
            role: row.role,
            channel: row.channel,
            state: row.state,
            reason_code: row.reason_code,
            attempt_count: row.attempt_count,
            next_attempt_at: row.next_attempt_at,
            message_id: row.message_id,
            last_error: row.last_error,
            payload_sha256: row.payload_sha256.as_deref().map(hex),
            attempts: attempts.then(|| row.attempts.into_iter().map(AttemptView::from).collect()),
        }
    }
}

impl From<AttemptRow> for AttemptView {
    fn from(row: AttemptRow) -> Self {
        Self {
            number: row.number,
            notice_key: row.notice_key,
            transport: row.transport,
            outcome: row.outcome,
            transport_fault: row.transport_fault,
            reason: row.reason,
            phase: row.phase,
            smtp_code: row.smtp_code,
            enhanced_code: row.enhanced_code,
            response: row.response,
            payload_sha256: row.payload_sha256.as_deref().map(hex),
            started_at: row.started_at,
            finished_at: row.finished_at,
            resolution: row.resolution,
            resolved_by: row.resolved_by,
            resolution_reason: row.resolution_reason,
            resolved_at: row.resolved_at,
            late_result: row.late_result,
        }
    }
}
