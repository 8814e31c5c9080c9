//! The office's database, and one process that dispatches on it as `permit-notifier dispatch` does.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use permit_notifier::{
    clock::ManualClock,
    config::{AmbiguousPolicy, SmtpUrl},
    dispatch::{DispatchRules, Dispatcher, Member, Membership, TransportReport},
    mail::{self, SmtpMailer, smtp::Limits},
    scan::{PATIENCE, ScanRequest, ScanRules, pass::run_once},
    store::{
        PgConnection, PgPool,
        connect::{Purpose, connect, pool},
        migrate::migrate,
        scans::Trigger,
    },
};
use sqlx::{AssertSqlSafe, Executor};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{CONCURRENCY, Error, server::Taken};

pub const SENDER: &str = "permits@maple.example";
pub const NOTICE_TYPE: &str = "expires-30d";
/// Permits beside those whose notices are due.
const OTHERS: usize = 100_000;
const LEASE: Duration = Duration::from_mins(1);

/// A database with permits.
pub struct Office {
    url: String,
    clock: Arc<ManualClock>,
    pool: PgPool,
}

/// A delivery that was sent.
#[derive(sqlx::FromRow)]
pub struct Sent {
    message_id: String,
    pub recipient: String,
    sha256: String,
    pub content: Vec<u8>,
}

impl Sent {
    /// What the server should have taken.
    pub fn taken(&self) -> Taken {
        let Self { message_id, recipient, sha256, .. } = self;
        Taken { message_id: message_id.clone(), recipient: recipient.clone(), sha256: sha256.clone() }
    }
}

pub fn today() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 12, 1).unwrap_or_default()
}

pub fn now() -> DateTime<Utc> {
    today().and_time(NaiveTime::default()).and_utc() + Duration::from_hours(9)
}

pub fn letterhead() -> Result<mail::Office, Error> {
    mail::Office::parse(&format!("Maple County <{SENDER}>"), None, None)
        .map_err(|error| format!("{} {}", error.variable, error.fault).into())
}

impl Office {
    /// A migrated database with so many permits whose notice is due, and many others.
    pub async fn open(url: &str, due: usize) -> Result<Self, Error> {
        migrate(url).await?;
        let mut connection = connect(url, Purpose::Bulk).await?;
        connection.execute(TYPE).await?;
        let fill = FILL.replace("$today", &format!("'{}'::date", today())).replace("$due", &due.to_string());
        connection.execute(AssertSqlSafe(fill.replace("$all", &(due + OTHERS).to_string()))).await?;
        connection.execute("VACUUM ANALYZE").await?;
        let size = u32::try_from(CONCURRENCY)?.clamp(4, 16) + 6;
        Ok(Self { url: url.to_owned(), clock: Arc::new(ManualClock::new(now())), pool: pool(url, size)? })
    }

    /// Takes back what the round before wrote, and lets the product's scan claim what is due.
    pub async fn claim(&self, due: usize) -> Result<(), Error> {
        let mut connection = self.connection().await?;
        connection.execute("TRUNCATE notices CASCADE").await?;
        let rules = ScanRules {
            direct_url: self.url.clone(),
            clock: Arc::clone(&self.clock) as _,
            zone: chrono_tz::UTC,
            window: None,
            claim_limit: 0,
            boot_id: Uuid::new_v4(),
            patience: PATIENCE,
            stop: CancellationToken::new(),
            heartbeat: permit_notifier::outgoing::heartbeat::Heartbeat::default(),
        };
        let request = ScanRequest { scheduled_for: None, trigger: Trigger::Command, as_of: None };
        let report = run_once(&rules, request).await?;
        if usize::try_from(report.counts.claimed)? != due {
            return Err(format!("{} notices were claimed and not {due}", report.counts.claimed).into());
        }
        connection.execute("CHECKPOINT").await?;
        Ok(())
    }

