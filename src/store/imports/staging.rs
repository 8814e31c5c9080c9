//! Rows of a file on their way into the database, apart from everything else until they are applied.
//!
//! The process of an import holds an advisory lock made from the import's id, on the connection it stages with. Rows
//! whose lock is free are those of an import that was killed.

use chrono::NaiveDate;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::{
        permit::{PermitNumber, PermitStatus, PermitTypeCode},
        recipient::EmailAddress,
    },
    store::Result,
};

/// One good row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedRow {
    /// Row of the file.
    pub file_row: u64,
    /// Number of the permit.
    pub permit_number: PermitNumber,
    /// Code made from the name of the type.
    pub permit_type: PermitTypeCode,
    /// The type as the file names it.
    pub permit_type_name: String,
    /// Empty when the row says nothing about it.
    pub status: Option<PermitStatus>,
    /// Who holds it.
    pub holder_name: String,
    /// Where the holder is written to.
    pub holder_email: Option<EmailAddress>,
    /// Whether the cell of the holder's addresses has one that is none.
    pub holder_unusable: bool,
    /// Empty when the row says nothing about it.
    pub holder_language: Option<String>,
    /// Others who get copies.
    pub contacts: Vec<StagedContact>,
    /// Whether the cells of contacts have an address that is none.
    pub contacts_unusable: bool,
    /// Where it applies.
    pub site_address: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Issue date that came with the term.
    pub issued_on: Option<NaiveDate>,
    /// First day of the term.
    pub effective_on: Option<NaiveDate>,
    /// Last valid day of the term.
    pub expires_on: NaiveDate,
    /// Identifier in another system.
    pub external_id: Option<String>,
}

/// Somebody besides the holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedContact {
    /// May be empty.
    pub name: String,
    /// Address, if the row gives one.
    pub email: Option<EmailAddress>,
    /// What the person is to the permit.
    pub role: String,
    /// BCP 47 tag; empty when the row says nothing about it.
    pub language: Option<String>,
    /// Whether the address is a further one of the holder's cell.
    pub from_holder: bool,
}

/// One row that was rejected, or held back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RejectedRow {
    /// Row of the file.
    pub file_row: u64,
    /// What makes its permit number unique, while it is staged and where that can be read.
    pub number_key: Option<String>,
    /// Of a row that is not as wide as the header, the same of each cell that could be the number: it may be any of them.
    pub cell_keys: Vec<String>,
    /// Whether it is kept with the import; of one that is not, the number is all that is staged.
    pub kept: bool,
    /// Its cells as they stand, which may be fewer or more than the header has.
    pub cells: Vec<String>,
    /// What is wrong with it, in words.
    pub errors: String,
}

/// Key of the lock that says that an import is alive.
fn owner_key(import: Uuid) -> i64 {
    // The random half of the id.
    import.as_u64_pair().1 as i64
}

/// Marks the import as alive for as long as this connection lasts, and removes what dead ones left.
pub async fn open(connection: &mut PgConnection, import: Uuid) -> Result<()> {
    own(connection, import).await?;
    remove_orphans(connection).await?;
    Ok(())
}

/// Removes what is staged of imports that are no more; says how many rows that were.
pub async fn remove_orphans(connection: &mut PgConnection) -> Result<u64> {
    let mut removed = 0;
    for import in list_imports(connection).await? {
        if try_own(connection, import).await? {
            removed += remove(connection, import).await?;
            disown(connection, import).await?;
        }
    }
    Ok(removed)
}

