//! The feeder: takes over from the dead, and leases what is due for the senders.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::TimeDelta;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{DispatchRules, Membership, Tally, TransportState, judgement::probe_without_message, membership::Held};
use crate::{
    config::AmbiguousPolicy,
    domain::notice::ReasonCode,
    store::{
        Moment, PgConnection, Result,
        actions::resolve_by_policy,
        connect::in_time,
        leases::{Kind, Lease, Leased, Unreadable, give_back, lease_due, read_leased},
        memory::went_back,
        processes::is_alive,
        recovery::{Recovered, end_unsent, recover},
        transport::{Passage, lease_for_probe, passage, return_probe, take_probe},
    },
    telemetry::mask_addresses,
};

/// Looks for due deliveries at least this often; notifications only make it earlier.
const POLL: Duration = Duration::from_secs(5);

/// How often in a row leasing may fail before a dispatch that is to end gives up.
const SETBACKS_MAX: u32 = 3;

/// How long a dispatch that is to end waits for its probe.
const PROBE_LIMIT: Duration = Duration::from_secs(8);

/// How often to look, while one that goes alone is on its way and nothing else is due.
const SUSPECT_LOOK: Duration = Duration::from_millis(20);

/// As many are leased at once even for a single sender, so that its next message is there when the last is under way.
const BATCH_MIN: i64 = 8;

/// Shortest wait before the breaker is looked at again.
const PAUSE_MIN: Duration = Duration::from_millis(250);

/// A leased delivery on its way to a sender.
#[derive(Debug)]
pub(super) struct Work {
    /// What is to be sent.
    pub(super) leased: Leased,
    /// The process that leased it.
    pub(super) boot_id: Uuid,
    /// Keeps the lease from being freed as unknown; not needed beyond the gate.
    pub(super) held: Option<Held>,
    /// It probes a transport that failed. Keeps the probe from being freed as unknown, until what it found is recorded.
    pub(super) probe: Option<Held>,
    /// When it was read.
    pub(super) moment: Moment,
}

/// Whether to go on when nothing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    /// Wait for more.
    Forever,
    /// End.
    UntilDone,
}

/// What one look for due deliveries found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Something, and it was handed out or given back.
    Some,
    /// One to probe the transport with, and it was handed out or given back.
    Probe,
    /// Nothing else, but one that goes alone is on its way.
    Suspect,
    /// Nothing that is due.
    Nothing,
    /// That the others take this process for dead.
    Dead(Uuid),
    /// That the breaker is open, for so long still, or that the memory went back.
    Paused(Duration),
}

pub(super) struct Feeder {
    pub(super) rules: DispatchRules,
    pub(super) membership: Arc<Membership>,
    pub(super) transport: Arc<TransportState>,
    pub(super) tally: Arc<Tally>,
    pub(super) wake: Arc<Notify>,
    pub(super) stop: CancellationToken,
    /// The delivery that was leased last to go alone.
    pub(super) suspect: Option<Uuid>,
}

