//! `migrate`: bring the database up to date.

use std::process::ExitCode;

use anyhow::Result;

use super::say;
use crate::{app::Database, store::migrate::migrate};

pub async fn run(database: &Database) -> Result<ExitCode> {
    migrate(&database.direct_url).await?;
    say!("The database is up to date.");
    Ok(ExitCode::SUCCESS)
}
