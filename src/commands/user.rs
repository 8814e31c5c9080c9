//! `user`: people who sign in to the pages.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::say;
use crate::{
    app::{App, Database, people},
    config::Config,
    domain::{recipient::EmailAddress, role::Role},
    store::changes::COMMAND,
};

#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Add a user, or give a known one this role, and print the one-time link by which they set a password
    Add(Arguments),
}

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Address with which they sign in
    #[arg(value_parser = address)]
    email: EmailAddress,
    /// What they may do: viewer (read), clerk (change permits and notices too) or admin (everything)
    #[arg(long, value_name = "ROLE")]
    role: Role,
}

fn address(text: &str) -> Result<EmailAddress, String> {
    text.parse::<EmailAddress>().map_err(|error| error.to_string())
}

pub async fn run(verb: Verb, config: Config, database: &Database) -> Result<ExitCode> {
    let Verb::Add(arguments) = verb;
    let app = App::open(config, database).await?;
    let link = people::add(&app, &arguments.email, arguments.role, COMMAND).await?;
    say!("{link}");
    Ok(ExitCode::SUCCESS)
}
