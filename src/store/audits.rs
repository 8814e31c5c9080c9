//! Comparing a ledger of what a mail server accepted with what is recorded here.
//!
//! 1. A transaction keeps what was recorded when it began, before the ledger is read: so a message that is accepted
//!    while the ledger is being read is not missed in it.
//! 2. The ledger's lines are staged in that transaction, in batches, and the messages are put together there, so
//!    that the memory of this process does not grow with the ledger.
//! 3. What is recorded here and missing there is asked of that transaction. What is accepted there and not recorded
//!    here is asked again of a second connection, which sees what has been recorded since.
//! 4. The transaction is rolled back: nothing of the ledger stays.

use futures_util::TryStreamExt;
use sqlx::{Connection, PgConnection, Postgres, Transaction};

use super::Result;

/// Suspects asked again at once.
const SUSPECTS: usize = 500;

/// What one line of a ledger says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLine {
    /// Number of the line, from 1.
    pub line: i64,
    /// Queue id of a mail server's log, if the line has one.
    pub queue_id: Option<String>,
    /// Message-ID with its brackets, if the line names it.
    pub message_id: Option<String>,
    /// The line says that the message was accepted.
    pub accepted: bool,
}

/// Something that an audit found. Every Message-ID has its brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Accepted there, and no delivery here bears the Message-ID.
    Unknown {
        /// The message.
        message_id: String,
        /// Where the ledger names it first.
        line: i64,
    },
    /// Accepted there, and here no attempt is open, accepted, or ambiguous and not resolved as not delivered.
    NotAccepted {
        /// The message.
        message_id: String,
        /// Where the ledger names it first.
        line: i64,
        /// The notice.
        notice_key: String,
        /// The delivery's state here.
        state: String,
    },
    /// Accepted there more than once.
    Twice {
        /// The message.
        message_id: String,
        /// Where the ledger names it first.
        line: i64,
        /// How often.
        times: i64,
    },
    /// Accepted here, or resolved as delivered, and missing in the ledger.
    Missing {
        /// The message.
        message_id: String,
        /// The notice.
        notice_key: String,
        /// What carried it here.
        transport: String,
    },
    /// An ambiguous attempt that nobody has resolved: no difference.
    Unresolved {
        /// The message.
        message_id: String,
        /// The notice.
        notice_key: String,
        /// Whether the ledger says that it was accepted.
        in_ledger: bool,
    },
}

impl Finding {
    /// Whether ledger and database disagree about it.
    pub fn is_difference(&self) -> bool {
        !matches!(self, Self::Unresolved { .. })
    }
}

/// An audit that is reading its ledger.
#[derive(Debug)]
pub struct Audit<'c> {
    transaction: Transaction<'c, Postgres>,
}

