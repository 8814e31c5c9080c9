//! Who changed which permit: one row a version, with what the permit was before.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Result, purge::REMOVED};
use crate::domain::words;

words! {
    /// What was done to a permit.
    "permit change" PermitAction {
        /// Recorded for the first time.
        Created = "created",
        /// Written over, in the same term.
        Corrected = "corrected",
        /// Given a new term.
        Renewed = "renewed",
        /// Put away.
        Archived = "archived",
        /// Brought back.
        Restored = "restored",
        /// Names and addresses removed, long after its end.
        Purged = "purged",
    }
}

/// Records the change that is about to be made; `before` is read from the permit as it still is.
pub(super) async fn record_change(
    connection: &mut PgConnection,
    permit: Uuid,
    action: PermitAction,
    by: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO permit_history (permit_id, version, action, at, by, before)
         SELECT id, version + 1, $2, $3, $4, permit_said(permits) FROM permits WHERE id = $1",
        permit,
        action.as_str(),
        now,
        by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that a permit was created.
pub(super) async fn record_creation(
    connection: &mut PgConnection,
    permit: Uuid,
    by: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO permit_history (permit_id, version, action, at, by) VALUES ($1, 1, 'created', $2, $3)",
        permit,
        now,
        by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records what an import is about to do to permits that are known.
pub(super) async fn record_import_changes(
    connection: &mut PgConnection,
    import: Uuid,
    by: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO permit_history (permit_id, version, action, at, by, import_id, before)
         SELECT permits.id, permits.version + 1, CASE i.outcome WHEN 'renewed' THEN 'renewed' ELSE 'corrected' END,
                $2, $3, $1, permit_said(permits)
         FROM import_permits i JOIN permits ON permits.id = i.permit_id
         WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated')",
        import,
        now,
        by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records the permits that an import has created.
pub(super) async fn record_import_creations(
    connection: &mut PgConnection,
    import: Uuid,
    by: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO permit_history (permit_id, version, action, at, by, import_id)
         SELECT permits.id, 1, 'created', $2, $3, $1
         FROM import_permits i JOIN permits ON permits.id = i.permit_id
         WHERE i.import_id = $1 AND i.outcome = 'created'",
        import,
        now,
        by,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes out of both what is gone from the first: it would look as if somebody had written it anew.
pub(super) fn leave_out_removed(before: Option<&mut Value>, after: Option<&mut Value>) {
    const PERSONAL: [&str; 6] = ["holder_name", "holder_email", "site_address", "description", "custom", "contacts"];
    let Some((before, after)) = before.and_then(Value::as_object_mut).zip(after.and_then(Value::as_object_mut)) else {
        return;
    };
    if before.get("holder_name").is_some_and(|name| name == REMOVED) {
        for name in PERSONAL {
            before.remove(name);
            after.remove(name);
        }
    }
}

/// One change of a permit.
#[derive(Debug, Clone, PartialEq)]
pub struct PermitChange {
    /// The version that it made.
    pub version: i64,
    /// What was done.
    pub action: PermitAction,
    /// Business time.
    pub at: DateTime<Utc>,
    /// Who did it.
    pub by: String,
    /// The import that did it.
    pub import_id: Option<Uuid>,
    /// What people had said until then.
    pub before: Option<Value>,
    /// What they said from then on: what the next change found, or the permit as it is.
    pub after: Option<Value>,
}

/// Up to `limit` changes of a permit, newest first, before the one that made version `before`.
pub async fn list_changes(
    executor: impl PgExecutor<'_>,
    permit: Uuid,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<PermitChange>> {
    let rows = sqlx::query!(
        r#"SELECT h.version, h.action, h.at, h.by, h.import_id, h.before,
                  coalesce((SELECT n.before FROM permit_history n WHERE n.permit_id = h.permit_id
                              AND n.version > h.version ORDER BY n.version LIMIT 1),
                           permit_said(permits)) AS after
           FROM permit_history h JOIN permits ON permits.id = h.permit_id
           WHERE h.permit_id = $1 AND ($2::bigint IS NULL OR h.version < $2)
           ORDER BY h.version DESC LIMIT $3"#,
        permit,
        before,
        limit,
    )
    .fetch_all(executor)
    .await?;
    rows.into_iter()
        .map(|mut row| {
            leave_out_removed(row.before.as_mut(), row.after.as_mut());
            Ok(PermitChange {
                version: row.version,
                action: row.action.parse()?,
                at: row.at,
                by: row.by,
                import_id: row.import_id,
                before: row.before,
                after: row.after,
            })
        })
        .collect()
}