impl Feeder {
    /// Feeds the senders until `stop`, or until nothing is due. What no sender took is given back. Fails only when
    /// it is to end and the database stays away.
    pub(super) async fn run(mut self, queue: mpsc::Sender<Work>, stay: Stay) -> Result<()> {
        let (mut setbacks, mut probing) = (0, false);
        while !self.stop.is_cancelled() {
            if stay == Stay::UntilDone && self.transport.has_failed() {
                return Ok(());
            }
            if self.stop.run_until_cancelled(self.transport.wait_until_up()).await.is_none() {
                return Ok(());
            }
            match self.feed(&queue).await {
                Ok(Found::Nothing) if stay == Stay::UntilDone => return Ok(()),
                Ok(Found::Nothing) => self.rest().await,
                Ok(Found::Dead(boot_id)) => {
                    self.stop.run_until_cancelled(self.membership.come_back(boot_id)).await;
                }
                // Our own probe is under way; what it finds decides.
                Ok(Found::Paused(_)) if stay == Stay::UntilDone && std::mem::take(&mut probing) => {
                    self.await_probe().await;
                }
                Ok(Found::Paused(_)) if stay == Stay::UntilDone => {
                    self.transport.found_paused();
                    return Ok(());
                }
                Ok(Found::Paused(wait)) => {
                    let wait = wait.clamp(PAUSE_MIN, POLL);
                    self.stop.run_until_cancelled(tokio::time::sleep(wait.mul_f64(1.0 + fastrand::f64() / 4.0))).await;
                }
                Ok(Found::Probe) => probing = true,
                Ok(Found::Suspect) => tokio::time::sleep(SUSPECT_LOOK).await,
                Ok(Found::Some) => setbacks = 0,
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

    /// Leases one batch and hands it out.
    async fn feed(&mut self, queue: &mpsc::Sender<Work>) -> Result<Found> {
        let moment = in_time(self.rules.moment()).await?;
        let mut connection = self.rules.pool.acquire().await?;
        // Before anything is taken over: what an older memory calls under way or unresolved may have ended long ago.
        if in_time(went_back(&mut connection)).await? {
            return Ok(Found::Paused(POLL));
        }
        self.take_over(&mut connection, moment).await?;
        if !self.rules.window_is_open(moment) {
            return Ok(Found::Nothing);
        }
        let boot_id = self.membership.boot_id();
        let (limit, probe) = match in_time(passage(&mut connection)).await? {
            Passage::Free { since } => (Some(self.batch(since)), None),
            Passage::Paused { wait } if wait > Duration::ZERO => return Ok(Found::Paused(wait)),
            Passage::Paused { .. } => match in_time(self.take_probe(&mut connection, boot_id)).await? {
                Some(probe) => (None, Some(probe)),
                None => return Ok(Found::Paused(PAUSE_MIN)),
            },
        };
        let mut held = in_time(self.lease(&mut connection, boot_id, limit, Kind::Usual, moment)).await?;
        if held.is_empty() && probe.is_none() {
            if self.suspect.is_some_and(|token| self.membership.holds(token)) {
                return Ok(Found::Suspect);
            }
            held = in_time(self.lease(&mut connection, boot_id, Some(1), Kind::Suspect, moment)).await?;
            self.suspect = held.first().map(|(lease, _)| lease.token);
        }
        if held.is_empty() {
            if let Some(probe) = probe {
                drop(connection);
                probe_without_message(&self.rules, &self.transport, probe.token()).await?;
                return Ok(Found::Nothing);
            }
            let alive = in_time(is_alive(&mut connection, boot_id)).await?;
            return Ok(if alive { Found::Nothing } else { Found::Dead(boot_id) });
        }
        let token = probe.as_ref().map(Held::token);
        let work = in_time(self.read(&mut connection, boot_id, probe, held, moment)).await?;
        drop(connection);
        self.hand_out(queue, work, token).await?;
        Ok(if token.is_some() { Found::Probe } else { Found::Some })
    }

    /// Hands out to the senders; what none of them takes is given back.
    async fn hand_out(&self, queue: &mpsc::Sender<Work>, work: Vec<Work>, probe: Option<Uuid>) -> Result<()> {
        let mut not_taken = Vec::new();
        let mut unused = probe.filter(|_| work.is_empty());
        for work in work {
            let handed = self.stop.run_until_cancelled(queue.reserve()).await;
            match handed {
                Some(Ok(place)) if !self.transport.is_down() => place.send(work),
                _ => {
                    unused = probe;
                    not_taken.push(work.lease());
                }
            }
        }
        if let Some(token) = unused {
            let mut connection = self.rules.pool.acquire().await?;
            in_time(return_probe(&mut connection, token)).await?;
        }
        if !not_taken.is_empty() {
            let mut connection = self.rules.pool.acquire().await?;
            in_time(give_back(&mut connection, &not_taken, None)).await?;
        }
        Ok(())
    }

    /// Waits until the probe of this process was told a result, or for as long as a dispatch may last without one.
    async fn await_probe(&self) {
        let told = async {
            while !self.transport.was_heard() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(PROBE_LIMIT, self.stop.run_until_cancelled(told)).await;
    }

    /// How many to lease at once: few right after the transport came back, so that it is not overrun.
    fn batch(&self, since: Option<Duration>) -> i64 {
        let usual = (self.rules.concurrency as i64 * 2).max(BATCH_MIN);
        let doublings = since.map_or(u64::MAX, |since| since.as_secs());
        if doublings >= 16 { usual } else { usual.min(1 << doublings) }
    }

    async fn take_over(&self, connection: &mut PgConnection, moment: Moment) -> Result<()> {
        let recovered = in_time(recover(connection, moment.now)).await?;
        if recovered != Recovered::default() {
            self.tally.add_ambiguous(recovered.ambiguous);
            let (ambiguous, freed, held) = (recovered.ambiguous, recovered.freed, recovered.held);
            tracing::warn!(ambiguous, freed, held, "took over from a process that died");
        }
        if let AmbiguousPolicy::ResendAfter(after) = self.rules.policy {
            let older_than = TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX);
            let rules = self.rules.action_rules(moment);
            let resolved = resolve_by_policy(connection, older_than, &rules).await?;
            if resolved > 0 {
                tracing::warn!(resolved, "unresolved attempts count as not delivered, by AMBIGUOUS_POLICY");
            }
        }
        Ok(())
    }

    /// Takes the probe if it is due, and notes that it is held.
    async fn take_probe(&self, connection: &mut PgConnection, boot_id: Uuid) -> Result<Option<Held>> {
        let _leasing = self.membership.leasing().await;
        let probe = take_probe(connection, boot_id).await?.map(|token| self.membership.hold(token));
        if probe.is_some() {
            self.transport.await_word();
        }
        Ok(probe)
    }

    /// Leases a batch, or without a limit the one that probes, and notes that it is held.
    async fn lease(
        &self,
        connection: &mut PgConnection,
        boot_id: Uuid,
        limit: Option<i64>,
        kind: Kind,
        moment: Moment,
    ) -> Result<Vec<(Lease, Held)>> {
        let _leasing = self.membership.leasing().await;
        let leases = match limit {
            Some(limit) => lease_due(connection, boot_id, moment.now, kind, limit).await?,
            None => lease_for_probe(connection, boot_id, moment.now).await?,
        };
        Ok(leases.into_iter().map(|lease| (lease, self.membership.hold(lease.token))).collect())
    }

    /// Reads what was leased; what cannot be read ends here.
    async fn read(
        &self,
        connection: &mut PgConnection,
        boot_id: Uuid,
        mut probe: Option<Held>,
        held: Vec<(Lease, Held)>,
        moment: Moment,
    ) -> Result<Vec<Work>> {
        let leases: Vec<Lease> = held.iter().map(|(lease, _)| *lease).collect();
        let mut held: HashMap<Uuid, Held> = held.into_iter().map(|(lease, held)| (lease.token, held)).collect();
        let mut work = Vec::with_capacity(leases.len());
        for read in read_leased(connection, &leases).await? {
            match read {
                Ok(mail) => {
                    let Some(held) = held.remove(&mail.token) else { continue };
                    work.push(Work { leased: mail, boot_id, held: Some(held), probe: probe.take(), moment });
                }
                Err(unreadable) => self.end_unreadable(connection, &unreadable, moment).await?,
            }
        }
        Ok(work)
    }

    async fn end_unreadable(
        &self,
        connection: &mut PgConnection,
        unreadable: &Unreadable,
        moment: Moment,
    ) -> Result<()> {
        let Unreadable { lease, permit_id, fault } = unreadable;
        let said = mask_addresses(&fault.to_string());
        tracing::error!(delivery = %lease.delivery_id, permit = %permit_id, "a delivery cannot be read: {said}");
        self.tally.refused(ReasonCode::CannotCompose);
        let ending = [(*lease, ReasonCode::CannotCompose)];
        end_unsent(connection, &ending, Some(&fault.to_string()), moment.now).await
    }
}