    /// Sends everything that is due; says how long the dispatch took.
    pub async fn dispatch(&self, port: u16) -> Result<Duration, Error> {
        let member = Member {
            direct_url: self.url.clone(),
            roles: "dispatch".to_owned(),
            fingerprint: "bench".to_owned(),
            lease: LEASE,
        };
        let membership = Membership::join(member).await?;
        let dispatcher = Dispatcher::new(self.rules(port)?, Arc::clone(&membership));
        let ended = CancellationToken::new();
        let mut alive = JoinSet::new();
        alive.spawn(Arc::clone(&membership).keep_alive(ended.clone()));
        let started = Instant::now();
        let (report, transport) = dispatcher.run_once(CancellationToken::new(), CancellationToken::new()).await?;
        let took = started.elapsed();
        ended.cancel();
        alive.join_all().await;
        membership.leave().await?;
        if transport != TransportReport::Ok || report.left_pending > 0 {
            return Err(format!("the dispatch ended with {report:?}").into());
        }
        Ok(took)
    }

    fn rules(&self, port: u16) -> Result<DispatchRules, Error> {
        let office = letterhead()?;
        let url = SmtpUrl::parse(&format!("smtp://127.0.0.1:{port}?tls=none"))?;
        let mailer = SmtpMailer::new(url, Limits::default(), office.from.address());
        Ok(DispatchRules {
            pool: self.pool.clone(),
            direct_url: self.url.clone(),
            clock: Arc::clone(&self.clock) as _,
            zone: chrono_tz::UTC,
            window: None,
            office: Arc::new(office),
            mailer: Arc::new(mailer),
            concurrency: CONCURRENCY,
            max_attempts: 16,
            lease: LEASE,
            as_of: None,
            rate: 0,
            allowlist: None,
            policy: AmbiguousPolicy::Hold,
        })
    }

    /// The deliveries that the database calls sent, with the bytes of their accepted attempts.
    pub async fn sent(&self) -> Result<Vec<Sent>, Error> {
        let sent = sqlx::query_as(
            "SELECT d.message_id, d.recipient, encode(a.payload_sha256, 'hex') AS sha256, m.content
             FROM deliveries d JOIN notices n ON n.id = d.notice_id AND n.state = 'sent'
                               JOIN attempts a ON a.delivery_id = d.id AND a.outcome = 'accepted'
                               JOIN attempt_messages m ON m.attempt_id = a.id
             WHERE d.state = 'sent' AND d.payload_sha256 = a.payload_sha256",
        );
        Ok(sent.fetch_all(&mut self.connection().await?).await?)
    }

    /// How long one commit takes by itself: what the disk adds to everything durable.
    pub async fn commit_time(&self) -> Result<Duration, Error> {
        const TIMES: u32 = 200;
        let mut connection = self.connection().await?;
        let started = Instant::now();
        for _ in 0..TIMES {
            connection
                .execute("SELECT pg_logical_emit_message(true, 'bench', 'a commit that must reach the disk')")
                .await?;
        }
        Ok(started.elapsed() / TIMES)
    }

    async fn connection(&self) -> Result<PgConnection, Error> {
        Ok(connect(&self.url, Purpose::Bulk).await?)
    }
}

const TYPE: &str = "
    INSERT INTO permit_types (code, name, renewal_url, office_contact, grace_days, created_at, updated_at)
    VALUES ('food', 'Food premises', 'https://maple.example/renew',
            E'Permits office, 1 Main Street, Maple\\n+1 555 0100, Monday to Friday', 30, now(), now());
    INSERT INTO schedule_steps (permit_type, position, notice_type, offset_days, class)
    VALUES ('food', 0, 'expires-30d', -30, 'statutory')";

/// The first permits have a notice that is due today, the others expire later.
const FILL: &str = "
    INSERT INTO permits (id, permit_number, number_key, permit_type, status, holder_name, holder_email, site_address,
                         description, expires_on, period_since, created_at, updated_at)
    SELECT gen_random_uuid(), 'P-' || i, 'p-' || i, 'food', 'active', 'Holder ' || i,
           'holder-' || i || '@example.com', i || ' Market Street, Maple', 'Bakery with a counter and twelve seats',
           $today + CASE WHEN i <= $due THEN 30 ELSE 31 + i % 3000 END::int, '2020-01-01', now(), now()
    FROM generate_series(1, $all) AS i";
