//! The composition root: puts the parts together for every command.

mod database;
mod mail;
mod office_files;
pub mod people;
mod web;

pub use database::{Database, Ways};
pub use office_files::OfficeFiles;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, anyhow};
use chrono::NaiveDate;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use crate::{
    clock::{Clock, SystemClock},
    config::Config,
    dispatch::Member,
    domain::alarm::AlarmSurface,
    outgoing::{Caller, heartbeat::Heartbeat},
    purge::PurgeRules,
    scan::{PATIENCE, ScanRules},
    store::{
        PgPool,
        clock::business_offset,
        connect::{Purpose, connect, pool, reading_pool},
    },
    watch::{DirectCall, HELD_LIMITS, WatchRules},
};
use database::refuse_two_databases;

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

    /// What the watch of this process goes by; `pages` is where they are, if it is to call anybody.
    pub fn watch_rules(&self, pages: Option<&Url>) -> WatchRules {
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
            mails_everybody: self.config.smtp_url.is_some() && self.config.is_production(),
            held_limits: HELD_LIMITS,
            surfaces: email.into_iter().chain(webhook).collect(),
            heartbeat: Heartbeat::new(alerts.heartbeat.clone()),
            webhook: pages.zip(alerts.webhook.as_ref()).map(|(pages, url)| DirectCall {
                caller: Caller::new(),
                url: url.clone(),
                pages: pages.clone(),
            }),
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
