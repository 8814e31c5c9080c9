//! Releasing or cancelling all that the brake of one scan or import held, or that is held because the memory went
//! back, in batches, each a transaction of its own.

use std::collections::HashSet;

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{ActionRules, open::lock, release::release_locked, words};
use crate::{
    domain::{delivery::DeliveryState, notice::ReasonCode},
    store::{
        Result, StoreError,
        claims::{cancel_former_copies, refresh_states},
        memory,
        office_log::{self, Deed, Subject},
        permit_types::{Schedules, keep_schedules},
        scans::notify_dispatchers,
    },
};

/// Notices released in one transaction.
const BATCH: i64 = 500;
/// How often a batch is tried again when others were in its way.
const TRIES: usize = 3;

/// Whose held notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// A scan's.
    Scan(Uuid),
    /// An import's.
    Import(Uuid),
    /// All that is held because the memory went back, whoever recorded it.
    Restored,
}

impl HeldBy {
    /// Which scan, and which import.
    pub(in crate::store) fn ids(self) -> (Option<Uuid>, Option<Uuid>) {
        match self {
            Self::Scan(id) => (Some(id), None),
            Self::Import(id) => (None, Some(id)),
            Self::Restored => (None, None),
        }
    }
}

/// What became of what was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Released {
    /// Made pending; with `cancel` letters that wait for a person again.
    pub released: u64,
    /// No longer owed.
    pub superseded: u64,
    /// Past their last day.
    pub skipped: u64,
    /// Cancelled, as was asked.
    pub cancelled: u64,
}

impl Released {
    /// How many notices that is together.
    pub fn total(&self) -> u64 {
        self.released + self.superseded + self.skipped + self.cancelled
    }
}

/// How far a release is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseProgress {
    /// Notices done.
    pub done: u64,
    /// Notices that were held when it began.
    pub total: u64,
}

/// Releases (or with `cancel` cancels) every notice that the brake or the memory guard holds for that, and tells
/// `progress` after each batch. What a person holds stays held. Interrupted, it can be run again: what is done is
/// done. Every batch is recorded as done `by` somebody. A scan that still runs is refused as [`StoreError::WrongState`].
pub async fn release_held(
    connection: &mut PgConnection,
    held_by: HeldBy,
    cancel: bool,
    reason: &str,
    by: &str,
    rules: &ActionRules<'_>,
    mut progress: impl FnMut(ReleaseProgress) + Send,
) -> Result<Released> {
    let label = check(connection, held_by).await?;
    let settling = Settling { held_by, label: &label, cancel, reason: words::reason(reason)?, by };
    let total = count_held(connection, held_by).await?;
    let mut done = Released::default();
    let mut after = (Uuid::nil(), Uuid::nil());
    loop {
        let batch = next(connection, held_by, after).await?;
        let Some(last) = batch.last() else { return Ok(done) };
        after = *last;
        let notices: Vec<Uuid> = batch.iter().map(|(_, notice)| *notice).collect();
        let counts = release_batch(connection, &notices, settling, rules).await?;
        done.released += counts.released;
        done.superseded += counts.superseded;
        done.skipped += counts.skipped;
        done.cancelled += counts.cancelled;
        progress(ReleaseProgress { done: done.total(), total });
    }
}

/// What is to be done with what is held, and what the audit says about it.
#[derive(Debug, Clone, Copy)]
struct Settling<'s> {
    held_by: HeldBy,
    label: &'s str,
    cancel: bool,
    reason: &'s str,
    by: &'s str,
}

impl<'s> Settling<'s> {
    /// One line for each batch, in its transaction.
    fn deed(self, done: Released) -> Deed<'s> {
        let (subject, subject_id) = match self.held_by {
            HeldBy::Scan(id) => (Subject::Scan, Some(id)),
            HeldBy::Import(id) => (Subject::Import, Some(id)),
            HeldBy::Restored => (Subject::Notice, None),
        };
        let counts = [
            ("released", done.released),
            ("superseded", done.superseded),
            ("skipped", done.skipped),
            ("cancelled", done.cancelled),
        ];
        let mut after: serde_json::Map<String, serde_json::Value> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| ((*what).into(), (*count).into()))
            .collect();
        after.insert("reason".to_owned(), self.reason.into());
        Deed {
            by: self.by,
            action: if self.cancel { "cancelled-held" } else { "released-held" },
            subject,
            subject_id,
            label: self.label,
            before: None,
            after: Some(after.into()),
        }
    }
}

/// Whether that can be settled; says what people call it.
async fn check(connection: &mut PgConnection, held_by: HeldBy) -> Result<String> {
    Ok(match held_by {
        HeldBy::Scan(id) => {
            let scan = sqlx::query!("SELECT outcome, as_of FROM scans WHERE id = $1", id)
                .fetch_optional(connection)
                .await?
                .ok_or(StoreError::NotFound("scan"))?;
            if scan.outcome == "running" {
                return Err(StoreError::wrong_state("running", "the scan is running; wait for its end"));
            }
            format!("scan for {}", scan.as_of)
        }
        HeldBy::Import(id) => sqlx::query_scalar!("SELECT file_name FROM imports WHERE id = $1", id)
            .fetch_optional(connection)
            .await?
            .ok_or(StoreError::NotFound("import"))?,
        HeldBy::Restored if memory::went_back(connection).await? => {
            let why = "the database may have forgotten what it sent, and more will be held; first confirm with \
                       permit-notifier resume --reason TEXT";
            return Err(StoreError::wrong_state("memory_went_back", why));
        }
        HeldBy::Restored => "what was held because the memory went back".to_owned(),
    })
}

