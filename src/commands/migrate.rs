//! `migrate`: bring the database up to date.

use std::process::ExitCode;

use anyhow::Result;

use super::say;
use crate::app::Database;

pub async fn run(database: &Database) -> Result<ExitCode> {
    database.ways().await?;
    database.migrate().await?;
    say!("The database is up to date.");
    Ok(ExitCode::SUCCESS)
}
