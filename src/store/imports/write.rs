//! Writing the plan of an import: permits, terms, expiry periods and contacts, one statement each.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::store::Result;

/// Permits that were made are few among so many times as many.
const FEW: f64 = 10.0;

/// Records the new permits; says how many. A number that somebody else took meanwhile is left out.
pub(super) async fn insert_permits(
    connection: &mut PgConnection,
    import: Uuid,
    notices_from: Option<NaiveDate>,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Result<u64> {
    let inserted = sqlx::query!(
        "INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, holder_email,
                              holder_language, site_address, description, issued_on, effective_on, takes_effect_on,
                              expires_on, period_since, notices_from, external_id, created_at, updated_at)
         SELECT i.permit_id, r.permit_number, r.number_key, i.permit_type, coalesce(r.status, 'active'), r.holder_name,
                r.holder_email, coalesce(r.holder_language, 'en'), r.site_address, r.description, r.issued_on,
                r.effective_on, coalesce(r.effective_on, r.issued_on), r.expires_on, $2, $3, r.external_id, $4, $4
         FROM import_permits i JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
         WHERE i.import_id = $1 AND i.outcome = 'created'
         ORDER BY i.permit_id
         ON CONFLICT (number_key) DO NOTHING",
        import,
        today,
        notices_from,
        now,
    );
    Ok(inserted.execute(connection).await?.rows_affected())
}

/// Opens the terms of new permits, and of renewed ones those later than the present one; says how many. Rows with
/// the same days are one term, and the last of them counts.
pub(super) async fn insert_terms(connection: &mut PgConnection, import: Uuid, now: DateTime<Utc>) -> Result<u64> {
    let inserted = sqlx::query!(
        "INSERT INTO terms (permit_id, number, issued_on, effective_on, expires_on, recorded_at)
         SELECT s.permit_id,
                coalesce(before.number, 0)
                    + row_number() OVER (PARTITION BY s.permit_id ORDER BY s.expires_on, s.effective_on NULLS FIRST),
                s.issued_on, s.effective_on, s.expires_on, $2
         FROM (SELECT DISTINCT ON (i.permit_id, r.expires_on, r.effective_on)
                      i.permit_id, r.issued_on, r.effective_on, r.expires_on
               FROM import_permits i JOIN import_rows r ON r.import_id = i.import_id AND r.number_key = i.number_key
               WHERE i.import_id = $1
                 AND (i.outcome = 'created' OR (i.outcome = 'renewed' AND r.expires_on > i.present_expires_on))
               ORDER BY i.permit_id, r.expires_on, r.effective_on, r.file_row DESC) AS s
         LEFT JOIN (SELECT t.permit_id, max(t.number) AS number FROM terms t JOIN import_permits i USING (permit_id)
                    WHERE i.import_id = $1 AND i.outcome = 'renewed' GROUP BY t.permit_id) AS before USING (permit_id)",
        import,
        now,
    );
    Ok(inserted.execute(connection).await?.rows_affected())
}

