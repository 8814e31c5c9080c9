//! The database that the configuration names, or a private one, and the ways to it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use secrecy::ExposeSecret;

use crate::{
    config::Config,
    private_postgres::{PrivatePostgres, resolve_data_dir},
    store::{
        PgPool,
        connect::{Purpose, connect},
        memory::present_marks,
        migrate::{MigrateError, migrate},
        pooler::is_pooled,
    },
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
pub(super) async fn refuse_two_databases(pool: &PgPool, direct_url: &str) -> Result<()> {
    let pooled = present_marks(&mut *pool.acquire().await?).await.ok();
    let direct = present_marks(&mut connect(direct_url, Purpose::Work).await?).await?;
    ensure!(
        pooled.is_some_and(|pooled| pooled == direct),
        "DATABASE_URL and DATABASE_DIRECT_URL lead to different databases"
    );
    Ok(())
}
