//! What stands in an office's database, and whether all of it can be true together.

use chrono::NaiveDate;
use permit_notifier::domain::{delivery::DeliveryState, notice::NoticeState};
use sqlx::{AssertSqlSafe, FromRow};
use uuid::Uuid;

use super::office::TestOffice;

#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[expect(clippy::struct_field_names, reason = "named as the columns are")]
pub struct Notice {
    pub id: Uuid,
    pub notice_type: String,
    pub expires_on: NaiveDate,
    pub class: String,
    pub due_on: NaiveDate,
    pub send_by: NaiveDate,
    pub brought_forward: bool,
    pub state: String,
    pub reason_code: Option<String>,
    pub is_superseded: bool,
    pub scan_id: Option<Uuid>,
    #[sqlx(skip)]
    pub deliveries: Vec<Delivery>,
}

#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Delivery {
    pub id: Uuid,
    pub notice_id: Uuid,
    pub channel: String,
    pub recipient_key: String,
    pub role: String,
    pub state: String,
    pub reason_code: Option<String>,
    pub next_attempt_at: chrono::DateTime<chrono::Utc>,
    pub message_id: Option<String>,
}

impl Notice {
    /// `expires-30d pending`, `expires-60d superseded (more_urgent_step)`
    pub fn said(&self) -> String {
        let reason = self.reason_code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
        format!("{} {}{reason}", self.notice_type, self.state)
    }

    /// `ada@example.org pending`, `letter superseded (address_changed)`
    pub fn copies(&self) -> Vec<String> {
        let said = |d: &Delivery| {
            let reason = d.reason_code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            format!("{} {}{reason}", d.recipient_key, d.state)
        };
        self.deliveries.iter().map(said).collect()
    }
}

impl TestOffice {
    /// Every notice of a permit with its deliveries, by expiry period and due day.
    pub async fn notices(&self, permit: Uuid) -> Vec<Notice> {
        let mut connection = self.connection().await;
        let mut notices: Vec<Notice> = sqlx::query_as(
            "SELECT *, superseded_at IS NOT NULL AS is_superseded FROM notices WHERE permit_id = $1
             ORDER BY expires_on, due_on, notice_type",
        )
        .bind(permit)
        .fetch_all(&mut *connection)
        .await
        .expect("the notices");
        let deliveries: Vec<Delivery> = sqlx::query_as(
            "SELECT d.* FROM deliveries d JOIN notices n ON n.id = d.notice_id WHERE n.permit_id = $1 ORDER BY d.id",
        )
        .bind(permit)
        .fetch_all(&mut *connection)
        .await
        .expect("the deliveries");
        for notice in &mut notices {
            notice.deliveries = deliveries.iter().filter(|d| d.notice_id == notice.id).cloned().collect();
        }
        notices
    }

    /// What there is to say of each notice of a permit, by expiry period and due day.
    pub async fn said(&self, permit: Uuid) -> Vec<String> {
        self.notices(permit).await.iter().map(Notice::said).collect()
    }

    /// The notice of that type, of the latest period that has one.
    pub async fn notice(&self, permit: Uuid, notice_type: &str) -> Notice {
        let mut notices = self.notices(permit).await;
        notices.retain(|notice| notice.notice_type == notice_type);
        notices.pop().unwrap_or_else(|| panic!("no {notice_type}"))
    }

    /// What is still to be sent for a permit.
    pub async fn open(&self, permit: Uuid) -> Vec<String> {
        let notices = self.notices(permit).await;
        notices.into_iter().filter(|n| n.state == "pending" || n.state == "held").map(|n| n.notice_type).collect()
    }

    /// Ends the pending copies of a permit as the mail server would have it: `accepted`, `rejected`, `ambiguous`,
    /// or leaves them under way with `sending`.
    pub async fn transport(&self, permit: Uuid, outcome: &str) {
        let state = match outcome {
            "accepted" => "sent",
            "rejected" => "failed",
            other => other,
        };
        let (now, boot) = (self.clock.now().to_rfc3339(), self.rules.boot_id);
        let finished = if outcome == "sending" { "NULL".to_owned() } else { format!("'{now}'") };
        self.sql(&format!(
            "BEGIN;
             CREATE TEMPORARY TABLE going ON COMMIT DROP AS
                 SELECT d.id, d.notice_id, n.notice_key FROM deliveries d JOIN notices n ON n.id = d.notice_id
                 WHERE n.permit_id = '{permit}' AND d.state = 'pending';
             INSERT INTO attempts (id, delivery_id, number, notice_key, boot_id, transport, outcome, phase, smtp_code,
                                   payload_sha256, started_at, finished_at)
             SELECT gen_random_uuid(), id, 1, notice_key, '{boot}', 'smtp', '{outcome}', 'dot', 250,
                    sha256('mail'), '{now}', {finished} FROM going;
             UPDATE deliveries SET state = '{state}' WHERE id IN (SELECT id FROM going);
             UPDATE notices SET state = '{}' WHERE id IN (SELECT notice_id FROM going);
             COMMIT",
            if state == "sending" { "pending" } else { state }
        ))
        .await;
    }

    /// Every row of every table, as text: two that are equal mean that nothing was written.
    pub async fn dump(&self) -> Vec<String> {
        let tables = self.text("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").await;
        let mut dump = Vec::new();
        for table in tables {
            let rows = format!("SELECT '{table} ' || t::text FROM {table} t ORDER BY 1");
            dump.extend(self.text(&rows).await);
        }
        dump
    }

