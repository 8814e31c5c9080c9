//! The composition root: puts the parts together for every command.

mod office_files;
pub mod people;

pub use office_files::OfficeFiles;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, anyhow, ensure};
use chrono::NaiveDate;
use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use crate::{
    clock::{Clock, SystemClock},
    config::{Config, Environment, MailAllowlist},
    dispatch::{DispatchRules, Member, preview},
    domain::alarm::AlarmSurface,
    mail::{
        FileMailer, Mailer, Office, Preview,
        smtp::{Limits, SmtpMailer},
    },
    outgoing::{Caller, heartbeat::Heartbeat},
    private_postgres::{PrivatePostgres, resolve_data_dir},
    purge::PurgeRules,
    scan::{PATIENCE, ScanRules, asked::Asked},
    shutdown::Shutdown,
    store::{
        PgPool, StoreError,
        clock::business_offset,
        connect::{Purpose, connect, pool, reading_pool},
        leases::Leased,
        memory::present_marks,
        migrate::{MigrateError, migrate},
        pooler::is_pooled,
    },
    watch::{
        HELD_LIMITS, WatchRules,
        messages::{Messenger, Way},
    },
    web::api::{Api, ApiParts, Mails, ScanRefused, Scans, UploadLimits},
    web::pages::{Pages, PagesParts},
};

/// Where the database is, and the private server that answers there if it is ours.
#[derive(Debug)]
pub struct Database {
    /// For pools, unless it leads through a transaction pooler.
    pub url: String,
    /// For session locks and notifications: never through a transaction pooler.
    pub direct_url: String,
    /// The private server; `None` with `DATABASE_URL`.
    pub private: Option<PrivatePostgres>,
    /// Where files are kept.
    pub data_dir: PathBuf,
}

impl Database {
    /// Finds the database that the configuration names, or starts or joins the private one under its data folder.
    /// Blocks while a server starts.
    pub fn open(config: &Config) -> Result<Self> {
        if let Some(url) = &config.database_url {
            let url = url.expose_secret().to_owned();
            let direct = config.database_direct_url.as_ref().map(|direct| direct.expose_secret().to_owned());
            let data_dir = config.data_dir.clone().unwrap_or_else(|| PathBuf::from("./data"));
            return Ok(Self { direct_url: direct.unwrap_or_else(|| url.clone()), url, private: None, data_dir });
        }
        let (data_dir, said) = resolve_data_dir(config.data_dir.as_deref())?;
        if let Some(said) = said {
            eprintln!("{said}");
        }
        Self::open_private(&data_dir)
    }

    /// Starts or joins the private server under `data_dir`.
    pub fn open_private(data_dir: &Path) -> Result<Self> {
        let private = PrivatePostgres::open(data_dir)?;
        if !private.is_owner() {
            eprintln!(
                "Using the private PostgreSQL of process {}, which owns {}.",
                private.owner_pid(),
                data_dir.display()
            );
        }
        let url = private.url();
        Ok(Self { direct_url: url.clone(), url, private: Some(private), data_dir: data_dir.to_owned() })
    }

    /// Brings the database up to date. Of one that cannot be reached it says which variable leads there.
    pub async fn migrate(&self) -> Result<()> {
        let variable = if self.direct_url == self.url { "DATABASE_URL" } else { "DATABASE_DIRECT_URL" };
        migrate(&self.direct_url).await.map_err(|error| match error {
            MigrateError::Database(_) if self.private.is_none() => {
                anyhow!("{error}; start it, or correct {variable}")
            }
            _ => error.into(),
        })
    }

    /// Finds out which ways to the database lead through a transaction pooler; says where pools connect. Refuses the
    /// way that is for session locks and notifications if it does: nothing would fail, and nothing would hold.
    pub async fn ways(&self) -> Result<Ways> {
        if self.private.is_some() {
            return Ok(Ways::Direct);
        }
        let is_pooled = async |url: &str, variable: &str| {
            is_pooled(url)
                .await
                .with_context(|| format!("the database cannot be used; start it, or correct {variable}"))
        };
        if self.direct_url == self.url {
            ensure!(
                !is_pooled(&self.url, "DATABASE_URL").await?,
                "DATABASE_URL leads through a transaction pooler, where the scan's lock and prepared statements do not \
                 hold: set DATABASE_DIRECT_URL to the database itself, without the pooler"
            );
            return Ok(Ways::Direct);
        }
        ensure!(
            !is_pooled(&self.direct_url, "DATABASE_DIRECT_URL").await?,
            "DATABASE_DIRECT_URL leads through a transaction pooler: set it to the database itself, without the pooler"
        );
        let pooled = is_pooled(&self.url, "DATABASE_URL").await?;
        Ok(if pooled { Ways::AroundPooler } else { Ways::Direct })
    }

