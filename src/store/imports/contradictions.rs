//! Rows of one permit number that contradict each other. They are the terms of one permit and need not agree, but often
//! enough a number was mistyped, and two permits become one.

use chrono::NaiveDate;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::Result;

/// How many permit numbers are listed.
pub const CONTRADICTIONS_LISTED: u32 = 1000;
/// How many rows are named of each.
pub const ROWS_NAMED: i32 = 10;

/// A permit number whose rows contradict the one that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The row that counts.
    pub row: u64,
    /// The number as that row has it.
    pub number: String,
    /// When the term of that row ends.
    pub expires_on: NaiveDate,
    /// Rows that name another type or holder, and the first of them.
    pub others: RowsNamed,
    /// Whether one names another type.
    pub types: bool,
    /// Whether one names another holder.
    pub holders: bool,
    /// Whether a row with another holder is about a time that the row that counts is about too.
    pub at_once: bool,
    /// Rows of the same term that say something else.
    pub same_term: RowsNamed,
    /// Names of the fields in which they do, each list of them apart by blanks.
    pub fields: Vec<String>,
}

/// Rows of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsNamed {
    /// How many.
    pub count: u64,
    /// The first [`ROWS_NAMED`] of them.
    pub first: Vec<u64>,
}

impl RowsNamed {
    fn of(count: i64, first: Vec<i64>) -> Self {
        Self { count: count.unsigned_abs(), first: first.into_iter().map(i64::unsigned_abs).collect() }
    }
}

/// All of them, and the first [`CONTRADICTIONS_LISTED`] by row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contradictions {
    pub count: u64,
    pub first: Vec<Contradiction>,
}

/// Compares the rows of each number with the one that counts. Of another term only type and holder are compared, for
/// everything else of a permit may change from term to term.
pub(super) async fn find_contradictions(connection: &mut PgConnection, import: Uuid) -> Result<Contradictions> {
    let found = sqlx::query!(
        r#"WITH compared AS (
               SELECT c.file_row, c.permit_number, c.expires_on,
                      bool_or(d.kind) AS kinds, bool_or(d.holder) AS holders,
                      bool_or(d.holder AND (d.same_end OR c.effective_on <= r.expires_on)) AS at_once,
                      count(*) FILTER (WHERE d.kind OR d.holder) AS others,
                      (array_agg(r.file_row ORDER BY r.file_row) FILTER (WHERE d.kind OR d.holder))[:$3] AS other_rows,
                      count(*) FILTER (WHERE f.fields <> '') AS same_term,
                      (array_agg(r.file_row ORDER BY r.file_row) FILTER (WHERE f.fields <> ''))[:$3] AS same_rows,
                      array_agg(DISTINCT f.fields) FILTER (WHERE f.fields <> '') AS fields
               FROM import_permits i
               JOIN import_rows c ON c.import_id = i.import_id AND c.file_row = i.file_row
               JOIN import_rows r ON r.import_id = i.import_id AND r.number_key = i.number_key
                                 AND r.file_row <> i.file_row
               CROSS JOIN LATERAL (
                   SELECT r.permit_type <> c.permit_type AS kind, lower(r.holder_name) <> lower(c.holder_name) AS holder,
                          r.expires_on = c.expires_on AS same_end) AS d
               CROSS JOIN LATERAL (
                   SELECT CASE WHEN d.same_end THEN concat_ws(' ',
                       CASE WHEN r.status <> c.status THEN 'status' END,
                       CASE WHEN r.holder_email IS DISTINCT FROM c.holder_email THEN 'holder_email' END,
                       CASE WHEN r.holder_language <> c.holder_language THEN 'holder_language' END,
                       CASE WHEN r.site_address IS DISTINCT FROM c.site_address THEN 'site_address' END,
                       CASE WHEN r.description IS DISTINCT FROM c.description THEN 'description' END,
                       CASE WHEN r.issued_on IS DISTINCT FROM c.issued_on THEN 'issued_on' END,
                       CASE WHEN r.effective_on IS DISTINCT FROM c.effective_on THEN 'effective_on' END,
                       CASE WHEN r.external_id IS DISTINCT FROM c.external_id THEN 'external_id' END,
                       CASE WHEN r.contacts <> c.contacts THEN 'contacts' END) ELSE '' END AS fields) AS f
               WHERE i.import_id = $1
               GROUP BY c.file_row, c.permit_number, c.expires_on)
           SELECT file_row, permit_number, expires_on, kinds AS "kinds!", holders AS "holders!", coalesce(at_once, false) AS "at_once!",
                  others AS "others!", coalesce(other_rows, '{}') AS "other_rows!", same_term AS "same_term!",
                  coalesce(same_rows, '{}') AS "same_rows!", coalesce(fields, '{}') AS "fields!",
                  count(*) OVER () AS "total!"
           FROM compared WHERE others > 0 OR same_term > 0 ORDER BY file_row LIMIT $2"#,
        import,
        i64::from(CONTRADICTIONS_LISTED),
        ROWS_NAMED,
    )
    .fetch_all(connection)
    .await?;
    let count = found.first().map_or(0, |row| row.total.unsigned_abs());
    let first = found.into_iter().map(|row| Contradiction {
        row: row.file_row.unsigned_abs(),
        number: row.permit_number,
        expires_on: row.expires_on,
        others: RowsNamed::of(row.others, row.other_rows),
        types: row.kinds,
        holders: row.holders,
        at_once: row.at_once,
        same_term: RowsNamed::of(row.same_term, row.same_rows),
        fields: row.fields,
    });
    Ok(Contradictions { count, first: first.collect() })
}
