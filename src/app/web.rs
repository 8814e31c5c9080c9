//! What the pages and the REST API go by.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Result;
use chrono::NaiveDate;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::{App, OfficeFiles, mail::OfficeMails};
use crate::{
    scan::{ScanRules, asked::Asked},
    shutdown::Shutdown,
    store::StoreError,
    web::{
        api::{Api, ApiParts, ScanRefused, Scans, UploadLimits},
        pages::{Pages, PagesParts, Unsent},
    },
};

impl App<'_> {
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
            unsent: Unsent::of(config),
        })
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
