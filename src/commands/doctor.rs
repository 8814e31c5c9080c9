//! `doctor`: every check a line: ok, warning or fault, and what to do.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::{one_line, print_json, say};
use crate::{
    app::{Database, Ways},
    clock::{Clock, SystemClock},
    config::{Config, SmtpUrl},
    domain::{attempt::Outcome, recipient::EmailAddress, words},
    mail::{
        Ended, Mailer, MayFinish, Office, compose_test,
        smtp::{Limits, SmtpMailer},
    },
    store::{
        PgConnection,
        clock::database_now,
        connect::{Purpose, connect},
        facts::{ServerFacts, server_facts},
        memory::{compare_marks, difference},
        migrate::is_up_to_date,
    },
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

#[derive(Debug, Serialize)]
struct Check {
    #[serde(rename = "check")]
    name: &'static str,
    level: Level,
    found: String,
    /// What to do; empty when all is well.
    advice: String,
}

fn ok(name: &'static str, found: impl Into<String>) -> Check {
    Check { name, level: Level::Ok, found: found.into(), advice: String::new() }
}

fn warning(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { name, level: Level::Warning, found: found.into(), advice: advice.into() }
}

fn fault(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { name, level: Level::Fault, found: found.into(), advice: advice.into() }
}

pub async fn run(arguments: Arguments, config: Config) -> Result<ExitCode> {
    let mut checks = vec![check_environment(&config)];
    checks.extend(check_mail(&config).await);
    if let Some(address) = &arguments.send_test {
        checks.push(send_test(&config, address).await);
    }
    let opening = config.clone();
    // Starting a private server blocks.
    let database = tokio::task::spawn_blocking(move || Database::open(&opening)).await?;
    match &database {
        Ok(database) => check_all(&config, database, &mut checks).await,
        Err(error) => {
            checks.push(fault("database", one_line(error), "start it, or correct DATABASE_URL or DATA_DIR"));
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
    if let Ok(database) = database {
        database.close();
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn check_environment(config: &Config) -> Check {
    let unset = || warning("environment", "ENVIRONMENT is not set", "set it to production on the real service");
    config.environment.as_ref().map_or_else(unset, |environment| ok("environment", environment.to_string()))
}

/// Tries the mail server out, up to naming the sender; nothing is sent.
async fn check_mail(config: &Config) -> Vec<Check> {
    let Some(url) = &config.smtp_url else {
        let found = format!("from {}; kept on disk, nothing is really sent", config.mail_from);
        return vec![warning("mail", found, "set SMTP_URL on the real service")];
    };
    let sender: Result<EmailAddress, _> = config.mail_from.email.to_string().parse();
    let Ok(sender) = sender else {
        return vec![fault("mail", format!("MAIL_FROM {} cannot be used", config.mail_from), "correct MAIL_FROM")];
    };
    let tried = SmtpMailer::new(url.clone(), Limits::for_a_look(), &sender).check(&sender).await;
    let mut checks: Vec<Check> =
        tried.steps.iter().map(|step| ok("mail", format!("{}: {}", step.phase, step.said))).collect();
    match &tried.fault {
        Some(ended) => {
            let said = ended.response.as_deref().or(ended.reason.as_deref()).unwrap_or("no answer");
            let found = format!("{} failed: {said}", ended.phase);
            checks.push(fault("mail", found, "correct SMTP_URL or MAIL_FROM, or look at the mail server"));
        }
        None => checks.push(match &tried.tls {
            Some(tls) => ok("mail", format!("{} takes mail from {sender}; {tls}", url.server())),
            None => warning(
                "mail",
                format!("{} takes mail from {sender}, in clear", url.server()),
                "use smtps:// or STARTTLS",
            ),
        }),
    }
    checks
}

/// Sends one mail to `address` and shows the server's words.
async fn send_test(config: &Config, address: &EmailAddress) -> Check {
    let Some(url) = &config.smtp_url else {
        return fault("test mail", "SMTP_URL is not set", "set it; mail on disk needs no test");
    };
    match test_mail(config, url, address).await {
        Ok(ended) if ended.outcome == Outcome::Accepted => {
            ok("test mail", format!("accepted for {address}: {}", ended.response.unwrap_or_default()))
        }
        Ok(ended) => {
            let said = ended.response.or(ended.reason.map(Into::into)).unwrap_or_default();
            fault("test mail", format!("{} at {}: {said}", ended.outcome, ended.phase), "look at the mail server")
        }
        Err(error) => fault("test mail", format!("{error:#}"), "correct MAIL_FROM or SMTP_URL"),
    }
}

async fn test_mail(config: &Config, url: &SmtpUrl, address: &EmailAddress) -> Result<Ended> {
    let office = Office::parse(&config.mail_from.to_string(), None, None)?;
    #[expect(clippy::disallowed_methods, reason = "a test mail is outside the office's business time")]
    let message = compose_test(&office, address, chrono::Utc::now())?;
    let sender = office.from.address();
    let mut session = SmtpMailer::new(url.clone(), Limits::for_a_look(), sender).session();
    if let Err(ended) = session.offer(&message.envelope).await {
        return Ok(ended);
    }
    let sent = session.transmit(&message.envelope, &message, None, &MayFinish::always()).await;
    session.close().await;
    Ok(sent.ended)
}

async fn check_all(config: &Config, database: &Database, checks: &mut Vec<Check>) {
    checks.push(check_folder(&database.data_dir));
    match database.ways().await {
        Ok(ways) => checks.push(check_ways(ways)),
        Err(error) => {
            let advice = "start it, or correct DATABASE_URL or DATABASE_DIRECT_URL";
            checks.push(fault("database", one_line(&error), advice));
            return;
        }
    }
    let mut connection = match connect(&database.direct_url, Purpose::Work).await {
        Ok(connection) => connection,
        Err(error) => {
            checks.push(fault("database", error.to_string(), "start it, or correct DATABASE_URL"));
            return;
        }
    };
    match server_facts(&mut connection).await {
        Ok(facts) => checks.extend([check_version(&facts), check_durability(&facts)]),
        Err(error) => checks.push(fault("database", error.to_string(), "look at its log")),
    }
    checks.push(check_migrations(&mut connection).await);
    checks.extend(check_memory(&mut connection).await);
    if let Ok(now) = database_now(&mut connection).await {
        checks.push(check_clock(now));
        checks.push(check_schedule(config, now));
    }
}

fn check_folder(folder: &Path) -> Check {
    let trial = folder.join(".doctor");
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&trial, b"x"));
    let _ = std::fs::remove_file(&trial);
    match written {
        Ok(()) => ok("data folder", format!("{} can be written", folder.display())),
        Err(error) => fault(
            "data folder",
            format!("{} cannot be written: {error}", folder.display()),
            "give this account the right to write there, or set DATA_DIR to another folder",
        ),
    }
}

fn check_ways(ways: Ways) -> Check {
    ok(
        "connections",
        match ways {
            Ways::Direct => "they lead through no transaction pooler",
            Ways::AroundPooler => {
                "DATABASE_URL leads through a transaction pooler; DATABASE_DIRECT_URL is used for everything"
            }
        },
    )
}

fn check_version(facts: &ServerFacts) -> Check {
    let found = format!("PostgreSQL {}", facts.version);
    if facts.version_number >= 140_000 {
        ok("database", found)
    } else {
        fault("database", found, "use version 14 or newer")
    }
}

fn check_durability(facts: &ServerFacts) -> Check {
    let off: Vec<&str> = facts.durability.iter().filter(|(_, on)| !on).map(|(name, _)| *name).collect();
    if off.is_empty() {
        ok("durability", "fsync, full_page_writes and synchronous_commit are on")
    } else {
        let advice = "switch them on: after a crash the memory of what was sent could be wrong";
        fault("durability", format!("off: {}", off.join(", ")), advice)
    }
}

async fn check_migrations(connection: &mut PgConnection) -> Check {
    match is_up_to_date(connection).await {
        Ok(true) => ok("migrations", "the database is up to date"),
        Ok(false) => warning("migrations", "the database is not up to date", "run permit-notifier migrate"),
        Err(error) => fault("migrations", error.to_string(), "look at the database's log"),
    }
}

/// Whether this is the database that wrote the memory of what was sent; nothing to say before the first start.
async fn check_memory(connection: &mut PgConnection) -> Option<Check> {
    let marks = compare_marks(connection).await.ok().filter(|marks| !marks.is_empty())?;
    if let Some(differs) = difference(&marks) {
        let found =
            format!("this is not the database that wrote it, or an older state of it: {differs}; nothing is sent");
        let advice = "compare it with the mail server's log (audit), then run permit-notifier resume --reason TEXT";
        return Some(fault("memory", found, advice));
    }
    let hidden: Vec<&str> = marks.iter().filter(|mark| mark.present.is_none()).map(|mark| mark.name.as_str()).collect();
    if hidden.is_empty() {
        return Some(ok("memory", "this is the database that wrote it"));
    }
    let found = format!("this account may not read the {}; the other marks guard it", hidden.join(" and the "));
    let advice = "grant execute on pg_control_system(), pg_current_wal_lsn() and pg_walfile_name(pg_lsn)";
    Some(warning("memory", found, advice))
}

#[expect(clippy::disallowed_methods, reason = "comparing the host's clock with the database's is the point")]
fn check_clock(database: chrono::DateTime<chrono::Utc>) -> Check {
    let difference = (chrono::Utc::now() - database).num_milliseconds().abs();
    let found = format!("this host and the database differ by {difference} ms");
    if difference < 5_000 {
        ok("clock", found)
    } else {
        warning("clock", found, "the database's clock decides; set both by NTP")
    }
}

fn check_schedule(config: &Config, now: chrono::DateTime<chrono::Utc>) -> Check {
    let offset = config.clock.map(|starts_at| starts_at - now).unwrap_or_default();
    let now = SystemClock { offset }.business(now);
    let zone = config.time_zone;
    let next: Vec<String> = config
        .scan_schedule
        .upcoming(now, 5)
        .iter()
        .map(|at| at.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %Z").to_string())
        .collect();
    ok("schedule", format!("{} in {zone}; next {}", config.scan_schedule.expression(), next.join(", ")))
}