    /// Resolves when the private server or its owner goes away; never with `DATABASE_URL`.
    pub async fn ended(&self) -> String {
        match &self.private {
            Some(private) => private.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Stops the private server if it is ours.
    pub fn close(self) {
        if let Some(private) = self.private {
            private.stop();
        }
    }
}

/// How the database is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// No way leads through a transaction pooler.
    Direct,
    /// `DATABASE_URL` does, so `DATABASE_DIRECT_URL` serves for everything.
    AroundPooler,
}

/// Refuses two URLs that lead to different databases: the scan would claim in one what the other never sends.
async fn refuse_two_databases(pool: &PgPool, direct_url: &str) -> Result<()> {
    let pooled = present_marks(&mut *pool.acquire().await?).await.ok();
    let direct = present_marks(&mut connect(direct_url, Purpose::Work).await?).await?;
    ensure!(
        pooled.is_some_and(|pooled| pooled == direct),
        "DATABASE_URL and DATABASE_DIRECT_URL lead to different databases"
    );
    Ok(())
}

/// Connections for pages and the API; requests beyond that wait for one.
const WEB_CONNECTIONS: u32 = 16;
/// Connections for requests that only read.
const READING_CONNECTIONS: u32 = 8;

/// What every command that touches the database has at hand.
#[derive(Debug)]
pub struct App<'d> {
    /// The configuration.
    pub config: Config,
    /// The database.
    pub database: &'d Database,
    /// Connections for short transactions of scans and dispatch.
    pub pool: PgPool,
    /// Connections for pages and the API, so that neither callers nor mail can take them all from the other.
    pub web_pool: PgPool,
    /// Connections for what pages and the API only look up.
    pub reading_pool: PgPool,
    /// Business time.
    pub clock: Arc<dyn Clock>,
}

impl<'d> App<'d> {
    /// Brings the database up to date and puts the parts together.
    pub async fn open(config: Config, database: &'d Database) -> Result<Self> {
        let ways = database.ways().await?;
        database.migrate().await?;
        // A pool for the senders' short transactions, clerks, feeder and the web.
        let size = u32::try_from(config.mail_concurrency).unwrap_or(8).clamp(4, 16) + 6;
        let url = match ways {
            Ways::Direct => &database.url,
            Ways::AroundPooler => {
                tracing::info!(
                    "DATABASE_URL leads through a transaction pooler, so DATABASE_DIRECT_URL is used for everything"
                );
                &database.direct_url
            }
        };
        let (pool, web_pool) = (pool(url, size)?, pool(url, WEB_CONNECTIONS)?);
        let reading_pool = reading_pool(url, READING_CONNECTIONS)?;
        if database.url != database.direct_url && ways == Ways::Direct {
            refuse_two_databases(&pool, &database.direct_url).await?;
        }
        let offset = match config.clock {
            None => chrono::TimeDelta::zero(),
            Some(starts_at) => {
                let mut connection = connect(&database.direct_url, Purpose::Work).await?;
                business_offset(&mut connection, &starts_at.to_rfc3339(), starts_at).await?
            }
        };
        Ok(Self { config, database, pool, web_pool, reading_pool, clock: Arc::new(SystemClock { offset }) })
    }

    /// Business time and day at this moment.
    pub async fn moment(&self, as_of: Option<NaiveDate>) -> Result<crate::store::Moment> {
        let now = crate::store::clock::database_now(&self.pool).await?;
        Ok(self.scan_rules(Uuid::nil()).moment(now, as_of))
    }

    /// Refuses a day that counts as today and lies in the future, where that would mail real people too early.
    pub async fn check_as_of(&self, as_of: Option<NaiveDate>) -> Result<()> {
        let Some(day) = as_of else { return Ok(()) };
        let today = self.moment(None).await?.today;
        if self.config.is_production() && day > today {
            return Err(anyhow!(
                "--as-of: must not be after today ({today}) with ENVIRONMENT=production, except with scan --dry-run"
            ));
        }
        Ok(())
    }

