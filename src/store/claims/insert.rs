//! Recording notices that have no row yet, with the copies that are owed.

use std::collections::HashSet;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Authority, Counts, Judged, Writing};
use crate::{
    domain::{
        copies::{Owed, copies},
        notice::{NoticeClass, NoticeKey, NoticeState, NoticeType, ReasonCode},
        owed::{Action, Timing, Unsent},
    },
    store::{
        Result,
        cases::{Case, Suppressed},
    },
};

/// One notice to be recorded with its copies.
#[derive(Debug)]
pub struct Claim {
    id: Uuid,
    key: NoticeKey,
    class: NoticeClass,
    timing: Timing,
    state: NoticeState,
    reason: Option<ReasonCode>,
}

/// The columns of deliveries to be inserted.
#[derive(Debug, Default)]
pub(in crate::store) struct DeliveryColumns {
    ids: Vec<Uuid>,
    notice_ids: Vec<Uuid>,
    channels: Vec<&'static str>,
    recipients: Vec<Option<String>>,
    keys: Vec<String>,
    names: Vec<String>,
    roles: Vec<String>,
    languages: Vec<String>,
    states: Vec<&'static str>,
    reasons: Vec<Option<&'static str>>,
    send_bys: Vec<NaiveDate>,
}

impl DeliveryColumns {
    /// Adds one copy of a notice; `hold` keeps it back, for that reason.
    pub(in crate::store) fn push(
        &mut self,
        notice: Uuid,
        send_by: NaiveDate,
        copy: &Owed<'_>,
        hold: Option<ReasonCode>,
    ) {
        let (state, reason) = match (copy, hold) {
            (Owed::Suppressed(_), _) => ("suppressed", Some(ReasonCode::Suppressed.as_str())),
            (_, Some(reason)) => ("held", Some(reason.as_str())),
            (_, None) => ("pending", None),
        };
        let recipient = match copy {
            Owed::Mail(recipient) | Owed::Suppressed(recipient) => Some(recipient),
            Owed::Letter => None,
        };
        let of = |field: fn(&crate::domain::recipient::Recipient) -> &String, other: &str| {
            recipient.map_or_else(|| other.to_owned(), |r| field(r).clone())
        };
        self.ids.push(Uuid::now_v7());
        self.notice_ids.push(notice);
        self.channels.push(copy.channel().as_str());
        self.recipients.push(recipient.map(|r| r.address.to_string()));
        self.keys.push(copy.recipient_key());
        self.names.push(of(|r| &r.name, ""));
        self.roles.push(of(|r| &r.role, crate::domain::recipient::HOLDER));
        self.languages.push(of(|r| &r.language, "en"));
        self.states.push(state);
        self.reasons.push(reason);
        self.send_bys.push(send_by);
    }

    /// Keeps the copies of those notices only.
    fn keep(self, notices: &HashSet<Uuid>) -> Self {
        let mut kept = Self::default();
        let rest = (self.recipients, self.keys, self.names, self.roles, self.languages);
        let mut rest = rest.0.into_iter().zip(rest.1).zip(rest.2).zip(rest.3).zip(rest.4);
        for i in 0..self.ids.len() {
            let Some(((((recipient, key), name), role), language)) = rest.next() else { break };
            if !notices.contains(&self.notice_ids[i]) {
                continue;
            }
            kept.ids.push(self.ids[i]);
            kept.notice_ids.push(self.notice_ids[i]);
            kept.channels.push(self.channels[i]);
            kept.recipients.push(recipient);
            kept.keys.push(key);
            kept.names.push(name);
            kept.roles.push(role);
            kept.languages.push(language);
            kept.states.push(self.states[i]);
            kept.reasons.push(self.reasons[i]);
            kept.send_bys.push(self.send_bys[i]);
        }
        kept
    }
}

