//! What a person can run: one file per command.

mod audit;
mod demo;
mod dispatch;
pub mod doctor;
mod errors_file;
mod export;
mod import;
mod migrate;
mod progress;
mod purge;
mod release;
mod resume;
mod scan;
mod serve;
mod token;
mod user;

use std::{io::Write, process::ExitCode, time::Duration};

use anyhow::Result;
use chrono::NaiveDate;
use clap::{Parser, Subcommand};

use crate::{
    app::{App, Database},
    config::{Config, LogFormat},
    domain::saying::counted,
    store::{
        DatabaseError,
        connect::said,
        memory::{compare_marks, difference, sentence},
    },
    telemetry::logs,
};

/// Tells permit holders, in time and never twice, that their permit is about to expire, and can prove it.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = false)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Run the service: web, scan and dispatch (the default)
    Serve(serve::Arguments),
    /// Run everything on sample permits, on a private PostgreSQL, mail kept on disk
    Demo,
    /// Bring the database up to date
    Migrate,
    /// Scan once now, whatever the schedule says
    Scan(scan::Arguments),
    /// Take over from dead processes, try each due delivery once, and end
    Dispatch(dispatch::Arguments),
    /// Import permits from a file
    Import(import::Arguments),
    /// Write permits to standard output
    Export(export::Arguments),
    /// Release, or cancel, what a scan or an import held
    Release(release::Arguments),
    /// Remove old content and personal data, never the memory of what was sent
    Purge(purge::Arguments),
    /// Confirm that a restored or moved database may send again
    Resume(resume::Arguments),
    /// Compare a ledger of accepted messages with the database, both ways
    Audit(audit::Arguments),
    /// Make an access token for the API
    #[command(subcommand)]
    Token(token::Verb),
    /// Let people sign in to the pages
    #[command(subcommand)]
    User(user::Verb),
    /// Check the set-up: every check a line
    Doctor(doctor::Arguments),
}

/// A calendar date of the command line.
fn date(text: &str) -> Result<NaiveDate, String> {
    // Read alone, the format takes blanks, signs and missing zeros too.
    NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .ok()
        .filter(|date| date.to_string() == text)
        .ok_or_else(|| "a date is written YYYY-MM-DD and must exist".to_owned())
}

/// What is wrong with a command line of which each option is right by itself.
fn contradiction(command: &Command) -> Option<String> {
    match command {
        Command::Import(arguments) => arguments.options().err().map(|fault| fault.to_string()),
        Command::Export(arguments) => arguments.fault().map(str::to_owned),
        _ => None,
    }
}

