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
    /// Version of its type that all this was read from.
    pub type_version: i64,
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

/// What cannot be read as a mail: one delivery's own fault, for its own end.
#[derive(Debug)]
pub struct Unreadable {
    /// The lease.
    pub lease: Lease,
    /// The notice's permit.
    pub permit_id: Uuid,
    /// What is wrong.
    pub fault: super::StoreError,
}

/// Owners that a delivery may lose between lease and gate, before it is held for a person.
pub const LOST_OWNERS_MAX: i32 = 3;

/// Which deliveries to lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Those that may go together.
    Usual,
    /// Those that the death of one more owner would hold. They go alone, so that what kills its owner is told from what
    /// was only near.
    Suspect,
}

/// Leases up to `limit` due deliveries, the earliest `send_by` first. Rows that others lock are passed over, and
/// a process that is dead for the others leases nothing.
pub async fn lease_due(
    connection: &mut PgConnection,
    boot_id: Uuid,
    now: DateTime<Utc>,
    kind: Kind,
    limit: i64,
) -> Result<Vec<Lease>> {
    let leases = sqlx::query_as!(
        Lease,
        r#"WITH due AS (
               SELECT id FROM deliveries
               WHERE state = 'pending' AND channel = 'email' AND next_attempt_at <= $2 AND lease_owner IS NULL
                 AND EXISTS (SELECT FROM living_processes WHERE boot_id = $1) AND (lost_owners >= $4 - 1) = $5
               ORDER BY send_by, id LIMIT $3 FOR UPDATE SKIP LOCKED)
           UPDATE deliveries d SET lease_token = gen_random_uuid(), lease_owner = $1
           FROM due WHERE d.id = due.id
           RETURNING d.id AS delivery_id, d.lease_token AS "token!""#,
        boot_id,
        now,
        limit,
        LOST_OWNERS_MAX,
        kind == Kind::Suspect,
    );
    Ok(leases.fetch_all(connection).await?)
}

/// What the mail of each copy of a notice shows, as it is now, whether the copy is leased or not.
pub async fn read_copies(connection: &mut PgConnection, notice: Uuid) -> Result<Vec<Result<Leased, Unreadable>>> {
    let mailed = sqlx::query_scalar!("SELECT id FROM deliveries WHERE notice_id = $1 AND channel = 'email'", notice)
        .fetch_all(&mut *connection)
        .await?;
    // No lease has this token; it stands for any.
    let any = mailed.into_iter().map(|delivery_id| Lease { delivery_id, token: Uuid::nil() });
    read_leased(connection, &any.collect::<Vec<_>>()).await
}

/// Reads what the mails of leased deliveries show, as it is now. A delivery whose lease is gone is left out; one
/// that cannot be read is told apart, so that it does not stop the rest.
pub async fn read_leased(connection: &mut PgConnection, leases: &[Lease]) -> Result<Vec<Result<Leased, Unreadable>>> {
    let ids: Vec<Uuid> = leases.iter().map(|lease| lease.delivery_id).collect();
    let tokens: Vec<Uuid> = leases.iter().map(|lease| lease.token).collect();
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT d.id, lease.token AS "token!", d.notice_id, n.permit_id, n.notice_type, n.expires_on, n.class,
                  n.due_on, d.recipient AS "recipient!", d.recipient_name, d.role, d.language, d.copy, d.message_id,
                  p.version, t.version AS type_version, p.permit_number, t.name AS permit_type, p.holder_name, p.holder_email,
                  p.holder_language, p.site_address, p.description, t.renewal_url, t.office_contact, t.grace_days,
                  ARRAY(SELECT c.email FROM contacts c WHERE c.permit_id = p.id AND c.email IS NOT NULL
                        ORDER BY c.position) AS "contact_emails!",
                  ARRAY(SELECT c.name FROM contacts c WHERE c.permit_id = p.id AND c.email IS NOT NULL
                        ORDER BY c.position) AS "contact_names!",
                  ARRAY(SELECT c.language FROM contacts c WHERE c.permit_id = p.id AND c.email IS NOT NULL
                        ORDER BY c.position) AS "contact_languages!"
           FROM unnest($1::uuid[], $2::uuid[]) AS lease (id, token)
           JOIN deliveries d ON d.id = lease.id AND (d.lease_token = lease.token OR lease.token = $3)
           JOIN notices n ON n.id = d.notice_id
           JOIN permits p ON p.id = n.permit_id
           JOIN permit_types t ON t.code = p.permit_type
           ORDER BY d.send_by, d.id"#,
        &ids,
        &tokens,
        Uuid::nil(),
    )
    .fetch_all(connection)
    .await?;
    let read = rows.into_iter().map(|row| {
        let (lease, permit_id) = (Lease { delivery_id: row.id, token: row.token }, row.permit_id);
        row.into_leased().map_err(|fault| Unreadable { lease, permit_id, fault })
    });
    Ok(read.collect())
}

