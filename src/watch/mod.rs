//! Looking for what the operator must hear of, on every replica, and saying it once.
//!
//! 1. [`conditions`](conditions::conditions) asks the database what is wrong at this moment; a scrape of the metrics
//!    asks the same.
//! 2. [`Watch`] does so every few seconds on a connection of its own, and writes down what began and what ended: once
//!    in the database for all replicas, with its messages in the same transaction.
//! 3. [`Messenger`](messages::Messenger) delivers the messages by mail and webhook, each from the outbox, apart from
//!    the looking: a mail server that is silent must not stop it, nor the webhook.
//!
//! Every replica logs each alarm once, when it first sees it.

mod blind;
pub mod conditions;
pub mod messages;
mod words;

pub use blind::DirectCall;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use blind::Blind;
use chrono::TimeDelta;
use chrono_tz::Tz;
use conditions::Seen;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    clock::Clock,
    domain::{
        alarm::{AlarmKind, AlarmSurface},
        calendar::day_in,
        saying::counted,
        window::SendWindow,
    },
    outgoing::heartbeat::{Beat, Heartbeat},
    scan::schedule::ScanSchedule,
    store::{
        Moment, PgConnection, Result,
        alarms::{
            Alarm, Condition, Raising, clear_alarms, list_standing, raise_alarms, tell_of_standing, try_lock_alarms,
        },
        clock::database_now,
        connect::{Purpose, connect, in_time, within},
        scans::{keep_scan_schedule, missing_run},
        unit,
        watched::HeldLimits,
    },
};

/// How often each replica looks.
const PERIOD: Duration = Duration::from_secs(10);

/// Questions may go without an answer for so long: a migration may be in their way.
const OBSTRUCTED_FOR: Duration = Duration::from_mins(1);

/// Longest time for telling of it outside: two pings, each with its tries.
const TELLING: Duration = Duration::from_secs(45);

/// How long sessions of the database may keep a transaction open.
pub const HELD_LIMITS: HeldLimits = HeldLimits { any: Duration::from_mins(5), bulk: Duration::from_mins(30) };

/// What the watch of this process goes by.
#[derive(Debug, Clone)]
pub struct WatchRules {
    /// Where its own connection is opened.
    pub direct_url: String,
    /// Turns the database's time into business time.
    pub clock: Arc<dyn Clock>,
    /// The office's zone.
    pub zone: Tz,
    /// When scans are expected.
    pub schedule: ScanSchedule,
    /// How late a scan may be.
    pub grace: TimeDelta,
    /// When mail may go.
    pub window: Option<SendWindow>,
    /// How long a mail may have been due.
    pub oldest_pending: TimeDelta,
    /// No guard of a trial keeps mail back.
    pub mails_everybody: bool,
    /// How long a transaction may stay open.
    pub held_limits: HeldLimits,
    /// Where messages go.
    pub surfaces: Vec<AlarmSurface>,
    /// Who outside hears of a scan that did not run.
    pub heartbeat: Heartbeat,
    /// Who is called when the database is away, and with it the outbox.
    pub webhook: Option<DirectCall>,
}

impl WatchRules {
    /// What counts as now and today.
    pub async fn moment(&self, connection: &mut PgConnection) -> Result<Moment> {
        let now = self.clock.business(database_now(connection).await?);
        Ok(Moment { now, today: day_in(now, self.zone) })
    }
}

/// The watch of one process.
#[derive(Debug)]
pub struct Watch {
    rules: WatchRules,
    boot_id: Uuid,
    /// Poked when there may be messages to deliver.
    messengers: Vec<Arc<Notify>>,
    /// What this process has logged as standing.
    seen: BTreeMap<Uuid, AlarmKind>,
    blind: Blind,
    /// Since when some questions have had no answer.
    obstructed: Option<Instant>,
}

impl Watch {
    pub fn new(rules: WatchRules, boot_id: Uuid, messengers: Vec<Arc<Notify>>) -> Self {
        Self { rules, boot_id, messengers, seen: BTreeMap::new(), blind: Blind::default(), obstructed: None }
    }