    /// What scans of this process go by.
    pub fn scan_rules(&self, boot_id: Uuid) -> ScanRules {
        ScanRules {
            direct_url: self.database.direct_url.clone(),
            clock: Arc::clone(&self.clock),
            zone: self.config.time_zone,
            window: self.config.send_window.clone(),
            claim_limit: self.config.scan_claim_limit.map_or(0, u64::from),
            boot_id,
            patience: PATIENCE,
            stop: CancellationToken::new(),
            heartbeat: Heartbeat::new(self.config.alerts.heartbeat.clone()),
        }
    }

    /// What the watch of this process goes by.
    pub fn watch_rules(&self) -> WatchRules {
        let Config { alerts, scan_schedule, scan_grace, send_window, .. } = &self.config;
        let email = alerts.email.as_ref().map(|_| AlarmSurface::Email);
        let webhook = alerts.webhook.as_ref().map(|_| AlarmSurface::Webhook);
        WatchRules {
            direct_url: self.database.direct_url.clone(),
            clock: Arc::clone(&self.clock),
            zone: self.config.time_zone,
            schedule: scan_schedule.clone(),
            grace: *scan_grace,
            window: send_window.clone(),
            oldest_pending: alerts.oldest_pending,
            held_limits: HELD_LIMITS,
            surfaces: email.into_iter().chain(webhook).collect(),
            heartbeat: Heartbeat::new(alerts.heartbeat.clone()),
        }
    }

    /// What tells of alarms on one surface, if it is set: by mail only where mail leaves from (`mails`), by webhook
    /// wherever somebody watches.
    pub fn messenger(
        &self,
        surface: AlarmSurface,
        mails: bool,
        pages: &Url,
        poke: &Arc<Notify>,
    ) -> Result<Option<Messenger>> {
        let alerts = &self.config.alerts;
        let way = match (surface, alerts.email.clone(), alerts.webhook.clone()) {
            (AlarmSurface::Email, Some(address), _) if mails => {
                let office = Arc::new(self.office()?);
                let mailer = self.mailer(&office)?;
                Way::Email { address, office, mailer }
            }
            (AlarmSurface::Webhook, _, Some(url)) => Way::Webhook { url, caller: Caller::new() },
            _ => return Ok(None),
        };
        Ok(Some(Messenger {
            direct_url: self.database.direct_url.clone(),
            way,
            clock: Arc::clone(&self.clock),
            zone: self.config.time_zone,
            pages: pages.clone(),
            poke: Arc::clone(poke),
        }))
    }

    /// Whom the mail is from.
    fn office(&self) -> Result<Office> {
        let config = &self.config;
        let reply_to = config.mail_reply_to.as_ref().map(ToString::to_string);
        let bounce = config.bounce_address.as_ref().map(ToString::to_string);
        let mut office = Office::parse(&config.mail_from.to_string(), reply_to.as_deref(), bounce.as_deref())
            .map_err(|error| anyhow!("{} {}", error.variable, error.fault))?;
        if let Some(Environment::Named(name)) = &config.environment {
            office.subject_tag = Some(name.clone());
        }
        Ok(office)
    }

    /// What dispatches of this process go by.
    pub fn dispatch_rules(&self, as_of: Option<NaiveDate>) -> Result<DispatchRules> {
        let (config, office) = (&self.config, self.office()?);
        let mailer = self.mailer(&office)?;
        Ok(DispatchRules {
            pool: self.pool.clone(),
            direct_url: self.database.direct_url.clone(),
            clock: Arc::clone(&self.clock),
            zone: config.time_zone,
            window: config.send_window.clone(),
            office: Arc::new(office),
            mailer,
            allowlist: self.allowlist(),
            rate: config.mail_rate_per_second,
            policy: config.ambiguous_policy,
            concurrency: config.mail_concurrency,
            max_attempts: config.max_attempts,
            lease: config.lease,
            as_of,
        })
    }

    /// What carries the mail: the server that is set, else files.
    pub fn mailer(&self, office: &Office) -> Result<Arc<dyn Mailer>> {
        Ok(match &self.config.smtp_url {
            Some(url) => Arc::new(SmtpMailer::new(url.clone(), Limits::default(), office.from.address())),
            None => Arc::new(FileMailer::new(self.mail_folder()?)),
        })
    }

    /// Outside production only these addresses are mailed.
    fn allowlist(&self) -> Option<MailAllowlist> {
        let guarded = self.config.smtp_url.is_some() && !self.config.is_production();
        guarded.then(|| self.config.mail_allowlist.clone())
    }