/// Runs the command; errors are one sentence on standard error and exit code 1.
pub fn run(cli: Cli) -> ExitCode {
    let command = cli.command.unwrap_or(Command::Serve(serve::Arguments::default()));
    if let Some(fault) = contradiction(&command) {
        eprintln!("error: {fault}");
        return ExitCode::from(2);
    }
    if let Command::Doctor(arguments) = command {
        return diagnose(arguments);
    }
    let config = match &command {
        Command::Demo => Config::for_demo_from_environment(),
        _ => Config::from_environment(),
    };
    let config = match config {
        Ok(config) => config,
        Err(faults) => {
            eprintln!("{faults}");
            return ExitCode::FAILURE;
        }
    };
    match start(command, config) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("permit-notifier: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes as one sentence; a cause that the sentence already tells is not repeated.
fn one_line(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain() {
        // What the database says has its causes in it.
        let of_database = cause.downcast_ref::<DatabaseError>();
        let text = of_database.map_or_else(|| cause.to_string(), said).replace('\n', " ");
        if !sentence.contains(&text) {
            sentence += if sentence.is_empty() { "" } else { ": " };
            sentence += &text;
        }
        if of_database.is_some() {
            break;
        }
    }
    sentence
}

/// The doctor tells of wrong variables as of everything else.
fn diagnose(arguments: doctor::Arguments) -> ExitCode {
    let readable = doctor::Readable::read(Config::from_environment_without);
    let (format, filter) =
        readable.config().map_or((LogFormat::Pretty, None), |config| (config.log_format, config.log_filter.clone()));
    // What would be a line of the log is a line of the report.
    let done = logs::start(format, filter.as_deref().unwrap_or("error"))
        .map_err(Into::into)
        .and_then(|()| block_on(doctor::run(arguments, readable)));
    done.unwrap_or_else(|error| {
        eprintln!("permit-notifier: {}", one_line(&error));
        ExitCode::FAILURE
    })
}

fn start(command: Command, config: Config) -> Result<ExitCode> {
    // The demo is for reading; and two libraries say at each start what helps nobody.
    let usual = match command {
        Command::Demo => "warn",
        _ => "info,sqlx::postgres::notice=warn,tokio_cron_scheduler=warn",
    };
    logs::start(config.log_format, config.log_filter.as_deref().unwrap_or(usual))?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    if matches!(command, Command::Demo) {
        return demo::run(config);
    }
    if let Command::Serve(arguments) = command {
        let database = Database::open(&config)?;
        let code = block_on(serve::run(arguments, config, &database));
        database.close();
        return code;
    }
    for _ in 1..OWNERS_OUTLIVED {
        if let Some(code) = run_once(&command, &config)? {
            return Ok(code);
        }
    }
    anyhow::bail!("the owners of the private PostgreSQL keep ending; run the command again")
}

/// How many owners of the private server a command may see end before it gives up.
const OWNERS_OUTLIVED: u32 = 10;
/// How long after a failure the end of the owner may still be noticed.
const OWNER_NOTICED: Duration = Duration::from_millis(500);

/// Runs a command that ends. `None`: it had joined another process's private server, and that ended first. Every
/// such command but `export` writes in transactions and can be run again, so it is, and may then be the owner itself.
fn run_once(command: &Command, config: &Config) -> Result<Option<ExitCode>> {
    let database = Database::open(config)?;
    // What has been printed of an export cannot be taken back, so it is not begun again.
    let may_repeat = !matches!(command, Command::Export(_));
    let is_joined = may_repeat && database.private.as_ref().is_some_and(|private| !private.is_owner());
    let code = block_on(async {
        let mut work = std::pin::pin!(run_command(command.clone(), config.clone(), &database));
        tokio::select! {
            code = &mut work => match code {
                Err(error) if is_joined => {
                    let ended = tokio::time::timeout(OWNER_NOTICED, database.ended()).await.is_ok();
                    if ended { Ok(None) } else { Err(error) }
                }
                code => code.map(Some),
            },
            _ = database.ended(), if is_joined => Ok(None),
        }
    });
    database.close();
    code
}

async fn run_command(command: Command, config: Config, database: &Database) -> Result<ExitCode> {
    match command {
        Command::Migrate => migrate::run(database).await,
        Command::Scan(arguments) => scan::run(arguments, config, database).await,
        Command::Import(arguments) => Box::pin(import::run(arguments, config, database)).await,
        Command::Export(arguments) => export::run(arguments, config, database).await,
        Command::Release(arguments) => release::run(arguments, config, database).await,
        Command::Token(verb) => token::run(verb, config, database).await,
        Command::User(verb) => user::run(verb, config, database).await,
        Command::Purge(arguments) => purge::run(arguments, config, database).await,
        Command::Resume(arguments) => resume::run(arguments, config, database).await,
        Command::Audit(arguments) => audit::run(arguments, config, database).await,
        Command::Dispatch(arguments) => dispatch::run(arguments, config, database).await,
        Command::Serve(_) | Command::Demo | Command::Doctor(_) => unreachable!("these have their own way"),
    }
}

/// Runs to the end; tasks that are still blocked then do not keep the process.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

/// Prints a line on standard output. A reader that has gone is no failure of what was done.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::commands::print(format_args!($($text)*))
    };
}
use say;

fn print(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints one JSON object on standard output.
fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value)?;
    say!("{text}");
    Ok(())
}

/// Says why nothing is sent while the memory guard is set; whether it is. Beside JSON that goes to standard error.
async fn tell_of_memory(app: &App<'_>, json: bool) -> Result<bool> {
    let marks = compare_marks(&mut *app.pool.acquire().await?).await?;
    let Some(differs) = difference(&marks) else { return Ok(false) };
    if json {
        eprintln!("{}", sentence(&differs));
    } else {
        say!("{}", sentence(&differs));
    }
    Ok(true)
}

/// Says on standard error what is going on, once it lasts longer than two seconds.
async fn with_progress<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let started = tokio::time::Instant::now();
    let mut next = Duration::from_secs(2);
    loop {
        tokio::select! {
            result = &mut work => return result,
            () = tokio::time::sleep_until(started + next) => {
                eprintln!("{what}: {} so far", counted(next.as_secs(), "second"));
                next *= 2;
            }
        }
    }
}