struct Row {
    id: Uuid,
    token: Uuid,
    notice_id: Uuid,
    permit_id: Uuid,
    notice_type: String,
    expires_on: NaiveDate,
    class: String,
    due_on: NaiveDate,
    recipient: String,
    recipient_name: String,
    role: String,
    language: String,
    copy: i32,
    message_id: Option<String>,
    version: i64,
    type_version: i64,
    permit_number: String,
    permit_type: String,
    holder_name: String,
    holder_email: Option<String>,
    holder_language: String,
    site_address: Option<String>,
    description: Option<String>,
    renewal_url: Option<String>,
    office_contact: Option<String>,
    grace_days: i32,
    contact_emails: Vec<String>,
    contact_names: Vec<String>,
    contact_languages: Vec<String>,
}

impl Row {
    fn into_leased(self) -> Result<Leased> {
        let recipient = self.recipient()?;
        Ok(Leased {
            delivery_id: self.id,
            token: self.token,
            notice_id: self.notice_id,
            key: NoticeKey {
                permit_id: self.permit_id,
                notice_type: parse_notice_type(&self.notice_type)?,
                expires_on: self.expires_on,
            },
            class: self.class.parse()?,
            due_on: self.due_on,
            recipient,
            copy: self.copy,
            message_id: self.message_id,
            version: self.version,
            type_version: self.type_version,
            permit_number: self.permit_number,
            permit_type: self.permit_type,
            holder_name: self.holder_name,
            site_address: self.site_address,
            description: self.description,
            renewal_url: self.renewal_url,
            office_contact: self.office_contact,
            grace_days: self.grace_days,
        })
    }

    /// The recipient under the name and language that the permit has for the address now; the delivery's own are
    /// those of the day it was claimed, and serve only for an address that has left the permit.
    fn recipient(&self) -> Result<Recipient> {
        let address: EmailAddress = self
            .recipient
            .parse()
            .map_err(|error| super::StoreError::Invalid { field: "recipient", why: format!("{error}") })?;
        let key = address.key();
        let is_same = |text: &str| text.parse::<EmailAddress>().is_ok_and(|other| other.key() == key);
        let contact = || {
            let place = self.contact_emails.iter().position(|email| is_same(email))?;
            Some((self.contact_names.get(place)?, self.contact_languages.get(place)?))
        };
        let (name, language) = if self.holder_email.as_deref().is_some_and(is_same) {
            (&self.holder_name, &self.holder_language)
        } else {
            contact().unwrap_or((&self.recipient_name, &self.language))
        };
        Ok(Recipient { address, name: name.clone(), role: self.role.clone(), language: language.clone() })
    }
}

/// Gives leases back untouched, to be tried again from `not_before` on (at once if empty). It never waits: a lease
/// on a row that somebody locks stays, and is freed as unknown when this process renews its row.
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
               WHERE d.state = 'pending' ORDER BY d.id FOR UPDATE OF d SKIP LOCKED) AS back
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
/// Rows that somebody locks wait for the next time.
pub async fn free_unknown(connection: &mut PgConnection, boot_id: Uuid, held: &[Uuid]) -> Result<u64> {
    let freed = sqlx::query!(
        "UPDATE deliveries d SET lease_token = NULL, lease_owner = NULL
         FROM (SELECT id FROM deliveries
               WHERE lease_owner = $1 AND state = 'pending' AND NOT (lease_token = ANY ($2))
               ORDER BY id FOR UPDATE SKIP LOCKED) AS unknown
         WHERE d.id = unknown.id",
        boot_id,
        held,
    );
    Ok(freed.execute(connection).await?.rows_affected())
}
