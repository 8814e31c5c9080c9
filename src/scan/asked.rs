//! Scans that somebody asks a running process for.

use std::sync::Arc;

use chrono::NaiveDate;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{ScanReport, ScanRequest, ScanRules, pass::run_announced, preview::dry_run};
use crate::{
    shutdown::Shutdown,
    store::{Result, StoreError, scans::Trigger},
};

/// Scans when asked, in tasks that a stop waits for.
#[derive(Debug)]
pub struct Asked {
    rules: Arc<ScanRules>,
    shutdown: Shutdown,
}

impl Asked {
    /// Scans by these rules.
    pub fn new(rules: ScanRules, shutdown: Shutdown) -> Self {
        Self { rules: Arc::new(rules), shutdown }
    }

    /// Begins a scan that goes on by itself; its id as soon as it is recorded, or none when another one runs.
    pub async fn begin(&self) -> Result<Option<Uuid>> {
        let (announced, id) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let rules = Arc::clone(&self.rules);
        self.shutdown.spawn_errand("scan that was asked for", async move {
            let request = ScanRequest { scheduled_for: None, trigger: Trigger::Manual, as_of: None };
            let report = run_announced(&rules, request, |id| {
                let _ = announced.send(id);
            })
            .await;
            // How a scan that was recorded ended is in its row, and a failure in the log.
            drop(ended.send(report.map(drop)));
            Ok::<_, std::convert::Infallible>(())
        });
        match id.await {
            Ok(id) => Ok(Some(id)),
            Err(_) => end.await.unwrap_or(Err(StoreError::Stopping)).map(|()| None),
        }
    }

    /// What a scan would do on that day, or today.
    pub async fn preview(&self, as_of: Option<NaiveDate>) -> Result<ScanReport> {
        dry_run(&self.rules, ScanRequest { scheduled_for: None, trigger: Trigger::Manual, as_of }).await
    }
}