/// Notes the expiry dates of these terms; one that the permit had before keeps its first day.
pub(super) async fn insert_periods(connection: &mut PgConnection, import: Uuid, today: NaiveDate) -> Result<()> {
    sqlx::query!(
        "INSERT INTO expiry_periods (permit_id, expires_on, since)
         SELECT DISTINCT i.permit_id, r.expires_on, $2::date
         FROM import_permits i JOIN import_rows r ON r.import_id = i.import_id AND r.number_key = i.number_key
         WHERE i.import_id = $1
           AND (i.outcome = 'created' OR (i.outcome = 'renewed' AND r.expires_on > i.present_expires_on))
         ON CONFLICT (permit_id, expires_on) DO NOTHING",
        import,
        today,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Corrects the present terms of updated permits. An issue date that differs from the permit's came with the term.
pub(super) async fn correct_terms(connection: &mut PgConnection, import: Uuid, given: &[String]) -> Result<()> {
    sqlx::query!(
        "UPDATE terms t
         SET effective_on = CASE WHEN 'effective_on' = ANY ($2) THEN r.effective_on ELSE t.effective_on END,
             issued_on = CASE WHEN 'issued_on' = ANY ($2) AND r.issued_on IS DISTINCT FROM p.issued_on
                              THEN r.issued_on ELSE t.issued_on END
         FROM import_permits i
         JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
         JOIN permits p ON p.id = i.permit_id
         WHERE i.import_id = $1 AND i.outcome = 'updated' AND t.permit_id = i.permit_id
           AND t.number = (SELECT max(number) FROM terms WHERE permit_id = i.permit_id)
           AND (('effective_on' = ANY ($2) AND t.effective_on IS DISTINCT FROM r.effective_on)
                OR ('issued_on' = ANY ($2) AND p.issued_on IS DISTINCT FROM r.issued_on))",
        import,
        given,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes renewed and updated permits, whose terms are written. A new term without a start has none.
pub(super) async fn update_permits(
    connection: &mut PgConnection,
    import: Uuid,
    given: &[String],
    now: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "UPDATE permits p
         SET permit_type = i.permit_type, status = coalesce(r.status, p.status), holder_name = r.holder_name,
             holder_email = CASE WHEN 'holder_email' = ANY ($2) AND (r.holder_email IS NOT NULL OR NOT r.holder_unusable)
                                 THEN r.holder_email ELSE p.holder_email END,
             holder_language = coalesce(r.holder_language, p.holder_language),
             site_address = CASE WHEN 'site_address' = ANY ($2) THEN r.site_address ELSE p.site_address END,
             description = CASE WHEN 'description' = ANY ($2) THEN r.description ELSE p.description END,
             issued_on = CASE WHEN 'issued_on' = ANY ($2) THEN r.issued_on ELSE p.issued_on END,
             effective_on = CASE WHEN 'effective_on' = ANY ($2) OR i.outcome = 'renewed' THEN r.effective_on
                                 ELSE p.effective_on END,
             external_id = CASE WHEN 'external_id' = ANY ($2) THEN r.external_id ELSE p.external_id END,
             takes_effect_on = coalesce(term.effective_on, term.issued_on), expires_on = r.expires_on,
             period_since = coalesce(period.since, p.period_since), version = p.version + 1, updated_at = $3
         FROM import_permits i
         JOIN import_rows r ON r.import_id = i.import_id AND r.file_row = i.file_row
         LEFT JOIN expiry_periods period ON period.permit_id = i.permit_id AND period.expires_on = r.expires_on
         LEFT JOIN LATERAL (SELECT effective_on, issued_on FROM terms WHERE permit_id = i.permit_id
                            ORDER BY number DESC LIMIT 1) AS term ON true
         WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated') AND p.id = i.permit_id",
        import,
        given,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes the contacts of permits whose contacts change.
pub(super) async fn replace_contacts(connection: &mut PgConnection, import: Uuid) -> Result<()> {
    sqlx::query!(
        "DELETE FROM contacts c USING import_permits i
         WHERE i.import_id = $1 AND i.outcome IN ('renewed', 'updated') AND i.contacts IS NOT NULL
           AND c.permit_id = i.permit_id",
        import,
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "INSERT INTO contacts (id, permit_id, position, name, email, role, language, from_holder)
         SELECT gen_random_uuid(), i.permit_id, c.place - 1, c.contact ->> 'name', c.contact ->> 'email',
                c.contact ->> 'role', c.contact ->> 'language', (c.contact ->> 'from_holder')::boolean
         FROM import_permits i CROSS JOIN LATERAL jsonb_array_elements(i.contacts) WITH ORDINALITY AS c (contact, place)
         WHERE i.import_id = $1 AND i.outcome IN ('created', 'renewed', 'updated')",
        import,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A permit that the import wrote and that may have a notice to write: a superset, cheaply found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Affected {
    pub permit_id: Uuid,
    pub renewed: bool,
}

/// The permits to judge, in order of id: those with notices of their present or with open ones of other periods,
/// those with a step that is owed and due until `horizon`, and with `catch_up` the renewed ones.
pub(super) async fn find_affected(
    connection: &mut PgConnection,
    import: Uuid,
    catch_up: bool,
    today: NaiveDate,
    horizon: NaiveDate,
) -> Result<Vec<Affected>> {
    let affected = sqlx::query_as!(
        Affected,
        r#"SELECT p.id AS permit_id, i.outcome = 'renewed' AS "renewed!"
           FROM import_permits i JOIN permits p ON p.id = i.permit_id
           WHERE i.import_id = $1 AND i.outcome IN ('created', 'renewed', 'updated')
             AND (($2 AND i.outcome = 'renewed')
               OR (i.outcome <> 'created'
                   AND EXISTS (SELECT FROM notices n WHERE n.permit_id = p.id
                               AND (n.expires_on = p.expires_on OR n.state IN ('pending', 'held'))))
               OR (p.status = 'active' AND (p.notices_paused_until IS NULL OR p.notices_paused_until < $3)
                   AND EXISTS (SELECT FROM schedule_steps s
                               WHERE s.permit_type = p.permit_type AND s.enabled
                                 AND p.expires_on + s.offset_days <= $4
                                 AND (p.takes_effect_on IS NULL OR p.expires_on + s.offset_days > p.takes_effect_on)
                                 AND (p.notices_from IS NULL OR p.expires_on + s.offset_days >= p.notices_from)
                                 AND (s.offset_days <= 0 OR p.expires_on + s.offset_days >= p.period_since))))
           ORDER BY p.id"#,
        import,
        catch_up,
        today,
        horizon,
    );
    Ok(affected.fetch_all(connection).await?)
}

/// Whether the statements that follow in this transaction may join by nested loops. A table that an import filled which
/// then broke off counts as empty in the statistics, and is full a moment after the next one wrote to it: a loop over
/// all of its rows for each row of the file would not end. Of many rows it is never the best way.
pub(super) async fn allow_nested_loops(connection: &mut PgConnection, may: bool) -> Result<()> {
    let setting = if may { "on" } else { "off" };
    sqlx::query!(r#"SELECT set_config('enable_nestloop', $1, true) AS "set!""#, setting).fetch_one(connection).await?;
    Ok(())
}

/// Counts the permits anew if not just a few of them were created now. Each row that refers to a permit finds it by a plan
/// that goes by the statistics, and of a table that counts as empty some other index, or none, looks as good as the right
/// one. Nor can a VACUUM that began before count them as nothing from then on. Who holds the table is waited for no
/// longer than for other locks; then the import goes on as it can.
pub(super) async fn count_permits(connection: &mut PgConnection, created: u64) -> Result<()> {
    let known = sqlx::query_scalar!(r#"SELECT reltuples AS "rows!" FROM pg_class WHERE oid = 'permits'::regclass"#);
    let known = known.fetch_one(&mut *connection).await?;
    // What is known may be what an import counted that then broke off.
    if f64::from(known) > FEW * created as f64 {
        return Ok(());
    }
    let mut counting = connection.begin().await?;
    match sqlx::query!("ANALYZE permits").execute(&mut *counting).await {
        Ok(_) => counting.commit().await?,
        Err(error) => {
            counting.rollback().await?;
            tracing::warn!(
                "the permits could not be counted in the midst of an import, which may take longer: {error}"
            );
        }
    }
    Ok(())
}