    /// Panics unless everything in the database can be true together.
    pub async fn assert_consistent(&self) {
        self.assert_states_follow_from_deliveries().await;
        for (lie, query) in LIES {
            let found = self.text(query).await;
            assert!(found.is_empty(), "{lie}: {found:#?}");
        }
    }

    async fn assert_states_follow_from_deliveries(&self) {
        let rows: Vec<(String, String, Vec<String>)> = sqlx::query_as(AssertSqlSafe(
            "SELECT n.notice_key, n.state, array_agg(d.state)
             FROM notices n JOIN deliveries d ON d.notice_id = n.id GROUP BY n.id",
        ))
        .fetch_all(&mut *self.connection().await)
        .await
        .expect("the states");
        for (key, stored, deliveries) in rows {
            let states: Vec<DeliveryState> = deliveries.iter().map(|word| word.parse().expect("a state")).collect();
            let follows = NoticeState::of(&states).map(NoticeState::as_str);
            assert_eq!(Some(stored.as_str()), follows, "{key} with copies {deliveries:?}");
        }
    }
}

/// What can never be true, with a query for cases of it.
const LIES: [(&str, &str); 13] = [
    (
        "a key differs from its parts",
        "SELECT notice_key FROM notices
         WHERE notice_key <> concat(permit_id, ':', notice_type, ':', to_char(expires_on, 'YYYY-MM-DD'))",
    ),
    (
        "a notice of another period is open",
        "SELECT n.notice_key FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.state IN ('pending', 'held') AND n.superseded_at IS NULL AND n.expires_on <> p.expires_on",
    ),
    (
        "a notice is open of a permit that may be sent none",
        "SELECT n.notice_key FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.state IN ('pending', 'held') AND n.superseded_at IS NULL
           AND (p.status <> 'active' OR p.archived_at IS NOT NULL)",
    ),
    (
        "two dated notices of one class are open",
        // One in flight past its last day may stand beside the next.
        "SELECT permit_id || ' ' || class FROM notices n
         WHERE state IN ('pending', 'held') AND superseded_at IS NULL AND notice_type <> 'renewed'
           AND EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id AND d.state IN ('pending', 'held'))
         GROUP BY permit_id, class HAVING count(*) > 1",
    ),
    (
        "a notice without copies is to be sent or was",
        "SELECT notice_key FROM notices n WHERE state NOT IN ('superseded', 'skipped', 'cancelled')
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.notice_id = n.id)",
    ),
    (
        "a notice that is owed says why it is not",
        "SELECT notice_key || ' ' || state || ' ' || reason_code FROM notices
         WHERE state IN ('pending', 'sent', 'ambiguous') AND superseded_at IS NULL AND reason_code IS NOT NULL",
    ),
    (
        "an open copy stands under a superseded notice",
        "SELECT n.notice_key FROM deliveries d JOIN notices n ON n.id = d.notice_id
         WHERE d.state IN ('pending', 'held') AND n.superseded_at IS NOT NULL",
    ),
    (
        "an open copy goes until another day than its notice",
        "SELECT n.notice_key FROM deliveries d JOIN notices n ON n.id = d.notice_id
         WHERE d.state IN ('pending', 'held') AND d.send_by <> n.send_by",
    ),
    (
        "an open copy goes to an address that is not on the permit",
        "SELECT n.notice_key || ' ' || d.recipient_key
         FROM deliveries d JOIN notices n ON n.id = d.notice_id JOIN permits p ON p.id = n.permit_id
         WHERE d.state IN ('pending', 'held') AND d.channel = 'email' AND NOT d.by_request
           AND d.recipient_key IS DISTINCT FROM lower(p.holder_email)
           AND NOT EXISTS (SELECT FROM contacts c WHERE c.permit_id = p.id AND lower(c.email) = d.recipient_key)",
    ),
    (
        "a copy ended unsent without a reason, or waits with one",
        "SELECT d.id::text FROM deliveries d
         WHERE (d.state IN ('superseded', 'suppressed', 'skipped', 'held') AND d.reason_code IS NULL)
            OR (d.state IN ('pending', 'sending', 'sent') AND d.reason_code IS NOT NULL)",
    ),
    (
        "a copy is sent without an accepted attempt",
        "SELECT d.id::text FROM deliveries d WHERE d.state = 'sent'
           AND NOT EXISTS (SELECT FROM attempts a
                           WHERE a.delivery_id = d.id AND (a.outcome = 'accepted' OR a.resolution = 'delivered'))",
    ),
    (
        "the present term and the known periods differ from the permit",
        "SELECT p.permit_number FROM permits p
         WHERE p.expires_on <> (SELECT t.expires_on FROM terms t WHERE t.permit_id = p.id ORDER BY number DESC LIMIT 1)
            OR NOT EXISTS (SELECT FROM expiry_periods e WHERE e.permit_id = p.id AND e.expires_on = p.expires_on
                                                          AND e.since = p.period_since)",
    ),
    (
        "a scan that completed ended before it began",
        "SELECT id::text FROM scans WHERE outcome = 'completed' AND (finished_at < started_at OR lock <> 'acquired')",
    ),
];
