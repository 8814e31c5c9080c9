//! Leasing: taking due deliveries for one process, without waiting and without changing their state.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Result;
use crate::{
    domain::{
        notice::{NoticeClass, NoticeKey},
        recipient::{EmailAddress, Recipient},
    },
    store::permit_types::parse_notice_type,
};

/// A leased delivery with everything its mail shows.
#[derive(Debug, Clone)]
pub struct Leased {
    /// The delivery.
    pub delivery_id: Uuid,
    /// Names this lease.
    pub token: Uuid,
    /// Its notice.
    pub notice_id: Uuid,
    /// The notice's key.
    pub key: NoticeKey,
    /// The notice's class.
    pub class: NoticeClass,
    /// The notice's due day.
    pub due_on: NaiveDate,
    /// Whom it goes to.
    pub recipient: Recipient,
    /// Number of the copy.
    pub copy: i32,
    /// Message-ID of earlier attempts.
    pub message_id: Option<String>,
    /// Version of the permit that all this was read from.
    pub version: i64,
    /// Number of the permit.
    pub permit_number: String,
    /// Name of its type.
    pub permit_type: String,
    /// Who holds it.
    pub holder_name: String,
    /// Where it applies.
    pub site_address: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Where to renew.
    pub renewal_url: Option<String>,
    /// Whom to ask.
    pub office_contact: Option<String>,
    /// Days of grace.
    pub grace_days: i32,
}

/// One lease: a delivery and the token that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The delivery.
    pub delivery_id: Uuid,
    /// The token.
    pub token: Uuid,
}

/// Leases up to `limit` due deliveries, the earliest `send_by` first. Rows that others lock are passed over.
pub async fn lease_due(
    connection: &mut PgConnection,
    boot_id: Uuid,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Lease>> {
    let leases = sqlx::query_as!(
        Lease,
        r#"WITH due AS (
               SELECT id FROM deliveries
               WHERE state = 'pending' AND channel = 'email' AND next_attempt_at <= $2 AND lease_owner IS NULL
               ORDER BY send_by, id LIMIT $3 FOR UPDATE SKIP LOCKED)
           UPDATE deliveries d SET lease_token = gen_random_uuid(), lease_owner = $1
           FROM due WHERE d.id = due.id
           RETURNING d.id AS delivery_id, d.lease_token AS "token!""#,
        boot_id,
        now,
        limit,
    );
    Ok(leases.fetch_all(connection).await?)
}

/// Reads what the mails of leased deliveries show, as it is now. A delivery whose lease is gone is left out.
pub async fn read_leased(connection: &mut PgConnection, leases: &[Lease]) -> Result<Vec<Leased>> {
    let ids: Vec<Uuid> = leases.iter().map(|lease| lease.delivery_id).collect();
    let tokens: Vec<Uuid> = leases.iter().map(|lease| lease.token).collect();
    let rows = sqlx::query!(
        r#"SELECT d.id, d.lease_token AS "token!", d.notice_id, n.permit_id, n.notice_type, n.expires_on, n.class,
                  n.due_on, d.recipient AS "recipient!", d.recipient_name, d.role, d.language, d.copy, d.message_id,
                  p.version, p.permit_number, t.name AS permit_type, p.holder_name, p.site_address, p.description,
                  t.renewal_url, t.office_contact, t.grace_days
           FROM unnest($1::uuid[], $2::uuid[]) AS lease (id, token)
           JOIN deliveries d ON d.id = lease.id AND d.lease_token = lease.token
           JOIN notices n ON n.id = d.notice_id
           JOIN permits p ON p.id = n.permit_id
           JOIN permit_types t ON t.code = p.permit_type
           ORDER BY d.send_by, d.id"#,
        &ids,
        &tokens,
    )
    .fetch_all(connection)
    .await?;
    let found = rows.into_iter().map(|row| {
        let address: EmailAddress = row
            .recipient
            .parse()
            .map_err(|error| super::StoreError::Invalid { field: "recipient", why: format!("{error}") })?;
        Ok(Leased {
            delivery_id: row.id,
            token: row.token,
            notice_id: row.notice_id,
            key: NoticeKey {
                permit_id: row.permit_id,
                notice_type: parse_notice_type(&row.notice_type)?,
                expires_on: row.expires_on,
            },
            class: row.class.parse()?,
            due_on: row.due_on,
            recipient: Recipient { address, name: row.recipient_name, role: row.role, language: row.language },
            copy: row.copy,
            message_id: row.message_id,
            version: row.version,
            permit_number: row.permit_number,
            permit_type: row.permit_type,
            holder_name: row.holder_name,
            site_address: row.site_address,
            description: row.description,
            renewal_url: row.renewal_url,
            office_contact: row.office_contact,
            grace_days: row.grace_days,
        })
    });
    found.collect()
}

/// Gives leases back untouched, to be tried again from `not_before` on (at once if empty).
pub async fn give_back(
    connection: &mut PgConnection,
    leases: &[Lease],
    not_before: Option<DateTime<Utc>>,
) -> Result<()> {
    let ids: Vec<Uuid> = leases.iter().map(|lease| lease.delivery_id).collect();
    let tokens: Vec<Uuid> = leases.iter().map(|lease| lease.token).collect();
    sqlx::query!(
        "UPDATE deliveries d
         SET lease_token = NULL, lease_owner = NULL, next_attempt_at = greatest(d.next_attempt_at, $3)
         FROM (SELECT d.id FROM deliveries d JOIN unnest($1::uuid[], $2::uuid[]) AS lease (id, token)
                 ON d.id = lease.id AND d.lease_token = lease.token
               WHERE d.state = 'pending' ORDER BY d.id FOR UPDATE OF d) AS back
         WHERE d.id = back.id",
        &ids,
        &tokens,
        not_before,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Frees leases in a process's own name that none of its tasks holds: a COMMIT without an answer leaves such.
pub async fn free_unknown(connection: &mut PgConnection, boot_id: Uuid, held: &[Uuid]) -> Result<u64> {
    let freed = sqlx::query!(
        "UPDATE deliveries SET lease_token = NULL, lease_owner = NULL
         WHERE lease_owner = $1 AND state = 'pending' AND NOT (lease_token = ANY ($2))",
        boot_id,
        held,
    );
    Ok(freed.execute(connection).await?.rows_affected())
}
