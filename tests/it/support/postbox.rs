//! A database with permits and their notices, a clock that stands still, a transport that does as it is told, and
//! dispatchers on all of that. When a test is over it asks [`Postbox::check`] whether what was really taken, and
//! every change of state on the way, agree with the design.

pub mod mailer;
pub mod proxy;
pub mod verbs;
pub mod world;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use permit_notifier::{
    clock::ManualClock,
    config::AmbiguousPolicy,
    dispatch::{DispatchRules, Dispatcher, Member, Membership, Report, TransportReport},
    domain::{calendar::plus_days, permit::PermitTypeCode, window::SendWindow},
    mail::{Mailer, Office},
    store::{Moment, PgPool, changes::ChangeRules, connect, migrate::migrate, permit_types::create_permit_type},
};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::cluster::empty_database;
use mailer::ScriptedMailer;

/// Code of the one permit type.
pub const FOOD: &str = "food";

pub struct Postbox {
    pub url: String,
    pub clock: Arc<ManualClock>,
    pub mailer: ScriptedMailer,
    pub window: Option<SendWindow>,
    pub max_attempts: u32,
    pub lease: Duration,
    /// How long what a change makes due waits.
    pub change_delay: TimeDelta,
    pool: PgPool,
}

/// Noon of the day on which these tests begin, a Monday.
pub fn noon() -> DateTime<Utc> {
    "2027-03-01T12:00:00Z".parse().unwrap()
}

pub fn today() -> NaiveDate {
    noon().date_naive()
}

/// A day so many days from today.
pub fn in_days(days: i64) -> NaiveDate {
    plus_days(today(), days)
}

pub fn office() -> Arc<Office> {
    Arc::new(Office::parse("Maple County <permits@maple.example>", None, None).unwrap())
}

impl Postbox {
    /// A migrated database that writes down every change of a delivery's state.
    pub async fn open() -> Self {
        Self::at(empty_database().await).await
    }

    /// The same in the empty database at `url`.
    pub async fn at(url: String) -> Self {
        migrate(&url).await.expect("a migrated database");
        let mut connection = PgConnection::connect(&url).await.expect("a connection");
        sqlx::raw_sql(world::RECORD_TRANSITIONS).execute(&mut connection).await.expect("the trigger");
        let code: PermitTypeCode = FOOD.parse().expect("a code");
        create_permit_type(&mut connection, &code, "Food premises", noon()).await.expect("a permit type");
        connection.close().await.expect("the end of the connection");
        let pool = connect::pool(&url, 12).expect("a pool");
        Self {
            url,
            clock: Arc::new(ManualClock::new(noon())),
            mailer: ScriptedMailer::default(),
            window: None,
            max_attempts: 16,
            lease: Duration::from_mins(1),
            change_delay: TimeDelta::zero(),
            pool,
        }
    }

    pub fn moment(&self) -> Moment {
        Moment { now: self.clock.now(), today: self.clock.now().date_naive() }
    }

    /// What changes by people go by.
    pub fn change_rules(&self) -> ChangeRules<'static> {
        ChangeRules { delay: self.change_delay, ..ChangeRules::at(self.moment(), None) }
    }

    /// A session of the test's own, to hold locks in.
    pub async fn session(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("a connection")
    }

    pub fn rules(&self, mailer: Arc<dyn Mailer>, concurrency: usize) -> DispatchRules {
        DispatchRules {
            pool: self.pool.clone(),
            direct_url: self.url.clone(),
            clock: Arc::clone(&self.clock) as _,
            zone: chrono_tz::UTC,
            window: self.window.clone(),
            office: office(),
            mailer,
            concurrency,
            max_attempts: self.max_attempts,
            lease: self.lease,
            as_of: None,
            rate: 0,
            allowlist: None,
            policy: AmbiguousPolicy::Hold,
        }
    }

    /// The same with every way to the database leading through `url`.
    pub fn rules_through(&self, url: &str, mailer: Arc<dyn Mailer>, concurrency: usize) -> DispatchRules {
        let pool = connect::pool(url, 8).expect("a pool");
        DispatchRules { pool, direct_url: url.to_owned(), ..self.rules(mailer, concurrency) }
    }

    /// A replica with that many senders and the scripted transport.
    pub async fn replica(&self, concurrency: usize) -> Replica {
        Replica::start(self.rules(Arc::new(self.mailer.clone()), concurrency)).await
    }

    /// Tries what is due, once, with a replica that then ends.
    pub async fn dispatch(&self) -> Report {
        self.dispatch_with(Arc::new(self.mailer.clone())).await.0
    }

    /// The same through another transport; says too whether it is down.
    pub async fn dispatch_with(&self, mailer: Arc<dyn Mailer>) -> (Report, bool) {
        let replica = Replica::start(self.rules(mailer, 4)).await;
        let done = replica.run_once().await;
        replica.leave().await;
        done
    }
}

