//! The feeder: takes over from the dead, and leases what is due for the senders.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{DispatchRules, Membership, Tally, membership::Held, service::TransportState};
use crate::store::{
    Result,
    leases::{Lease, Leased, give_back, lease_due, read_leased},
    recovery::recover,
};

/// Looks for due deliveries at least this often; notifications only make it earlier.
const POLL: Duration = Duration::from_secs(5);

/// How often in a row leasing may fail before a dispatch that is to end gives up.
const SETBACKS_MAX: u32 = 3;

/// A leased delivery on its way to a sender.
#[derive(Debug)]
pub(super) struct Work {
    /// What is to be sent.
    pub(super) leased: Leased,
    /// The process that leased it.
    pub(super) boot_id: Uuid,
    /// Keeps the lease from being freed as unknown.
    pub(super) held: Held,
}

/// Whether to go on when nothing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    /// Wait for more.
    Forever,
    /// End.
    UntilDone,
}

pub(super) struct Feeder {
    pub(super) rules: DispatchRules,
    pub(super) membership: Arc<Membership>,
    pub(super) transport: Arc<TransportState>,
    pub(super) tally: Arc<Tally>,
    pub(super) wake: Arc<Notify>,
    pub(super) stop: CancellationToken,
}

impl Feeder {
    /// Feeds the senders until `stop`, or until nothing is due. What no sender took is given back. Fails only when
    /// it is to end and the database stays away.
    pub(super) async fn run(self, queue: mpsc::Sender<Work>, stay: Stay) -> Result<()> {
        let mut setbacks = 0;
        while !self.stop.is_cancelled() {
            if stay == Stay::UntilDone && self.transport.is_down() {
                break;
            }
            if self.stop.run_until_cancelled(self.transport.wait_until_up()).await.is_none() {
                break;
            }
            match self.feed(&queue).await {
                Ok(0) if stay == Stay::UntilDone => break,
                Ok(0) => self.rest().await,
                Ok(_) => setbacks = 0,
                Err(error) => {
                    tracing::warn!("nothing could be leased: {error}");
                    setbacks += 1;
                    if stay == Stay::UntilDone && (setbacks > SETBACKS_MAX || !error.is_transient()) {
                        return Err(error);
                    }
                    self.rest().await;
                }
            }
        }
        Ok(())
    }

    async fn rest(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.wake.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }

    /// Leases one batch and hands it out; says how many it leased.
    async fn feed(&self, queue: &mpsc::Sender<Work>) -> Result<usize> {
        let moment = self.rules.moment().await?;
        let mut connection = self.rules.pool.acquire().await?;
        let recovered = recover(&mut connection, moment.now).await?;
        if recovered != crate::store::recovery::Recovered::default() {
            self.tally.add_ambiguous(recovered.ambiguous);
            let (ambiguous, freed, held) = (recovered.ambiguous, recovered.freed, recovered.held);
            tracing::warn!(ambiguous, freed, held, "took over from a process that died");
        }
        if !self.rules.window_is_open(moment) {
            return Ok(0);
        }
        let boot_id = self.membership.boot_id();
        let limit = self.rules.concurrency as i64 * 2;
        let leases = lease_due(&mut connection, boot_id, moment.now, limit).await?;
        let held: Vec<Held> = leases.iter().map(|lease| self.membership.hold(lease.token)).collect();
        let found = read_leased(&mut connection, &leases).await?;
        drop(connection);
        let count = leases.len();
        let mut held: std::collections::HashMap<Uuid, Held> =
            leases.iter().map(|lease| lease.token).zip(held).collect();
        let mut not_taken = Vec::new();
        for leased in found {
            let Some(held) = held.remove(&leased.token) else { continue };
            let work = Work { leased, boot_id, held };
            let handed = self.stop.run_until_cancelled(queue.reserve()).await;
            match handed {
                Some(Ok(place)) if !self.transport.is_down() => place.send(work),
                _ => not_taken.push(Lease { delivery_id: work.leased.delivery_id, token: work.leased.token }),
            }
        }
        if !not_taken.is_empty() {
            let mut connection = self.rules.pool.acquire().await?;
            give_back(&mut connection, &not_taken, None).await?;
        }
        Ok(count)
    }
}
