//! `doctor`: every check a line: ok, warning or fault, and what to do.

mod account;
mod alarms;
mod database;
pub mod disk;
mod mail;
pub mod purges;
mod settings;
pub mod zone;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::{one_line, print_json, say};
use crate::{
    app::Database,
    config::{Config, ConfigErrors, Fault},
    domain::{recipient::EmailAddress, words},
};

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Send one mail to this address, and show the server's words
    #[arg(long, value_name = "ADDRESS")]
    send_test: Option<EmailAddress>,
    /// Print the checks as one JSON object
    #[arg(long)]
    json: bool,
}

words! {
    /// What a check found.
    "level" Level {
        /// As it should be.
        Ok = "ok",
        /// It works, and should be looked at.
        Warning = "warning",
        /// It does not work.
        Fault = "fault",
    }
}

/// One line.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What was looked at; several lines may have one name.
    #[serde(rename = "check")]
    pub name: String,
    /// How it is.
    pub level: Level,
    /// What was found, in words.
    pub found: String,
    /// What to do; empty when all is well.
    pub advice: String,
}

fn ok(name: &str, found: impl Into<String>) -> Check {
    Check { name: name.to_owned(), level: Level::Ok, found: found.into(), advice: String::new() }
}

fn warning(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { name: name.to_owned(), level: Level::Warning, found: found.into(), advice: advice.into() }
}

fn fault(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { name: name.to_owned(), level: Level::Fault, found: found.into(), advice: advice.into() }
}

/// The settings as far as they can be read, and what is wrong with the others. Without those that say where mail and
/// database are, neither is looked at.
pub struct Readable {
    config: Option<Config>,
    faults: Vec<Fault>,
}

impl Readable {
    /// Reads again without the variables that are wrong, and without those that make no sense then.
    pub fn read(read: impl Fn(&[&str]) -> Result<Config, ConfigErrors>) -> Self {
        let mut faults: Vec<Fault> = Vec::new();
        loop {
            let ignored: Vec<String> = faults.iter().map(|fault| fault.variable.clone()).collect();
            let mut ignored: Vec<&str> = ignored.iter().map(String::as_str).collect();
            if ["MAIL_FROM", "ENVIRONMENT"].iter().any(|variable| ignored.contains(variable)) {
                ignored.push("SMTP_URL");
            }
            for (one, other) in [("DATABASE_URL", "DATABASE_DIRECT_URL"), ("ADMIN_EMAIL", "ADMIN_PASSWORD")] {
                if ignored.contains(&one) || ignored.contains(&other) {
                    ignored.extend([one, other]);
                }
            }
            match read(&ignored) {
                Ok(config) => return Self { config: Some(config), faults },
                Err(ConfigErrors(more)) => {
                    let known = faults.len();
                    faults.extend(more.into_iter().filter(|fault| !ignored.contains(&fault.variable.as_str())));
                    if faults.len() == known || faults.iter().any(|fault| fault.variable == ".env") {
                        return Self { config: None, faults };
                    }
                }
            }
        }
    }

    /// The settings, if enough of them can be read.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    fn is_wrong(&self, variables: &[&str]) -> bool {
        self.faults.iter().any(|fault| variables.contains(&fault.variable.as_str()))
    }
}

pub async fn run(arguments: Arguments, readable: Readable) -> Result<ExitCode> {
    let mut checks: Vec<Check> = readable.faults.iter().map(tell).collect();
    if let Some(config) = &readable.config {
        checks.extend(settings::check(config, &PathBuf::from(".env")));
        let is_mail_known = !readable.is_wrong(&["SMTP_URL", "MAIL_FROM", "ENVIRONMENT", ".env"]);
        if is_mail_known {
            checks.extend(mail::check(config).await);
        }
        if let Some(address) = arguments.send_test.as_ref().filter(|_| is_mail_known) {
            checks.push(mail::send_test(config, address).await);
        }
        checks.extend(alarms::check_ways(config, |variable| readable.is_wrong(&[variable])).await);
        if !readable.is_wrong(&["DATABASE_URL", "DATABASE_DIRECT_URL", "DATA_DIR"]) {
            check_database(config, !readable.is_wrong(&["TIME_ZONE", "SCAN_SCHEDULE", "CLOCK"]), &mut checks).await?;
        }
    }
    let broken = checks.iter().any(|check| check.level == Level::Fault);
    if arguments.json {
        print_json(&serde_json::json!({ "ok": !broken, "checks": checks }))?;
    } else {
        for Check { name, level, found, advice } in &checks {
            let advice = if advice.is_empty() { String::new() } else { format!(" -> {advice}") };
            say!("{level:<7} {name}: {found}{advice}");
        }
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A variable that is wrong; `serve` would not start.
fn tell(fault_of: &Fault) -> Check {
    fault(&fault_of.variable, fault_of.message.clone(), "correct it; nothing starts before, and .env.example says more")
}

async fn check_database(config: &Config, is_time_known: bool, checks: &mut Vec<Check>) -> Result<()> {
    let opening = config.clone();
    // Starting a private server blocks.
    match tokio::task::spawn_blocking(move || Database::open(&opening)).await? {
        Ok(database) => {
            checks.extend(disk::check(config, &database));
            database::check(config, &database, is_time_known, checks).await;
            database.close();
        }
        Err(error) => {
            checks.push(fault("database", one_line(&error), "start it, or correct DATABASE_URL or DATA_DIR"));
        }
    }
    Ok(())
}
