//! `user`: people who sign in to the pages.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::say;
use crate::{
    app::{App, Database, people},
    config::Config,
    domain::{recipient::EmailAddress, role::Role},
    store::{changes::COMMAND, people::users::UserRecord},
};

#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Add a user, or give a known one this role and let them in again; print the one-time link to set a password
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
    let added = people::add(&app, &arguments.email, arguments.role, COMMAND).await?;
    if let Some(known) = &added.before {
        eprintln!("{}", what_changed(known, arguments.role));
    }
    if app.config.public_url_setting.is_none() && app.config.listen_addr.port() == 0 {
        // Which port the service took, or will take, is not known here.
        eprintln!("The link needs the address at which the service runs: set PUBLIC_URL to it.");
    }
    say!("{}", added.link);
    Ok(ExitCode::SUCCESS)
}

/// What became of an account that was there, as a sentence.
fn what_changed(known: &UserRecord, role: Role) -> String {
    let email = &known.email;
    match (known.role == role, known.disabled_at.is_some()) {
        (true, false) => format!("{email} existed already with the role {role}; nothing but the link is new."),
        (true, true) => format!("{email} existed already and is enabled again, with the role {role} as before."),
        (false, false) => format!("{email} existed already; the role was changed from {} to {role}.", known.role),
        (false, true) => {
            format!("{email} existed already and is enabled again; the role was changed from {} to {role}.", known.role)
        }
    }
}
