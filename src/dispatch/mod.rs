//! Sending what was claimed, on every replica at once.
//!
//! A message goes through these steps, and each is recorded before the next begins:
//!
//! 1. `feeder` leases due deliveries in batches; the state stays `pending`.
//! 2. `sender` composes the message (`letter`) from the permit as it is now and offers its envelope to the transport.
//! 3. The gate (`clerk`, [`crate::store::gate`]) looks once more and records the attempt as `sending`.
//! 4. `sender` transmits; the transport takes its final step only while this process is surely alive.
//! 5. Settling (`clerk`, [`crate::store::settle`]) records the outcome; `ending` is for what ends otherwise.
//!
//! Where the transport can take it, step 2 of the next message travels with step 4 of this one, and step 3 of the
//! next one with step 5 of this one ([`crate::store::round`]).
//!
//! Whatever dies in between is taken over: before the gate it is sent again, after it nobody can know, and the
//! attempt is ambiguous.

mod clerk;
mod ending;
mod feeder;
mod finish;
mod judgement;
mod letter;
mod membership;
mod memory;
mod sender;
mod service;
mod tally;
mod transport;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

pub use letter::preview;
pub use membership::{Member, Membership};
pub use service::Dispatcher;
pub use tally::{Report, Tally};
pub use transport::{TransportReport, TransportState};

use crate::{
    clock::Clock,
    config::{AmbiguousPolicy, MailAllowlist},
    domain::{calendar::day_in, window::SendWindow},
    mail::{Mailer, Office},
    store::{Moment, PgPool, Result, actions::ActionRules, clock::database_now},
};

/// What every dispatch of this process goes by.
#[derive(Debug, Clone)]
pub struct DispatchRules {
    /// Connections for leasing, gate and settling.
    pub pool: PgPool,
    /// Where connections of our own are opened.
    pub direct_url: String,
    /// Turns the database's time into business time.
    pub clock: Arc<dyn Clock>,
    /// The office's zone.
    pub zone: Tz,
    /// When mail may go.
    pub window: Option<SendWindow>,
    /// Whose mail it is.
    pub office: Arc<Office>,
    /// What carries it.
    pub mailer: Arc<dyn Mailer>,
    /// Senders of this process.
    pub concurrency: usize,
    /// Attempts that a delivery may use up.
    pub max_attempts: u32,
    /// How long a process may go without renewing its row.
    pub lease: Duration,
    /// The day that counts as today, if it is not the business day.
    pub as_of: Option<NaiveDate>,
    /// Most messages a second over all replicas; 0 for no limit.
    pub rate: u32,
    /// Outside production: the only addresses that are mailed.
    pub allowlist: Option<MailAllowlist>,
    /// What becomes of attempts that nobody resolves.
    pub policy: AmbiguousPolicy,
}

impl DispatchRules {
    /// What counts as now and today, by the database's clock.
    async fn moment(&self) -> Result<Moment> {
        Ok(self.moment_at(database_now(&self.pool).await?))
    }

    /// What counts as now and today when the database's clock says `database`.
    fn moment_at(&self, database: DateTime<Utc>) -> Moment {
        let now = self.clock.business(database);
        Moment { now, today: self.as_of.unwrap_or_else(|| day_in(now, self.zone)) }
    }

    fn action_rules(&self, moment: Moment) -> ActionRules<'_> {
        ActionRules { moment, window: self.window.as_ref(), zone: self.zone }
    }

    /// Whether mail may go at that moment.
    fn window_is_open(&self, moment: Moment) -> bool {
        let local = moment.now.with_timezone(&self.zone).naive_local();
        let local = moment.today.and_time(local.time());
        self.window.as_ref().is_none_or(|window| window.is_open(local))
    }
}
