//! The process row: proof to the others that this process lives, and to itself that they still think so.
//!
//! It is renewed on a connection of its own. A process that finds its row dead begins nothing more under that
//! boot id and comes back under a new one; whoever held a lease under the old one finds the gate shut.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::memory::MemoryWatch;
use crate::{
    mail::MayFinish,
    store::{
        PgConnection, Result,
        connect::{Purpose, connect, in_time},
        leases::free_unknown,
        migrate::outdated,
        processes::{NewProcess, end_process, register_process, renew_process},
        transport::free_unknown_probe,
    },
};

/// How a process presents itself.
#[derive(Debug, Clone)]
pub struct Member {
    /// Where its own connection is opened.
    pub direct_url: String,
    /// What it does.
    pub roles: String,
    /// Zone, schedule, From, public URL and version.
    pub fingerprint: String,
    /// After how long without renewal it is dead.
    pub lease: Duration,
}

#[derive(Debug)]
struct Life {
    boot_id: Uuid,
    /// When the last renewal that succeeded was sent, by a clock that counts suspended time.
    renewed: Duration,
}

/// This process among the living.
#[derive(Debug)]
pub struct Membership {
    member: Member,
    life: Mutex<Life>,
    /// Tokens of leases and of a probe that tasks of this process hold.
    held: Mutex<std::collections::HashSet<Uuid>>,
    /// Held while leases are taken and not yet noted in `held`, and while unknown ones are freed.
    leasing: tokio::sync::Mutex<()>,
    /// Poked when the row should be renewed at once.
    hurry: Notify,
    /// The present boot id, for those who wait for another.
    born: watch::Sender<Uuid>,
    /// What was last seen of the memory guard.
    memory: MemoryWatch,
    /// Why this program may not use the database any more.
    outdated: watch::Sender<Option<String>>,
}

impl Membership {
    /// Registers this process under a new boot id.
    pub async fn join(member: Member) -> Result<Arc<Self>> {
        let mut connection = connect(&member.direct_url, Purpose::Work).await?;
        let life = register(&mut connection, &member).await?;
        let born = watch::Sender::new(life.boot_id);
        let memory = MemoryWatch::default();
        memory.look(&mut connection).await?;
        let (held, leasing, hurry, outdated) = Default::default();
        Ok(Arc::new(Self { member, life: Mutex::new(life), held, leasing, hurry, born, memory, outdated }))
    }

    /// The present boot id.
    pub fn boot_id(&self) -> Uuid {
        self.life().boot_id
    }

    /// Asked before the point of no return: still the same life, and renewed recently enough that nobody can have
    /// declared it dead. Half of the lease, counted from when the renewal was sent.
    pub fn may_finish(self: &Arc<Self>, boot_id: Uuid, hard: CancellationToken) -> MayFinish {
        let membership = Arc::clone(self);
        MayFinish::new(move || {
            let life = membership.life();
            let age = uptime().saturating_sub(life.renewed);
            life.boot_id == boot_id && age < membership.member.lease / 2 && !hard.is_cancelled()
        })
    }

    /// Keeps leases that are being taken from being freed as unknown, until the guard is dropped.
    pub(super) async fn leasing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.leasing.lock().await
    }

    /// Waits until this process, found dead under `boot_id`, is back under a new one.
    pub(super) async fn come_back(&self, boot_id: Uuid) {
        let mut born = self.born.subscribe();
        self.hurry.notify_one();
        // The sender lives as long as we do.
        let _ = born.wait_for(|present| *present != boot_id).await;
    }

    /// Waits until a newer program has put the database beyond this one; says so in a sentence. What statements of
    /// this program would do there, nobody has tried.
    pub async fn outdated(&self) -> String {
        let mut outdated = self.outdated.subscribe();
        // The sender lives as long as we do.
        let found = outdated.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        found.unwrap_or_default()
    }

    /// Notes that a task holds this lease or this probe, until the guard is dropped.
    pub(super) fn hold(self: &Arc<Self>, token: Uuid) -> Held {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        Held { membership: Arc::clone(self), token }
    }

    /// Whether a task holds this lease.
    pub(super) fn holds(&self, token: Uuid) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).contains(&token)
    }

    /// Renews the row until `stop`, on a connection of its own that is opened anew whenever it breaks.
    pub async fn keep_alive(self: Arc<Self>, stop: CancellationToken) {
        let period = (self.member.lease / 6).min(Duration::from_secs(10));
        let mut connection = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.hurry.notified() => {}
                () = tokio::time::sleep(period) => {}
            }
            let limit = self.member.lease / 3;
            match tokio::time::timeout(limit, self.renew(&mut connection)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!("the process row was not renewed: {error}");
                    connection = None;
                }
                Err(_) => {
                    tracing::warn!("the process row was not renewed within {} seconds", limit.as_secs());
                    connection = None;
                }
            }
        }
    }

    async fn renew(&self, connection: &mut Option<PgConnection>) -> Result<()> {
        let is_new = connection.is_none();
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(connect(&self.member.direct_url, Purpose::Work).await?),
        };
        let sent = uptime();
        let boot_id = self.boot_id();
        if renew_process(connection, boot_id).await? {
            self.life().renewed = sent;
        } else {
            let life = register(connection, &self.member).await?;
            tracing::warn!(old = %boot_id, new = %life.boot_id, "this process was taken for dead and came back anew");
            let born = life.boot_id;
            *self.life() = life;
            self.born.send_replace(born);
        }
        if let Some(why) = outdated(connection).await? {
            self.outdated.send_replace(Some(why.to_string()));
        }
        if is_new {
            self.memory.look(connection).await?;
        } else {
            self.memory.look_again(connection).await?;
        }
        // Leases that are just being taken are noted in a moment; the next renewal comes soon enough.
        let Ok(_leasing) = self.leasing.try_lock() else { return Ok(()) };
        let held: Vec<Uuid> = self.held.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let freed = free_unknown(connection, self.boot_id(), &held).await?;
        if freed > 0 {
            tracing::info!(freed, "freed leases in our name that no task holds");
        }
        if free_unknown_probe(connection, self.boot_id(), &held).await? {
            tracing::info!("freed the probe in our name that no task holds");
        }
        Ok(())
    }

    /// Marks an orderly end.
    pub async fn leave(&self) -> Result<()> {
        let mut connection = connect(&self.member.direct_url, Purpose::Work).await?;
        in_time(end_process(&mut connection, self.boot_id())).await
    }

    fn life(&self) -> std::sync::MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lease or a probe that a task holds.
#[derive(Debug)]
pub(super) struct Held {
    membership: Arc<Membership>,
    token: Uuid,
}

impl Held {
    /// What names it.
    pub(super) fn token(&self) -> Uuid {
        self.token
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.membership.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

async fn register(connection: &mut PgConnection, member: &Member) -> Result<Life> {
    let renewed = uptime();
    let boot_id = Uuid::new_v4();
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // Several may run on one machine.
    let host = format!("{host}, process {}", std::process::id());
    let process = NewProcess {
        boot_id,
        host,
        roles: member.roles.clone(),
        fingerprint: member.fingerprint.clone(),
        lease_seconds: i32::try_from(member.lease.as_secs()).unwrap_or(i32::MAX),
    };
    register_process(connection, &process).await?;
    Ok(Life { boot_id, renewed })
}

/// Time since the machine started, suspended time included: a process that was stopped must know it.
fn uptime() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}
