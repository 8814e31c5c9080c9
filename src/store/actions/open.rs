//! Opening a notice for an action: locked in the order of all locks, and read with its copies.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::{
        delivery::{Channel, DeliveryState},
        notice::{NoticeClass, NoticeState, ReasonCode},
    },
    store::{
        Result, StoreError,
        cases::{lock_deliveries, lock_permits},
    },
};

/// A notice that is locked with everything around it.
pub(super) struct Opened {
    pub id: Uuid,
    pub permit_id: Uuid,
    pub key: String,
    pub class: NoticeClass,
    pub send_by: NaiveDate,
    pub state: NoticeState,
    /// Why it is no longer owed, if so.
    pub superseded: Option<String>,
    /// Why it is held or ended, if something says so.
    pub reason: Option<ReasonCode>,
    /// The words of the person who holds it, if one does.
    pub held_reason: Option<String>,
    pub created_at: DateTime<Utc>,
    pub copies: Vec<Copy>,
}

/// One copy of it.
pub(super) struct Copy {
    pub id: Uuid,
    pub number: i32,
    pub channel: Channel,
    pub recipient: Option<String>,
    pub recipient_key: String,
    pub recipient_name: String,
    pub role: String,
    pub language: String,
    pub by_request: bool,
    pub state: DeliveryState,
    pub next_attempt_at: DateTime<Utc>,
    /// An attempt is open, was accepted, or may have been.
    pub is_effective: bool,
}

impl Opened {
    /// Its copies in one of these states.
    pub fn in_states(&self, states: &[DeliveryState]) -> Vec<&Copy> {
        self.copies.iter().filter(|copy| states.contains(&copy.state)).collect()
    }

    /// Refuses while a copy is through the gate.
    pub fn refuse_in_flight(&self) -> Result<()> {
        let in_flight = self.copies.iter().any(|copy| copy.state == DeliveryState::Sending);
        if in_flight { Err(StoreError::BeingSent) } else { Ok(()) }
    }

    /// That the state does not allow it; `what` says what would be allowed.
    pub fn wrong_state(&self, what: &str) -> StoreError {
        match self.refuse_in_flight() {
            Err(in_flight) => in_flight,
            Ok(()) => StoreError::wrong_state(self.state.as_str(), format!("the notice is {}; {what}", self.state)),
        }
    }
}

/// Locks the permits of `notices`, then the notices of their present periods, the open ones of others and `notices`
/// themselves, then the deliveries of all these; each kind in order of id. Says which permits those are, in order.
pub(super) async fn lock(connection: &mut PgConnection, notices: &[Uuid]) -> Result<Vec<Uuid>> {
    let permits = sqlx::query_scalar!(
        r#"SELECT DISTINCT permit_id AS "id!" FROM notices WHERE id = ANY ($1) ORDER BY 1"#,
        notices,
    )
    .fetch_all(&mut *connection)
    .await?;
    lock_permits(connection, &permits).await?;
    let locked = sqlx::query_scalar!(
        "SELECT n.id FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.permit_id = ANY ($1)
           AND (n.expires_on = p.expires_on OR n.state IN ('pending', 'held') OR n.id = ANY ($2))
         ORDER BY n.id FOR NO KEY UPDATE OF n",
        &permits,
        notices,
    )
    .fetch_all(&mut *connection)
    .await?;
    lock_deliveries(connection, &locked).await?;
    Ok(permits)
}

/// Locks one notice with everything around it, and reads it.
pub(super) async fn open(connection: &mut PgConnection, notice: Uuid) -> Result<Opened> {
    lock(connection, &[notice]).await?;
    read(connection, notice).await
}

/// Reads a notice that is locked.
pub(super) async fn read(connection: &mut PgConnection, notice: Uuid) -> Result<Opened> {
    let row = sqlx::query!(
        r#"SELECT id, permit_id, notice_key, class, send_by, state, reason_code, held_reason, created_at,
                purged_at IS NOT NULL AS "purged!", CASE WHEN superseded_at IS NOT NULL THEN coalesce(reason_code, 'not_owed') END AS superseded
         FROM notices WHERE id = $1"#,
        notice,
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(StoreError::NotFound("notice"))?;
    if row.purged {
        let why = "names and addresses were removed from this notice after KEEP_PERSONAL_DAYS; it is only memory now";
        return Err(StoreError::wrong_state(row.state, why));
    }
    Ok(Opened {
        id: row.id,
        permit_id: row.permit_id,
        key: row.notice_key,
        class: row.class.parse()?,
        send_by: row.send_by,
        state: row.state.parse()?,
        superseded: row.superseded,
        reason: row.reason_code.as_deref().map(str::parse).transpose()?,
        held_reason: row.held_reason,
        created_at: row.created_at,
        copies: read_copies(connection, notice).await?,
    })
}

async fn read_copies(connection: &mut PgConnection, notice: Uuid) -> Result<Vec<Copy>> {
    let rows = sqlx::query!(
        r#"SELECT d.id, d.copy, d.channel, d.recipient, d.recipient_key, d.recipient_name, d.role, d.language,
                  d.by_request, d.state, d.next_attempt_at,
                  EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id
                            AND (a.outcome IN ('sending', 'accepted')
                                 OR (a.outcome = 'ambiguous' AND a.resolution IS DISTINCT FROM 'not_delivered')))
                      AS "is_effective!"
           FROM deliveries d WHERE d.notice_id = $1 ORDER BY d.id"#,
        notice,
    )
    .fetch_all(connection)
    .await?;
    let copies = rows.into_iter().map(|row| {
        Ok(Copy {
            id: row.id,
            number: row.copy,
            channel: row.channel.parse()?,
            recipient: row.recipient,
            recipient_key: row.recipient_key,
            recipient_name: row.recipient_name,
            role: row.role,
            language: row.language,
            by_request: row.by_request,
            state: row.state.parse()?,
            next_attempt_at: row.next_attempt_at,
            is_effective: row.is_effective,
        })
    });
    copies.collect()
}