/// Records every notice that is claimed or recorded unsent, in order of permit and step.
pub(super) async fn write(
    connection: &mut PgConnection,
    _: &Authority,
    judged: &[Judged<'_>],
    suppressed: &Suppressed,
    writing: Writing,
) -> Result<Counts> {
    let mut claims = Vec::new();
    let mut deliveries = DeliveryColumns::default();
    for Judged { case, actions } in judged {
        for action in *actions {
            match action {
                Action::Claim(notice_type, class, timing) => {
                    claims.push(claim(case, notice_type, *class, *timing, suppressed, writing.hold, &mut deliveries));
                }
                Action::Record(notice_type, class, timing, unsent) => {
                    claims.push(record(case, notice_type, *class, *timing, *unsent));
                }
                _ => {}
            }
        }
    }
    if claims.is_empty() {
        return Ok(Counts::default());
    }
    let inserted = insert_notices(connection, &claims, writing).await?;
    let deliveries = if inserted.len() == claims.len() { deliveries } else { deliveries.keep(&inserted) };
    insert_deliveries(connection, deliveries, writing.moment.now, writing.not_before).await?;
    Ok(count(&claims, &inserted))
}

fn claim(
    case: &Case,
    notice_type: &NoticeType,
    class: NoticeClass,
    timing: Timing,
    suppressed: &Suppressed,
    hold: Option<ReasonCode>,
    deliveries: &mut DeliveryColumns,
) -> Claim {
    let owed = copies(class, &case.recipients, |r| suppressed.forbids(class, &r.address));
    if owed.is_empty() {
        return record(case, notice_type, class, timing, Unsent::NoAddress);
    }
    let state = if hold.is_some() { NoticeState::Held } else { NoticeState::Pending };
    let claim = Claim { id: Uuid::now_v7(), key: key(case, notice_type), class, timing, state, reason: hold };
    for copy in &owed {
        deliveries.push(claim.id, timing.send_by, copy, hold);
    }
    claim
}

fn record(case: &Case, notice_type: &NoticeType, class: NoticeClass, timing: Timing, unsent: Unsent) -> Claim {
    let (state, reason) = unsent.state();
    Claim { id: Uuid::now_v7(), key: key(case, notice_type), class, timing, state, reason: Some(reason) }
}

fn key(case: &Case, notice_type: &NoticeType) -> NoticeKey {
    NoticeKey { permit_id: case.permit_id, notice_type: notice_type.clone(), expires_on: case.standing.expires_on }
}

/// Inserts the notices whose key has no row; says which those are.
async fn insert_notices(connection: &mut PgConnection, claims: &[Claim], writing: Writing) -> Result<HashSet<Uuid>> {
    let column = |field: fn(&Claim) -> String| claims.iter().map(field).collect::<Vec<_>>();
    let dates = |field: fn(&Claim) -> NaiveDate| claims.iter().map(field).collect::<Vec<_>>();
    let reasons: Vec<_> = claims.iter().map(|c| c.reason.map(ReasonCode::as_str)).collect();
    let sentences: Vec<_> = claims.iter().map(|c| c.reason.map(ReasonCode::sentence)).collect();
    let inserted = sqlx::query_scalar!(
        "INSERT INTO notices (id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by,
                              brought_forward, state, reason_code, reason, superseded_at, created_at, scan_id, import_id)
         SELECT id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by, brought_forward, state,
                reason_code, reason, CASE WHEN state = 'superseded' THEN $13::timestamptz END, $13, $14, $15
         FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::date[], $6::text[], $7::date[], $8::date[],
                     $9::bool[], $10::text[], $11::text[], $12::text[])
              AS claim (id, notice_key, permit_id, notice_type, expires_on, class, due_on, send_by, brought_forward,
                        state, reason_code, reason)
         ON CONFLICT (notice_key) DO NOTHING
         RETURNING id",
        &claims.iter().map(|c| c.id).collect::<Vec<_>>(),
        &column(|c| c.key.to_string()),
        &claims.iter().map(|c| c.key.permit_id).collect::<Vec<_>>(),
        &column(|c| c.key.notice_type.to_string()),
        &dates(|c| c.key.expires_on),
        &column(|c| c.class.to_string()),
        &dates(|c| c.timing.due_on),
        &dates(|c| c.timing.send_by),
        &claims.iter().map(|c| c.timing.brought_forward).collect::<Vec<_>>(),
        &column(|c| c.state.to_string()),
        &reasons as &[Option<&str>],
        &sentences as &[Option<&str>],
        writing.moment.now,
        writing.scan_id,
        writing.import_id,
    )
    .fetch_all(connection)
    .await?;
    Ok(inserted.into_iter().collect())
}

/// Inserts copies of notices that are in the same transaction; a copy that is there already is left alone.
pub(in crate::store) async fn insert_deliveries(
    connection: &mut PgConnection,
    deliveries: DeliveryColumns,
    now: DateTime<Utc>,
    not_before: DateTime<Utc>,
) -> Result<()> {
    if deliveries.ids.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO deliveries (id, notice_id, channel, recipient, recipient_key, recipient_name, role, language,
                                 state, reason_code, send_by, next_attempt_at, created_at, updated_at)
         SELECT id, notice_id, channel, recipient, recipient_key, recipient_name, role, language, state, reason_code,
                send_by, $12, $13, $13
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                     $9::text[], $10::text[], $11::date[])
              AS copy (id, notice_id, channel, recipient, recipient_key, recipient_name, role, language, state,
                       reason_code, send_by)
         ON CONFLICT (notice_id, recipient_key, copy) DO NOTHING",
        &deliveries.ids,
        &deliveries.notice_ids,
        &deliveries.channels as &[&str],
        &deliveries.recipients as &[Option<String>],
        &deliveries.keys,
        &deliveries.names,
        &deliveries.roles,
        &deliveries.languages,
        &deliveries.states as &[&str],
        &deliveries.reasons as &[Option<&str>],
        &deliveries.send_bys,
        not_before,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn count(claims: &[Claim], inserted: &HashSet<Uuid>) -> Counts {
    let mut counts = Counts::default();
    for claim in claims {
        if !inserted.contains(&claim.id) {
            counts.already_claimed += 1;
            continue;
        }
        match claim.state {
            NoticeState::Held => {
                counts.claimed += 1;
                counts.held += 1;
            }
            NoticeState::Superseded => counts.superseded += 1,
            NoticeState::Skipped => counts.skipped += 1,
            _ => counts.claimed += 1,
        }
    }
    counts
}