/// A process as far as the database can tell.
pub struct Replica {
    pub membership: Arc<Membership>,
    pub dispatcher: Dispatcher,
    pub soft: CancellationToken,
    pub hard: CancellationToken,
    alive: CancellationToken,
    tasks: JoinSet<()>,
}

impl Replica {
    pub async fn start(rules: DispatchRules) -> Self {
        let mut replica = Self::start_without_heartbeat(rules).await;
        replica.tasks.spawn(Arc::clone(&replica.membership).keep_alive(replica.alive.clone()));
        replica
    }

    /// One whose row is not renewed.
    pub async fn start_without_heartbeat(rules: DispatchRules) -> Self {
        let member = Member {
            direct_url: rules.direct_url.clone(),
            roles: format!("dispatch with {} senders, process {}", rules.concurrency, std::process::id()),
            fingerprint: "the same".to_owned(),
            lease: rules.lease,
        };
        let membership = Membership::join(member).await.expect("a process row");
        Self {
            dispatcher: Dispatcher::new(rules, Arc::clone(&membership)),
            membership,
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            alive: CancellationToken::new(),
            tasks: JoinSet::new(),
        }
    }

    pub async fn run_once(&self) -> (Report, bool) {
        self.dispatcher.run_once(self.soft.clone(), self.hard.clone()).await.map(told).expect("a report")
    }

    /// Runs one pass beside the test.
    pub fn begin_once(&self) -> Running {
        let mut task = JoinSet::new();
        let (dispatcher, soft, hard) = (self.dispatcher.clone(), self.soft.clone(), self.hard.clone());
        task.spawn(async move { dispatcher.run_once(soft, hard).await.map(told).expect("a report") });
        Running(task)
    }

    /// Runs until it is stopped, beside the test.
    pub fn begin(&mut self) {
        let (dispatcher, soft, hard) = (self.dispatcher.clone(), self.soft.clone(), self.hard.clone());
        self.tasks.spawn(async move { dispatcher.run(soft, hard).await });
    }

    /// Stops and waits for the end of everything, the process row last.
    pub async fn leave(self) {
        self.part().await.expect("an orderly end");
    }

    /// The same; the database may be away.
    pub async fn part(mut self) -> permit_notifier::store::Result<()> {
        self.soft.cancel();
        self.alive.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a task that ends well");
        }
        self.membership.leave().await
    }

    /// Waits for the end of [`Replica::begin`] after a stop; the process lives on.
    pub async fn stopped(&mut self) {
        self.tasks.join_next().await.expect("a task").expect("a task that ends well");
    }
}

/// A pass beside the test.
pub struct Running(JoinSet<(Report, bool)>);

impl Running {
    pub async fn done(mut self) -> (Report, bool) {
        self.0.join_next().await.expect("the pass").expect("a pass that ends well")
    }

    /// What the pass panicked with.
    pub async fn panic(mut self) -> tokio::task::JoinError {
        self.0.join_next().await.expect("the pass").expect_err("a pass that panics")
    }
}

/// Looks again and again until `is_so`, for what has no channel to wait on.
pub async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    until_within(Duration::from_secs(30), what, is_so).await;
}

/// The same for what waits for limits of the product.
pub async fn until_within(limit: Duration, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let limit = tokio::time::Instant::now() + limit;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < limit, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A report with whether the transport was of no use.
fn told((report, transport): (Report, TransportReport)) -> (Report, bool) {
    (report, transport != TransportReport::Ok)
}
