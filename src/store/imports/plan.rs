//! What an import is to make of each permit: planned by one statement, locked, and planned again where it must be.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::crowded::CONTACTS_MAX;
use crate::{
    domain::{permit::PermitTypeCode, schedule::Schedule},
    store::{Result, StoreError, permit_types::insert_steps},
};

/// How many permits of the file come to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Recorded for the first time.
    pub created: u64,
    /// A later date.
    pub renewed: u64,
    /// The same date, and something else differs.
    pub updated: u64,
    /// Left alone, the archived ones included.
    pub unchanged: u64,
    /// Archived, whatever the file says.
    pub archived: u64,
    /// Known with a later date than the file's.
    pub earlier: u64,
}

impl Tally {
    /// All permits of the file.
    pub fn all(&self) -> u64 {
        self.created + self.renewed + self.updated + self.unchanged
    }
}

/// Plans what becomes of each permit without a plan. A field that is not among `given` never differs.
pub(super) async fn plan_permits(connection: &mut PgConnection, import: Uuid, given: &[String]) -> Result<u64> {
    // A type is meant by its code as it stands, else by its name, else by the code made of its name.
    let planned = sqlx::query!(
        "WITH kinds AS MATERIALIZED (
             SELECT k.permit_type, k.permit_type_name,
                    coalesce((SELECT code FROM permit_types WHERE code = k.permit_type_name),
                             (SELECT code FROM permit_types WHERE lower(name) = lower(k.permit_type_name)),
                             (SELECT code FROM permit_types WHERE code = k.permit_type)) AS code
             FROM (SELECT DISTINCT permit_type, permit_type_name FROM import_rows WHERE import_id = $1) AS k)
         UPDATE import_permits i
         SET permit_id = coalesce(p.id, r.id), permit_type = kinds.code, version = p.version,
             present_expires_on = p.expires_on,
             contacts = CASE WHEN wanted.list <> known.list THEN wanted.list END,
             outcome = CASE
                 WHEN p.id IS NULL THEN 'created'
                 WHEN p.archived_at IS NOT NULL THEN 'archived'
                 WHEN r.expires_on > p.expires_on THEN 'renewed'
                 WHEN r.expires_on < p.expires_on THEN 'earlier'
                 WHEN kinds.code IS DISTINCT FROM p.permit_type OR r.holder_name <> p.holder_name
                   OR r.status <> p.status OR r.holder_language <> p.holder_language
                   OR ('holder_email' = ANY ($2) AND (r.holder_email IS NOT NULL OR NOT r.holder_unusable)
                       AND r.holder_email IS DISTINCT FROM p.holder_email)
                   OR ('site_address' = ANY ($2) AND r.site_address IS DISTINCT FROM p.site_address)
                   OR ('description' = ANY ($2) AND r.description IS DISTINCT FROM p.description)
                   OR ('issued_on' = ANY ($2) AND r.issued_on IS DISTINCT FROM p.issued_on)
                   OR ('effective_on' = ANY ($2) AND r.effective_on IS DISTINCT FROM p.effective_on)
                   OR ('external_id' = ANY ($2) AND r.external_id IS DISTINCT FROM p.external_id)
                   OR wanted.list <> known.list THEN 'updated'
                 ELSE 'same' END
         FROM import_rows r
         JOIN kinds ON kinds.permit_type = r.permit_type AND kinds.permit_type_name = r.permit_type_name
         LEFT JOIN permits p ON p.number_key = r.number_key
         CROSS JOIN LATERAL (
             SELECT coalesce(jsonb_agg(jsonb_build_object('name', c.name, 'email', c.email, 'role', c.role,
                                                          'language', c.language, 'from_holder', c.from_holder)
                                       ORDER BY c.position), '[]') AS list
             FROM contacts c WHERE c.permit_id = p.id) AS known
         CROSS JOIN LATERAL (
             -- Who stays: those that the row's columns do not speak of, or spoke of in a way that nobody can use. Of
             -- the holder's cell those are replaced that came from there, and never those whom a person entered.
             SELECT coalesce(jsonb_agg(old.contact ORDER BY old.place), '[]') AS list
             FROM jsonb_array_elements(known.list) WITH ORDINALITY AS old (contact, place)
             WHERE r.contacts_unusable OR (r.holder_unusable AND (old.contact ->> 'from_holder')::boolean)
                OR ('contacts' <> ALL ($2)
                    AND ('holder_email' <> ALL ($2) OR NOT (old.contact ->> 'from_holder')::boolean
                         OR EXISTS (SELECT FROM jsonb_array_elements(r.contacts) AS new (contact)
                                    WHERE lower(new.contact ->> 'email') = lower(old.contact ->> 'email'))))) AS stay
         CROSS JOIN LATERAL (
             -- As many of the new ones as there is room for beside who stays.
             SELECT jsonb_path_query_array(
                        stay.list
                        || coalesce(jsonb_agg(new.contact || jsonb_build_object(
                                        'language', coalesce(new.contact ->> 'language', same.contact ->> 'language',
                                                             r.holder_language, p.holder_language, 'en'),
                                        'from_holder', coalesce(same.contact, new.contact) -> 'from_holder')
                                    ORDER BY new.place), '[]'),
                        '$[0 to $last]',
                        jsonb_build_object('last', greatest(jsonb_array_length(stay.list), $3::int) - 1)) AS list
             FROM jsonb_array_elements(r.contacts) WITH ORDINALITY AS new (contact, place)
             LEFT JOIN LATERAL (
                 SELECT old.contact FROM jsonb_array_elements(known.list) AS old (contact)
                 WHERE lower(old.contact ->> 'email') = lower(new.contact ->> 'email')
                    OR (old.contact ->> 'email' IS NULL AND new.contact ->> 'email' IS NULL
                        AND old.contact ->> 'name' = new.contact ->> 'name')
                 LIMIT 1) AS same ON true
             WHERE (same.contact IS NULL OR NOT stay.list @> jsonb_build_array(same.contact))
               -- Who stays because the address of the row is none, is not there once more by name alone.
               AND NOT (r.contacts_unusable AND new.contact ->> 'email' IS NULL
                        AND EXISTS (SELECT FROM jsonb_array_elements(stay.list) AS old (contact)
                                    WHERE lower(old.contact ->> 'name') = lower(new.contact ->> 'name')))) AS wanted
         WHERE i.import_id = $1 AND i.outcome IS NULL AND r.import_id = $1 AND r.file_row = i.file_row",
        import,
        given,
        CONTACTS_MAX,
    );
    Ok(planned.execute(connection).await?.rows_affected())
}

