//! `token`: access tokens for the API.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use chrono::NaiveDate;
use clap::{Args, Subcommand};

use super::{date, say};
use crate::{
    app::{App, Database},
    auth::Token,
    config::Config,
    domain::scope::Scope,
    domain::text::one_line,
    store::{
        changes::COMMAND,
        tokens::{NewToken, insert_token},
    },
};

#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Make a token and print it; it is shown this once and never again
    Create(Arguments),
}

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// What uses it, such as the name of a system
    #[arg(value_parser = name)]
    name: String,
    /// What it may do: read, write (reads too) or admin (everything)
    #[arg(long, value_name = "SCOPE")]
    scope: Scope,
    /// Last day on which it is taken
    #[arg(long, value_name = "DATE", value_parser = date)]
    expires: Option<NaiveDate>,
}

fn name(text: &str) -> Result<String, &'static str> {
    let name = one_line(text);
    let length = name.chars().count();
    if (1..=100).contains(&length) { Ok(name) } else { Err("a name has 1 to 100 characters") }
}

pub async fn run(verb: Verb, config: Config, database: &Database) -> Result<ExitCode> {
    let Verb::Create(arguments) = verb;
    let app = App::open(config, database).await?;
    let moment = app.moment(None).await?;
    let has_begun = arguments.expires.is_none_or(|last| last >= moment.today);
    ensure!(has_begun, "--expires: must be today ({}) or later", moment.today);
    let token = Token::generate()?;
    let new = NewToken {
        name: &arguments.name,
        scope: arguments.scope,
        hash: token.hash(),
        hint: token.hint(),
        expires_on: arguments.expires,
        by: COMMAND,
    };
    let id = insert_token(&app.pool, &new, moment.now).await?;
    tracing::info!(%id, scope = arguments.scope.as_str(), "token created");
    say!("{}", token.reveal());
    Ok(ExitCode::SUCCESS)
}
