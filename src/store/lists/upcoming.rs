//! What will be sent on the days to come. Which steps fall on which day is for [`crate::domain`] to say; here is to
//! whom they are owed, as far as a permit does not need to be judged alone.

use chrono::NaiveDate;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::notice::NoticeClass,
    store::{Result, StoreError},
};

/// Steps of permits that expire on one day, side by side, in columns; each goes on one day, which is today or later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slots {
    permit_types: Vec<String>,
    expires_on: Vec<NaiveDate>,
    notice_types: Vec<String>,
    is_courtesy: Vec<bool>,
    due_on: Vec<NaiveDate>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub struct NewSlot<'s> {
    pub permit_type: &'s str,
    pub expires_on: NaiveDate,
    pub notice_type: &'s str,
    pub class: NoticeClass,
    pub due_on: NaiveDate,
}

impl Slots {
    pub fn push(&mut self, slot: NewSlot<'_>) {
        self.permit_types.push(slot.permit_type.to_owned());
        self.expires_on.push(slot.expires_on);
        self.notice_types.push(slot.notice_type.to_owned());
        self.is_courtesy.push(slot.class == NoticeClass::Courtesy);
        self.due_on.push(slot.due_on);
    }
}

/// How many permits are owed each slot and have no notice of it. Those whose notices are paused today are left out.
/// A courtesy of which no copy may be mailed is none.
pub async fn count_upcoming(connection: &mut PgConnection, slots: &Slots, today: NaiveDate) -> Result<Vec<i64>> {
    let rows = sqlx::query!(
        r#"WITH slot AS (
               SELECT * FROM unnest($1::text[], $2::date[], $3::text[], $4::boolean[], $5::date[])
                   WITH ORDINALITY AS slot (permit_type, expires_on, notice_type, is_courtesy, due_on, place)),
           -- Found once for each day: there are few, and to look for each permit's would take as long as the rest.
           taken AS MATERIALIZED (
               SELECT n.permit_id, n.notice_type
               FROM (SELECT DISTINCT expires_on, notice_type FROM slot) s
               JOIN notices n ON n.expires_on = s.expires_on AND n.notice_type = s.notice_type)
           SELECT slot.place AS "place!", count(*) AS "count!"
           FROM slot JOIN permits p ON p.permit_type = slot.permit_type AND p.expires_on = slot.expires_on
           WHERE p.status = 'active' AND p.archived_at IS NULL
             AND (p.notices_paused_until IS NULL OR p.notices_paused_until < $6)
             AND (p.takes_effect_on IS NULL OR slot.due_on > p.takes_effect_on)
             AND (p.notices_from IS NULL OR slot.due_on >= p.notices_from)
             AND (slot.due_on <= p.expires_on OR slot.due_on >= p.period_since)
             AND NOT EXISTS (SELECT FROM taken t WHERE t.permit_id = p.id AND t.notice_type = slot.notice_type)
             -- The holder is read anew, so that the index alone serves for all other classes.
             AND (NOT slot.is_courtesy
                  OR EXISTS (SELECT FROM (SELECT h.holder_email AS email FROM permits h WHERE h.id = p.id
                                          UNION ALL SELECT c.email FROM contacts c WHERE c.permit_id = p.id) a
                             WHERE a.email IS NOT NULL
                               AND NOT EXISTS (SELECT FROM suppressions s WHERE s.address = lower(a.email))))
           GROUP BY slot.place"#,
        &slots.permit_types,
        &slots.expires_on,
        &slots.notice_types,
        &slots.is_courtesy,
        &slots.due_on,
        today,
    )
    .fetch_all(connection)
    .await?;
    let mut counts = vec![0; slots.due_on.len()];
    for row in rows {
        if let Some(count) = usize::try_from(row.place - 1).ok().and_then(|place| counts.get_mut(place)) {
            *count = row.count;
        }
    }
    Ok(counts)
}

/// A permit with the place that it has in a list by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub id: Uuid,
    pub number_key: String,
}

/// Up to `limit` permits that are owed one of the slots and have no notice of it, and `others`, by number, after
/// `after`. A few of them may turn out to be sent nothing when they are judged.
pub async fn find_upcoming(
    connection: &mut PgConnection,
    slots: &Slots,
    others: &[Uuid],
    today: NaiveDate,
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<Found>> {
    let rows = sqlx::query_as!(
        Found,
        r#"WITH slot AS (
               SELECT * FROM unnest($1::text[], $2::date[], $3::text[], $4::date[])
                   AS slot (permit_type, expires_on, notice_type, due_on)),
           taken AS MATERIALIZED (
               SELECT n.permit_id, n.notice_type
               FROM (SELECT DISTINCT expires_on, notice_type FROM slot) s
               JOIN notices n ON n.expires_on = s.expires_on AND n.notice_type = s.notice_type)
           SELECT p.id AS "id!", p.number_key AS "number_key!"
           FROM (SELECT p.id
                 FROM slot JOIN permits p ON p.permit_type = slot.permit_type AND p.expires_on = slot.expires_on
                 WHERE p.status = 'active' AND p.archived_at IS NULL
                   AND (p.notices_paused_until IS NULL OR p.notices_paused_until < $5)
                   AND (p.takes_effect_on IS NULL OR slot.due_on > p.takes_effect_on)
                   AND (p.notices_from IS NULL OR slot.due_on >= p.notices_from)
                   AND (slot.due_on <= p.expires_on OR slot.due_on >= p.period_since)
                   AND NOT EXISTS (SELECT FROM taken t WHERE t.permit_id = p.id AND t.notice_type = slot.notice_type)
                 UNION SELECT other.id FROM unnest($6::uuid[]) AS other (id)) found
           JOIN permits p ON p.id = found.id
           WHERE $7::text IS NULL OR p.number_key > $7
           ORDER BY p.number_key LIMIT $8"#,
        &slots.permit_types,
        &slots.expires_on,
        &slots.notice_types,
        &slots.due_on,
        today,
        others,
        after,
        limit,
    );
    Ok(rows.fetch_all(connection).await?)
}

