//! Cases: a permit with all that [`crate::domain::owed::judge`] looks at, read under the lock that fits.

use std::collections::{HashMap, HashSet};

use chrono::NaiveDate;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Result, StoreError, permit_types::parse_notice_type};
use crate::domain::{
    notice::ReasonCode,
    owed::Row,
    permit::Standing,
    recipient::{EmailAddress, HOLDER, Recipient},
};

/// A permit with its recipients and notices, as they were when it was read.
#[derive(Debug, Clone)]
pub struct Case {
    /// The permit.
    pub permit_id: Uuid,
    /// Its number, for people.
    pub permit_number: String,
    /// Code of its type.
    pub permit_type: String,
    /// The facts that decide.
    pub standing: Standing,
    /// Who gets copies, the holder first.
    pub recipients: Vec<Recipient>,
    /// Notices of the present period, and open or unresolved ones of others.
    pub rows: Vec<Row>,
}

/// How permits are locked while they are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Not at all: to look only.
    Look,
    /// Against changes, as a scan does; notices are locked when they are written.
    Share,
    /// Against everybody, as a change does; with their notices and deliveries.
    Change,
}

struct PermitRow {
    id: Uuid,
    permit_number: String,
    permit_type: String,
    status: String,
    holder_name: String,
    holder_email: Option<String>,
    holder_language: String,
    takes_effect_on: Option<NaiveDate>,
    expires_on: NaiveDate,
    period_since: NaiveDate,
    notices_from: Option<NaiveDate>,
    notices_paused_until: Option<NaiveDate>,
    archived: bool,
}

/// Reads the cases of `permits`, in order of permit id, locking them in that order first.
pub async fn load_cases(connection: &mut PgConnection, permits: &[Uuid], hold: Hold) -> Result<Vec<Case>> {
    match hold {
        Hold::Look => {}
        Hold::Share => lock_permits_share(connection, permits).await?,
        Hold::Change => {
            lock_permits(connection, permits).await?;
            lock_notices(connection, permits).await?;
        }
    }
    let mut cases = read_permits(connection, permits).await?;
    read_contacts(connection, permits, &mut cases).await?;
    read_notices(connection, permits, &mut cases).await?;
    Ok(cases)
}

async fn lock_permits_share(connection: &mut PgConnection, permits: &[Uuid]) -> Result<()> {
    sqlx::query!("SELECT 1 AS locked FROM permits WHERE id = ANY ($1) ORDER BY id FOR SHARE", permits)
        .fetch_all(connection)
        .await?;
    Ok(())
}

/// Locks permits for a change, in order of id.
pub async fn lock_permits(connection: &mut PgConnection, permits: &[Uuid]) -> Result<()> {
    sqlx::query!("SELECT 1 AS locked FROM permits WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", permits)
        .fetch_all(connection)
        .await?;
    Ok(())
}

/// Locks the notices of the permits' present periods and the open or unresolved ones of others, then their deliveries.
async fn lock_notices(connection: &mut PgConnection, permits: &[Uuid]) -> Result<()> {
    let notices = sqlx::query_scalar!(
        "SELECT n.id FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.permit_id = ANY ($1) AND (n.expires_on = p.expires_on OR n.state IN ('pending', 'held', 'ambiguous'))
         ORDER BY n.id FOR NO KEY UPDATE OF n",
        permits,
    )
    .fetch_all(&mut *connection)
    .await?;
    lock_deliveries(connection, &notices).await
}