    /// Looks every few seconds until `stop`, on a connection that is opened anew whenever it breaks.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut connection = None;
        self.blind.sees(&self.rules);
        loop {
            let looked = stop.run_until_cancelled(self.look_on(&mut connection)).await;
            match looked {
                None => return,
                Some(Ok(())) => {
                    if stop.run_until_cancelled(self.blind.sees_again(&self.rules)).await.is_none() {
                        return;
                    }
                }
                Some(Err(error)) => {
                    tracing::warn!("the watch could not look: {error}");
                    connection = None;
                    let why = error.to_string();
                    let told = self.blind.cannot_look(&self.rules, &why);
                    if stop.run_until_cancelled(told).await.is_none() {
                        return;
                    }
                }
            }
            if stop.run_until_cancelled(tokio::time::sleep(PERIOD)).await.is_none() {
                return;
            }
        }
    }

    async fn look_on(&mut self, connection: &mut Option<PgConnection>) -> Result<()> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(connect(&self.rules.direct_url, Purpose::Watch).await?),
        };
        let raised = in_time(self.look(connection)).await?;
        for alarm in raised.iter().filter(|alarm| alarm.kind == AlarmKind::MissingRun) {
            within(TELLING, self.tell_of_missing(connection, alarm.id)).await?;
        }
        Ok(())
    }

    /// Who listens outside hears that a scan did not run. One that makes up for it may end at the same time: then the
    /// last that is heard must be that all is well.
    async fn tell_of_missing(&self, connection: &mut PgConnection, id: Uuid) -> Result<()> {
        for beat in [Beat::Failed, Beat::Completed] {
            let now = self.rules.moment(connection).await?.now;
            let is_missing = missing_run(connection, &self.rules.schedule, self.rules.grace, now).await?.is_some();
            if is_missing != (beat == Beat::Failed) {
                return Ok(());
            }
            self.rules.heartbeat.beat(beat, id).await;
        }
        Ok(())
    }

    /// Looks once; what this process raised. While another replica writes down what it sees, this one only reads.
    pub async fn look(&mut self, connection: &mut PgConnection) -> Result<Vec<Alarm>> {
        let now = self.rules.moment(connection).await?.now;
        let schedule = &self.rules.schedule;
        keep_scan_schedule(connection, schedule.expression(), schedule.zone().name(), now).await?;
        let raised = self.write_down(connection).await?;
        let standing = list_standing(connection).await?;
        self.log(&standing);
        Ok(raised)
    }

    /// What began and what ended, as seen under the lock.
    async fn write_down(&mut self, connection: &mut PgConnection) -> Result<Vec<Alarm>> {
        let mut transaction = unit::begin(connection).await?;
        if !try_lock_alarms(&mut transaction).await? {
            return Ok(Vec::new());
        }
        let moment = self.rules.moment(&mut transaction).await?;
        let mut seen = conditions::conditions(&self.rules, &mut transaction, moment).await?;
        self.obstruction(&mut seen);
        let raising = Raising { now: moment.now, boot_id: self.boot_id, apart: self.rules.grace };
        let cleared = clear_alarms(&mut transaction, &seen.conditions, &seen.unanswered, moment.now).await?;
        let raised = raise_alarms(&mut transaction, &seen.conditions, raising).await?;
        let to_tell = tell_of_standing(&mut transaction, &self.rules.surfaces).await?;
        transaction.commit().await?;
        if to_tell || !cleared.is_empty() {
            self.messengers.iter().for_each(|messenger| messenger.notify_one());
        }
        Ok(raised)
    }

    /// Whatever keeps questions from being answered for long holds the database, though this role may not see who it is.
    fn obstruction(&mut self, seen: &mut Seen) {
        if seen.unanswered.is_empty() {
            self.obstructed = None;
            return;
        }
        let lasted = self.obstructed.get_or_insert_with(Instant::now).elapsed();
        if seen.conditions.iter().any(|condition| condition.kind == AlarmKind::DatabaseHeld) {
            return;
        }
        if lasted < OBSTRUCTED_FOR {
            // Another process may have met it for longer, and raised it: this one must not clear it.
            seen.unanswered.push(AlarmKind::DatabaseHeld);
            return;
        }
        let kinds: Vec<&str> = seen.unanswered.iter().map(|kind| kind.as_str()).collect();
        seen.conditions.push(Condition {
            kind: AlarmKind::DatabaseHeld,
            subject: String::new(),
            detail: format!("For {} nobody could ask about {}.", counted(lasted.as_secs(), "second"), kinds.join(", ")),
        });
    }

    fn log(&mut self, standing: &[Alarm]) {
        for alarm in standing {
            if self.seen.insert(alarm.id, alarm.kind).is_none() {
                let kind = alarm.kind.as_str();
                tracing::error!(alarm = kind, "alarm: {}: {}", alarm.kind.title(), alarm.detail);
            }
        }
        self.seen.retain(|id, kind| {
            let stands = standing.iter().any(|alarm| alarm.id == *id);
            if !stands {
                tracing::info!(alarm = kind.as_str(), "alarm over: {}", kind.title());
            }
            stands
        });
    }
}