impl<'c> Audit<'c> {
    /// Begins: what is recorded now is what the ledger must have.
    pub async fn begin(connection: &'c mut PgConnection) -> Result<Self> {
        let mut transaction = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
        // The first query, not BEGIN, fixes what the transaction sees.
        sqlx::query!(r#"SELECT 1 AS "one!""#).fetch_one(&mut *transaction).await?;
        Ok(Self { transaction })
    }

    /// Stages some lines.
    pub async fn stage(&mut self, lines: &[LedgerLine]) -> Result<()> {
        sqlx::query!(
            "INSERT INTO audit_lines (line, queue_id, message_id, accepted)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bool[])",
            &lines.iter().map(|line| line.line).collect::<Vec<_>>(),
            &lines.iter().map(|line| line.queue_id.clone()).collect::<Vec<_>>() as &[Option<String>],
            &lines.iter().map(|line| line.message_id.clone()).collect::<Vec<_>>() as &[Option<String>],
            &lines.iter().map(|line| line.accepted).collect::<Vec<_>>(),
        )
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }

    /// Compares, tells each finding, and ends. `present` is another connection. Says how many messages the ledger
    /// has.
    pub async fn compare(mut self, present: &mut PgConnection, mut tell: impl FnMut(Finding) + Send) -> Result<u64> {
        let messages = gather(&mut self.transaction).await?;
        find_twice(&mut self.transaction, &mut tell).await?;
        find_unrecorded(&mut self.transaction, present, &mut tell).await?;
        find_missing(&mut self.transaction, &mut tell).await?;
        find_unresolved(&mut self.transaction, &mut tell).await?;
        self.transaction.rollback().await?;
        Ok(messages)
    }
}

/// Puts the lines together: a queue id means the message that it was last given to, for mail servers use them again;
/// what one queue id delivered to several is one message.
async fn gather(connection: &mut PgConnection) -> Result<u64> {
    let gathered = sqlx::query!(
        "INSERT INTO audit_messages (message_id, times, first_line)
         SELECT message_id, count(*) FILTER (WHERE accepted), min(line)
         FROM (SELECT max(message_id) AS message_id, bool_or(accepted) AS accepted, min(line) AS line,
                      bool_or(named_at <> line) AS has_fate
               FROM (SELECT line, message_id, accepted, queue_id,
                            max(line) FILTER (WHERE message_id IS NOT NULL)
                                OVER (PARTITION BY queue_id ORDER BY line) AS named_at
                     FROM audit_lines WHERE queue_id IS NOT NULL) AS lines
               WHERE named_at IS NOT NULL
               GROUP BY queue_id, named_at
               UNION ALL
               SELECT message_id, accepted, line, true FROM audit_lines WHERE queue_id IS NULL) AS messages
         WHERE has_fate
         GROUP BY message_id"
    )
    .execute(&mut *connection)
    .await?;
    // The planner knows nothing of rows that were written a moment ago.
    sqlx::query!("ANALYZE audit_messages").execute(connection).await?;
    Ok(gathered.rows_affected())
}

async fn find_twice(connection: &mut PgConnection, tell: &mut (impl FnMut(Finding) + Send)) -> Result<()> {
    let mut rows =
        sqlx::query!("SELECT message_id, first_line, times FROM audit_messages WHERE times > 1 ORDER BY first_line")
            .fetch(connection);
    while let Some(row) = rows.try_next().await? {
        tell(Finding::Twice { message_id: row.message_id, line: row.first_line, times: row.times });
    }
    Ok(())
}

/// What was accepted there and has no effective attempt here, now.
async fn find_unrecorded(
    connection: &mut PgConnection,
    present: &mut PgConnection,
    tell: &mut (impl FnMut(Finding) + Send),
) -> Result<()> {
    let mut rows = sqlx::query!(
        "SELECT m.message_id, m.first_line FROM audit_messages m
         WHERE m.times > 0 AND NOT EXISTS (
             SELECT FROM deliveries d JOIN attempts a ON a.delivery_id = d.id
             WHERE d.message_id = m.message_id
               AND (a.outcome IN ('sending', 'accepted')
                    OR (a.outcome = 'ambiguous' AND a.resolution IS DISTINCT FROM 'not_delivered')))
         ORDER BY m.first_line"
    )
    .fetch(connection)
    .try_chunks(SUSPECTS);
    loop {
        let suspects = match rows.try_next().await {
            Ok(Some(suspects)) => suspects,
            Ok(None) => return Ok(()),
            Err(error) => return Err(error.1.into()),
        };
        let suspects: Vec<(String, i64)> = suspects.into_iter().map(|row| (row.message_id, row.first_line)).collect();
        for finding in ask_again(present, &suspects).await? {
            tell(finding);
        }
    }
}

async fn ask_again(present: &mut PgConnection, suspects: &[(String, i64)]) -> Result<Vec<Finding>> {
    let rows = sqlx::query!(
        r#"SELECT m.message_id AS "message_id!", m.line AS "line!", d.state AS "state?", n.notice_key AS "notice_key?"
           FROM unnest($1::text[], $2::bigint[]) AS m (message_id, line)
           LEFT JOIN deliveries d ON d.message_id = m.message_id
           LEFT JOIN notices n ON n.id = d.notice_id
           WHERE NOT EXISTS (
               SELECT FROM deliveries e JOIN attempts a ON a.delivery_id = e.id
               WHERE e.message_id = m.message_id
                 AND (a.outcome IN ('sending', 'accepted')
                      OR (a.outcome = 'ambiguous' AND a.resolution IS DISTINCT FROM 'not_delivered')))
           ORDER BY m.line"#,
        &suspects.iter().map(|(message_id, _)| message_id.clone()).collect::<Vec<_>>(),
        &suspects.iter().map(|(_, line)| *line).collect::<Vec<_>>(),
    )
    .fetch_all(present)
    .await?;
    let findings = rows.into_iter().map(|row| match (row.state, row.notice_key) {
        (Some(state), Some(notice_key)) => {
            Finding::NotAccepted { message_id: row.message_id, line: row.line, notice_key, state }
        }
        _ => Finding::Unknown { message_id: row.message_id, line: row.line },
    });
    Ok(findings.collect())
}

/// What was accepted here, or resolved as delivered, and is not in the ledger. A letter never is.
async fn find_missing(connection: &mut PgConnection, tell: &mut (impl FnMut(Finding) + Send)) -> Result<()> {
    let mut rows = sqlx::query!(
        r#"SELECT d.message_id AS "message_id!", a.notice_key, a.transport
           FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
           LEFT JOIN audit_messages m ON m.message_id = d.message_id
           WHERE (a.outcome = 'accepted' OR a.resolution = 'delivered') AND a.transport <> 'letter'
             AND d.message_id IS NOT NULL AND m.message_id IS NULL
           ORDER BY a.finished_at, a.id"#
    )
    .fetch(connection);
    while let Some(row) = rows.try_next().await? {
        tell(Finding::Missing { message_id: row.message_id, notice_key: row.notice_key, transport: row.transport });
    }
    Ok(())
}

async fn find_unresolved(connection: &mut PgConnection, tell: &mut (impl FnMut(Finding) + Send)) -> Result<()> {
    let mut rows = sqlx::query!(
        r#"SELECT d.message_id AS "message_id!", a.notice_key, coalesce(m.times, 0) > 0 AS "in_ledger!"
           FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
           LEFT JOIN audit_messages m ON m.message_id = d.message_id
           WHERE a.outcome = 'ambiguous' AND a.resolution IS NULL AND d.message_id IS NOT NULL
           ORDER BY a.finished_at, a.id"#
    )
    .fetch(connection);
    while let Some(row) = rows.try_next().await? {
        tell(Finding::Unresolved { message_id: row.message_id, notice_key: row.notice_key, in_ledger: row.in_ledger });
    }
    Ok(())
}