/// Counts what is staged and planned, for the plans of the database: a table without statistics is taken for an empty
/// one. Only one import at a time comes here, because two could not do this at once.
pub(super) async fn analyze(connection: &mut PgConnection) -> Result<()> {
    sqlx::query!("ANALYZE import_rows, import_permits").execute(connection).await?;
    Ok(())
}

/// Locks the known permits that change, in order of id.
pub(super) async fn lock_planned(connection: &mut PgConnection, import: Uuid) -> Result<()> {
    sqlx::query!(
        r#"SELECT count(*) AS "locked!" FROM (
               SELECT 1 FROM permits p JOIN import_permits i ON i.permit_id = p.id
               WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated')
               ORDER BY p.id FOR NO KEY UPDATE OF p) AS locked"#,
        import,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Takes back the plan for permits that were changed before they were locked; says for how many.
pub(super) async fn forget_stale(connection: &mut PgConnection, import: Uuid) -> Result<u64> {
    let stale = sqlx::query!(
        "UPDATE import_permits i SET outcome = NULL FROM permits p
         WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated') AND p.id = i.permit_id
           AND p.version <> i.version",
        import,
    );
    Ok(stale.execute(connection).await?.rows_affected())
}

/// Locks, in order of id, the notices that the changes may touch, and then their deliveries.
pub(super) async fn lock_notices(connection: &mut PgConnection, import: Uuid) -> Result<()> {
    sqlx::query!(
        r#"SELECT count(*) AS "locked!" FROM (
               SELECT 1 FROM import_permits i
               JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
               JOIN notices n ON n.permit_id = i.permit_id
               WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated')
                 AND (n.expires_on IN (i.present_expires_on, r.expires_on) OR n.state IN ('pending', 'held'))
               ORDER BY n.id FOR NO KEY UPDATE OF n) AS locked"#,
        import,
    )
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query!(
        r#"SELECT count(*) AS "locked!" FROM (
               SELECT 1 FROM import_permits i
               JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
               JOIN notices n ON n.permit_id = i.permit_id
               JOIN deliveries d ON d.notice_id = n.id
               WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated')
                 AND (n.expires_on IN (i.present_expires_on, r.expires_on) OR n.state IN ('pending', 'held'))
               ORDER BY d.id FOR NO KEY UPDATE OF d) AS locked"#,
        import,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Makes the permit types that are missing, with the usual schedule; says how many.
pub(super) async fn create_types(connection: &mut PgConnection, import: Uuid, now: DateTime<Utc>) -> Result<u64> {
    let made = sqlx::query_scalar!(
        "INSERT INTO permit_types (code, name, created_at, updated_at)
         SELECT DISTINCT ON (r.permit_type) r.permit_type, r.permit_type_name, $2::timestamptz, $2
         FROM import_permits i JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
         WHERE i.import_id = $1 AND i.permit_type IS NULL AND i.outcome IN ('created', 'renewed', 'updated')
         ORDER BY r.permit_type, r.file_row
         ON CONFLICT DO NOTHING RETURNING code",
        import,
        now,
    )
    .fetch_all(&mut *connection)
    .await?;
    for code in &made {
        let code: PermitTypeCode =
            code.parse().map_err(|error| StoreError::Invalid { field: "permit_type", why: format!("{error}") })?;
        insert_steps(connection, code.as_str(), &Schedule::usual()).await?;
    }
    name_types(connection, import).await?;
    Ok(made.len() as u64)
}

/// Fills in the types that exist by now.
async fn name_types(connection: &mut PgConnection, import: Uuid) -> Result<()> {
    sqlx::query!(
        "UPDATE import_permits i
         SET permit_type = coalesce((SELECT code FROM permit_types WHERE lower(name) = lower(r.permit_type_name)),
                                    (SELECT code FROM permit_types WHERE code = r.permit_type))
         FROM import_rows r
         WHERE i.import_id = $1 AND i.permit_type IS NULL AND i.outcome IN ('created', 'renewed', 'updated')
           AND r.import_id = $1 AND r.file_row = i.file_row",
        import,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Counts the plan.
pub(super) async fn tally(connection: &mut PgConnection, import: Uuid) -> Result<Tally> {
    let rows = sqlx::query!(
        r#"SELECT outcome AS "outcome!", count(*) AS "permits!" FROM import_permits WHERE import_id = $1 GROUP BY 1"#,
        import,
    )
    .fetch_all(connection)
    .await?;
    let mut tally = Tally::default();
    for row in rows {
        let permits = row.permits.unsigned_abs();
        match row.outcome.as_str() {
            "created" => tally.created = permits,
            "renewed" => tally.renewed = permits,
            "updated" => tally.updated = permits,
            "archived" => {
                tally.archived = permits;
                tally.unchanged += permits;
            }
            "earlier" => {
                tally.earlier = permits;
                tally.unchanged += permits;
            }
            _ => tally.unchanged += permits,
        }
    }
    Ok(tally)
}

/// Row and number of the first archived permits that the file names, in order of the file.
pub(super) async fn list_archived(
    connection: &mut PgConnection,
    import: Uuid,
    limit: u32,
) -> Result<Vec<(u64, String)>> {
    let rows = sqlx::query!(
        "SELECT r.file_row, r.permit_number
         FROM import_permits i JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
         WHERE i.import_id = $1 AND i.outcome = 'archived' ORDER BY r.file_row LIMIT $2",
        import,
        i64::from(limit),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.file_row.unsigned_abs(), row.permit_number)).collect())
}