/// Locks the deliveries of `notices`, in order of id.
pub(super) async fn lock_deliveries(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    sqlx::query!(
        "SELECT 1 AS locked FROM deliveries WHERE notice_id = ANY ($1) ORDER BY id FOR NO KEY UPDATE",
        notices
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}

async fn read_permits(connection: &mut PgConnection, permits: &[Uuid]) -> Result<Vec<Case>> {
    let rows = sqlx::query_as!(
        PermitRow,
        r#"SELECT id, permit_number, permit_type, status, holder_name, holder_email, holder_language, takes_effect_on,
                  expires_on, period_since, notices_from, notices_paused_until, archived_at IS NOT NULL AS "archived!"
           FROM permits WHERE id = ANY ($1) ORDER BY id"#,
        permits,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(PermitRow::into_case).collect()
}

impl PermitRow {
    fn into_case(self) -> Result<Case> {
        let holder = recipient(self.holder_email.as_deref(), self.holder_name, HOLDER.to_owned(), self.holder_language);
        Ok(Case {
            permit_id: self.id,
            permit_number: self.permit_number,
            permit_type: self.permit_type,
            standing: Standing {
                status: self.status.parse()?,
                archived: self.archived,
                notices_paused_until: self.notices_paused_until,
                takes_effect_on: self.takes_effect_on,
                expires_on: self.expires_on,
                period_since: self.period_since,
                notices_from: self.notices_from,
            },
            recipients: holder.into_iter().collect(),
            rows: Vec::new(),
        })
    }
}

fn recipient(email: Option<&str>, name: String, role: String, language: String) -> Option<Recipient> {
    let address: EmailAddress = email?.parse().ok()?;
    Some(Recipient { address, name, role, language })
}

fn by_permit(cases: &mut [Case]) -> HashMap<Uuid, &mut Case> {
    cases.iter_mut().map(|case| (case.permit_id, case)).collect()
}

async fn read_contacts(connection: &mut PgConnection, permits: &[Uuid], cases: &mut [Case]) -> Result<()> {
    let rows = sqlx::query!(
        r#"SELECT permit_id, name, email AS "email!", role, language FROM contacts
           WHERE permit_id = ANY ($1) AND email IS NOT NULL ORDER BY permit_id, position"#,
        permits,
    )
    .fetch_all(connection)
    .await?;
    let mut by_permit = by_permit(cases);
    for row in rows {
        let contact = recipient(Some(&row.email), row.name, row.role, row.language);
        if let (Some(case), Some(contact)) = (by_permit.get_mut(&row.permit_id), contact) {
            case.recipients.push(contact);
        }
    }
    Ok(())
}

async fn read_notices(connection: &mut PgConnection, permits: &[Uuid], cases: &mut [Case]) -> Result<()> {
    let rows = sqlx::query!(
        r#"SELECT n.id, n.permit_id, n.notice_type, n.class, n.expires_on, n.due_on, n.send_by, n.brought_forward,
                n.in_advance, n.state, n.reason_code, n.superseded_at,
                n.held_reason IS NOT NULL OR n.held_before IS NOT NULL AS "held!",
                n.purged_at IS NOT NULL AS "purged!"
         FROM notices n JOIN permits p ON p.id = n.permit_id
         WHERE n.permit_id = ANY ($1) AND (n.expires_on = p.expires_on OR n.state IN ('pending', 'held', 'ambiguous'))
         ORDER BY n.permit_id, n.id"#,
        permits,
    )
    .fetch_all(connection)
    .await?;
    let mut by_permit = by_permit(cases);
    for row in rows {
        let Some(case) = by_permit.get_mut(&row.permit_id) else { continue };
        let reason = row.reason_code.as_deref().map(str::parse::<ReasonCode>).transpose()?;
        case.rows.push(Row {
            id: row.id,
            notice_type: parse_notice_type(&row.notice_type)?,
            class: row.class.parse()?,
            expires_on: row.expires_on,
            due_on: row.due_on,
            send_by: row.send_by,
            brought_forward: row.brought_forward,
            in_advance: row.in_advance,
            state: row.state.parse()?,
            // A tombstone stays what it is: nothing tells any more who had a copy of it.
            superseded: row.superseded_at.and(reason).filter(|_| !row.purged),
            held: row.held,
        });
    }
    Ok(())
}

/// Whether the address with `key` is one of the permit's, given as they are stored. Compared here and not in SQL,
/// whose idea of lower case may be another.
pub(super) fn is_on_permit(key: &str, holder_email: Option<&str>, contact_emails: &[String]) -> bool {
    let stored = holder_email.into_iter().chain(contact_emails.iter().map(String::as_str));
    stored.filter_map(|text| text.parse::<EmailAddress>().ok()).any(|address| address.key() == key)
}

/// Which of `addresses` (as compared: lower case) are suppressed: for everything, and for courtesies.
#[derive(Debug, Default)]
pub struct Suppressed {
    all: HashSet<String>,
    courtesy: HashSet<String>,
}

impl Suppressed {
    /// Whether a notice of that class must not go to this address.
    pub fn forbids(&self, class: crate::domain::notice::NoticeClass, address: &EmailAddress) -> bool {
        let key = address.key();
        self.all.contains(&key)
            || (class == crate::domain::notice::NoticeClass::Courtesy && self.courtesy.contains(&key))
    }
}

/// Looks up which of the cases' addresses are suppressed.
pub async fn load_suppressed(connection: &mut PgConnection, cases: &[Case]) -> Result<Suppressed> {
    let keys: Vec<String> =
        cases.iter().flat_map(|case| &case.recipients).map(|recipient| recipient.address.key()).collect();
    let rows = sqlx::query!("SELECT address, class FROM suppressions WHERE address = ANY ($1)", &keys)
        .fetch_all(connection)
        .await?;
    let mut suppressed = Suppressed::default();
    for row in rows {
        match row.class.as_str() {
            "all" => suppressed.all.insert(row.address),
            _ => suppressed.courtesy.insert(row.address),
        };
    }
    Ok(suppressed)
}

/// The one case of a permit, or that there is none.
pub async fn load_case(connection: &mut PgConnection, permit: Uuid, hold: Hold) -> Result<Case> {
    let cases = load_cases(connection, &[permit], hold).await?;
    cases.into_iter().next().ok_or(StoreError::NotFound("permit"))
}
