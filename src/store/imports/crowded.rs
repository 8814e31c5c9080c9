//! Permits with so many contacts that not all whom the file names find room beside those who stay.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::Result;

/// Most contacts of a permit, as everywhere.
pub const CONTACTS_MAX: i32 = 20;
/// How many permits are listed.
pub const CROWDED_LISTED: u32 = 1000;

/// A permit with contacts of the file that are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowded {
    /// The row that counts.
    pub row: u64,
    /// The number as that row has it.
    pub number: String,
    /// How many are left out.
    pub left_out: u64,
}

/// The first [`CROWDED_LISTED`] of them by row, when the contacts are written.
pub(super) async fn find_crowded(connection: &mut PgConnection, import: Uuid) -> Result<Vec<Crowded>> {
    let found = sqlx::query!(
        r#"SELECT r.file_row, r.permit_number, count(*) AS "left_out!"
           FROM import_permits i
           JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
           JOIN contacts last ON last.permit_id = i.permit_id AND last.position = $3 - 1
           CROSS JOIN LATERAL jsonb_array_elements(r.contacts) AS new (contact)
           WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated', 'same')
             AND NOT EXISTS (SELECT FROM contacts known
                             WHERE known.permit_id = i.permit_id
                               AND (lower(known.email) = lower(new.contact ->> 'email')
                                    OR (new.contact ->> 'email' IS NULL
                                        AND lower(known.name) = lower(new.contact ->> 'name'))))
           GROUP BY r.file_row, r.permit_number ORDER BY r.file_row LIMIT $2"#,
        import,
        i64::from(CROWDED_LISTED),
        CONTACTS_MAX,
    )
    .fetch_all(connection)
    .await?;
    let crowded = found.into_iter().map(|row| Crowded {
        row: row.file_row.unsigned_abs(),
        number: row.permit_number,
        left_out: row.left_out.unsigned_abs(),
    });
    Ok(crowded.collect())
}
