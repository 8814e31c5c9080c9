//! What the office did: when, who, what and with which row stays; what it was and what was said goes, and so do the names of
//! the files that it imported, which may be those of people.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Kind, Limit, REMOVED};
use crate::store::Result;

/// The values of deeds of so long ago. Schedules of permit types are nobody's personal data and stay; so does who did it,
/// for that is what the log is for.
#[derive(Debug)]
pub struct Deeds;

impl Kind for Deeds {
    type Key = (DateTime<Utc>, Uuid);
    const NAME: &'static str = "lines of the office's log";

    async fn find(connection: &mut PgConnection, after: Option<&Self::Key>, limit: &Limit) -> Result<Vec<Self::Key>> {
        let (at, id) = after.copied().unwrap_or_default();
        let rows = sqlx::query!(
            "SELECT at, id FROM office_log WHERE (at, id) > ($1, $2) AND at < $3 ORDER BY at, id LIMIT 2000",
            at,
            id,
            limit.before,
        );
        Ok(rows.fetch_all(connection).await?.into_iter().map(|row| (row.at, row.id)).collect())
    }

    async fn remove(connection: &mut PgConnection, deeds: &[Self::Key], _: &Limit) -> Result<u64> {
        let blanked = sqlx::query!(
            "UPDATE office_log
             SET before = NULL, after = NULL,
                 label = CASE WHEN subject IN ('suppression', 'user', 'import') THEN $2 ELSE label END
             WHERE id = ANY ($1) AND subject <> 'permit-type'
               AND (before IS NOT NULL OR after IS NOT NULL
                    OR (subject IN ('suppression', 'user', 'import') AND label <> $2))",
            &deeds.iter().map(|(_, id)| *id).collect::<Vec<_>>(),
            REMOVED,
        );
        Ok(blanked.execute(connection).await?.rows_affected())
    }
}

/// The names of files that were imported so long ago.
#[derive(Debug)]
pub struct FileNames;

impl Kind for FileNames {
    type Key = Uuid;
    const NAME: &'static str = "imports";

    async fn find(connection: &mut PgConnection, after: Option<&Uuid>, limit: &Limit) -> Result<Vec<Uuid>> {
        let imports = sqlx::query_scalar!(
            "SELECT id FROM imports WHERE id > $1 AND finished_at < $2 AND file_name <> $3 ORDER BY id LIMIT 500",
            after.copied().unwrap_or_default(),
            limit.before,
            REMOVED,
        );
        Ok(imports.fetch_all(connection).await?)
    }

    async fn remove(connection: &mut PgConnection, imports: &[Uuid], limit: &Limit) -> Result<u64> {
        let blanked = sqlx::query!(
            "UPDATE imports SET file_name = $3 WHERE id = ANY ($1) AND finished_at < $2",
            imports,
            limit.before,
            REMOVED,
        );
        Ok(blanked.execute(connection).await?.rows_affected())
    }
}
