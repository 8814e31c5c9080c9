//! Copies follow the addresses: what is open for an address that left the permit ends, and the latest owed
//! notice of each class gets a copy for each role that has none yet. So does each one that a person wrote before
//! its due day and that waits for it. A copy that a person asked for goes where that person said.
//!
//! Runs in the transaction of every change, in every scan, when a notice comes back of which a part is sent, and after
//! a settle that ends such a copy unsent.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Authority, Writing,
    insert::{DeliveryColumns, insert_deliveries},
    revive::wake_deliveries,
    supersede::{lock_notices, refresh_states},
};
use crate::{
    domain::{
        copies::{LETTER_KEY, Owed, copies},
        delivery::DeliveryState,
        notice::{NoticeClass, NoticeState, ReasonCode},
        recipient::HOLDER,
    },
    store::{
        Result,
        cases::{Case, Suppressed, lock_deliveries},
        reasons,
    },
};

/// A notice of a present period that may still go, with its copies.
struct Notice {
    id: Uuid,
    permit_id: Uuid,
    class: NoticeClass,
    state: NoticeState,
    due_on: NaiveDate,
    send_by: NaiveDate,
    in_advance: bool,
    held_by_person: bool,
    /// Why it was held when it lost its address.
    held_before: Option<ReasonCode>,
    reason: Option<ReasonCode>,
    copies: Vec<CopyRow>,
}

impl Notice {
    /// Written before its due day, which has not come.
    fn waits(&self, today: NaiveDate) -> bool {
        self.in_advance && self.due_on > today
    }

    /// Why its copies are held, if they are.
    fn hold(&self) -> Option<ReasonCode> {
        if self.held_by_person {
            return Some(ReasonCode::ByPerson);
        }
        let now = (self.state == NoticeState::Held).then(|| self.reason.unwrap_or(ReasonCode::ClaimLimit));
        now.or(self.held_before)
    }
}

struct CopyRow {
    id: Uuid,
    recipient_key: String,
    role: String,
    by_request: bool,
    state: DeliveryState,
}

/// What is to be written.
#[derive(Default)]
struct Work {
    touched: HashSet<Uuid>,
    drop: Vec<Uuid>,
    wake: HashMap<Option<ReasonCode>, Vec<Uuid>>,
    make: DeliveryColumns,
}

/// Makes the open copies of the cases' notices match the permits' present addresses. The schedules must be kept
/// ([`crate::store::permit_types::keep_schedules`]) before the permits are locked: a step that is removed meanwhile
/// would not find the copies that come here.
pub async fn follow_addresses(
    connection: &mut PgConnection,
    authority: &Authority,
    cases: impl IntoIterator<Item = &Case>,
    suppressed: &Suppressed,
    writing: Writing,
) -> Result<()> {
    follow_revived(connection, authority, cases, suppressed, writing, &HashMap::new()).await
}

/// The same in the transaction that revives notices; what is made of one in `holds` is held for that reason.
pub(super) async fn follow_revived(
    connection: &mut PgConnection,
    _: &Authority,
    cases: impl IntoIterator<Item = &Case>,
    suppressed: &Suppressed,
    writing: Writing,
    holds: &HashMap<Uuid, Option<ReasonCode>>,
) -> Result<()> {
    let by_permit: HashMap<Uuid, &Case> = cases.into_iter().map(|case| (case.permit_id, case)).collect();
    if by_permit.is_empty() {
        return Ok(());
    }
    let permits: Vec<Uuid> = by_permit.keys().copied().collect();
    let ids = notices_that_may_go(connection, &permits, writing.moment.today).await?;
    if ids.is_empty() {
        return Ok(());
    }
    lock_notices(connection, &ids).await?;
    lock_deliveries(connection, &ids).await?;
    let mut notices = read_notices(connection, &ids).await?;
    for notice in &mut notices {
        notice.held_before = notice.held_before.or(holds.get(&notice.id).copied().flatten());
    }
    let latest = latest_of_class(&notices, writing.moment.today);
    let doubted = writing.hold.filter(|reason| *reason == ReasonCode::MemoryWentBack);
    let mut work = Work::default();
    for notice in &notices {
        if let Some(case) = by_permit.get(&notice.permit_id) {
            plan(notice, case, suppressed, latest.contains(&notice.id), doubted, &mut work);
        }
    }
    let touched: Vec<Uuid> = work.touched.into_iter().collect();
    drop_copies(connection, &work.drop, writing.moment.now).await?;
    for (hold, copies) in &work.wake {
        wake_deliveries(connection, copies, *hold, writing).await?;
    }
    insert_deliveries(connection, work.make, writing.moment.now, writing.not_before).await?;
    let early: Vec<Uuid> =
        notices.iter().filter(|n| n.waits(writing.moment.today) && touched.contains(&n.id)).map(|n| n.id).collect();
    wait_together(connection, &early).await?;
    refresh_states(connection, &touched).await?;
    let why: Vec<_> = notices
        .iter()
        .filter(|notice| touched.contains(&notice.id))
        .filter_map(|notice| Some((notice.id, notice.held_before.or(doubted)?)))
        .collect();
    reasons::explain(connection, &why).await
}