    /// The REST API.
    ///
    /// `scans`: whether this process scans, so that it may be asked for one.
    pub fn api(&self, boot_id: Uuid, scans: bool, shutdown: &Shutdown) -> Result<Api> {
        let rules = ScanRules { stop: shutdown.soft().clone(), ..self.scan_rules(boot_id) };
        Ok(Api::new(ApiParts {
            mails: Arc::new(OfficeMails(self.office()?)),
            scans: Arc::new(AskedScans { asked: Asked::new(rules, shutdown.clone()), scans }),
            files: Arc::new(self.files()),
            uploads: UploadLimits::default(),
            pool: self.web_pool.clone(),
            reading_pool: self.reading_pool.clone(),
            clock: Arc::clone(&self.clock),
            zone: self.config.time_zone,
            window: self.config.send_window.clone(),
            claim_limit: self.config.scan_claim_limit.map_or(0, u64::from),
            rate_per_minute: self.config.api_rate_per_minute,
        }))
    }

    /// The pages, over the API of the same process. `bound` is what is listened on.
    pub fn pages(&self, api: Api, bound: SocketAddr) -> Pages {
        let config = &self.config;
        Pages::new(PagesParts {
            api,
            public_url: config.public_url(bound),
            proxies: config.trusted_proxies.clone(),
            schedule: config.scan_schedule.clone(),
            grace: config.scan_grace,
            change_delay: config.change_delay,
            unsent: self.unsent(),
        })
    }

    /// Why mail is not really sent, if it is not.
    fn unsent(&self) -> Option<String> {
        if self.config.smtp_url.is_none() {
            return Some("SMTP_URL is not set, so mail is kept as files on the server.".to_owned());
        }
        let name = self.config.environment.as_ref().filter(|_| !self.config.is_production())?;
        let whom = if self.config.mail_allowlist.is_everybody() {
            "mail goes to everybody, with a mark in its subject"
        } else {
            "mail goes only to addresses that MAIL_ALLOWLIST allows"
        };
        Some(format!("This is {name}: {whom}."))
    }

    /// Imports and exports over HTTP.
    fn files(&self) -> OfficeFiles {
        OfficeFiles {
            direct_url: self.database.direct_url.clone(),
            pool: self.web_pool.clone(),
            clock: Arc::clone(&self.clock),
            zone: self.config.time_zone,
            window: self.config.send_window.clone(),
            claim_limit: self.config.scan_claim_limit.map_or(0, u64::from),
        }
    }

    /// Where mail on disk goes.
    pub fn mail_folder(&self) -> Result<PathBuf> {
        let folder = &self.database.data_dir;
        std::path::absolute(folder)
            .map(|folder| folder.join("mail"))
            .with_context(|| format!("DATA_DIR: {} cannot be used", folder.display()))
    }

    /// What purges of this process go by.
    pub fn purge_rules(&self) -> Result<PurgeRules> {
        Ok(PurgeRules {
            direct_url: self.database.direct_url.clone(),
            clock: Arc::clone(&self.clock),
            zone: self.config.time_zone,
            keep: self.config.keep,
            mail_folder: self.mail_folder()?,
            stop: CancellationToken::new(),
        })
    }

    /// How this process presents itself to the others.
    pub fn member(&self, roles: &str) -> Member {
        Member {
            direct_url: self.database.direct_url.clone(),
            roles: roles.to_owned(),
            fingerprint: self.config.fingerprint(),
            lease: self.config.lease,
        }
    }
}

/// Mails of this office, for whoever wants to see one before it goes.
#[derive(Debug)]
struct OfficeMails(Office);

impl Mails for OfficeMails {
    fn preview(&self, copy: &Leased, today: NaiveDate) -> Result<Preview, String> {
        preview(&self.0, copy, today)
    }
}

/// Scans by this process, for whoever asks over HTTP.
#[derive(Debug)]
struct AskedScans {
    asked: Asked,
    /// This process has the role.
    scans: bool,
}

impl Scans for AskedScans {
    fn begin(&self) -> BoxFuture<'_, Result<Uuid, ScanRefused>> {
        Box::pin(async {
            if !self.scans {
                return Err(ScanRefused::NotHere);
            }
            self.asked.begin().await.map_err(ScanRefused::Store)?.ok_or(ScanRefused::Running)
        })
    }

    fn preview(&self, as_of: Option<NaiveDate>) -> BoxFuture<'_, Result<serde_json::Value, StoreError>> {
        Box::pin(async move {
            let report = self.asked.preview(as_of).await?;
            Ok(serde_json::to_value(&report).unwrap_or_default())
        })
    }
}
