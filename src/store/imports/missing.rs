//! Permits that a file which calls itself complete does not name.

use chrono::NaiveDate;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::Result;

/// How many permits are listed.
pub const MISSING_LISTED: u32 = 1000;

/// Permits that a complete file would name, and this one does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Missing {
    /// How many.
    pub count: u64,
    /// Those of them whose last valid day has passed, which many registers leave out.
    pub expired: u64,
    /// Numbers of the first [`MISSING_LISTED`], those in force before those that are not, in order.
    pub numbers: Vec<String>,
}

/// A file is complete about its own permit types, and a register lists what is in force: so it is asked about permits
/// of the types it has that are active and not archived. A row that was rejected names its permit all the same,
/// and in one that does not fit the header any cell may do so.
pub(super) async fn find_missing(connection: &mut PgConnection, import: Uuid, today: NaiveDate) -> Result<Missing> {
    let found = sqlx::query!(
        r#"WITH cells AS MATERIALIZED (
               SELECT DISTINCT jsonb_array_elements_text(cell_keys) AS key
               FROM import_rejected_rows WHERE import_id = $1),
           missing AS MATERIALIZED (
               SELECT p.permit_number, p.number_key, p.expires_on < $2 AS expired
               FROM permits p
               WHERE p.archived_at IS NULL AND p.status = 'active'
                 AND p.permit_type IN (SELECT permit_type FROM import_permits WHERE import_id = $1)
                 AND NOT EXISTS (SELECT FROM import_permits i WHERE i.import_id = $1 AND i.number_key = p.number_key)
                 AND NOT EXISTS (SELECT FROM import_rejected_rows r
                                 WHERE r.import_id = $1 AND r.number_key = p.number_key)
                 AND NOT EXISTS (SELECT FROM cells WHERE cells.key = p.number_key))
           SELECT count(*) AS "count!", count(*) FILTER (WHERE expired) AS "expired!",
                  ARRAY (SELECT permit_number FROM missing ORDER BY expired, number_key LIMIT $3) AS "numbers!"
           FROM missing"#,
        import,
        today,
        i64::from(MISSING_LISTED),
    )
    .fetch_one(connection)
    .await?;
    let (count, expired) = (found.count.unsigned_abs(), found.expired.unsigned_abs());
    Ok(Missing { count, expired, numbers: found.numbers })
}