/// Up to `limit` permits whose notices are paused today; each has to be judged.
pub async fn find_paused(connection: &mut PgConnection, today: NaiveDate, limit: i64) -> Result<Vec<Uuid>> {
    let permits = sqlx::query_scalar!(
        "SELECT id FROM permits WHERE notices_paused_until >= $1 AND status = 'active' AND archived_at IS NULL
         ORDER BY notices_paused_until, id LIMIT $2",
        today,
        limit,
    );
    Ok(permits.fetch_all(connection).await?)
}

/// Notices that are recorded and wait to go on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRow {
    pub day: NaiveDate,
    pub notice_type: String,
    pub class: String,
    pub count: i64,
}

/// How many recorded notices wait, by the day on which they go, which is not before `today`.
pub async fn count_waiting_notices(connection: &mut PgConnection, today: NaiveDate) -> Result<Vec<WaitingRow>> {
    let rows = sqlx::query_as!(
        WaitingRow,
        r#"SELECT CASE WHEN brought_forward THEN $1 ELSE greatest(due_on, $1) END AS "day!", notice_type, class,
                  count(*) AS "count!"
           FROM notices WHERE state = 'pending' AND superseded_at IS NULL AND send_by >= $1
           GROUP BY 1, 2, 3"#,
        today,
    );
    Ok(rows.fetch_all(connection).await?)
}

/// Permits with a recorded notice that waits to go on `day`.
pub async fn find_waiting(
    connection: &mut PgConnection,
    day: NaiveDate,
    today: NaiveDate,
    limit: i64,
) -> Result<Vec<Uuid>> {
    let permits = sqlx::query_scalar!(
        "SELECT DISTINCT permit_id FROM notices
         WHERE state = 'pending' AND superseded_at IS NULL AND send_by >= $2
           AND CASE WHEN brought_forward THEN $2 ELSE greatest(due_on, $2) END = $1
         ORDER BY permit_id LIMIT $3",
        day,
        today,
        limit,
    );
    Ok(permits.fetch_all(connection).await?)
}

/// What a person decided about a day before it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    pub held: i64,
    pub cancelled: i64,
}

/// How many notices that are due on `day` are held or cancelled.
pub async fn count_decided(connection: &mut PgConnection, day: NaiveDate) -> Result<Decided> {
    let decided = sqlx::query_as!(
        Decided,
        r#"SELECT count(*) FILTER (WHERE state = 'held') AS "held!",
                  count(*) FILTER (WHERE state = 'cancelled') AS "cancelled!"
           FROM notices WHERE due_on = $1 AND state IN ('held', 'cancelled')"#,
        day,
    );
    Ok(decided.fetch_one(connection).await?)
}

/// Holders' names, for permits that are shown with what else was read of them.
pub async fn list_holders(connection: &mut PgConnection, permits: &[Uuid]) -> Result<Vec<(Uuid, String)>> {
    let rows = sqlx::query!("SELECT id, holder_name FROM permits WHERE id = ANY ($1)", permits);
    Ok(rows.fetch_all(connection).await?.into_iter().map(|row| (row.id, row.holder_name)).collect())
}

/// What a mail shows of a permit and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailFacts {
    pub version: i64,
    pub type_version: i64,
    pub permit_type: String,
    pub holder_name: String,
    pub site_address: Option<String>,
    pub description: Option<String>,
    pub renewal_url: Option<String>,
    pub office_contact: Option<String>,
    pub grace_days: i32,
}

/// What the mails of a permit show.
pub async fn read_mail_facts(connection: &mut PgConnection, permit: Uuid) -> Result<MailFacts> {
    let facts = sqlx::query_as!(
        MailFacts,
        "SELECT p.version, t.version AS type_version, t.name AS permit_type, p.holder_name, p.site_address, p.description, t.renewal_url,
                t.office_contact, t.grace_days
         FROM permits p JOIN permit_types t ON t.code = p.permit_type WHERE p.id = $1",
        permit,
    );
    facts.fetch_optional(connection).await?.ok_or(StoreError::NotFound("permit"))
}
