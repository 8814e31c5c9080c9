//! Who did what, besides changes of permits, which [`super::history`] keeps.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Result, history::leave_out_removed};
use crate::domain::{export::ExportFormat, words};

words! {
    /// With what something was done.
    "subject" Subject {
        /// A notice.
        Notice = "notice",
        /// A permit type.
        PermitType = "permit-type",
        /// A suppression.
        Suppression = "suppression",
        /// A token of the API.
        Token = "token",
        /// A user.
        User = "user",
        /// An import.
        Import = "import",
        /// A saved mapping.
        ImportMapping = "import-mapping",
        /// A scan.
        Scan = "scan",
        /// Permits as a whole: an export.
        Permits = "permits",
    }
}

/// One deed.
#[derive(Debug, Clone, PartialEq)]
pub struct Deed<'d> {
    /// Who.
    pub by: &'d str,
    /// What was done, as a word.
    pub action: &'d str,
    /// With what.
    pub subject: Subject,
    /// Which one, where it has an id.
    pub subject_id: Option<Uuid>,
    /// Which one, as people call it.
    pub label: &'d str,
    /// What it was.
    pub before: Option<Value>,
    /// What it became, or what was said with the deed.
    pub after: Option<Value>,
}

impl<'d> Deed<'d> {
    /// Somebody takes permits with them as a file. `filter` says which, as a query.
    pub fn exported(by: &'d str, format: ExportFormat, filter: &str) -> Self {
        Self {
            by,
            action: "exported",
            subject: Subject::Permits,
            subject_id: None,
            label: format.as_str(),
            before: None,
            after: Some(json!({ "filter": filter })),
        }
    }
}

/// Records a deed, in the transaction in which it is done.
pub async fn record(executor: impl PgExecutor<'_>, deed: Deed<'_>, now: DateTime<Utc>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO office_log (id, at, by, action, subject, subject_id, label, before, after)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        Uuid::now_v7(),
        now,
        deed.by,
        deed.action,
        deed.subject.as_str(),
        deed.subject_id,
        deed.label,
        deed.before,
        deed.after,
    )
    .execute(executor)
    .await?;
    Ok(())
}

/// One line of the audit: a deed, or a change of a permit.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// Business time.
    pub at: DateTime<Utc>,
    /// Orders lines of the same instant.
    pub id: Uuid,
    /// Who.
    pub by: String,
    /// What was done, as a word.
    pub action: String,
    /// With what: a [`Subject`], or `permit`.
    pub subject: String,
    /// Which one, where it has an id.
    pub subject_id: Option<Uuid>,
    /// Which one, as people call it.
    pub label: String,
    /// What it was.
    pub before: Option<Value>,
    /// What it became.
    pub after: Option<Value>,
}

/// Which lines of the audit; nothing set means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Who, as they are named in it.
    pub by: Option<String>,
    /// A [`Subject`], or `permit`.
    pub subject: Option<String>,
}

/// Up to `limit` lines before `after`, newest first. What an import did to permits is its one line.
pub async fn list_audit(
    connection: &mut PgConnection,
    filter: &AuditFilter,
    after: Option<(DateTime<Utc>, Uuid)>,
    limit: i64,
) -> Result<Vec<AuditRow>> {
    let (at, id) = after.unzip();
    let rows = sqlx::query_as!(
        AuditRow,
        r#"SELECT at AS "at!", id AS "id!", by AS "by!", action AS "action!", subject AS "subject!", subject_id,
                  label AS "label!", before, after
           FROM (
               (SELECT at, id, by, action, subject, subject_id, label, before, after FROM office_log
                WHERE ($1::text IS NULL OR by = $1) AND ($2::text IS NULL OR subject = $2)
                  AND ($3::timestamptz IS NULL OR (at, id) < ($3, $4::uuid))
                ORDER BY at DESC, id DESC LIMIT $5)
               UNION ALL
               (SELECT h.at, h.permit_id, h.by, h.action, 'permit', h.permit_id, permits.permit_number, h.before,
                       coalesce((SELECT n.before FROM permit_history n WHERE n.permit_id = h.permit_id
                                   AND n.version > h.version ORDER BY n.version LIMIT 1), permit_said(permits))
                FROM permit_history h JOIN permits ON permits.id = h.permit_id
                WHERE h.import_id IS NULL AND ($1::text IS NULL OR h.by = $1) AND ($2::text IS NULL OR $2 = 'permit')
                  AND ($3::timestamptz IS NULL OR (h.at, h.permit_id) < ($3, $4::uuid))
                ORDER BY h.at DESC, h.permit_id DESC LIMIT $5)
           ) lines
           ORDER BY at DESC, id DESC LIMIT $5"#,
        filter.by,
        filter.subject,
        at,
        id,
        limit,
    );
    let mut rows = rows.fetch_all(connection).await?;
    for row in rows.iter_mut().filter(|row| row.subject == "permit") {
        leave_out_removed(row.before.as_mut(), row.after.as_mut());
    }
    Ok(rows)
}