/// Waits until nobody else owns the import, and owns it.
pub(super) async fn own(connection: &mut PgConnection, import: Uuid) -> Result<()> {
    sqlx::query!(r#"SELECT pg_advisory_lock($1) IS NULL AS "locked!""#, owner_key(import))
        .fetch_one(connection)
        .await?;
    Ok(())
}

async fn try_own(connection: &mut PgConnection, import: Uuid) -> Result<bool> {
    let owned = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "owned!""#, owner_key(import));
    Ok(owned.fetch_one(connection).await?)
}

async fn disown(connection: &mut PgConnection, import: Uuid) -> Result<()> {
    sqlx::query!(r#"SELECT pg_advisory_unlock($1) AS "owned!""#, owner_key(import)).fetch_one(connection).await?;
    Ok(())
}

/// Imports that have something staged.
async fn list_imports(connection: &mut PgConnection) -> Result<Vec<Uuid>> {
    let imports = sqlx::query_scalar!(
        r#"SELECT import_id AS "import_id!" FROM import_rows UNION SELECT import_id FROM import_permits
           UNION SELECT import_id FROM import_rejected_rows"#
    );
    Ok(imports.fetch_all(connection).await?)
}

/// Removes what is staged of an import; says how many rows that were.
pub async fn remove(connection: &mut PgConnection, import: Uuid) -> Result<u64> {
    let rows = sqlx::query!("DELETE FROM import_rows WHERE import_id = $1", import).execute(&mut *connection).await?;
    let permits =
        sqlx::query!("DELETE FROM import_permits WHERE import_id = $1", import).execute(&mut *connection).await?;
    let rejected =
        sqlx::query!("DELETE FROM import_rejected_rows WHERE import_id = $1", import).execute(connection).await?;
    Ok(rows.rows_affected() + permits.rows_affected() + rejected.rows_affected())
}

/// Stages a batch.
pub async fn insert_rows(connection: &mut PgConnection, import: Uuid, rows: &[StagedRow]) -> Result<()> {
    let texts = |field: fn(&StagedRow) -> String| rows.iter().map(field).collect::<Vec<_>>();
    let optional = |field: fn(&StagedRow) -> &Option<String>| rows.iter().map(field).cloned().collect::<Vec<_>>();
    let days = |field: fn(&StagedRow) -> Option<NaiveDate>| rows.iter().map(field).collect::<Vec<_>>();
    sqlx::query!(
        "INSERT INTO import_rows (import_id, file_row, id, permit_number, number_key, permit_type, permit_type_name,
                                  status, holder_name, holder_email, holder_language, contacts, site_address,
                                  description, issued_on, effective_on, expires_on, external_id, holder_unusable,
                                  contacts_unusable)
         SELECT $1, * FROM unnest($2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                                  $9::text[], $10::text[], $11::text[], $12::jsonb[], $13::text[], $14::text[],
                                  $15::date[], $16::date[], $17::date[], $18::text[], $19::bool[], $20::bool[])",
        import,
        &rows.iter().map(|row| row.file_row as i64).collect::<Vec<_>>(),
        &rows.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
        &texts(|row| row.permit_number.to_string()),
        &texts(|row| row.permit_number.key()),
        &texts(|row| row.permit_type.to_string()),
        &texts(|row| row.permit_type_name.clone()),
        &rows.iter().map(|row| row.status.map(PermitStatus::as_str)).collect::<Vec<_>>() as &[Option<&str>],
        &texts(|row| row.holder_name.clone()),
        &rows.iter().map(|row| row.holder_email.as_ref().map(ToString::to_string)).collect::<Vec<_>>()
            as &[Option<String>],
        &optional(|row| &row.holder_language) as &[Option<String>],
        &rows.iter().map(contacts).collect::<Vec<_>>(),
        &optional(|row| &row.site_address) as &[Option<String>],
        &optional(|row| &row.description) as &[Option<String>],
        &days(|row| row.issued_on) as &[Option<NaiveDate>],
        &days(|row| row.effective_on) as &[Option<NaiveDate>],
        &rows.iter().map(|row| row.expires_on).collect::<Vec<_>>(),
        &optional(|row| &row.external_id) as &[Option<String>],
        &rows.iter().map(|row| row.holder_unusable).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.contacts_unusable).collect::<Vec<_>>(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stages a batch of rejected rows.
pub async fn insert_rejected(connection: &mut PgConnection, import: Uuid, rows: &[RejectedRow]) -> Result<()> {
    sqlx::query!(
        "INSERT INTO import_rejected_rows (import_id, file_row, cells, errors, number_key, kept, cell_keys)
         SELECT $1, * FROM unnest($2::bigint[], $3::jsonb[], $4::text[], $5::text[], $6::bool[], $7::jsonb[])",
        import,
        &rows.iter().map(|row| row.file_row as i64).collect::<Vec<_>>(),
        &rows.iter().map(|row| json!(row.cells)).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.errors.clone()).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.number_key.clone()).collect::<Vec<_>>() as &[Option<String>],
        &rows.iter().map(|row| row.kept).collect::<Vec<_>>(),
        &rows.iter().map(|row| (!row.cell_keys.is_empty()).then(|| json!(row.cell_keys))).collect::<Vec<_>>()
            as &[Option<Value>],
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn contacts(row: &StagedRow) -> Value {
    let one = |contact: &StagedContact| {
        let email = contact.email.as_ref().map(ToString::to_string);
        let (name, role, from_holder) = (&contact.name, &contact.role, contact.from_holder);
        let mut value = json!({ "name": name, "email": email, "role": role, "from_holder": from_holder });
        if let Some(language) = &contact.language {
            value["language"] = language.as_str().into();
        }
        value
    };
    row.contacts.iter().map(one).collect()
}

/// Good rows that are held back, because another row of their permit was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// How many.
    pub rows: u64,
    /// The first of them.
    pub first: Vec<HeldRow>,
    /// Rejected rows that do not fit the header and of which no cell is a permit number that another row has.
    pub nameless: u64,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRow {
    /// Row of the file.
    pub file_row: u64,
    /// Number of the permit.
    pub permit_number: String,
    /// Whether every rejected row of the permit is kept. Beside one that is not, this row would look as if it were all
    /// that the file says of the permit.
    pub whole: bool,
}

/// Takes back the rows of all permits of which a row was rejected, when all rows are staged: what that row says is not
/// known, and it may be that the permit was renewed or revoked. One that is not as wide as the header may be of any permit
/// of which it has the number in a cell. Lists the first `limit` of them.
pub async fn hold_back(connection: &mut PgConnection, import: Uuid, limit: u64) -> Result<HeldBack> {
    let first = sqlx::query!(
        r#"WITH wrong AS MATERIALIZED (
               SELECT key AS number_key, bool_and(kept) AS whole
               FROM import_rejected_rows
               CROSS JOIN LATERAL (SELECT number_key AS key
                                   UNION ALL SELECT jsonb_array_elements_text(cell_keys)) AS keys
               WHERE import_id = $1 AND key IS NOT NULL GROUP BY 1)
           SELECT r.file_row, r.permit_number, wrong.whole AS "whole!"
           FROM import_rows r JOIN wrong ON wrong.number_key = r.number_key
           WHERE r.import_id = $1 ORDER BY r.file_row LIMIT $2"#,
        import,
        i64::try_from(limit).unwrap_or(i64::MAX),
    )
    .fetch_all(&mut *connection)
    .await?;
    let nameless = count_nameless(&mut *connection, import).await?;
    let rows = sqlx::query!(
        "WITH wrong AS MATERIALIZED (
             SELECT number_key FROM import_rejected_rows WHERE import_id = $1 AND number_key IS NOT NULL
             UNION SELECT jsonb_array_elements_text(cell_keys) FROM import_rejected_rows WHERE import_id = $1)
         DELETE FROM import_rows r USING wrong WHERE r.import_id = $1 AND r.number_key = wrong.number_key",
        import,
    )
    .execute(connection)
    .await?
    .rows_affected();
    let first = first.into_iter().map(|row| HeldRow {
        file_row: row.file_row.unsigned_abs(),
        permit_number: row.permit_number,
        whole: row.whole,
    });
    Ok(HeldBack { rows, first: first.collect(), nameless })
}

/// Rejected rows that do not fit the header and of which no cell is the permit number of another row.
async fn count_nameless(connection: &mut PgConnection, import: Uuid) -> Result<u64> {
    let counted = sqlx::query_scalar!(
        r#"WITH cells AS MATERIALIZED (
               SELECT file_row, jsonb_array_elements_text(cell_keys) AS key
               FROM import_rejected_rows WHERE import_id = $1 AND number_key IS NULL),
           named AS MATERIALIZED (
               SELECT cells.file_row FROM cells
               JOIN (SELECT number_key FROM import_rows WHERE import_id = $1
                     UNION ALL SELECT number_key FROM import_rejected_rows WHERE import_id = $1) AS others
                 ON others.number_key = cells.key)
           SELECT count(*) AS "count!" FROM (SELECT file_row FROM cells EXCEPT SELECT file_row FROM named) AS nameless"#,
        import,
    );
    Ok(counted.fetch_one(connection).await?.unsigned_abs())
}

/// Marks the current term of each permit number, when all rows are staged: the last by expiry, start and place.
pub async fn mark_current(connection: &mut PgConnection, import: Uuid) -> Result<u64> {
    let marked = sqlx::query!(
        "INSERT INTO import_permits (import_id, number_key, file_row)
         SELECT DISTINCT ON (number_key) import_id, number_key, file_row FROM import_rows WHERE import_id = $1
         ORDER BY number_key, expires_on DESC, effective_on DESC NULLS LAST, file_row DESC",
        import,
    )
    .execute(connection)
    .await?
    .rows_affected();
    Ok(marked)
}