/// How many notices are held for that; what a person holds is not counted.
pub async fn count_held(connection: &mut PgConnection, held_by: HeldBy) -> Result<u64> {
    let (scan, import) = held_by.ids();
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM notices
           WHERE state = 'held' AND (scan_id = $1 OR import_id = $2 OR $3)
             AND (reason_code = 'memory_went_back' OR reason_code = 'claim_limit' AND NOT $3)"#,
        scan,
        import,
        held_by == HeldBy::Restored,
    );
    Ok(count.fetch_one(connection).await?.unsigned_abs())
}

/// The next held notices in order of permit and notice, as (permit, notice).
async fn next(connection: &mut PgConnection, held_by: HeldBy, after: (Uuid, Uuid)) -> Result<Vec<(Uuid, Uuid)>> {
    let (scan, import) = held_by.ids();
    let rows = sqlx::query!(
        "SELECT permit_id, id FROM notices
         WHERE state = 'held' AND (scan_id = $1 OR import_id = $2 OR $6)
           AND (reason_code = 'memory_went_back' OR reason_code = 'claim_limit' AND NOT $6)
           AND (permit_id, id) > ($3, $4)
         ORDER BY permit_id, id LIMIT $5",
        scan,
        import,
        after.0,
        after.1,
        BATCH,
        held_by == HeldBy::Restored,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.permit_id, row.id)).collect())
}

async fn release_batch(
    connection: &mut PgConnection,
    notices: &[Uuid],
    settling: Settling<'_>,
    rules: &ActionRules<'_>,
) -> Result<Released> {
    let mut tries = 1;
    loop {
        match try_batch(connection, notices, settling, rules).await {
            Err(error) if error.is_transient() && tries < TRIES => tries += 1,
            result => return result,
        }
    }
}

async fn try_batch(
    connection: &mut PgConnection,
    notices: &[Uuid],
    settling: Settling<'_>,
    rules: &ActionRules<'_>,
) -> Result<Released> {
    let mut transaction = connection.begin().await?;
    let schedules: Schedules = keep_schedules(&mut transaction).await?;
    let permits = lock(&mut transaction, notices).await?;
    // A change, a scan or somebody else may have come first.
    let held: HashSet<Uuid> = sqlx::query_scalar!(
        "SELECT id FROM notices WHERE id = ANY ($1) AND state = 'held' AND reason_code IN ('claim_limit', 'memory_went_back')",
        notices,
    )
    .fetch_all(&mut *transaction)
    .await?
    .into_iter()
    .collect();
    let ids: Vec<Uuid> = held.iter().copied().collect();
    let released = if settling.cancel {
        cancel_locked(&mut transaction, &ids, settling.reason, rules).await?
    } else {
        release_locked(&mut transaction, &permits, &held, &schedules, Some(settling.reason), rules).await?;
        outcome(&mut transaction, &ids).await?
    };
    if released.total() > 0 {
        office_log::record(&mut *transaction, settling.deed(released), rules.moment.now).await?;
    }
    if released.released > 0 {
        notify_dispatchers(&mut transaction).await?;
    }
    transaction.commit().await?;
    Ok(released)
}

/// Ends what is held. A letter that is held because the memory went back waits for a person again instead: nothing posts
/// it by itself, and it may be the only way in which the law is kept.
async fn cancel_locked(
    connection: &mut PgConnection,
    notices: &[Uuid],
    reason: &str,
    rules: &ActionRules<'_>,
) -> Result<Released> {
    debug_assert!(DeliveryState::Held.may_become(DeliveryState::Cancelled));
    sqlx::query!(
        "UPDATE deliveries SET state = 'pending', reason_code = NULL, updated_at = $3
         WHERE notice_id = ANY ($1) AND state = 'held' AND channel = 'letter' AND reason_code = $2",
        notices,
        ReasonCode::MemoryWentBack.as_str(),
        rules.moment.now,
    )
    .execute(&mut *connection)
    .await?;
    let mut cancelled = sqlx::query_scalar!(
        "UPDATE deliveries SET state = 'cancelled', reason_code = $2, updated_at = $3
         WHERE notice_id = ANY ($1) AND state = 'held' RETURNING notice_id",
        notices,
        ReasonCode::ByPerson.as_str(),
        rules.moment.now,
    )
    .fetch_all(&mut *connection)
    .await?;
    cancelled.sort_unstable();
    cancelled.dedup();
    cancel_former_copies(connection, &cancelled, rules.moment.now).await?;
    sqlx::query!(
        "UPDATE notices SET reason_code = $2, reason = $3 WHERE id = ANY ($1)",
        &cancelled,
        ReasonCode::ByPerson.as_str(),
        reason,
    )
    .execute(&mut *connection)
    .await?;
    refresh_states(connection, notices).await?;
    let released = (notices.len() - cancelled.len()) as u64;
    Ok(Released { released, cancelled: cancelled.len() as u64, ..Released::default() })
}

/// What became of the notices of a batch that was released.
async fn outcome(connection: &mut PgConnection, notices: &[Uuid]) -> Result<Released> {
    let row = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE state = 'superseded') AS "superseded!",
                  count(*) FILTER (WHERE state = 'skipped') AS "skipped!", count(*) AS "all!"
           FROM notices WHERE id = ANY ($1)"#,
        notices,
    )
    .fetch_one(connection)
    .await?;
    Ok(Released {
        released: (row.all - row.superseded - row.skipped).unsigned_abs(),
        superseded: row.superseded.unsigned_abs(),
        skipped: row.skipped.unsigned_abs(),
        cancelled: 0,
    })
}
