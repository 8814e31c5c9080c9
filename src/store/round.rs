//! A round: the ends of some messages and the gates of others in one transaction, so that a sender whose next message
//! is offered already pays one commit for both.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::{
    Moment, Result,
    connect::{Purpose, connect},
    gate::{GateAnswer, GateRequest, look, open_in},
    settle::{Settled, Settlement, settle_in},
};

/// What one sender hands in: how its last message ended, and the next that wants to begin.
#[derive(Debug, Default)]
pub struct Paper {
    /// How a message ended.
    pub settlement: Option<Settlement>,
    /// Who wants to begin; not before the settlement is written.
    pub request: Option<GateRequest>,
}

/// What came of one paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handled {
    /// What the settlement made; `None`: somebody else is at it just now, settle it again.
    pub settled: Option<Settled>,
    /// What the gate says.
    pub answer: Option<GateAnswer>,
}

/// Longest time for one round, which waits for nobody: a connection that says nothing for so long is dead.
const LIMIT: Duration = Duration::from_secs(20);
/// A connection that was idle for so long is asked whether it is still there.
const IDLE: Duration = Duration::from_secs(1);

/// The connection on which rounds are gone, opened when first needed and after each failure.
#[derive(Debug)]
pub struct RoundConnection {
    url: String,
    open: Option<PgConnection>,
    used: Instant,
}

impl RoundConnection {
    /// To the database at `url`; opens nothing yet.
    pub fn new(url: String) -> Self {
        Self { url, open: None, used: Instant::now() }
    }

    /// Settles first and opens gates then: a fault of the transport that is settled here shuts the gates.
    pub async fn go_round(
        &mut self,
        boot_id: Uuid,
        papers: &[Paper],
        max_attempts: u32,
        moment_at: impl Fn(DateTime<Utc>) -> Moment,
    ) -> Result<Vec<Handled>> {
        // Kept only if nothing went wrong: after an error nobody knows what it would say next.
        let mut connection = self.ready().await?;
        let went = timeout(LIMIT, go_round(&mut connection, boot_id, papers, max_attempts, moment_at)).await;
        let handled = went.map_err(|_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))??;
        (self.open, self.used) = (Some(connection), Instant::now());
        Ok(handled)
    }

    async fn ready(&mut self) -> Result<PgConnection> {
        if let Some(mut connection) = self.open.take() {
            let is_there = self.used.elapsed() < IDLE || matches!(timeout(IDLE, connection.ping()).await, Ok(Ok(())));
            if is_there {
                return Ok(connection);
            }
        }
        Ok(connect(&self.url, Purpose::Rounds).await?)
    }
}

/// One round in one transaction.
pub async fn go_round(
    connection: &mut PgConnection,
    boot_id: Uuid,
    papers: &[Paper],
    max_attempts: u32,
    moment_at: impl Fn(DateTime<Utc>) -> Moment,
) -> Result<Vec<Handled>> {
    let mut transaction = connection.begin().await?;
    let mut common = look(&mut transaction, boot_id).await?;
    let moment = moment_at(common.now);
    let settlements: Vec<&Settlement> = papers.iter().filter_map(|paper| paper.settlement.as_ref()).collect();
    let news = common.acceptance_is_news;
    let mut settled = settle_in(&mut transaction, &settlements, max_attempts, news, moment.now).await?.into_iter();
    if settlements.iter().any(|settlement| settlement.transport_fault) {
        // The breaker is open from now on, if it was not, and whoever held its probe has lost it.
        common.breaker = Some(Uuid::nil());
    }
    let mut handled: Vec<Handled> = papers
        .iter()
        .map(|paper| Handled {
            settled: paper.settlement.as_ref().and_then(|_| settled.next().flatten()),
            answer: paper.request.as_ref().map(|_| GateAnswer::Busy),
        })
        .collect();
    let may_ask = |paper: &Paper, result: &Handled| paper.settlement.is_none() || result.settled.is_some();
    let asking: Vec<usize> = (0..papers.len()).filter(|i| may_ask(&papers[*i], &handled[*i])).collect();
    let requests: Vec<&GateRequest> = asking.iter().filter_map(|i| papers[*i].request.as_ref()).collect();
    let answers = open_in(&mut transaction, boot_id, &common, &requests, moment).await?;
    transaction.commit().await?;
    let asked = asking.into_iter().filter(|i| papers[*i].request.is_some());
    for (place, answer) in asked.zip(answers) {
        handled[place].answer = Some(answer);
    }
    Ok(handled)
}