/// Decides for one notice which copies end, come back or are made.
///
/// `doubted`: the memory went back, and whatever would be made may have been sent.
fn plan(
    notice: &Notice,
    case: &Case,
    suppressed: &Suppressed,
    is_latest: bool,
    doubted: Option<ReasonCode>,
    work: &mut Work,
) {
    let owed = copies(notice.class, &case.recipients, |r| suppressed.forbids(notice.class, &r.address));
    let keys: HashSet<String> = owed.iter().map(Owed::recipient_key).collect();
    let is_open = |copy: &CopyRow| matches!(copy.state, DeliveryState::Pending | DeliveryState::Held);
    let on_permit: HashSet<String> = case.recipients.iter().map(|r| r.address.key()).collect();
    let leaves = |copy: &CopyRow| {
        let stays = if copy.recipient_key == LETTER_KEY {
            keys.contains(LETTER_KEY)
        } else {
            on_permit.contains(&copy.recipient_key)
        };
        is_open(copy) && !stays && !copy.by_request
    };
    for copy in notice.copies.iter().filter(|copy| leaves(copy)) {
        work.drop.push(copy.id);
        work.touched.insert(notice.id);
    }
    if !is_latest {
        return;
    }
    let served = |copy: &&CopyRow| {
        use DeliveryState as S;
        matches!(copy.state, S::Pending | S::Held | S::Sending | S::Sent | S::Ambiguous) && !leaves(copy)
    };
    // A copy serves its own address first; one to an address that is no more its role's serves whoever has the role now.
    let mailable: HashSet<String> =
        owed.iter().filter(|copy| !matches!(copy, Owed::Suppressed(_))).map(Owed::recipient_key).collect();
    let (own, former): (Vec<&CopyRow>, Vec<&CopyRow>) =
        notice.copies.iter().filter(served).partition(|copy| mailable.contains(&copy.recipient_key));
    let own: HashSet<&str> = own.into_iter().map(|copy| copy.recipient_key.as_str()).collect();
    let mut former: Vec<&str> = former.into_iter().map(|copy| copy.role.as_str()).collect();
    let hold = notice.hold().or(doubted);
    for copy in &owed {
        let key = copy.recipient_key();
        let old = notice.copies.iter().filter(|c| c.recipient_key == key).max_by_key(|c| c.id);
        if own.contains(key.as_str()) {
            continue;
        }
        let copy = match copy {
            Owed::Suppressed(_) if old.is_some() => continue,
            Owed::Suppressed(_) => *copy,
            Owed::Mail(_) | Owed::Letter => match unserved(*copy, notice, case, &mut former) {
                Some(copy) => copy,
                None => continue,
            },
        };
        match old {
            Some(old) if matches!(old.state, DeliveryState::Superseded | DeliveryState::Suppressed) => {
                work.wake.entry(hold).or_default().push(old.id);
            }
            // It was refused, cancelled or has bounced there: that is for a person to retry.
            Some(_) => continue,
            None => work.make.push(notice.id, notice.send_by, &copy, hold),
        }
        work.touched.insert(notice.id);
    }
}

/// The copy for the first of those who have its address and who are not served under a former one. Whoever shares it with
/// another had a copy of their own, or else that of the other was theirs too. Takes out of `former`, the roles that were
/// served so, those that are found.
fn unserved<'c>(copy: Owed<'c>, notice: &Notice, case: &'c Case, former: &mut Vec<&str>) -> Option<Owed<'c>> {
    let mut is_served =
        |role: &str| former.iter().position(|of| *of == role).map(|of| former.swap_remove(of)).is_some();
    let Owed::Mail(first) = copy else { return (!is_served(HOLDER)).then_some(copy) };
    let key = first.address.key();
    let all = case.recipients.iter().filter(|one| one.address.key() == key);
    let mut waiting = all
        .filter(|one| !is_served(&one.role))
        .filter(|one| std::ptr::eq(*one, first) || notice.copies.iter().any(|copy| copy.role == one.role));
    let next = waiting.next();
    waiting.for_each(drop);
    next.map(Owed::Mail)
}

