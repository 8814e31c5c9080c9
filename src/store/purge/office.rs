//! What the office did: when, who, what and with which row stays; what it was and what was said goes.

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{Chunk, Limit, REMOVED, end};
use crate::store::Result;

/// Removes the values from deeds of so long ago. Schedules of permit types are nobody's personal data and stay; so does
/// who did it, for that is what the log is for.
pub async fn purge_deeds(
    connection: &mut PgConnection,
    after: Option<(DateTime<Utc>, Uuid)>,
    limit: &Limit,
) -> Result<Chunk<(DateTime<Utc>, Uuid)>> {
    let mut transaction = connection.begin().await?;
    let (at, id) = after.unwrap_or_default();
    let row = sqlx::query!(
        r#"WITH chunk AS MATERIALIZED (
               SELECT at, id FROM office_log WHERE (at, id) > ($1, $2) AND at < $3 ORDER BY at, id LIMIT 2000),
           blanked AS (
               UPDATE office_log o
               SET before = NULL, after = NULL,
                   label = CASE WHEN o.subject IN ('suppression', 'user') THEN $4 ELSE o.label END
               FROM chunk c
               WHERE o.id = c.id AND o.subject <> 'permit-type'
                 AND (o.before IS NOT NULL OR o.after IS NOT NULL
                      OR (o.subject IN ('suppression', 'user') AND o.label <> $4))
               RETURNING o.id),
           last AS (SELECT at, id FROM chunk ORDER BY at DESC, id DESC LIMIT 1)
           SELECT (SELECT count(*) FROM blanked) AS "removed!", (SELECT at FROM last) AS at, (SELECT id FROM last) AS id"#,
        at,
        id,
        limit.before,
        REMOVED,
    )
    .fetch_one(&mut *transaction)
    .await?;
    end(transaction, limit).await?;
    Ok(Chunk { removed: row.removed.unsigned_abs(), last: row.at.zip(row.id) })
}