/// For each permit and class the notice that is due latest, and every one that waits for its day.
fn latest_of_class(notices: &[Notice], today: NaiveDate) -> HashSet<Uuid> {
    let mut latest: HashMap<(Uuid, NoticeClass), &Notice> = HashMap::new();
    for notice in notices.iter().filter(|notice| !notice.waits(today)) {
        let present = latest.entry((notice.permit_id, notice.class)).or_insert(notice);
        if (notice.due_on, notice.id) > (present.due_on, present.id) {
            *present = notice;
        }
    }
    let waiting = notices.iter().filter(|notice| notice.waits(today));
    latest.into_values().chain(waiting).map(|notice| notice.id).collect()
}

async fn notices_that_may_go(connection: &mut PgConnection, permits: &[Uuid], today: NaiveDate) -> Result<Vec<Uuid>> {
    let ids = sqlx::query_scalar!(
        "SELECT n.id FROM notices n JOIN permits p ON p.id = n.permit_id AND p.expires_on = n.expires_on
         WHERE n.permit_id = ANY ($1) AND n.superseded_at IS NULL AND n.purged_at IS NULL AND n.send_by >= $2
           AND n.state IN ('pending', 'held', 'ambiguous', 'sent', 'failed', 'superseded')
           AND p.status = 'active' AND p.archived_at IS NULL
           AND (p.notices_paused_until IS NULL OR p.notices_paused_until < $2)
           AND EXISTS (SELECT FROM schedule_steps s
                       WHERE s.permit_type = p.permit_type AND s.notice_type = n.notice_type AND s.enabled)",
        permits,
        today,
    );
    Ok(ids.fetch_all(connection).await?)
}

async fn read_notices(connection: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Notice>> {
    let rows = sqlx::query!(
        "SELECT n.id, n.permit_id, n.class, n.state, n.due_on, n.send_by, n.in_advance,
                n.held_reason IS NOT NULL AS \"held_by_person!\", n.held_before, n.reason_code, d.id AS delivery_id, d.recipient_key, d.role,
                d.by_request, d.state AS delivery_state
         FROM notices n JOIN deliveries d ON d.notice_id = n.id
         WHERE n.id = ANY ($1) AND n.superseded_at IS NULL
           AND n.state IN ('pending', 'held', 'ambiguous', 'sent', 'failed', 'superseded')
         ORDER BY n.id, d.id",
        ids,
    )
    .fetch_all(connection)
    .await?;
    let mut notices: Vec<Notice> = Vec::new();
    for row in rows {
        let copy = CopyRow {
            id: row.delivery_id,
            recipient_key: row.recipient_key,
            role: row.role,
            by_request: row.by_request,
            state: row.delivery_state.parse()?,
        };
        match notices.last_mut() {
            Some(notice) if notice.id == row.id => notice.copies.push(copy),
            _ => notices.push(Notice {
                id: row.id,
                permit_id: row.permit_id,
                class: row.class.parse()?,
                state: row.state.parse()?,
                due_on: row.due_on,
                send_by: row.send_by,
                in_advance: row.in_advance,
                held_by_person: row.held_by_person,
                held_before: row.held_before.as_deref().map(str::parse).transpose()?,
                reason: row.reason_code.as_deref().map(str::parse).transpose()?,
                copies: vec![copy],
            }),
        }
    }
    Ok(notices)
}

async fn drop_copies(connection: &mut PgConnection, deliveries: &[Uuid], now: DateTime<Utc>) -> Result<()> {
    sqlx::query!(
        "UPDATE deliveries SET state = 'superseded', reason_code = 'address_changed', lease_token = NULL,
                lease_owner = NULL, updated_at = $2
         WHERE id = ANY ($1) AND state IN ('pending', 'held')",
        deliveries,
        now,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Lets new copies of notices that wait for their day wait as long as the others do.
async fn wait_together(connection: &mut PgConnection, notices: &[Uuid]) -> Result<()> {
    if notices.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "UPDATE deliveries d SET next_attempt_at = waits.until
         FROM (SELECT notice_id, max(next_attempt_at) AS until FROM deliveries
               WHERE notice_id = ANY ($1) GROUP BY notice_id) AS waits
         WHERE d.notice_id = waits.notice_id AND d.state = 'pending' AND d.next_attempt_at < waits.until",
        notices,
    )
    .execute(connection)
    .await?;
    Ok(())
}
